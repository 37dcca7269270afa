package receiver

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/idempotency"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// open undoes what protects the message and accepts or refuses it.
func (x *exchange) open(wire edi.Source) {
	if wire.Size() == 0 {
		x.refuse(emptyBody(), nil, wire)
		return
	}
	if as2.IsMDN(x.head.MIME, wire) {
		x.asyncMDN(wire)
		return
	}
	o, err := as2.Open(as2.Inbound{Headers: x.head, Body: wire}, x.openOptions())
	var refusal *as2.Refusal
	switch {
	case errors.As(err, &refusal):
		x.refuse(refusal, nil, wire)
		return
	case err != nil:
		x.unavailable("open", err)
		return
	}
	defer o.Close() //nolint:errcheck // Nothing can be done about a file that is unlinked already.
	switch {
	case o.Payload.Size() > 0:
		x.accept(o, wire)
	case o.Encrypted && !o.Signed:
		// Whoever changes a ciphertext could make its content empty; that he met good padding must
		// not show (RFC 3218 §2.3).
		x.refuse(undecryptable(), nil, wire)
	default:
		x.refuse(emptyBody(), o, wire)
	}
}

func (x *exchange) openOptions() as2.OpenOptions {
	o := as2.OpenOptions{
		Verify:           x.conn.VerifyCerts(x.at),
		RequireSigned:    x.conn.AS2.Requires("signed"),
		RequireEncrypted: x.conn.AS2.Requires("encrypted"),
		Policy:           x.Policy(x.conn),
		Scratch:          x.Spool.NewScratch,
	}
	if o.Policy.MaxDecoded == 0 {
		o.Policy.MaxDecoded = x.maxBody() // nothing grows when it is opened
	}
	for _, k := range x.own.DecryptKeys(x.at) {
		if d, ok := k.Private.(crypto.Decrypter); ok {
			o.Decrypt = append(o.Decrypt, cms.Recipient{Certificate: k.Certificate, Key: d})
		}
	}
	return o
}

func emptyBody() *as2.Refusal {
	return &as2.Refusal{Modifier: as2.UnexpectedProcessingError, Code: CodeEmpty, Text: "The message is empty. Send one file in each message."}
}

// undecryptable is the one refusal that package as2 has for everything wrong inside an encrypted
// message. It is got from there, so that the two never differ by a word.
func undecryptable() *as2.Refusal {
	_, err := as2.Open(as2.Inbound{
		Headers: as2.Headers{MIME: as2.MIMEHeaders{ContentType: "application/pkcs7-mime; smime-type=enveloped-data"}},
		Body:    bytes.NewReader([]byte("no CMS structure")),
	}, as2.OpenOptions{})
	var r *as2.Refusal
	if errors.As(err, &r) {
		return r
	}
	return &as2.Refusal{Modifier: as2.DecryptionFailed, Code: as2.CodeDecryption, Text: "The message could not be decrypted."}
}

// transmission is the record of this request as far as its headers tell.
func (x *exchange) transmission(state, code, detail string) *store.Transmission {
	return &store.Transmission{
		ID: x.id, Transport: "as2", Connection: x.conn.ID, Own: x.own.ID, From: x.head.From, To: x.head.To,
		MessageID: x.head.MessageID, Media: x.head.MIME.ContentType, State: state, Code: code, Detail: detail,
		Source: x.remote, At: x.at,
	}
}

// opened adds what opening the message told.
func opened(t *store.Transmission, o *as2.Opened) {
	t.FileName, t.Media, t.Signed, t.Encrypted = o.Filename.Safe, o.ContentType, o.Signed, o.Encrypted
	t.MIC, t.Size = o.MIC+", "+o.MICAlg, o.Payload.Size()
}

// accept makes the message durable and answers. The MDN is finished first, because it has to be
// in the same transaction.
func (x *exchange) accept(o *as2.Opened, wire edi.Source) {
	ctx, cancel := x.storing(o.Payload.Size() + wire.Size())
	defer cancel()
	t := x.transmission(store.StateAccepted, "", "")
	opened(t, o)
	answer, err := x.mdn(nil, o)
	if err != nil {
		x.unavailable("mdn", err)
		return
	}
	t.Answer = answer
	a := &pipeline.Arrival{Transmission: t, Since: x.at.Add(-x.Window)}
	if err := x.stage(ctx, a, o.Payload, wire); err != nil {
		x.unavailable("stage", err)
		return
	}
	a.Key = &store.NaturalKey{
		Scope: store.ScopeAS2, Hash: idempotency.AS2(x.head.From, x.head.To, x.head.MessageID),
		Content: contentKey(t), Object: t.ID, At: x.at,
	}
	release, err := x.turns.take(ctx, a.Key.Hash)
	if err != nil {
		x.unavailable("turn", err)
		return
	}
	err = x.Pipeline.Accept(ctx, a)
	release()
	var repeat *pipeline.RepeatError
	switch {
	case errors.As(err, &repeat):
		x.again(ctx, a, o, repeat)
		return
	case err != nil:
		x.unavailable("accept", err)
		return
	}
	x.report(ResultAccepted, "", x.opening(o)...)
	x.sendAnswer(answer)
}

func (x *exchange) opening(o *as2.Opened) []zap.Field {
	return []zap.Field{
		zap.Int64("bytes", o.Payload.Size()), zap.Bool("signed", o.Signed), zap.Bool("encrypted", o.Encrypted), zap.Strings("notes", o.Notes),
	}
}

