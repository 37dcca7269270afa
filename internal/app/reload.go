package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/endpoint/directory"
	"github.com/edihub/edihub/internal/idempotency"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// versionSetting keeps the number of the partner records that were used last. Numbers rise with
// each change, also over restarts, because lanes remember the highest that they have seen.
const versionSetting = "partners.version"

type savedVersion struct {
	Number int64  `json:"number"`
	Hash   string `json:"hash"`
}

// versionRegistry gives the records their number and puts them in force.
func (h *Hub) versionRegistry(ctx context.Context, reg *partner.Registry) error {
	var v savedVersion
	raw, err := h.store.GetSetting(ctx, versionSetting)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return fmt.Errorf("version of partner records: %w", err)
	default:
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("version of partner records: %w", err)
		}
	}
	if v.Hash != reg.Hash() || v.Number == 0 {
		v = savedVersion{Number: v.Number + 1, Hash: reg.Hash()}
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("version of partner records: %w", err)
		}
		if err := h.store.Update(ctx, func(tx store.Tx) error { return tx.SaveSetting(versionSetting, raw) }); err != nil {
			return fmt.Errorf("version of partner records: %w", err)
		}
	}
	h.spool.SetMax(largestMessage(h.cfg.AS2.MaxMessage, reg))
	h.registry.Swap(reg.WithVersion(v.Number))
	return nil
}

// largestMessage is the most that one message may have on any connection, in bytes.
func largestMessage(most int64, reg *partner.Registry) int64 {
	for _, c := range reg.Connections() {
		if c.AS2 != nil {
			most = max(most, c.AS2.MaxMessage)
		}
	}
	return most
}

// Reload reads certificates and partner records again, or keeps the old ones and says why.
func (h *Hub) Reload(ctx context.Context) error {
	for _, c := range h.certificates {
		if err := c.reload(); err != nil {
			return err
		}
	}
	reg, err := h.readRegistry()
	if err != nil {
		return err
	}
	return h.Use(ctx, reg)
}

// Use puts partner records in force, and starts or stops the polling of their directories.
func (h *Hub) Use(ctx context.Context, reg *partner.Registry) error {
	if err := h.versionRegistry(ctx, reg); err != nil {
		return err
	}
	h.opt.Registry = nil
	if h.cfg.PartnersFile == "" {
		h.opt.Registry = reg
	}
	return h.startPollers(ctx)
}

// startPollers polls the directories of the records in force and no others.
func (h *Hub) startPollers(ctx context.Context) error {
	reg := h.registry.Current()
	h.mu.Lock()
	old := h.pollers
	h.pollers = map[string]*directory.Poller{}
	h.mu.Unlock()
	for _, p := range old {
		if err := p.Stop(ctx); err != nil {
			return fmt.Errorf("stop polling: %w", err)
		}
	}
	for _, c := range reg.Connections() {
		if c.Directory == nil {
			continue
		}
		if c.Directory.Out != "" {
			if err := h.ends.directory.Prepare(c.Directory); err != nil {
				// The others must work; deliveries to this one say what is missing and are tried again.
				h.log.Error("directory_not_ready", zap.String("connection", c.ID), zap.Error(err))
			}
		}
		if c.Directory.In == "" {
			continue
		}
		p, err := directory.NewPoller(directory.PollerOptions{
			Connection: c.ID, Directory: c.Directory, Accept: h.acceptFile, Clock: h.clock, MaxSize: h.cfg.AS2.MaxMessage, Logger: h.log,
		})
		if err != nil {
			return fmt.Errorf("poll %s: %w", c.ID, err)
		}
		if err := p.Start(ctx); err != nil {
			return fmt.Errorf("poll %s: %w", c.ID, err)
		}
		h.mu.Lock()
		if len(h.pollers) == 0 && len(old) == 0 {
			h.stops = append(h.stops, h.stopPollers)
		}
		h.pollers[c.ID] = p
		h.mu.Unlock()
	}
	return nil
}

func (h *Hub) stopPollers(ctx context.Context) error {
	h.mu.Lock()
	ps := h.pollers
	h.pollers = map[string]*directory.Poller{}
	h.mu.Unlock()
	var err error
	for _, p := range ps {
		err = errors.Join(err, p.Stop(ctx))
	}
	return err
}

// acceptFile makes a file from a directory durable. The claim makes it idempotent: a file that
// was taken before a crash and not moved yet is taken once.
func (h *Hub) acceptFile(ctx context.Context, f *directory.File) (directory.Outcome, error) {
	body, err := h.store.StageBody(ctx, f.Content)
	if err != nil {
		return directory.Outcome{}, fmt.Errorf("stage %s: %w", f.Name, err)
	}
	own := ""
	if os := h.registry.Current().Owns(); len(os) > 0 {
		own = os[0].ID
	}
	now := h.clock.Now()
	id := edi.NewID(now)
	err = h.pipeline.Accept(ctx, &pipeline.Arrival{
		Transmission: &store.Transmission{
			ID: id, Transport: "directory", Connection: f.Connection, Own: own, FileName: f.Name, State: store.StateAccepted,
			Content: body.Ref, Wire: body.Ref, Size: body.Size, WireSize: body.Size, At: now,
		},
		Content: body,
		Key:     &store.NaturalKey{Scope: store.ScopeFile, Hash: idempotency.File(f.Connection, f.Claim.String()), Content: body.Ref, Object: id, At: now},
	})
	var repeat *pipeline.RepeatError
	if errors.As(err, &repeat) {
		h.log.Info("file_again", zap.String("connection", f.Connection), zap.String("first", repeat.First.String()))
		return directory.Outcome{}, nil
	}
	if err != nil {
		return directory.Outcome{}, err
	}
	return directory.Outcome{}, nil
}
