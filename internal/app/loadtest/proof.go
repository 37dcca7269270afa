package loadtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// proof keeps what was sent and what came out, and compares.
type proof struct {
	r    *run
	hang chan struct{} // closed at the end, for receivers that hang

	mu        sync.Mutex
	docs      map[string]*track
	last      map[int]int // lane → serial of the newest first arrival
	inHand    map[handKey]int
	res       Result
	good      int // documents that must be delivered
	arrived   int
	hanging   int // of the good ones, those for receivers that hang
	perLane   []Lane
	sameAgain int // repeats of an AS2 message that were answered with the same bytes
}

type handKey struct {
	stage store.Stage
	id    edi.ID
}

// track is one document from its post to its end.
type track struct {
	doc      document
	hash     [32]byte
	posted   time.Time
	accepted bool
	first    string // Message-ID under which it arrived first
	state    string // at the end, of the hub
}

func newProof(r *run) *proof {
	return &proof{r: r, hang: make(chan struct{}), docs: map[string]*track{}, last: map[int]int{}, inHand: map[handKey]int{}, perLane: make([]Lane, r.o.Partners+1)}
}

func (p *proof) release() { close(p.hang) }

// maxProblems bounds what the result lists of what went wrong.
const maxProblems = 20

func (p *proof) problem(format string, a ...any) {
	if len(p.res.Problems) < maxProblems {
		p.res.Problems = append(p.res.Problems, fmt.Sprintf(format, a...))
	}
}

// wrap sees which message is in whose hands, and is the validator that panics where it is told to.
func (p *proof) wrap(s store.Stage, impl pipeline.Stage) pipeline.Stage {
	return pipeline.StageFunc(func(ctx context.Context, t *pipeline.Task) *pipeline.Outcome {
		k := handKey{s, t.ID}
		p.mu.Lock()
		p.inHand[k]++
		if p.inHand[k] > 1 {
			p.res.Overlaps++
		}
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			if p.inHand[k]--; p.inHand[k] == 0 {
				delete(p.inHand, k)
			}
			p.mu.Unlock()
		}()
		if s == store.Validator && strings.HasSuffix(t.Message.Envelope.Document.Number, panicMark) {
			panic("the load test's poison")
		}
		return impl.Handle(ctx, t)
	})
}

// expected end of a document.
func (d *document) expected() string {
	switch d.flaw {
	case noTrailer, wrongCount:
		return store.StateRejected
	case unknownTo, boom:
		return store.StateDead
	case sound:
	}
	return store.StateDelivered
}

// repeatAfter is how many files of a partner lie between a file and its repeat.
const repeatAfter = 3

// repeat is a file that comes again.
type repeat struct {
	file   file
	parcel parcel
	proof  []byte // what the first post was answered with
	due    int
}

// postFile posts a file, and what comes again by now.
func (r *run) postFile(ctx context.Context, p *plan, f *file) error {
	payload, spans := interchange(f.docs, r.o.Size)
	p.n++
	parcel, err := r.pack(p, f.docs[0].kind, payload)
	if err != nil {
		return err
	}
	r.proof.register(f.docs, payload, spans)
	a, err := r.send(ctx, parcel, len(f.docs))
	if err != nil {
		return err
	}
	r.proof.answered(f.docs, a)
	if f.again && a.taken {
		p.repeats = append(p.repeats, repeat{file: *f, parcel: parcel, proof: a.proof, due: p.n + repeatAfter})
	}
	for len(p.repeats) > 0 && (p.repeats[0].due <= p.n || len(p.files) == 0) {
		rep := p.repeats[0]
		p.repeats = p.repeats[1:]
		if err := r.postAgain(ctx, p, &rep, payloadOf(&rep, r.o.Size)); err != nil {
			return err
		}
	}
	return nil
}

func payloadOf(rep *repeat, size int) []byte {
	b, _ := interchange(rep.file.docs, size)
	return b
}

func (r *run) pack(p *plan, k kind, payload []byte) (parcel, error) {
	p.posts++
	return r.intake.pack(p, k, payload)
}

// postAgain repeats a file: half as the same post (AS2 message, Idempotency-Key), whose answer
// must be the same, half as the same interchange in a post of its own. A folder knows no posts:
// there the second kind is all there is.
func (r *run) postAgain(ctx context.Context, p *plan, rep *repeat, payload []byte) error {
	same := rep.file.same && rep.proof != nil
	again := rep.parcel
	if !same {
		var err error
		if again, err = r.pack(p, rep.file.docs[0].kind, payload); err != nil {
			return err
		}
	}
	a, err := r.send(ctx, again, len(rep.file.docs))
	if err != nil {
		return err
	}
	r.proof.mu.Lock()
	defer r.proof.mu.Unlock()
	switch {
	case !a.taken:
		r.proof.problem("the repeat of %s was answered with %s", rep.file.docs[0].number, a.status)
		r.proof.res.Refused += len(rep.file.docs)
		return nil
	case same && !bytes.Equal(a.proof, rep.proof):
		r.proof.problem("the repeat of %s got another answer", rep.file.docs[0].number)
	case same:
		r.proof.sameAgain += len(rep.file.docs)
	}
	r.proof.res.Accepted += len(rep.file.docs)
	return nil
}

