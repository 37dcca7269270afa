package pipeline

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// inHand notes in a small file which messages are being worked on. It is not fsynced: it must
// survive the death of the process, not of the machine (DESIGN §3, Poison that kills the
// process). Each slot is 24 bytes: stage, 7 bytes of zero, id.
type inHand struct {
	mu   sync.Mutex
	f    *os.File
	free []int64
	used int64
}

const slotSize = 24

// openInHand reads which messages were in hand when the process died, and begins anew.
func openInHand(path string) (*inHand, []store.WorkKey, error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("read messages in hand: %w", err)
	}
	var suspects []store.WorkKey
	for len(old) >= slotSize {
		s := old[:slotSize]
		old = old[slotSize:]
		if st := store.Stage(s[0]); st >= store.Parser && st <= store.Sender {
			suspects = append(suspects, store.WorkKey{Stage: st, ID: edi.ID(s[8:24])})
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open messages in hand: %w", err)
	}
	// The file is emptied only when the crash count of the suspects is in the store (settle).
	return &inHand{f: f, used: int64(len(suspects))}, suspects, nil
}

// settle forgets the predecessor's notes.
func (h *inHand) settle() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used, h.free = 0, nil
	if err := h.f.Truncate(0); err != nil {
		return fmt.Errorf("clear messages in hand: %w", err)
	}
	return nil
}

// take notes a message and returns its slot. A write that fails only weakens the guard against
// poison, so it does not stop the work.
func (h *inHand) take(k store.WorkKey) int64 {
	var b [slotSize]byte
	b[0] = byte(k.Stage)
	copy(b[8:], k.ID[:])
	h.mu.Lock()
	slot := h.used
	if n := len(h.free); n > 0 {
		slot = h.free[n-1]
		h.free = h.free[:n-1]
	} else {
		h.used++
	}
	h.mu.Unlock()
	_, _ = h.f.WriteAt(b[:], slot*slotSize)
	return slot
}

// done frees the slot.
func (h *inHand) done(slot int64) {
	var b [slotSize]byte
	_, _ = h.f.WriteAt(b[:], slot*slotSize)
	h.mu.Lock()
	h.free = append(h.free, slot)
	h.mu.Unlock()
}

func (h *inHand) close() error { return h.f.Close() }
