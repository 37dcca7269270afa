package sqlite

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/store"
	"github.com/edihub/edihub/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a store and closes it at the end of the test.
func open(t *testing.T, o Options) *Store {
	t.Helper()
	if o.MinFree == 0 {
		o.MinFree = -1
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) *storetest.Env {
		t.Helper()
		dir := t.TempDir()
		s := open(t, Options{Dir: dir})
		return &storetest.Env{
			Store: s,
			Restart: func(t *testing.T) store.Store {
				t.Helper()
				if err := s.Close(); err != nil {
					t.Fatalf("close: %v", err)
				}
				return open(t, Options{Dir: dir})
			},
			Crash: func(t *testing.T) store.Store {
				t.Helper()
				return open(t, Options{Dir: copyData(t, dir)})
			},
		}
	})
}

// copyData copies what a process that ends now would leave on disk.
func copyData(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.Walk(dir, func(path string, st os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if st.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), dirMode)
		}
		if name == fileName+"-shm" { // it is memory that the processes share
			return nil
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.OpenFile(filepath.Join(to, name), os.O_CREATE|os.O_WRONLY, fileMode)
		if err != nil {
			return err
		}
		defer out.Close()
		_, err = io.Copy(out, in)
		return err
	})
	if err != nil {
		t.Fatalf("copy: %v", err)
	}
	return to
}

var t0 = time.Date(2026, 8, 14, 9, 30, 0, 0, time.UTC)