// stage writes the bodies. What travelled is kept beside the content where the two differ.
func (x *exchange) stage(ctx context.Context, a *pipeline.Arrival, content, wire edi.Source) error {
	t := a.Transmission
	t.WireSize = wire.Size()
	var err error
	if a.Content, err = x.Store.StageBody(ctx, content); err != nil {
		return fmt.Errorf("stage the content: %w", err)
	}
	t.Content, t.Wire = a.Content.Ref, a.Content.Ref
	same, err := sameBytes(content, wire)
	if err != nil {
		return fmt.Errorf("compare content and wire: %w", err)
	}
	if same {
		return nil
	}
	if a.Wire, err = x.Store.StageBody(ctx, wire); err != nil {
		return fmt.Errorf("stage the wire: %w", err)
	}
	t.Wire, t.WireHead = a.Wire.Ref, x.wireHead()
	return nil
}

// wireHead are the header lines that a kept body needs to be opened and verified again.
func (x *exchange) wireHead() string {
	var b strings.Builder
	for _, name := range []string{"Content-Type", "Content-Transfer-Encoding"} {
		for _, v := range x.r.Header.Values(name) {
			b.WriteString(name + ": " + v + "\r\n")
		}
	}
	return b.String()
}

func sameBytes(a, b edi.Source) (bool, error) {
	if a.Size() != b.Size() {
		return false, nil
	}
	size := min(32<<10, a.Size())
	p, q := make([]byte, size), make([]byte, size)
	for off := int64(0); off < a.Size(); {
		n := min(int64(len(p)), a.Size()-off)
		for _, s := range []struct {
			src edi.Source
			to  []byte
		}{{a, p[:n]}, {b, q[:n]}} {
			if got, err := s.src.ReadAt(s.to, off); int64(got) < n {
				return false, errors.Join(err, io.ErrUnexpectedEOF)
			}
		}
		if !bytes.Equal(p[:n], q[:n]) {
			return false, nil
		}
		off += n
	}
	return true, nil
}

// contentKey tells a repeat from another content under the same Message-ID. A sender encrypts and
// signs anew, so it goes by what was opened: the file and, where a signature or an envelope covers
// them, its media type and name. Where both messages name the same MIC algorithm their MICs are
// compared beside it (sameMIC), which leaves no header out.
func contentKey(t *store.Transmission) [32]byte {
	h := sha256.New()
	h.Write(t.Content[:])
	if t.Signed || t.Encrypted {
		for _, s := range []string{t.Media, t.FileName} {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(s)))
			h.Write(n[:])
			h.Write([]byte(s))
		}
	}
	return [32]byte(h.Sum(nil))
}

// sameMIC compares two MICs as they are recorded; those in different algorithms tell nothing.
func sameMIC(a, b string) bool {
	micA, algA, _ := strings.Cut(a, ", ")
	micB, algB, _ := strings.Cut(b, ", ")
	digestA, errA := cms.ParseDigest(algA)
	digestB, errB := cms.ParseDigest(algB)
	return errA != nil || errB != nil || digestA != digestB || micA == micB
}

// again answers a Message-ID that was accepted before.
func (x *exchange) again(ctx context.Context, a *pipeline.Arrival, o *as2.Opened, repeat *pipeline.RepeatError) {
	first, err := x.first(ctx, repeat.First)
	if err != nil {
		// The first one is in work elsewhere: never a negative answer (CONTRACTS, AS2 answers).
		x.unavailable("first", err)
		return
	}
	if !repeat.Same || !sameMIC(first.MIC, a.Transmission.MIC) {
		x.hold(ctx, a, o, first)
		return
	}
	t := x.transmission(store.StateRepeated, CodeRepeat, "repeat of transmission "+first.ID.String())
	opened(t, o)
	t.WireSize = a.Transmission.WireSize
	if err := x.Pipeline.Keep(ctx, &pipeline.Arrival{Transmission: t}); err != nil {
		x.unavailable("keep", err)
		return
	}
	answer := first.Answer
	if len(answer) == 0 {
		answer = a.Transmission.Answer // nobody asked the first time; the content is the same
	}
	x.report(ResultRepeated, CodeRepeat, zap.String("first", first.ID.String()))
	x.sendAnswer(answer)
}

// first reads the transmission that holds a key. On another node it may be a moment until its
// commit can be seen.
func (x *exchange) first(ctx context.Context, id edi.ID) (*store.Transmission, error) {
	for try := 0; ; try++ {
		t, err := x.Store.GetTransmission(ctx, id)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, store.ErrNotFound) || try == 20 {
			return nil, fmt.Errorf("read the first transmission: %w", err)
		}
		c, stop := x.wall.NewTimer(50 * time.Millisecond)
		select {
		case <-c:
		case <-ctx.Done():
			stop()
			return nil, ctx.Err()
		}
	}
}

// hold keeps a message whose id was used before for other content, and says so.
func (x *exchange) hold(ctx context.Context, a *pipeline.Arrival, o *as2.Opened, first *store.Transmission) {
	refusal := as2.RefuseDuplicate()
	answer, err := x.mdn(refusal, o)
	if err != nil {
		x.unavailable("mdn", err)
		return
	}
	t := a.Transmission
	t.State, t.Code, t.Detail = store.StateHeld, refusal.Code, "transmission "+first.ID.String()+" has the same Message-ID and other content"
	t.Answer = answer
	if !o.Signed && !x.kept.body(x.conn.ID, x.at, t.Size+t.WireSize) {
		a.Content, a.Wire, t.Content, t.Wire, t.WireHead = nil, nil, store.Ref{}, store.Ref{}, ""
	}
	if err := x.Pipeline.Keep(ctx, &pipeline.Arrival{Transmission: t, Content: a.Content, Wire: a.Wire}); err != nil {
		x.unavailable("keep", err)
		return
	}
	x.report(ResultHeld, refusal.Code, zap.String("first", first.ID.String()))
	x.negative(refusal, answer)
}
