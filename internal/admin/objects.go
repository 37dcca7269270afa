package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// kind is one of the four objects with what the API does with it.
type kind struct {
	kind   store.Kind
	plural string
	stages []store.Stage // at which it can be a dead letter
	list   func(ctx context.Context, f store.Filter) (any, error)
	show   func(ctx context.Context, id edi.ID) (any, error)
	// file opens the bytes in a form and names them.
	file func(ctx context.Context, id edi.ID, form string) (*file, error)
}

func (a *api) kinds() []*kind {
	return []*kind{
		{
			kind: store.KindTransmission, plural: "transmissions", stages: []store.Stage{store.Parser},
			list: func(ctx context.Context, f store.Filter) (any, error) {
				return listed(ctx, f, a.Store.ListTransmissions, func(t *store.Transmission) edi.ID { return t.ID }, transmissionShown)
			},
			show: a.showTransmission, file: a.transmissionFile,
		},
		{
			kind: store.KindInterchange, plural: "interchanges", stages: []store.Stage{store.Parser, store.Router},
			list: func(ctx context.Context, f store.Filter) (any, error) {
				return listed(ctx, f, a.Store.ListInterchanges, func(ic *store.Interchange) edi.ID { return ic.ID }, interchangeShown)
			},
			show: a.showInterchange, file: a.interchangeFile,
		},
		{
			kind: store.KindMessage, plural: "messages", stages: []store.Stage{store.Validator, store.Router},
			list: func(ctx context.Context, f store.Filter) (any, error) {
				return listed(ctx, f, a.Store.ListMessages, func(m *store.Message) edi.ID { return m.ID }, messageShown)
			},
			show: a.showMessage, file: a.messageFile,
		},
		{
			kind: store.KindDelivery, plural: "deliveries", stages: []store.Stage{store.Sender},
			list: func(ctx context.Context, f store.Filter) (any, error) {
				return listed(ctx, f, a.Store.ListDeliveries, func(d *store.Delivery) edi.ID { return d.ID }, deliveryShown)
			},
			show: a.showDelivery, file: a.deliveryFile,
		},
	}
}

func listed[T, V any](ctx context.Context, f store.Filter, read func(context.Context, store.Filter) ([]T, error), id func(T) edi.ID, show func(T) V) (any, error) {
	limit := f.Limit
	f.Limit++ // one more tells whether there is a next page
	all, err := read(ctx, f)
	if err != nil {
		return nil, err
	}
	return cut(all, limit, id, show), nil
}

func (a *api) list(k *kind) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		f, err := objectFilter(r)
		if err != nil {
			return err
		}
		v, err := k.list(r.Context(), f)
		if err != nil {
			return fmt.Errorf("list %s: %w", k.plural, err)
		}
		writeJSON(w, http.StatusOK, v)
		return nil
	}
}

func (a *api) show(k *kind) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := pathID(r, k)
		if err != nil {
			return err
		}
		if err := noParams(r); err != nil {
			return err
		}
		v, err := k.show(r.Context(), id)
		if err != nil {
			return k.missing(id, err)
		}
		writeJSON(w, http.StatusOK, v)
		return nil
	}
}

func (a *api) events(k *kind) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := pathID(r, k)
		if err != nil {
			return err
		}
		if err := noParams(r); err != nil {
			return err
		}
		if _, err := k.show(r.Context(), id); err != nil {
			return k.missing(id, err)
		}
		es, err := a.Store.Events(r.Context(), id)
		if err != nil {
			return fmt.Errorf("events of %s %s: %w", k.kind, id, err)
		}
		writeJSON(w, http.StatusOK, page[eventView]{Items: eventsShown(es)})
		return nil
	}
}

func pathID(r *http.Request, k *kind) (edi.ID, error) {
	raw := r.PathValue("id")
	id, err := edi.ParseID(raw)
	if err != nil {
		return id, badRequest("ID_INVALID", "%s is not the id of a %s: a UUID is expected", quoted(raw), k.kind)
	}
	return id, nil
}

// missing words "not found" for one object and wraps everything else.
func (k *kind) missing(id edi.ID, err error) error {
	if isNotFound(err) {
		return notFound(k.kind.String() + " " + id.String())
	}
	return fmt.Errorf("%s %s: %w", k.kind, id, err)
}

type eventView struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
	Who    string    `json:"who,omitempty"`
}

func eventsShown(es []store.Event) []eventView {
	out := make([]eventView, len(es))
	for i, e := range es {
		out[i] = eventView{At: e.At.UTC(), Event: e.Name, Detail: e.Detail, Who: e.Who}
	}
	return out
}

