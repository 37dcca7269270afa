package hubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/edihub/edihub/internal/admin"
)

// API is a client of the admin API with a token.
type API struct {
	Token string
	h     *Hub
}

// Object is a JSON object of the API.
type Object map[string]any

// Text is a value as text; a path such as "dead_letter.code" goes down. What is absent is empty.
func (o Object) Text(path string) string {
	var v any = map[string]any(o)
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[name]
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// API is a client with the token that the hub wrote at its first start: the role admin.
func (h *Hub) API() *API {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.DataDir(), admin.TokenFile))
	if err != nil {
		h.t.Fatal(err)
	}
	return &API{Token: strings.TrimSpace(string(b)), h: h}
}

// As makes a token with a role and returns a client with it.
func (a *API) As(role string) *API {
	a.h.t.Helper()
	var o Object
	a.JSON(http.MethodPost, "/v1/tokens", map[string]string{"role": role, "name": "hubtest"}, http.StatusCreated, &o)
	return &API{Token: o.Text("token"), h: a.h}
}

// Reply is an answer of the API.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call makes one request; in is sent as JSON, or as it is where it is a []byte. An empty token
// sends none.
func (a *API) Call(method, path string, in any) *Reply {
	a.h.t.Helper()
	var body io.Reader
	switch v := in.(type) {
	case nil:
	case []byte:
		body = bytes.NewReader(v)
	default:
		b, err := json.Marshal(v)
		if err != nil {
			a.h.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://"+a.h.AdminAddr()+path, body) //nolint:noctx // The client of the rig has its own end.
	if err != nil {
		a.h.t.Fatal(err)
	}
	if a.Token != "" {
		req.Header.Set("Authorization", "Bearer "+a.Token)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.h.HTTP.Do(req)
	if err != nil {
		a.h.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only read.
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		a.h.t.Fatal(err)
	}
	return &Reply{Status: resp.StatusCode, Header: resp.Header, Body: b}
}

// JSON makes one request that must have that status, and reads the answer into out unless it is
// nil.
func (a *API) JSON(method, path string, in any, status int, out any) {
	a.h.t.Helper()
	r := a.Call(method, path, in)
	if r.Status != status {
		a.h.t.Fatalf("%s %s: HTTP %d, want %d: %s", method, path, r.Status, status, r.Body)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(r.Body, out); err != nil {
		a.h.t.Fatalf("%s %s: %v: %s", method, path, err, r.Body)
	}
}

// List reads all pages of a list: "messages", or "messages?state=dead". It runs from new to old.
func (a *API) List(what string) []Object {
	a.h.t.Helper()
	path, query, _ := strings.Cut(what, "?")
	var all []Object
	for cursor := ""; ; {
		q := query
		if cursor != "" {
			q = strings.TrimPrefix(q+"&cursor="+url.QueryEscape(cursor), "&")
		}
		var page struct {
			Items []Object `json:"items"`
			Next  string   `json:"next_cursor"`
		}
		a.JSON(http.MethodGet, "/v1/"+path+"?"+q, nil, http.StatusOK, &page)
		all = append(all, page.Items...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// One reads one object: "messages", id.
func (a *API) One(what, id string) Object {
	a.h.t.Helper()
	var o Object
	a.JSON(http.MethodGet, "/v1/"+what+"/"+id, nil, http.StatusOK, &o)
	return o
}

// Payload reads the bytes of an object in a form: wire or content.
func (a *API) Payload(what, id, form string) []byte {
	a.h.t.Helper()
	r := a.Call(http.MethodGet, "/v1/"+what+"/"+id+"/payload?form="+form, nil)
	if r.Status != http.StatusOK {
		a.h.t.Fatalf("payload of %s %s: HTTP %d: %s", what, id, r.Status, r.Body)
	}
	return r.Body
}

// Events reads the time line of an object.
func (a *API) Events(what, id string) []Object {
	a.h.t.Helper()
	return a.List(what + "/" + id + "/events")
}

// Replay replays a dead letter by its id.
func (a *API) Replay(id string) {
	a.h.t.Helper()
	a.JSON(http.MethodPost, "/v1/deadletters/"+id+"/replay", map[string]string{"reason": "the cause is mended"}, http.StatusOK, nil)
}
