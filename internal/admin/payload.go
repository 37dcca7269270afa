package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// The forms of a payload.
const (
	formContent = "content" // what was opened and verified, or the object's part of it
	formWire    = "wire"    // what travelled
)

// file is the bytes of an object.
type file struct {
	src  *io.SectionReader
	name string
	end  func() error
}

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

func (a *api) payload(k *kind) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := pathID(r, k)
		if err != nil {
			return err
		}
		p := &params{r: r}
		form := p.text("form")
		if err := p.done(); err != nil {
			return err
		}
		switch form {
		case "":
			form = formContent
		case formContent, formWire:
		case "pretty":
			return badRequest("FORM_UNSUPPORTED", "form=pretty is not offered; take form=content")
		default:
			return badRequest("FORM_UNKNOWN", "form=%s is not known; allowed: content, wire", quoted(form))
		}
		f, err := k.file(r.Context(), id, form)
		if err != nil {
			return k.missing(id, err)
		}
		defer func() {
			if err := f.end(); err != nil {
				a.Log.Warn("payload_close", zap.Error(err))
			}
		}()
		a.Log.Info("payload_read", zap.String("object", k.kind.String()), zap.String("id", id.String()), zap.String("form", form), zap.String("who", who(r).id))
		unbounded(w)
		h := w.Header()
		// Partners wrote these bytes: a browser must never take them for a page of ours.
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		http.ServeContent(w, r, "", time.Time{}, f.src)
		return nil
	}
}

// body opens a range of a body; length 0 means all that follows.
func (a *api) body(ctx context.Context, ref store.Ref, offset, length int64, name string) (*file, error) {
	if ref.IsZero() {
		return nil, problem(http.StatusNotFound, "NO_PAYLOAD", "nothing was kept of this object")
	}
	src, err := a.Store.OpenBody(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("open body: %w", err)
	}
	if length == 0 {
		length = src.Size() - offset
	}
	if offset < 0 || length < 0 || offset+length > src.Size() {
		_ = src.Close() // the next error is the one to tell
		return nil, fmt.Errorf("range %d+%d is outside of the body of %d bytes", offset, length, src.Size())
	}
	return &file{src: io.NewSectionReader(src, offset, length), name: name, end: src.Close}, nil
}

func (a *api) transmissionFile(ctx context.Context, id edi.ID, form string) (*file, error) {
	t, err := a.Store.GetTransmission(ctx, id)
	if err != nil {
		return nil, err
	}
	if form == formWire {
		return a.body(ctx, t.Wire, 0, 0, fileName("transmission-", id.String(), ".wire"))
	}
	return a.body(ctx, t.Content, 0, 0, fileName("transmission-", id.String(), extension(t.FileName)))
}

// extension keeps the last part of a file name where it is short and plain.
func extension(name string) string {
	for i := len(name) - 1; i >= 0 && len(name)-i <= 6; i-- {
		if name[i] == '.' {
			return fileName("x", name[i:])[1:]
		}
	}
	return ".bin"
}

func errNoWire() error {
	return problem(http.StatusBadRequest, "FORM_UNSUPPORTED", "form=wire exists for transmissions only; take form=content")
}

func (a *api) interchangeFile(ctx context.Context, id edi.ID, form string) (*file, error) {
	if form == formWire {
		return nil, errNoWire()
	}
	ic, err := a.Store.GetInterchange(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.body(ctx, ic.Body, ic.Envelope.Offset, ic.Envelope.Length, fileName("interchange-", id.String(), suffix(ic.Envelope.Standard)))
}

func (a *api) messageFile(ctx context.Context, id edi.ID, form string) (*file, error) {
	if form == formWire {
		return nil, errNoWire()
	}
	m, err := a.Store.GetMessage(ctx, id)
	if err != nil {
		return nil, err
	}
	ic, err := a.Store.GetInterchange(ctx, m.Interchange)
	if err != nil {
		return nil, err
	}
	return a.body(ctx, ic.Body, m.Envelope.Offset, m.Envelope.Length, fileName("message-", id.String(), suffix(m.Standard)))
}

func (a *api) deliveryFile(ctx context.Context, id edi.ID, form string) (*file, error) {
	if form == formWire {
		return nil, errNoWire()
	}
	d, err := a.Store.GetDelivery(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(d.Pieces) == 0 {
		return nil, problem(http.StatusNotFound, "NO_PAYLOAD", "nothing was kept of this object")
	}
	src, err := a.Pipeline.OpenPieces(d.Pieces)
	if err != nil {
		return nil, fmt.Errorf("open delivery: %w", err)
	}
	return &file{src: io.NewSectionReader(src, 0, src.Size()), name: fileName("delivery-", id.String(), suffix(d.Standard)), end: src.Close}, nil
}

func suffix(s edi.Standard) string {
	switch s {
	case edi.EDIFACT, edi.X12:
		return ".edi"
	case edi.UBL:
		return ".xml"
	case edi.Opaque:
	}
	return ".bin"
}
