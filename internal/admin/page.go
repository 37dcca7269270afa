package admin

import (
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"time"
)

//go:embed page.html
var pageText string

func pageTemplate() (*template.Template, error) {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("status page: %w", err)
	}
	return t, nil
}

// pageData is what the status page shows. It holds no payload and nothing of a partner.
type pageData struct {
	Node    string
	Version string
	Now     string
	Waiting []string
	// Stages are shown to those who bring a token.
	Stages []stageView
	Asked  bool
}

// status is the status page. Without a token it says whether the hub is ready; with one, how its
// pools are.
func (a *api) status(w http.ResponseWriter, r *http.Request) error {
	d := pageData{
		Node: a.Node, Version: a.Version, Now: a.Clock.Now().UTC().Format(time.RFC3339), Waiting: a.probe.waitingFor(r.Context()),
	}
	if _, has := bearer(r); has {
		if _, err := a.authenticate(r); err != nil {
			return err
		}
		var err error
		if d.Stages, err = a.stages(r); err != nil {
			return err
		}
		d.Asked = true
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	return a.template.Execute(w, d)
}
