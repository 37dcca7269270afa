//go:build !linux

package directory

// renameNew gives a file its new name and fails with os.ErrExist when that is taken.
func renameNew(from, to string) error { return linkNew(from, to) }
