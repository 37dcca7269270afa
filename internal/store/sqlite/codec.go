package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// errCodec: a stored object cannot be read. The file was damaged, or written by a newer program.
var errCodec = errors.New("stored object cannot be read")

// coder writes values to buf or reads them from it, by the same description of an object, so
// that the two ways cannot drift apart. The description of a whole object may grow at its end: what
// an older program did not write reads as zero. Nothing may be removed or moved without a
// migration.
//
// Writing never assigns to the value, not even what it holds already: an object that waits for its
// transaction may be in a worker's hands at the same time.
type coder struct {
	buf     []byte
	reading bool
	bad     bool
}

func (c *coder) uvarint(p *uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, *p)
		return
	}
	if len(c.buf) == 0 {
		*p = 0
		return
	}
	v, n := binary.Uvarint(c.buf)
	if n <= 0 {
		c.bad, c.buf = true, nil
		return
	}
	*p, c.buf = v, c.buf[n:]
}

func (c *coder) int(p *int64) {
	u := uint64(*p)<<1 ^ uint64(*p>>63) //nolint:gosec // G115: zigzag, undone below.
	c.uvarint(&u)
	if c.reading {
		*p = int64(u>>1) ^ -int64(u&1)
	}
}

func (c *coder) num(p *int) {
	v := int64(*p)
	c.int(&v)
	if c.reading {
		*p = int(v)
	}
}

func small[T ~uint8](c *coder, p *T) {
	v := uint64(*p)
	c.uvarint(&v)
	if c.reading {
		*p = T(v)
	}
}

func (c *coder) bool(p *bool) {
	var v uint64
	if *p {
		v = 1
	}
	c.uvarint(&v)
	if c.reading {
		*p = v != 0
	}
}

// take reads a length and that many bytes; they belong to the buffer.
func (c *coder) take() []byte {
	var n uint64
	c.uvarint(&n)
	if n > uint64(len(c.buf)) {
		c.bad, c.buf = true, nil
		return nil
	}
	b := c.buf[:n]
	c.buf = c.buf[n:]
	return b
}

func text[T ~string](c *coder, p *T) {
	if c.reading {
		*p = T(c.take())
		return
	}
	c.buf = binary.AppendUvarint(c.buf, uint64(len(*p)))
	c.buf = append(c.buf, *p...)
}

// bytes reads no bytes as nil.
func (c *coder) bytes(p *[]byte) {
	if c.reading {
		*p = append([]byte(nil), c.take()...)
		return
	}
	c.buf = binary.AppendUvarint(c.buf, uint64(len(*p)))
	c.buf = append(c.buf, *p...)
}

// fixed is an array that is often all zero: ids and hashes.
func (c *coder) fixed(p []byte, zero bool) {
	if !c.reading {
		if zero {
			c.buf = append(c.buf, 0)
			return
		}
		c.buf = binary.AppendUvarint(c.buf, uint64(len(p)))
		c.buf = append(c.buf, p...)
		return
	}
	b := c.take()
	if len(b) != 0 && len(b) != len(p) {
		c.bad = true
		return
	}
	clear(p)
	copy(p, b)
}

func (c *coder) id(p *edi.ID)     { c.fixed(p[:], p.IsZero()) }
func (c *coder) ref(p *store.Ref) { c.fixed(p[:], p.IsZero()) }

