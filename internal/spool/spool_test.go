package spool_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/spool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSpool(t *testing.T, o spool.Options) (*spool.Spool, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spool")
	if o.MinFree == 0 {
		o.MinFree = -1
	}
	s, err := spool.New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func newScratch(t *testing.T, s *spool.Spool) edi.Scratch {
	t.Helper()
	c, err := s.NewScratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func content(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n))) //nolint:gosec // G404: test content.
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestScratchHoldsWhatWasWritten(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for _, tc := range []struct {
		name   string
		size   int
		chunk  int
		limit  int64
		onDisk bool
	}{
		{"nothing", 0, 1, limit, false},
		{"below the limit", 999, 100, limit, false},
		{"at the limit", 1000, 100, limit, false},
		{"one byte more", 1001, 100, limit, true},
		{"byte by byte", 3500, 1, limit, true},
		{"in one piece", 100_000, 100_000, limit, true},
		{"in pieces as large as the limit", 5000, 1000, limit, true},
		{"in pieces larger than the limit", 100_000, 1001, limit, true},
		{"without memory", 10, 3, -1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, dir := newSpool(t, spool.Options{MemoryLimit: tc.limit})
			c := newScratch(t, s)
			want := content(tc.size)
			for rest := want; len(rest) > 0; {
				n := min(tc.chunk, len(rest))
				if got, err := c.Write(rest[:n]); got != n || err != nil {
					t.Fatalf("Write = %d, %v", got, err)
				}
				rest = rest[n:]
			}
			if c.Size() != int64(tc.size) {
				t.Fatalf("Size() = %d, want %d", c.Size(), tc.size)
			}
			if err := iotest.TestReader(io.NewSectionReader(c, 0, c.Size()), want); err != nil {
				t.Fatal(err)
			}
			memory, disk := s.Usage()
			if memory+disk != int64(tc.size) || (disk > 0) != tc.onDisk || memory > max(tc.limit, 0) {
				t.Errorf("Usage() = %d in memory, %d on disk", memory, disk)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("the spool directory shows %v, %v: a crash would leave it", left, err)
			}
		})
	}
}

func TestScratchReadAt(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t, spool.Options{MemoryLimit: 10})
	c := newScratch(t, s)
	// 25 bytes: 20 in the file, 5 in the buffer behind it.
	for _, part := range []string{"0123456789", "abcdefghij", "KLMNO"} {
		if _, err := io.WriteString(c, part); err != nil {
			t.Fatal(err)
		}
	}
	if _, disk := s.Usage(); disk != 20 {
		t.Fatalf("%d bytes on disk, the test wants 20", disk)
	}
	for _, tc := range []struct {
		off  int64
		len  int
		want string
		err  error
	}{
		{0, 5, "01234", nil},
		{18, 4, "ijKL", nil},
		{20, 5, "KLMNO", nil},
		{24, 1, "O", nil},
		{24, 2, "O", io.EOF},
		{25, 1, "", io.EOF},
		{100, 1, "", io.EOF},
		{3, 0, "", nil},
	} {
		b := make([]byte, tc.len)
		n, err := c.ReadAt(b, tc.off)
		if string(b[:n]) != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("ReadAt(%d bytes, %d) = %q, %v; want %q, %v", tc.len, tc.off, b[:n], err, tc.want, tc.err)
		}
	}
	if _, err := c.ReadAt(make([]byte, 1), -1); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("ReadAt(-1) = %v, want an error", err)
	}
}

func TestScratchRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t, spool.Options{MemoryLimit: 4, Max: 10})
	c := newScratch(t, s)
	if _, err := c.Write(content(10)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Write([]byte{1})
	var typed *spool.TooLargeError
	if n != 0 || !errors.Is(err, spool.ErrTooLarge) || !errors.As(err, &typed) || typed.Max != 10 {
		t.Fatalf("Write beyond Max = %d, %v", n, err)
	}
	if c.Size() != 10 {
		t.Errorf("Size() = %d after a refused write", c.Size())
	}
}

func TestDiskLow(t *testing.T) {
	t.Parallel()
	free := int64(100)
	s, _ := newSpool(t, spool.Options{MemoryLimit: 4, MinFree: 50, Free: func(string) (int64, error) { return free, nil }})
	c := newScratch(t, s)
	free = 49
	if _, err := s.NewScratch(); !errors.Is(err, spool.ErrDiskLow) {
		t.Errorf("NewScratch = %v, want ErrDiskLow", err)
	}
	if _, err := c.Write([]byte("1234")); err != nil {
		t.Errorf("what fits into memory needs no disk: %v", err)
	}
	_, err := c.Write([]byte("5"))
	var typed *spool.DiskLowError
	if !errors.As(err, &typed) || typed.Free != 49 || typed.MinFree != 50 {
		t.Fatalf("Write = %v, want a DiskLowError", err)
	}
	free = 100
	if _, again := c.Write([]byte("6")); !errors.Is(again, spool.ErrDiskLow) {
		t.Errorf("a Scratch with a hole went on: %v", again)
	}
	if _, again := c.ReadAt(make([]byte, 1), 0); !errors.Is(again, spool.ErrDiskLow) {
		t.Errorf("a Scratch with a hole was read: %v", again)
	}
	broken := errors.New("statfs is broken")
	s, _ = newSpool(t, spool.Options{MinFree: 1, Free: func(string) (int64, error) { return 0, broken }})
	if _, err := s.NewScratch(); !errors.Is(err, broken) || errors.Is(err, spool.ErrDiskLow) {
		t.Errorf("NewScratch = %v, want the error of Free", err)
	}
}

