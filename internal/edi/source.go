package edi

import "io"

// Source is content that can be read at any place, in memory or on disk. *bytes.Reader and
// *io.SectionReader are Sources.
type Source interface {
	io.ReaderAt
	// Size is the length in bytes.
	Size() int64
}

// Scratch is a place for intermediate content (a decrypted body, a spooled upload): written
// first, then read as a Source. Close gives back its memory or removes its file.
type Scratch interface {
	io.Writer
	Source
	io.Closer
}

// NewScratch makes an empty Scratch. It may refuse, for example when the disk is nearly full.
type NewScratch func() (Scratch, error)
