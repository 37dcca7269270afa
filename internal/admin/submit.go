package admin

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/idempotency"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// submitAnswer is the body of 200 and 202.
type submitAnswer struct {
	Transmission edi.ID    `json:"transmission_id"`
	State        string    `json:"state"`
	Repeated     bool      `json:"repeated"`
	SHA256       store.Ref `json:"sha256"`
	Size         int64     `json:"size"`
	Links        links     `json:"links"`
}

// submit takes a payload as if the partner `from` had sent it over its first connection. The
// token is the proof: whoever may submit speaks for every partner.
func (a *api) submit(w http.ResponseWriter, r *http.Request) error {
	p := &params{r: r}
	fromID, toID, name := p.text("from"), p.text("to"), p.text("file_name")
	if err := p.done(); err != nil {
		return err
	}
	if err := checkText("file_name", name); err != nil {
		return err
	}
	reg := a.Registry.Current()
	t, err := a.transmission(reg, fromID, toID)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if r.ContentLength > a.MaxBody {
		return &http.MaxBytesError{Limit: a.MaxBody}
	}
	scratch, err := a.Spool.NewScratch()
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	defer scratch.Close() //nolint:errcheck // Its content is in the store or not wanted.
	if err := receive(w, r, scratch, a.MaxBody); err != nil {
		return err
	}
	if scratch.Size() == 0 {
		return badRequest("BODY_MISSING", "the body is empty; it holds the payload")
	}
	body, err := a.Store.StageBody(r.Context(), scratch)
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	t.FileName, t.Media, t.Source = name, r.Header.Get("Content-Type"), r.RemoteAddr
	t.Content, t.Wire, t.Size, t.WireSize = body.Ref, body.Ref, body.Size, body.Size
	arrival := &pipeline.Arrival{Transmission: t, Content: body}
	if key != "" {
		arrival.Key = &store.NaturalKey{
			Scope: store.ScopeAPI, Hash: idempotency.API(who(r).id, key), Content: keyContent(fromID, toID, body.Ref), Object: t.ID, At: t.At,
		}
		arrival.Since = t.At.Add(-a.IdempotencyFor)
	}
	err = a.Pipeline.Accept(r.Context(), arrival)
	var repeat *pipeline.RepeatError
	switch {
	case errors.As(err, &repeat) && repeat.Same:
		return a.answer(w, http.StatusOK, repeat.First, body)
	case errors.As(err, &repeat):
		return problem(http.StatusConflict, "IDEMPOTENCY_KEY_REUSED", "this Idempotency-Key was used for other content, in transmission "+repeat.First.String())
	case err != nil:
		return err
	}
	a.audit(r, t.ID, "submitted", "from "+fromID+" to "+toID)
	return a.answer(w, http.StatusAccepted, t.ID, body)
}

func (a *api) answer(w http.ResponseWriter, status int, id edi.ID, body *store.Body) error {
	self := "/v1/transmissions/" + id.String()
	w.Header().Set("Location", self)
	writeJSON(w, status, submitAnswer{
		Transmission: id, State: store.StateAccepted, Repeated: status == http.StatusOK, SHA256: body.Ref, Size: body.Size,
		Links: links{"transmission": self, "messages": "/v1/messages?transmission=" + id.String()},
	})
	return nil
}

// transmission makes the record of a POST from one party to another.
func (a *api) transmission(reg *partner.Registry, fromID, toID string) (*store.Transmission, error) {
	if fromID == "" || toID == "" {
		return nil, badRequest("PARAMETER_MISSING", "from and to are needed: the id of the partner who sends, and of the partner or own identity that receives")
	}
	from := reg.Partner(fromID)
	if from == nil {
		return nil, problem(http.StatusUnprocessableEntity, "PARTNER_UNKNOWN", "there is no partner "+quoted(fromID)+" in the partner records")
	}
	if len(from.Connections) == 0 {
		return nil, problem(http.StatusUnprocessableEntity, "NO_CONNECTION", "partner "+quoted(fromID)+" has no connection; add one to the partner records")
	}
	if from.Status != partner.Live && from.Status != partner.Testing {
		return nil, problem(http.StatusUnprocessableEntity, "PARTNER_NOT_ACTIVE", "partner "+quoted(fromID)+" is "+string(from.Status)+"; set it live or testing")
	}
	own := reg.Own(toID)
	if own == nil && reg.Partner(toID) == nil {
		return nil, problem(http.StatusUnprocessableEntity, "PARTNER_UNKNOWN", "there is no partner and no own identity "+quoted(toID)+" in the partner records")
	}
	now := a.Clock.Now()
	t := &store.Transmission{
		ID: edi.NewID(now), Transport: "http", Connection: from.Connections[0], From: fromID, To: toID, State: store.StateAccepted, At: now,
	}
	switch owns := reg.Owns(); {
	case own != nil:
		t.Own = own.ID
	case len(owns) > 0:
		t.Own = owns[0].ID
	}
	return t, nil
}

// maxKey bounds an Idempotency-Key, in bytes.
const maxKey = 255

func idempotencyKey(r *http.Request) (string, error) {
	vs := r.Header.Values("Idempotency-Key")
	if len(vs) == 0 {
		return "", nil
	}
	bad := func(c rune) bool { return c < 0x20 || c > 0x7e }
	if len(vs) > 1 || vs[0] == "" || len(vs[0]) > maxKey || slices.ContainsFunc([]rune(vs[0]), bad) {
		return "", badRequest("IDEMPOTENCY_KEY_INVALID", "Idempotency-Key must be one header of 1 to %d printable ASCII characters", maxKey)
	}
	return vs[0], nil
}

// keyContent is what an Idempotency-Key stands for: the content and its parties.
func keyContent(from, to string, ref store.Ref) [32]byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %s", from, to, ref) // a hash never fails
	return [32]byte(h.Sum(nil))
}

// bodyPause is how long a client may be silent in the middle of a body.
const bodyPause = 60 * time.Second

// receive streams the body into the scratch. Each part that comes gives the client more time.
func receive(w http.ResponseWriter, r *http.Request, to io.Writer, limit int64) error {
	unbounded(w)
	c := http.NewResponseController(w)
	src := &patient{r: http.MaxBytesReader(w, r.Body, limit), more: func() {
		_ = c.SetReadDeadline(time.Now().Add(bodyPause)) // deadlines of sockets are in the machine's time
	}}
	if _, err := io.Copy(to, src); err != nil {
		var tooLong *http.MaxBytesError
		if p := asProblem(err); errors.As(err, &tooLong) || p.Status != http.StatusInternalServerError {
			return err
		}
		if src.failed {
			return badRequest("BODY_CUT", "the body ended before it was whole")
		}
		return fmt.Errorf("spool the body: %w", err)
	}
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	return nil
}

type patient struct {
	r      io.Reader
	more   func()
	failed bool
}

func (p *patient) Read(b []byte) (int, error) {
	p.more()
	n, err := p.r.Read(b)
	p.failed = err != nil && !errors.Is(err, io.EOF)
	return n, err
}
