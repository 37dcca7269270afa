package pipeline

import (
	"sync"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// recent remembers transmissions that were just accepted and deliveries that were just made, so
// that the next step need not read them back. Each is handed out once; what falls out is read
// from the store.
type recent struct {
	mu    sync.Mutex
	limit int
	trans map[edi.ID]*store.Transmission
	deliv map[edi.ID]*store.Delivery
}

func newRecent(limit int) *recent {
	return &recent{limit: limit, trans: map[edi.ID]*store.Transmission{}, deliv: map[edi.ID]*store.Delivery{}}
}

func (r *recent) put(t *store.Transmission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trans) < r.limit {
		r.trans[t.ID] = t
	}
}

func (r *recent) take(id edi.ID) *store.Transmission {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.trans[id]
	delete(r.trans, id)
	return t
}

func (r *recent) putDelivery(d *store.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.deliv) < r.limit {
		r.deliv[d.ID] = d
	}
}

func (r *recent) takeDelivery(id edi.ID) *store.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.deliv[id]
	delete(r.deliv, id)
	return d
}
