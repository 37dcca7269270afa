package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/edihub/edihub/internal/spool"
	"github.com/edihub/edihub/internal/store"
)

// Problem is an error as a client sees it (RFC 9457).
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Instance string `json:"instance,omitempty"`
	Code     string `json:"code"` // stable, for programs

	retryAfter string
	header     [2]string // one more header of the answer
}

// Error implements error.
func (p *Problem) Error() string {
	return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail)
}

// problemType is the media type of RFC 9457 §3.
const problemType = "application/problem+json"

func problem(status int, code, detail string) *Problem {
	return &Problem{
		Type:  "urn:edihub:problem:" + strings.ToLower(strings.ReplaceAll(code, "_", "-")),
		Title: http.StatusText(status), Status: status, Code: code, Detail: detail,
	}
}

func badRequest(code, format string, args ...any) *Problem {
	return problem(http.StatusBadRequest, code, fmt.Sprintf(format, args...))
}

func notFound(what string) *Problem {
	return problem(http.StatusNotFound, "NOT_FOUND", "there is no "+what)
}

// asProblem says what an error of a lower floor means to a client. What it does not know becomes
// a 500 without detail; the caller logs the cause.
func asProblem(err error) *Problem {
	var p *Problem
	var tooLong *http.MaxBytesError
	var tooLarge *spool.TooLargeError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLong):
		return problem(http.StatusRequestEntityTooLarge, "TOO_LARGE", fmt.Sprintf("the body is larger than the %d bytes that are allowed", tooLong.Limit))
	case errors.As(err, &tooLarge):
		return problem(http.StatusRequestEntityTooLarge, "TOO_LARGE", fmt.Sprintf("the body is larger than the %d bytes that are allowed", tooLarge.Max))
	case errors.Is(err, spool.ErrDiskLow):
		return later("DISK_LOW", "the disk of the hub is nearly full; try again later")
	case errors.Is(err, store.ErrUnavailable):
		return later("STORE_UNAVAILABLE", "the store takes no writes now; try again later")
	case errors.Is(err, store.ErrNotFound):
		return notFound("such object")
	case errors.Is(err, context.DeadlineExceeded):
		return later("TIMEOUT", "the store did not answer in time; try again later")
	}
	return problem(http.StatusInternalServerError, "INTERNAL", "something went wrong in the hub; its log says what")
}

func later(code, detail string) *Problem {
	p := problem(http.StatusServiceUnavailable, code, detail)
	p.retryAfter = "5"
	return p
}

func writeProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	q := *p // a problem may be shared
	q.Instance = r.URL.Path
	h := w.Header()
	for _, k := range []string{"Content-Disposition", "Content-Length", "Etag", "Location"} {
		h.Del(k)
	}
	h.Set("Content-Type", problemType)
	h.Set("Cache-Control", "no-store")
	if q.retryAfter != "" {
		h.Set("Retry-After", q.retryAfter)
	}
	if q.header[0] != "" {
		h.Set(q.header[0], q.header[1])
	}
	w.WriteHeader(q.Status)
	_ = json.NewEncoder(w).Encode(&q) //nolint:errchkjson // The client is gone when this fails
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) //nolint:errchkjson // The client is gone when this fails
}

// maxJSON bounds the JSON bodies of the API.
const maxJSON = 64 << 10

// readJSON reads a JSON object strictly: one value, no unknown key. An empty body leaves v as it
// is when optional.
func readJSON(w http.ResponseWriter, r *http.Request, v any, optional bool) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJSON))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if errors.Is(err, io.EOF) && optional {
		return nil
	}
	var tooLong *http.MaxBytesError
	switch {
	case err == nil:
	case errors.As(err, &tooLong):
		return err
	case errors.Is(err, io.EOF):
		return badRequest("BODY_MISSING", "a JSON object is expected in the body")
	default:
		return badRequest("BODY_INVALID", "the body is not the JSON that is expected: %s", jsonFault(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badRequest("BODY_INVALID", "one JSON object is expected, and something follows it")
	}
	return nil
}

// jsonFault words an error of encoding/json without naming types of the program.
func jsonFault(err error) string {
	var typ *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &typ):
		return fmt.Sprintf("%q must not be a %s (byte %d)", typ.Field, typ.Value, typ.Offset)
	case errors.As(err, &syntax):
		return fmt.Sprintf("%s (byte %d)", syntax.Error(), syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
