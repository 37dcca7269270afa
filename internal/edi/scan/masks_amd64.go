package scan

// findDelimiters sets, for each byte of the blocks of 64 that begin at src, the bit of the same
// number at dst where the byte is one of the needles.
//
//go:noescape
func findDelimiters(dst, src *byte, blocks int, n *needles)