// deadOf finds the dead letter of an object, if it is one.
func (a *api) deadOf(ctx context.Context, id edi.ID, stages ...store.Stage) (*deadView, error) {
	for _, s := range stages {
		row, err := a.Store.GetWork(ctx, store.WorkKey{Stage: s, ID: id})
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("dead letter of %s: %w", id, err)
		}
		if row.State == store.Dead {
			v := deadShown(row)
			return &v, nil
		}
	}
	return nil, nil //nolint:nilnil // Most objects are no dead letters.
}

type links map[string]string

type transmissionView struct {
	ID         edi.ID    `json:"id"`
	Transport  string    `json:"transport"`
	Connection string    `json:"connection"`
	Own        string    `json:"own,omitempty"`
	From       string    `json:"from,omitempty"`
	To         string    `json:"to,omitempty"`
	MessageID  string    `json:"message_id,omitempty"`
	FileName   string    `json:"file_name,omitempty"`
	Media      string    `json:"media,omitempty"`
	State      string    `json:"state"`
	Code       string    `json:"code,omitempty"`
	Detail     string    `json:"detail,omitempty"`
	Signed     bool      `json:"signed"`
	Encrypted  bool      `json:"encrypted"`
	MIC        string    `json:"mic,omitempty"`
	SHA256     store.Ref `json:"sha256"`
	Size       int64     `json:"size"`
	WireSize   int64     `json:"wire_size"`
	WireHead   string    `json:"wire_head,omitempty"` // what form=wire needs before it to be opened again
	Source     string    `json:"source,omitempty"`
	At         time.Time `json:"at"`
	Parsing    bool      `json:"parsing"` // of one transmission, not in lists: the parser is not through
	DeadLetter *deadView `json:"dead_letter,omitempty"`
	Links      links     `json:"links"`
}

func transmissionShown(t *store.Transmission) transmissionView {
	self := "/v1/transmissions/" + t.ID.String()
	return transmissionView{
		ID: t.ID, Transport: t.Transport, Connection: t.Connection, Own: t.Own, From: t.From, To: t.To, MessageID: t.MessageID,
		FileName: t.FileName, Media: t.Media, State: t.State, Code: t.Code, Detail: t.Detail, Signed: t.Signed, Encrypted: t.Encrypted,
		MIC: t.MIC, SHA256: t.Content, Size: t.Size, WireSize: t.WireSize, WireHead: t.WireHead, Source: t.Source, At: t.At.UTC(),
		Links: links{
			"self": self, "payload": self + "/payload", "events": self + "/events",
			"interchanges": "/v1/interchanges?transmission=" + t.ID.String(),
			"messages":     "/v1/messages?transmission=" + t.ID.String(),
			"deliveries":   "/v1/deliveries?transmission=" + t.ID.String(),
		},
	}
}

func (a *api) showTransmission(ctx context.Context, id edi.ID) (any, error) {
	t, err := a.Store.GetTransmission(ctx, id)
	if err != nil {
		return nil, err
	}
	v := transmissionShown(t)
	row, err := a.Store.GetWork(ctx, store.WorkKey{Stage: store.Parser, ID: id})
	switch {
	case isNotFound(err):
		return v, nil
	case err != nil:
		return nil, err
	case row.State == store.Dead:
		dead := deadShown(row)
		v.DeadLetter = &dead
	case row.State != store.Discarded:
		v.Parsing = true
	}
	return v, nil
}

type groupView struct {
	Position   int           `json:"position"`
	FunctionID string        `json:"function_id,omitempty"`
	Sender     string        `json:"sender,omitempty"`
	Receiver   string        `json:"receiver,omitempty"`
	ControlRef string        `json:"control_ref"`
	Version    string        `json:"version,omitempty"`
	Messages   int           `json:"messages"`
	Findings   []edi.Finding `json:"findings"`
}

