package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/edihub/edihub/internal/store"
)

// pieces is a delivery's bytes as one Source: literals and ranges of bodies one after another.
type pieces struct {
	parts  []io.ReaderAt
	starts []int64 // start of each part in the whole; one more than parts
	bodies []store.BodySource
}

// OpenPieces opens the bytes of a delivery.
func (p *Pipeline) OpenPieces(ps []store.Piece) (store.BodySource, error) {
	out := &pieces{starts: []int64{0}}
	open := map[store.Ref]store.BodySource{}
	for i := range ps {
		piece := &ps[i]
		var part io.ReaderAt = bytes.NewReader(piece.Literal)
		if !piece.Body.IsZero() {
			body := open[piece.Body]
			if body == nil {
				var err error
				if body, err = p.store.OpenBody(p.background, piece.Body); err != nil {
					return nil, errors.Join(fmt.Errorf("open body %s: %w", piece.Body, err), out.Close())
				}
				open[piece.Body] = body
				out.bodies = append(out.bodies, body)
			}
			if piece.Offset < 0 || piece.Length < 0 || piece.Offset+piece.Length > body.Size() {
				return nil, errors.Join(fmt.Errorf("range %d+%d is outside of body %s of %d bytes", piece.Offset, piece.Length, piece.Body, body.Size()), out.Close())
			}
			part = io.NewSectionReader(body, piece.Offset, piece.Length)
			if len(piece.Translate) > 0 {
				part = newTranslated(part, piece.Translate)
			}
		}
		out.parts = append(out.parts, part)
		out.starts = append(out.starts, out.starts[i]+piece.Size())
	}
	return out, nil
}

// translated replaces single bytes while it reads: each stays one byte, so offsets hold.
type translated struct {
	r     io.ReaderAt
	table [256]byte
}

func newTranslated(r io.ReaderAt, pairs []byte) *translated {
	t := &translated{r: r}
	for i := range t.table {
		t.table[i] = byte(i)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		t.table[pairs[i]] = pairs[i+1]
	}
	return t
}

// ReadAt implements io.ReaderAt.
func (t *translated) ReadAt(b []byte, off int64) (int, error) {
	n, err := t.r.ReadAt(b, off)
	for i, c := range b[:n] {
		b[i] = t.table[c]
	}
	return n, err //nolint:wrapcheck // io.EOF must stay as it is.
}

// Size implements edi.Source.
func (p *pieces) Size() int64 { return p.starts[len(p.starts)-1] }

// ReadAt implements io.ReaderAt.
func (p *pieces) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	n := 0
	for i := p.find(off); i < len(p.parts) && n < len(b); i++ {
		at := off + int64(n) - p.starts[i]
		left := p.starts[i+1] - p.starts[i] - at
		want := min(left, int64(len(b)-n))
		if want <= 0 {
			continue
		}
		m, err := p.parts[i].ReadAt(b[n:n+int(want)], at)
		n += m
		if err != nil && (!errors.Is(err, io.EOF) || int64(m) < want) {
			return n, fmt.Errorf("read piece %d: %w", i, err)
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// find returns the part in which off lies.
func (p *pieces) find(off int64) int {
	lo, hi := 0, len(p.parts)
	for lo < hi {
		mid := (lo + hi) / 2
		if p.starts[mid+1] <= off {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Close implements io.Closer.
func (p *pieces) Close() error {
	var err error
	for _, b := range p.bodies {
		err = errors.Join(err, b.Close())
	}
	return err
}