// send posts, waiting where the hub says that it is busy, as a partner would.
func (r *run) send(ctx context.Context, w parcel, docs int) (receipt, error) {
	if r.tokens != nil {
		select {
		case <-r.tokens:
		case <-ctx.Done():
			return receipt{}, context.Cause(ctx)
		}
	}
	r.proof.mu.Lock()
	r.proof.res.Submitted += docs
	r.proof.mu.Unlock()
	for {
		a, err := w.post(ctx)
		if err != nil {
			return receipt{}, err
		}
		if !a.busy {
			r.o.Progress(int(r.posted.Add(1)), r.planned)
			return a, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return receipt{}, context.Cause(ctx)
		}
	}
}

func (p *proof) register(docs []document, payload []byte, spans []span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range docs {
		p.docs[docs[i].number] = &track{doc: docs[i], hash: sha256.Sum256(payload[spans[i].from:spans[i].to]), posted: now}
	}
}

func (p *proof) answered(docs []document, a receipt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range docs {
		if !a.taken {
			p.res.Refused++
			p.problem("%s was refused: %s", docs[i].number, a.status)
			continue
		}
		p.res.Accepted++
		p.docs[docs[i].number].accepted = true
		if docs[i].expected() == store.StateDelivered {
			p.good++
			if docs[i].lane <= p.r.o.Hang {
				p.hanging++
			}
		}
	}
}