type interchangeView struct {
	ID                edi.ID        `json:"id"`
	Transmission      edi.ID        `json:"transmission"`
	Position          int           `json:"position"`
	Connection        string        `json:"connection"`
	Standard          edi.Standard  `json:"standard"`
	Sender            string        `json:"sender"`
	SenderQualifier   string        `json:"sender_qualifier,omitempty"`
	Receiver          string        `json:"receiver"`
	ReceiverQualifier string        `json:"receiver_qualifier,omitempty"`
	ControlRef        string        `json:"control_ref"`
	Version           string        `json:"version,omitempty"`
	Charset           string        `json:"charset,omitempty"`
	Test              bool          `json:"test"`
	From              string        `json:"from,omitempty"`
	To                string        `json:"to,omitempty"`
	Role              string        `json:"role,omitempty"`
	State             string        `json:"state"`
	Code              string        `json:"code,omitempty"`
	Messages          int           `json:"messages"`
	Open              int           `json:"open"`
	Segments          int           `json:"segments"`
	Size              int64         `json:"size"`
	Groups            []groupView   `json:"groups,omitempty"`
	Findings          []edi.Finding `json:"findings"`
	Profile           int64         `json:"profile"`
	At                time.Time     `json:"at"`
	DeadLetter        *deadView     `json:"dead_letter,omitempty"`
	Links             links         `json:"links"`
}

func interchangeShown(ic *store.Interchange) interchangeView {
	self := "/v1/interchanges/" + ic.ID.String()
	e := &ic.Envelope
	v := interchangeView{
		ID: ic.ID, Transmission: ic.Transmission, Position: ic.Position, Connection: ic.Connection, Standard: e.Standard,
		Sender: e.Sender.ID, SenderQualifier: e.Sender.Qualifier, Receiver: e.Receiver.ID, ReceiverQualifier: e.Receiver.Qualifier,
		ControlRef: e.ControlRef, Version: e.Version, Charset: e.Charset, Test: e.Test, From: ic.From, To: ic.To, Role: ic.Role,
		State: ic.State, Code: ic.Code, Messages: ic.Total, Open: ic.Open, Segments: e.Segments, Size: e.Length,
		Findings: findings(ic.Findings), Profile: ic.Profile, At: ic.At.UTC(),
		Links: links{
			"self": self, "payload": self + "/payload", "events": self + "/events", "transmission": "/v1/transmissions/" + ic.Transmission.String(),
			"messages": "/v1/messages?interchange=" + ic.ID.String(), "deliveries": "/v1/deliveries?interchange=" + ic.ID.String(),
		},
	}
	for i := range ic.Groups {
		g := &ic.Groups[i]
		v.Groups = append(v.Groups, groupView{
			Position: g.Position, FunctionID: g.FunctionID, Sender: g.Sender, Receiver: g.Receiver, ControlRef: g.ControlRef,
			Version: g.Version, Messages: g.Messages, Findings: findings(g.Findings),
		})
	}
	return v
}

// findings is never null in JSON.
func findings(fs []edi.Finding) []edi.Finding {
	if fs == nil {
		return []edi.Finding{}
	}
	return fs
}

func (a *api) showInterchange(ctx context.Context, id edi.ID) (any, error) {
	ic, err := a.Store.GetInterchange(ctx, id)
	if err != nil {
		return nil, err
	}
	v := interchangeShown(ic)
	v.DeadLetter, err = a.deadOf(ctx, id, store.Parser, store.Router)
	return v, err
}

type messageView struct {
	ID           edi.ID        `json:"id"`
	Interchange  edi.ID        `json:"interchange"`
	Position     int           `json:"position"`
	Group        int           `json:"group,omitempty"`
	Standard     edi.Standard  `json:"standard"`
	Type         string        `json:"type"`
	Version      string        `json:"version,omitempty"`
	Ref          string        `json:"ref,omitempty"`
	Segments     int           `json:"segments"`
	Size         int64         `json:"size"`
	ControlRef   string        `json:"control_ref,omitempty"`
	Document     edi.Document  `json:"document"`
	From         string        `json:"from,omitempty"`
	To           string        `json:"to,omitempty"`
	Test         bool          `json:"test"`
	State        string        `json:"state"`
	Code         string        `json:"code,omitempty"`
	Findings     []edi.Finding `json:"findings"`
	Delivery     edi.ID        `json:"delivery,omitzero"`
	Profile      int64         `json:"profile"`
	At           time.Time     `json:"at"`
	Transmission edi.ID        `json:"transmission,omitzero"` // of one message, not in lists
	DeadLetter   *deadView     `json:"dead_letter,omitempty"`
	Links        links         `json:"links"`
}

func messageShown(m *store.Message) messageView {
	self := "/v1/messages/" + m.ID.String()
	e := &m.Envelope
	v := messageView{
		ID: m.ID, Interchange: m.Interchange, Position: e.Position, Group: e.Group, Standard: m.Standard, Type: e.Type, Version: e.Version,
		Ref: e.Ref, Segments: e.Segments, Size: e.Length, ControlRef: m.ControlRef, Document: e.Document, From: m.From, To: m.To, Test: m.Test,
		State: m.State, Code: m.Code, Findings: findings(m.Findings), Delivery: m.Delivery, Profile: m.Profile, At: m.At.UTC(),
		Links: links{"self": self, "payload": self + "/payload", "events": self + "/events", "interchange": "/v1/interchanges/" + m.Interchange.String()},
	}
	if !m.Delivery.IsZero() {
		v.Links["delivery"] = "/v1/deliveries/" + m.Delivery.String()
	}
	return v
}

