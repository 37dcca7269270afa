//go:build !amd64

package scan

import "unsafe"

// findDelimiters sets, for each byte of the blocks of 64 that begin at src, the bit of the same
// number at dst where the byte is one of the needles.
func findDelimiters(dst, src *byte, blocks int, n *needles) {
	findPortable(unsafe.Slice(dst, blocks*blockBytes/8), unsafe.Slice(src, blocks*blockBytes), n)
}
