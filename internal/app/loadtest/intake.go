package loadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/admin"
	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/as2"
)

// The ways in which files come into the hub.
const (
	IntakeAS2       = "as2"
	IntakeHTTP      = "http"
	IntakeDirectory = "directory"
)

// intake brings files to the hub.
type intake interface {
	// pack makes a post of its own, the nth of its partner, which can be posted again.
	pack(p *plan, k kind, payload []byte) (parcel, error)
	// settled waits until the hub has taken or refused all that was posted, and returns how many
	// files it refused after the post.
	settled(ctx context.Context) (refused int, err error)
}

// parcel is a file ready to be posted, once or again.
type parcel interface {
	post(ctx context.Context) (receipt, error)
}

// receipt is what the hub said to a post.
type receipt struct {
	taken  bool
	busy   bool   // not now: post again after a while
	status string // for a person
	proof  []byte // the same for a repeat of the same post; nil where nothing answers
}

func (r *run) newIntake() (intake, error) {
	switch r.o.Intake {
	case IntakeHTTP:
		token, err := os.ReadFile(filepath.Join(r.dir, "data", admin.TokenFile)) // the hub has just made it
		if err != nil {
			return nil, fmt.Errorf("token of the load test: %w", err)
		}
		return &httpIntake{r: r, url: "http://" + r.hub.AdminAddr() + "/v1/messages", token: strings.TrimSpace(string(token))}, nil
	case IntakeDirectory:
		return &directoryIntake{r: r}, nil
	}
	return &as2Intake{r: r}, nil
}

// as2Intake posts over AS2; the MDN is the receipt.
type as2Intake struct{ r *run }

func (a *as2Intake) pack(p *plan, k kind, payload []byte) (parcel, error) {
	wire, err := peer.Prepare(&peer.Message{
		URL: a.r.url, From: a.r.senders[p.lane-1], To: a.r.self, MessageID: fmt.Sprintf("<lt-%d-%d@loadtest>", p.lane, p.posts),
		Media: k.media(), Payload: payload, Security: a.r.security, At: time.Now(),
	})
	if err != nil {
		return nil, err
	}
	return &as2Parcel{wire: wire, client: a.r.client}, nil
}

func (a *as2Intake) settled(context.Context) (int, error) { return 0, nil }

type as2Parcel struct {
	wire   *peer.Wire
	client *http.Client
}

func (p *as2Parcel) post(ctx context.Context) (receipt, error) {
	a, err := p.wire.Post(ctx, p.client)
	if err != nil {
		return receipt{}, err
	}
	return receipt{
		taken: a.MDN != nil && a.MDN.Outcome == as2.Positive, busy: a.Status == http.StatusServiceUnavailable,
		status: fmt.Sprintf("HTTP %d", a.Status), proof: a.Body,
	}, nil
}

// httpIntake posts to the operations API under an Idempotency-Key; the id of the transmission is
// the receipt.
type httpIntake struct {
	r          *run
	url, token string
}

func (h *httpIntake) pack(p *plan, k kind, payload []byte) (parcel, error) {
	query := url.Values{"from": {"p-" + senderID(p.lane)}, "to": {"p-" + receiverID(p.lane)}}
	return &httpParcel{
		in: h, url: h.url + "?" + query.Encode(), key: fmt.Sprintf("lt-%d-%d", p.lane, p.posts), media: k.media(), payload: payload,
	}, nil
}

func (h *httpIntake) settled(context.Context) (int, error) { return 0, nil }

type httpParcel struct {
	in              *httpIntake
	url, key, media string
	payload         []byte
}

func (p *httpParcel) post(ctx context.Context) (receipt, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(p.payload))
	if err != nil {
		return receipt{}, fmt.Errorf("post message: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+p.in.token)
	req.Header.Set("Idempotency-Key", p.key)
	req.Header.Set("Content-Type", p.media)
	resp, err := p.in.r.client.Do(req)
	if err != nil {
		return receipt{}, fmt.Errorf("post message: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only read.
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return receipt{}, fmt.Errorf("read answer: %w", err)
	}
	out := receipt{status: fmt.Sprintf("HTTP %d", resp.StatusCode)}
	switch resp.StatusCode {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		out.busy = true
	case http.StatusOK, http.StatusAccepted:
		var answer struct {
			Transmission string `json:"transmission_id"`
		}
		if err := json.Unmarshal(body, &answer); err != nil || answer.Transmission == "" {
			return receipt{}, fmt.Errorf("read answer: no transmission_id in %q", body)
		}
		out.taken, out.proof = true, []byte(answer.Transmission)
	}
	return out, nil
}

// directoryIntake writes files into the folder of the partner's connection: under another name
// first, then renamed, then announced by an empty file beside it. Nothing answers; what the hub
// has refused lies in error/ at the end.
type directoryIntake struct{ r *run }

func (d *directoryIntake) pack(p *plan, k kind, payload []byte) (parcel, error) {
	// The hub takes files in the order of their times and, within one tick of the clock, of their
	// names.
	return &fileParcel{path: filepath.Join(d.r.inFolder(p.lane), fmt.Sprintf("lt-%09d%s", p.posts, k.extension())), payload: payload}, nil
}

func (k kind) extension() string {
	switch k {
	case invoic:
		return ".edi"
	case order850:
		return ".x12"
	case ubl:
	}
	return ".xml"
}

// inFolder is where the files of a sender are picked up.
func (r *run) inFolder(lane int) string { return filepath.Join(r.dir, "in", senderID(lane)) }

type fileParcel struct {
	path    string
	payload []byte
}

func (p *fileParcel) post(context.Context) (receipt, error) {
	temporary := p.path + ".tmp"
	if err := os.WriteFile(temporary, p.payload, 0o600); err != nil {
		return receipt{}, fmt.Errorf("write file: %w", err)
	}
	if err := os.Rename(temporary, p.path); err != nil {
		return receipt{}, fmt.Errorf("name file: %w", err)
	}
	if err := os.WriteFile(p.path+".done", nil, 0o600); err != nil {
		return receipt{}, fmt.Errorf("announce file: %w", err)
	}
	return receipt{taken: true, status: "written"}, nil
}

func (d *directoryIntake) settled(ctx context.Context) (refused int, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		waiting, refused, err := d.look()
		if err != nil || waiting == 0 {
			return refused, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return refused, context.Cause(ctx)
		}
	}
}

// look counts the files that wait for the hub, and those that it refused.
func (d *directoryIntake) look() (waiting, refused int, err error) {
	for lane := 1; lane <= d.r.o.Partners; lane++ {
		for folder, count := range map[string]*int{"": &waiting, "work": &waiting, "error": &refused} {
			entries, err := os.ReadDir(filepath.Join(d.r.inFolder(lane), folder))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return 0, 0, fmt.Errorf("look for files: %w", err)
			}
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), ".error.txt") || !e.Type().IsRegular() {
					continue
				}
				*count++
			}
		}
	}
	return waiting, refused, nil
}
