package hubtest

import (
	"sync"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/app/peer"
)

// Keyring makes identities once and gives the same ones again. The zero value is ready; a test
// package keeps one for all of its tests.
type Keyring struct {
	mu  sync.Mutex
	ids map[string]*peer.Identity
}

// Identities returns identities by AS2 name and makes the missing ones, all at the same time.
func (k *Keyring) Identities(t testing.TB, names ...string) map[string]*peer.Identity {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil {
		k.ids = map[string]*peer.Identity{}
	}
	made := make([]*peer.Identity, len(names))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		if made[i] = k.ids[name]; made[i] == nil {
			wg.Go(func() { made[i], errs[i] = peer.NewIdentity(name, time.Now()) })
		}
	}
	wg.Wait()
	out := make(map[string]*peer.Identity, len(names))
	for i, name := range names {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		k.ids[name], out[name] = made[i], made[i]
	}
	return out
}