// take is a receiver: it finds the documents in what arrived and compares them with what was
// sent. It knows the load test's own documents and uses none of the hub's readers.
func (p *proof) take(ctx context.Context, m *peer.Received) error {
	var lane int
	if _, err := fmt.Sscanf(m.To, "LTR%d", &lane); err != nil {
		return fmt.Errorf("receiver %q: %w", m.To, err)
	}
	if lane <= p.r.o.Hang {
		select {
		case <-p.hang:
			return errors.New("the receiver hangs")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if p.r.o.SinkDelay > 0 {
		select {
		case <-time.After(p.r.o.SinkDelay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	found := documentsIn(m.Payload)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(found) == 0 {
		p.res.Altered++
		p.problem("a delivery to %s holds no document", m.To)
	}
	for number, content := range found {
		t := p.docs[number]
		switch {
		case t == nil:
			p.res.Altered++
			p.problem("%s was delivered and never sent", number)
			continue
		case t.first == m.MessageID: // a retry of the same delivery: a receiver drops it
			continue
		case t.first != "":
			p.res.Duplicated++
			p.problem("%s was delivered as %s and again as %s", number, t.first, m.MessageID)
			continue
		}
		t.first = m.MessageID
		p.arrived++
		p.perLane[lane].Delivered++
		p.perLane[lane].Last = time.Since(p.r.begun)
		if sha256.Sum256(content) != t.hash {
			p.res.Altered++
			p.problem("the bytes of %s were altered", number)
		}
		if t.doc.lane != lane {
			p.res.Altered++
			p.problem("%s was delivered to %s", number, m.To)
		}
		if p.r.o.Ordering != "none" && p.r.o.PerInterchange == 1 {
			if t.doc.serial < p.last[lane] {
				p.res.OutOfOrder++
				p.problem("%s came after serial %d of its lane", number, p.last[lane])
			}
			p.last[lane] = max(p.last[lane], t.doc.serial)
		}
	}
	return nil
}

// documentsIn finds documents by number.
func documentsIn(b []byte) map[string][]byte {
	switch {
	case bytes.HasPrefix(b, []byte("UN")):
		return segmentDocuments(b, '\'', "UNH+", "UNT+", "BGM+380+", "+")
	case bytes.HasPrefix(b, []byte("ISA")):
		return segmentDocuments(b, '~', "ST*", "SE*", "BEG*00*SA*", "*")
	case bytes.HasPrefix(b, []byte("<?xml")):
		if n := between(b, "<cbc:ID>", "<"); n != "" {
			return map[string][]byte{n: b}
		}
	}
	return nil
}

// segmentDocuments walks over segments; the load test's documents have no release characters.
func segmentDocuments(b []byte, end byte, head, tail, before, after string) map[string][]byte {
	out := map[string][]byte{}
	begin := -1
	for at := 0; at < len(b); {
		n := bytes.IndexByte(b[at:], end)
		if n < 0 {
			break
		}
		seg := b[at : at+n]
		switch {
		case bytes.HasPrefix(seg, []byte(head)):
			begin = at
		case bytes.HasPrefix(seg, []byte(tail)) && begin >= 0:
			doc := b[begin : at+n+1]
			out[between(doc, before, after)] = doc
			begin = -1
		}
		at += n + 1
	}
	return out
}

func between(b []byte, before, after string) string {
	_, rest, ok := bytes.Cut(b, []byte(before))
	if !ok {
		return ""
	}
	v, _, ok := bytes.Cut(rest, []byte(after))
	if !ok {
		return ""
	}
	return string(v)
}

// settle waits until everything has ended, but what receivers that hang hold up.
func (p *proof) settle(ctx context.Context) error {
	refused, err := p.r.intake.settled(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.res.Refused += refused
	if refused > 0 {
		p.problem("the hub refused %d files after it had taken them", refused)
	}
	p.mu.Unlock()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		p.mu.Lock()
		all := p.arrived >= p.good-p.hanging
		p.mu.Unlock()
		if all {
			ds, err := p.r.hub.Store().Depths(ctx)
			if err != nil {
				return fmt.Errorf("count work: %w", err)
			}
			if !slices.ContainsFunc(ds, p.open) {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// open reports whether work waits that must come to an end.
func (p *proof) open(d store.Depth) bool {
	if d.State == store.Dead || d.State == store.Discarded || d.Count == 0 {
		return false
	}
	var lane int
	if _, err := fmt.Sscanf(d.Topic, "c-LTR%d", &lane); err == nil && lane <= p.r.o.Hang {
		return false
	}
	return true
}

// result compares the end of every document, in the store and at the receivers, with what it
// must be.
func (p *proof) result(ctx context.Context) (*Result, error) {
	ended, last, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	res := &p.res
	res.DuplicatesRecognised += p.sameAgain
	var latencies []float64
	for number, t := range p.docs {
		if !t.accepted || (t.doc.lane <= p.r.o.Hang && t.doc.expected() == store.StateDelivered) {
			continue
		}
		switch t.state {
		case store.StateDelivered:
			if t.first == "" {
				res.Lost++
				p.problem("%s is delivered and no receiver has it", number)
				continue
			}
			res.Delivered++
			if at, ok := ended[number]; ok {
				latencies = append(latencies, float64(at.Sub(t.posted).Microseconds())/1000)
			}
		case store.StateRejected:
			res.Rejected++
		case store.StateDead:
			res.Dead++
		default:
			res.Lost++
			p.problem("%s has no end: %q", number, t.state)
			continue
		}
		if t.state != t.doc.expected() {
			res.UnexpectedEnd++
			p.problem("%s is %s, must be %s", number, t.state, t.doc.expected())
		}
		if t.first != "" && t.state != store.StateDelivered {
			res.UnexpectedEnd++
			p.problem("%s is %s and was delivered", number, t.state)
		}
	}
	if res.Delivered > 0 {
		res.ElapsedS = float64(last.Sub(p.r.begun).Milliseconds()) / 1000
	}
	if res.ElapsedS > 0 {
		res.MessagesPerS = round(float64(res.Delivered) / res.ElapsedS)
	}
	slices.Sort(latencies)
	at := func(q float64) float64 {
		if len(latencies) == 0 {
			return 0
		}
		return round(latencies[min(len(latencies)-1, int(q*float64(len(latencies))))])
	}
	res.LatencyMS = Latency{P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: at(1)}
	res.Profile, res.Security, res.Mix, res.Ordering, res.Intake = "embedded", p.r.o.Security, p.r.o.Mix, p.r.o.Ordering, p.r.o.Intake
	res.Lanes = p.perLane[1:]
	if p.r.o.Hang > 0 {
		for _, l := range res.Lanes {
			res.PerLane = append(res.PerLane, l.Delivered)
		}
	}
	return res, nil
}

// read takes the end of every message and the time of every proof from the store.
func (p *proof) read(ctx context.Context) (ended map[string]time.Time, last time.Time, err error) {
	st := p.r.hub.Store()
	number := map[edi.ID]string{}
	var before edi.ID
	for {
		ms, err := st.ListMessages(ctx, store.Filter{Limit: 500, Before: before})
		if err != nil {
			return nil, last, fmt.Errorf("read messages: %w", err)
		}
		if len(ms) == 0 {
			break
		}
		before = ms[len(ms)-1].ID
		p.mu.Lock()
		for _, m := range ms {
			n := m.Envelope.Document.Number
			if m.State == store.StateDuplicate {
				p.res.DuplicatesRecognised++
				continue
			}
			number[m.ID] = n
			if t := p.docs[n]; t != nil {
				if t.state != "" {
					p.res.Duplicated++
					p.problem("%s is in the store twice: %s and %s", n, t.state, m.State)
				}
				t.state = m.State
			}
		}
		p.mu.Unlock()
	}
	ended = map[string]time.Time{}
	before = edi.ID{}
	for {
		ds, err := st.ListDeliveries(ctx, store.Filter{Limit: 500, Before: before})
		if err != nil {
			return nil, last, fmt.Errorf("read deliveries: %w", err)
		}
		if len(ds) == 0 {
			return ended, last, nil
		}
		before = ds[len(ds)-1].ID
		for _, d := range ds {
			if d.State != store.StateDelivered {
				continue
			}
			for _, id := range d.Messages {
				ended[number[id]] = d.EndedAt
			}
			if d.EndedAt.After(last) {
				last = d.EndedAt
			}
		}
	}
}
