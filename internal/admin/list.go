package admin

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

const (
	defaultLimit = 50
	maxLimit     = 1000
)

// page is a part of a list, from new to old.
type page[T any] struct {
	Items []T `json:"items"`
	// Next continues the list; absent on the last page.
	Next string `json:"next_cursor,omitempty"`
}

const cursorPrefix = "1:"

func encodeCursor(id edi.ID) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + id.String()))
}

func decodeCursor(s string) (edi.ID, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		if text, ok := strings.CutPrefix(string(raw), cursorPrefix); ok {
			if id, err := edi.ParseID(text); err == nil {
				return id, nil
			}
		}
	}
	return edi.ID{}, badRequest("CURSOR_INVALID", "cursor %s is not one that this API gave", quoted(s))
}

// params reads query parameters and remembers the first fault.
type params struct {
	r     *http.Request
	known []string
	err   error
}

func (p *params) text(name string) string {
	p.known = append(p.known, name)
	vs := p.r.URL.Query()[name]
	if len(vs) > 1 {
		p.fail(badRequest("PARAMETER_REPEATED", "parameter %s stands more than once", name))
	}
	if len(vs) == 0 {
		return ""
	}
	return vs[0]
}

func (p *params) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *params) time(name string) time.Time {
	v := p.text(name)
	if v == "" {
		return time.Time{}
	}
	t, err := parseTime(v)
	if err != nil {
		p.fail(badRequest("PARAMETER_INVALID", "%s=%s is not a time; write for example 2026-01-31T08:00:00Z", name, quoted(v)))
	}
	return t
}

// parseTime takes RFC 3339, or a date, which begins at midnight UTC.
func parseTime(v string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, v); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	return t.UTC(), err
}

func (p *params) id(name string) edi.ID {
	v := p.text(name)
	if v == "" {
		return edi.ID{}
	}
	id, err := edi.ParseID(v)
	if err != nil {
		p.fail(badRequest("PARAMETER_INVALID", "%s=%s is not a UUID", name, quoted(v)))
	}
	return id
}

func (p *params) limit() int {
	v := p.text("limit")
	if v == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxLimit {
		p.fail(badRequest("PARAMETER_INVALID", "limit=%s is not a number from 1 to %d", quoted(v), maxLimit))
		return defaultLimit
	}
	return n
}

func (p *params) cursor() edi.ID {
	v := p.text("cursor")
	if v == "" {
		return edi.ID{}
	}
	id, err := decodeCursor(v)
	if err != nil {
		p.fail(err)
	}
	return id
}

// done refuses parameters that nobody asked for: a filter with a typing error would show, or
// replay, everything.
func (p *params) done() error {
	if p.err != nil {
		return p.err
	}
	for name := range p.r.URL.Query() {
		if !slices.Contains(p.known, name) {
			known := "none"
			if len(p.known) > 0 {
				known = strings.Join(p.known, ", ")
			}
			return badRequest("PARAMETER_UNKNOWN", "parameter %s is not known here; known: %s", quoted(name), known)
		}
	}
	return nil
}

func noParams(r *http.Request) error {
	p := &params{r: r}
	return p.done()
}

// objectFilter reads the filters that all object lists share.
func objectFilter(r *http.Request) (store.Filter, error) {
	p := &params{r: r}
	f := store.Filter{
		ControlRef: p.text("control_ref"), MessageID: p.text("message_id"), DocumentNo: p.text("document_no"), OrderNo: p.text("order_no"),
		Sender: p.text("sender"), Receiver: p.text("receiver"), Type: p.text("type"), State: p.text("state"),
		Since: p.time("since"), Until: p.time("until"),
		Parent: p.id("transmission"), Interchange: p.id("interchange"),
		Limit: p.limit(), Before: p.cursor(),
	}
	if v := p.text("test"); v != "" {
		b, err := strconv.ParseBool(v)
		if err != nil {
			p.fail(badRequest("PARAMETER_INVALID", "test=%s is neither true nor false", quoted(v)))
		}
		f.Test = &b
	}
	return f, p.done()
}

// cut turns up to limit+1 things into a page.
func cut[T, V any](all []T, limit int, id func(T) edi.ID, show func(T) V) page[V] {
	out := page[V]{Items: make([]V, 0, min(len(all), limit))}
	for i, v := range all {
		if i == limit {
			out.Next = encodeCursor(id(all[i-1]))
			break
		}
		out.Items = append(out.Items, show(v))
	}
	return out
}