func (a *api) showMessage(ctx context.Context, id edi.ID) (any, error) {
	m, err := a.Store.GetMessage(ctx, id)
	if err != nil {
		return nil, err
	}
	v := messageShown(m)
	switch ic, err := a.Store.GetInterchange(ctx, m.Interchange); {
	case err == nil:
		v.Transmission = ic.Transmission
		v.Links["transmission"] = "/v1/transmissions/" + ic.Transmission.String()
	case !isNotFound(err):
		return nil, err
	}
	v.DeadLetter, err = a.deadOf(ctx, id, store.Validator, store.Router)
	if v.DeadLetter == nil && err == nil && !m.Delivery.IsZero() {
		v.DeadLetter, err = a.deadOf(ctx, m.Delivery, store.Sender)
	}
	return v, err
}

type deliveryView struct {
	ID         edi.ID       `json:"id"`
	Connection string       `json:"connection"`
	Partner    string       `json:"partner"`
	Own        string       `json:"own,omitempty"`
	State      string       `json:"state"`
	Code       string       `json:"code,omitempty"`
	Detail     string       `json:"detail,omitempty"`
	Envelope   string       `json:"envelope"`
	Standard   edi.Standard `json:"standard"`
	Type       string       `json:"type,omitempty"`
	Sender     string       `json:"sender,omitempty"`
	Receiver   string       `json:"receiver,omitempty"`
	ControlRef string       `json:"control_ref,omitempty"`
	From       string       `json:"from,omitempty"`
	To         string       `json:"to,omitempty"`
	Size       int64        `json:"size"`
	Messages   []edi.ID     `json:"messages"`
	MessageID  string       `json:"message_id"`
	Generation int          `json:"generation"`
	Tries      int          `json:"tries"`
	Proof      string       `json:"proof,omitempty"`
	MIC        string       `json:"mic,omitempty"`
	Ack        string       `json:"ack"`
	Profile    int64        `json:"profile"`
	At         time.Time    `json:"at"`
	EndedAt    *time.Time   `json:"ended_at,omitempty"`
	DeadLetter *deadView    `json:"dead_letter,omitempty"`
	Links      links        `json:"links"`
}

func deliveryShown(d *store.Delivery) deliveryView {
	self := "/v1/deliveries/" + d.ID.String()
	v := deliveryView{
		ID: d.ID, Connection: d.Connection, Partner: d.Partner, Own: d.Own, State: d.State, Code: d.Code, Detail: d.Detail,
		Envelope: d.Envelope, Standard: d.Standard, Type: d.Type, Sender: d.Sender, Receiver: d.Receiver, ControlRef: d.ControlRef,
		From: d.From, To: d.To, Size: d.Size, Messages: append([]edi.ID{}, d.Messages...), MessageID: d.MessageID(""), Generation: d.Generation,
		Tries: d.Tries, Proof: d.Proof, MIC: d.MIC, Ack: d.Ack, Profile: d.Profile, At: d.At.UTC(),
		Links: links{"self": self, "payload": self + "/payload", "events": self + "/events"},
	}
	if v.Ack == "" {
		v.Ack = "none"
	}
	if !d.EndedAt.IsZero() {
		t := d.EndedAt.UTC()
		v.EndedAt = &t
	}
	if len(d.Messages) > 0 {
		v.Links["message"] = "/v1/messages/" + d.Messages[0].String()
	}
	return v
}

func (a *api) showDelivery(ctx context.Context, id edi.ID) (any, error) {
	d, err := a.Store.GetDelivery(ctx, id)
	if err != nil {
		return nil, err
	}
	v := deliveryShown(d)
	v.DeadLetter, err = a.deadOf(ctx, id, store.Sender)
	return v, err
}

// fileName makes a name for a download of parts that came from strangers.
func fileName(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		for _, c := range p {
			switch {
			case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
				b.WriteRune(c)
			case c == '.' && b.Len() > 0:
				b.WriteRune(c)
			default:
				b.WriteByte('_')
			}
		}
	}
	s := b.String()
	const most = 120
	if len(s) > most {
		s = s[:most]
	}
	return s
}