// time is kept to the nanosecond, in UTC. The zero time is 0.
func (c *coder) time(p *time.Time) {
	v := nanos(*p)
	c.int(&v)
	if c.reading {
		*p = fromNanos(v)
	}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// many reads an empty list as nil.
func many[T any](c *coder, p *[]T, each func(*coder, *T)) {
	n := uint64(len(*p))
	c.uvarint(&n)
	if c.reading {
		*p = nil
		if n > uint64(len(c.buf)) { // each element takes a byte or more
			c.bad, c.buf = true, nil
			return
		}
		if n == 0 {
			return
		}
		*p = make([]T, n)
	}
	for i := range *p {
		each(c, &(*p)[i])
	}
}

// describe is the way an object's fields are listed.
type describe[T any] func(*coder, *T)

func encode[T any](v *T, d describe[T]) []byte {
	c := coder{buf: make([]byte, 0, 256)}
	d(&c, v)
	return c.buf
}

func decode[T any](b []byte, v *T, d describe[T]) error {
	c := coder{buf: b, reading: true}
	d(&c, v)
	if c.bad {
		return errCodec
	}
	return nil
}

// hashOf is the search key of a text: nil for the empty text, which is not searched. Texts come
// from partners, so the hash is one that nobody can make collide at will.
func hashOf(s string) any {
	if s == "" {
		return nil
	}
	h := sha256.Sum256([]byte(s))
	return int64(binary.BigEndian.Uint64(h[:])) //nolint:gosec // G115: all 64 bits are wanted.
}

func codeWork(c *coder, w *store.Work) {
	small(c, &w.Stage)
	c.id(&w.ID)
	small(c, &w.Kind)
	c.int(&w.Lane)
	c.int(&w.Seq)
	c.int(&w.Gen)
	small(c, &w.State)
	c.bool(&w.Gap)
	text(c, &w.Key)
	text(c, &w.Topic)
	c.num(&w.Tries)
	c.num(&w.Crashes)
	c.int(&w.Cursor)
	c.time(&w.Due)
	c.time(&w.Since)
	text(c, &w.Owner)
	c.int(&w.Epoch)
	c.time(&w.Lease)
	c.int(&w.Handed)
	text(c, &w.Code)
	text(c, &w.Detail)
	text(c, &w.Partner)
	c.time(&w.Died)
	c.bool(&w.Forced)
}

func codeTransmission(c *coder, t *store.Transmission) {
	c.id(&t.ID)
	text(c, &t.Transport)
	text(c, &t.Connection)
	text(c, &t.Own)
	text(c, &t.From)
	text(c, &t.To)
	text(c, &t.MessageID)
	text(c, &t.FileName)
	text(c, &t.Media)
	text(c, &t.State)
	text(c, &t.Code)
	text(c, &t.Detail)
	c.bool(&t.Signed)
	c.bool(&t.Encrypted)
	text(c, &t.MIC)
	c.ref(&t.Content)
	c.ref(&t.Wire)
	c.int(&t.WireSize)
	c.int(&t.Size)
	c.bytes(&t.Answer)
	text(c, &t.Source)
	c.time(&t.At)
	text(c, &t.WireHead)
}

func codeInterchange(c *coder, ic *store.Interchange) {
	c.id(&ic.ID)
	c.id(&ic.Transmission)
	c.num(&ic.Position)
	text(c, &ic.Connection)
	c.ref(&ic.Body)
	codeEnvelope(c, &ic.Envelope)
	many(c, &ic.Groups, codeGroup)
	text(c, &ic.From)
	text(c, &ic.To)
	text(c, &ic.Role)
	text(c, &ic.State)
	text(c, &ic.Code)
	many(c, &ic.Findings, codeFinding)
	c.num(&ic.Total)
	c.num(&ic.Open)
	c.num(&ic.Unrouted)
	c.bool(&ic.Preserve)
	c.int(&ic.Profile)
	c.time(&ic.At)
	c.bool(&ic.Preserve)
	text(c, &ic.OnReject)
	c.findingPlaces(ic.Envelope.Findings)
	for i := range ic.Groups {
		c.findingPlaces(ic.Groups[i].Findings)
	}
	c.findingPlaces(ic.Findings)
}

func codeMessage(c *coder, m *store.Message) {
	c.id(&m.ID)
	c.id(&m.Interchange)
	codeEDIMessage(c, &m.Envelope)
	text(c, &m.Standard)
	text(c, &m.From)
	text(c, &m.To)
	text(c, &m.State)
	text(c, &m.Code)
	many(c, &m.Findings, codeFinding)
	c.id(&m.Delivery)
	c.int(&m.Profile)
	c.time(&m.At)
	text(c, &m.ControlRef)
	c.bool(&m.Test)
	c.findingPlaces(m.Envelope.Findings)
	c.findingPlaces(m.Findings)
	text(c, &m.Envelope.Association)
}

func codeDelivery(c *coder, d *store.Delivery) {
	c.id(&d.ID)
	text(c, &d.Connection)
	text(c, &d.Partner)
	text(c, &d.Own)
	text(c, &d.State)
	text(c, &d.Code)
	text(c, &d.Detail)
	text(c, &d.Envelope)
	text(c, &d.Standard)
	text(c, &d.Type)
	text(c, &d.Sender)
	text(c, &d.Receiver)
	text(c, &d.ControlRef)
	text(c, &d.From)
	text(c, &d.To)
	many(c, &d.Pieces, codePiece)
	c.int(&d.Size)
	many(c, &d.Messages, (*coder).id)
	c.num(&d.Generation)
	c.num(&d.Tries)
	text(c, &d.Proof)
	text(c, &d.MIC)
	text(c, &d.Ack)
	c.bytes(&d.Evidence)
	c.int(&d.Profile)
	c.time(&d.At)
	c.time(&d.EndedAt)
	for i := range d.Pieces { // a piece may not grow where it stands
		c.bytes(&d.Pieces[i].Translate)
	}
}

func codePiece(c *coder, p *store.Piece) {
	c.bytes(&p.Literal)
	c.ref(&p.Body)
	c.int(&p.Offset)
	c.int(&p.Length)
}

func codeEnvelope(c *coder, e *edi.Interchange) {
	text(c, &e.Standard)
	codeParty(c, &e.Sender)
	codeParty(c, &e.Receiver)
	text(c, &e.ControlRef)
	text(c, &e.Version)
	text(c, &e.Charset)
	c.bool(&e.Test)
	c.bool(&e.AckRequest)
	c.int(&e.Offset)
	c.int(&e.Length)
	c.num(&e.Segments)
	c.num(&e.Groups)
	c.num(&e.Messages)
	small(c, &e.Delimiters.Component)
	small(c, &e.Delimiters.Element)
	small(c, &e.Delimiters.Decimal)
	small(c, &e.Delimiters.Release)
	small(c, &e.Delimiters.Repetition)
	small(c, &e.Delimiters.Segment)
	c.bytes(&e.Header)
	c.bool(&e.ServiceUNA)
	text(c, &e.Profile)
	text(c, &e.Custom)
	many(c, &e.Findings, codeFinding)
	c.bool(&e.TrailerSeen)
}

func codeParty(c *coder, p *edi.Party) {
	text(c, &p.Qualifier)
	text(c, &p.ID)
}

func codeGroup(c *coder, g *edi.Group) {
	c.num(&g.Position)
	text(c, &g.FunctionID)
	text(c, &g.Sender)
	text(c, &g.Receiver)
	text(c, &g.ControlRef)
	text(c, &g.Version)
	c.int(&g.Offset)
	c.int(&g.Length)
	c.num(&g.Messages)
	c.bytes(&g.Header)
	many(c, &g.Findings, codeFinding)
}

func codeEDIMessage(c *coder, m *edi.Message) {
	c.num(&m.Position)
	c.num(&m.Group)
	text(c, &m.Type)
	text(c, &m.Version)
	text(c, &m.Ref)
	c.num(&m.Segments)
	c.int(&m.Offset)
	c.int(&m.Length)
	text(c, &m.FunctionID)
	text(c, &m.Document.Number)
	text(c, &m.Document.Function)
	text(c, &m.Document.Version)
	text(c, &m.Document.OrderNo)
	text(c, &m.Document.Buyer)
	text(c, &m.Document.Date)
	many(c, &m.Findings, codeFinding)
}

func codeFinding(c *coder, f *edi.Finding) {
	text(c, &f.Rule)
	text(c, &f.Severity)
	text(c, &f.Ruleset)
	text(c, &f.Location)
	text(c, &f.Segment)
	c.num(&f.Position.Segment)
	c.num(&f.Element)
	c.num(&f.Component)
	c.num(&f.Repetition)
	c.int(&f.Offset)
	c.num(&f.Line)
	many(c, &f.Terms, text[string])
	text(c, &f.Message)
	text(c, &f.Actual)
	text(c, &f.Expected)
}

// findingPlaces are the fields of findings that came later. A finding stands inside of others, so
// they follow at the end of the whole object, where an older object has nothing.
func (c *coder) findingPlaces(fs []edi.Finding) {
	for i := range fs {
		text(c, &fs[i].Loop)
		text(c, &fs[i].DataElement)
	}
}