func TestFreeSpaceIsLookedAtAgainWhileWriting(t *testing.T) {
	t.Parallel()
	looks, free := 0, int64(100)
	s, _ := newSpool(t, spool.Options{MemoryLimit: -1, MinFree: 50, Free: func(string) (int64, error) { looks++; return free, nil }})
	c := newScratch(t, s)
	piece := make([]byte, 8<<20)
	for range 2 {
		if _, err := c.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if looks != 2 {
		t.Errorf("%d looks at the free space, want one for the Scratch and one for its file", looks)
	}
	free = 10
	if _, err := c.Write(piece); !errors.Is(err, spool.ErrDiskLow) {
		t.Errorf("Write after 16 MiB on a full disk = %v", err)
	}
}

func TestDefaultsAskTheSystem(t *testing.T) {
	t.Parallel()
	s, err := spool.New(t.TempDir(), spool.Options{MinFree: 1})
	if err != nil {
		t.Fatal(err)
	}
	newScratch(t, s)
	s, err = spool.New(t.TempDir(), spool.Options{MinFree: 1<<63 - 1})
	if err != nil {
		t.Fatal(err)
	}
	var low *spool.DiskLowError
	if _, err := s.NewScratch(); !errors.As(err, &low) || low.Free <= 0 {
		t.Errorf("NewScratch = %v, want a DiskLowError with the system's figure", err)
	}
}

func TestCloseGivesEverythingBack(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t, spool.Options{MemoryLimit: 10})
	for _, size := range []int{0, 5, 10, 25, 1000} {
		c := newScratch(t, s)
		if _, err := c.Write(content(size)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if memory, disk := s.Usage(); memory != 0 || disk != 0 {
			t.Errorf("Usage() = %d, %d after Close of %d bytes", memory, disk, size)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write after Close = %v", err)
		}
		if _, err := c.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
			t.Errorf("ReadAt after Close = %v", err)
		}
	}
}

func TestNewClearsWhatACrashLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"edihub-spool-123", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := spool.New(dir, spool.Options{}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestNewNeedsADirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := spool.New(file, spool.Options{}); err == nil {
		t.Error("New took a file for a directory")
	}
	s, dir := newSpool(t, spool.Options{MemoryLimit: -1})
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the spool directory: %v, %v", info.Mode(), err)
	}
	c := newScratch(t, s)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Write without a directory = %v", err)
	}
}

func TestScratchesAreIndependent(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t, spool.Options{MemoryLimit: 512})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := content(300 * (i + 1))
			c, err := s.NewScratch()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := io.Copy(c, iotest.HalfReader(bytes.NewReader(want))); err != nil {
				t.Error(err)
			}
			var readers sync.WaitGroup
			for range 3 {
				readers.Go(func() {
					got, err := io.ReadAll(io.NewSectionReader(c, 0, c.Size()))
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("read %d bytes, %v; want the %d written", len(got), err, len(want))
					}
				})
			}
			readers.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if memory, disk := s.Usage(); memory != 0 || disk != 0 {
		t.Errorf("Usage() = %d, %d at the end", memory, disk)
	}
}

// TestScratchIsABuffer compares with a plain slice under any sequence of writes and reads.
func TestScratchIsABuffer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s, err := spool.New(dir, spool.Options{MemoryLimit: rapid.Int64Range(1, 40).Draw(t, "limit"), MinFree: -1})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.NewScratch()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		var want []byte
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			piece := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "piece")
			if _, err := c.Write(piece); err != nil {
				t.Fatal(err)
			}
			want = append(want, piece...)
			off := rapid.IntRange(0, len(want)).Draw(t, "off")
			got := make([]byte, rapid.IntRange(0, 80).Draw(t, "len"))
			n, err := c.ReadAt(got, int64(off))
			expect := want[off:min(len(want), off+len(got))]
			if !bytes.Equal(got[:n], expect) || (n < len(got)) != errors.Is(err, io.EOF) {
				t.Fatalf("ReadAt(%d, %d) = %d bytes, %v", len(got), off, n, err)
			}
		}
	})
}

func BenchmarkScratch(b *testing.B) {
	for _, size := range []int{10 << 10, 1 << 20} {
		b.Run(map[int]string{10 << 10: "10KiB", 1 << 20: "1MiB"}[size], func(b *testing.B) {
			s, err := spool.New(b.TempDir(), spool.Options{})
			if err != nil {
				b.Fatal(err)
			}
			body := content(size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				c, err := s.NewScratch()
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{bytes.NewReader(body)}, make([]byte, 32<<10)); err != nil {
					b.Fatal(err)
				}
				if err := c.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestSetMax: a limit that is raised or lowered holds from the next write on.
func TestSetMax(t *testing.T) {
	t.Parallel()
	s, err := spool.New(t.TempDir(), spool.Options{Max: 4, MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	sc, err := s.NewScratch()
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close() //nolint:errcheck // In memory.
	write := func(want error) {
		t.Helper()
		if _, err := sc.Write([]byte("123")); !errors.Is(err, want) {
			t.Errorf("write: %v, want %v", err, want)
		}
	}
	write(nil)
	write(spool.ErrTooLarge)
	s.SetMax(6)
	write(nil)
	write(spool.ErrTooLarge)
	s.SetMax(0) // the default
	write(nil)
}
