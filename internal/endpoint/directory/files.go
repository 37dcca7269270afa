package directory

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNoSafeRename: the file system can do neither a rename that never overwrites nor hard links.
var errNoSafeRename = errors.New("the file system has no way to name a file without risk of overwriting another; use a different one")

// linkNew is rename without overwriting in two steps. A crash in between leaves both names for
// one file; the old one is a temporary name that is cleared later.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
			return fmt.Errorf("%w: %w", errNoSafeRename, err)
		}
		return err
	}
	return os.Remove(from)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		err = nil // Some network file systems cannot sync a directory; they write through.
	}
	return errors.Join(err, f.Close())
}

// openRegular opens a plain file for reading: never through a symbolic link, and without waiting
// for a writer where the name is a pipe. What is no plain file is an errNotRegular.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
			err = fmt.Errorf("%w: %w", errNotRegular, err)
		}
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s", errNotRegular, path)
	}
	if err != nil {
		_ = f.Close() // The first error is the one to tell.
		return nil, nil, err
	}
	return f, info, nil
}

var errNotRegular = errors.New("not a plain file")

// sameContent compares two readers of the same length.
func sameContent(a, b io.Reader) (bool, error) {
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		if n != m || string(x[:n]) != string(y[:m]) {
			return false, realError(errA, errB)
		}
		if errA != nil || errB != nil {
			return true, realError(errA, errB)
		}
	}
}

func realError(errs ...error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
	return nil
}
