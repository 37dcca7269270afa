package partner

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/edihub/edihub/internal/edi"
)

// Registry is an immutable snapshot of all records. It is safe for concurrent use; nobody may
// change what its methods return.
type Registry struct {
	version     int64
	hash        string
	owns        []*Own
	connections []*Connection
	partners    []*Partner
	agreements  []*Agreement
	routes      []*Route
	fallback    *Agreement // what holds where no agreement matches
	warnings    []Warning
	certPlaces  []certPlace

	ownByID     map[string]*Own
	connByID    map[string]*Connection
	partnerByID map[string]*Partner
	byAS2       map[as2Pair]as2Found
	byIdent     map[string]party
	ofConn      map[string][]*Partner

	lanes          map[string]parserLane // by connection that has partners
	agreementIndex matchIndex
	routeIndex     matchIndex
}

type as2Pair struct{ from, to string }

type as2Found struct {
	connection *Connection
	own        *Own
}

type party struct {
	id      string
	own     bool
	partner *Partner
}

// Empty is a registry without records, for a hub that knows nobody yet.
func Empty() *Registry {
	r := &Registry{fallback: defaultAgreement()}
	r.index()
	return r
}

// index builds the look-up tables from the lists.
func (r *Registry) index() {
	r.ownByID = make(map[string]*Own, len(r.owns))
	r.connByID = make(map[string]*Connection, len(r.connections))
	r.partnerByID = make(map[string]*Partner, len(r.partners))
	r.byAS2 = make(map[as2Pair]as2Found)
	r.byIdent = make(map[string]party)
	r.ofConn = make(map[string][]*Partner)
	for _, o := range r.owns {
		r.ownByID[o.ID] = o
		for _, id := range o.Identifiers {
			r.byIdent[compareKey(id)] = party{id: o.ID, own: true}
		}
	}
	for _, c := range r.connections {
		r.connByID[c.ID] = c
		if c.AS2 == nil {
			continue
		}
		if own := r.ownByID[c.AS2.Own]; own != nil && own.AS2ID != "" {
			r.byAS2[as2Pair{from: c.AS2.ID, to: own.AS2ID}] = as2Found{connection: c, own: own}
		}
	}
	for _, p := range r.partners {
		r.partnerByID[p.ID] = p
		for _, id := range p.Identifiers {
			r.byIdent[compareKey(id)] = party{id: p.ID, partner: p}
		}
		for _, c := range p.Connections {
			r.ofConn[c] = append(r.ofConn[c], p)
		}
	}
	r.agreementIndex = newMatchIndex(len(r.agreements), func(i int) *Match { return &r.agreements[i].Match })
	r.routeIndex = newMatchIndex(len(r.routes), func(i int) *Match { return &r.routes[i].Match })
	r.lanes = make(map[string]parserLane, len(r.ofConn))
	for id, partners := range r.ofConn {
		r.lanes[id] = r.parserLane(partners)
	}
}

// Version is the number that messages record: the one that was given, else one that is derived
// from the content.
func (r *Registry) Version() int64 { return r.version }

// WithVersion returns the same records under another version number.
func (r *Registry) WithVersion(n int64) *Registry {
	c := *r
	c.version = n
	return &c
}

// Hash is the SHA-256 (hex) of everything that the registry was read from, certificates and keys
// included. Two registries with the same hash are the same.
func (r *Registry) Hash() string { return r.hash }

// Warnings lists what works but should be known, in the order of the file.
func (r *Registry) Warnings() []Warning { return slices.Clone(r.warnings) }

// Own returns one of our identities, nil when there is none of that id.
func (r *Registry) Own(id string) *Own { return r.ownByID[id] }

// Connection returns a connection, nil when there is none of that id.
func (r *Registry) Connection(id string) *Connection { return r.connByID[id] }

// Partner returns a partner, nil when there is none of that id.
func (r *Registry) Partner(id string) *Partner { return r.partnerByID[id] }

// Owns returns our identities in the order of the file.
func (r *Registry) Owns() []*Own { return slices.Clone(r.owns) }

// Connections returns the connections in the order of the file.
func (r *Registry) Connections() []*Connection { return slices.Clone(r.connections) }

// Partners returns the partners in the order of the file.
func (r *Registry) Partners() []*Partner { return slices.Clone(r.partners) }

// Agreements returns the agreements in the order in which they are tried.
func (r *Registry) Agreements() []*Agreement { return slices.Clone(r.agreements) }

// Routes returns the routes in the order in which they are tried.
func (r *Registry) Routes() []*Route { return slices.Clone(r.routes) }

// Default returns what holds where no agreement matches.
func (r *Registry) Default() *Agreement { return r.fallback }

// ConnectionByAS2 finds the connection by the names in the AS2 header, both unquoted. The names
// are compared exactly (RFC 4130 §6.2).
func (r *Registry) ConnectionByAS2(from, to string) (*Connection, *Own, bool) {
	f, ok := r.byAS2[as2Pair{from: from, to: to}]
	return f.connection, f.own, ok
}

// PartyByIdentifier says whose identifier it is: a partner's, or one of our own.
func (r *Registry) PartyByIdentifier(id edi.Identifier) (partyID string, own, ok bool) {
	p, ok := r.byIdent[compareKey(id)]
	return p.id, p.own, ok
}

// BoundTo returns the partner that may send with this identifier over this connection: the one
// that has the identifier and is bound to the connection. An internal endpoint (Internal) speaks
// with our own identifiers: these are bound to it where it is the only one of its connection.
func (r *Registry) BoundTo(connectionID string, id edi.Identifier) (*Partner, bool) {
	p, ok := r.byIdent[compareKey(id)]
	switch {
	case !ok:
		return nil, false
	case p.own:
		return r.Internal(connectionID)
	case slices.Contains(p.partner.Connections, connectionID):
		return p.partner, true
	}
	return nil, false
}

// Internal returns the internal endpoint of a connection: the one partner without identifiers
// that is bound to it, where the connection is a directory or HTTP. A partner behind AS2 never
// speaks for us, so a record that forgot its identifiers gives nobody our name (DESIGN G8).
func (r *Registry) Internal(connectionID string) (*Partner, bool) {
	c := r.connByID[connectionID]
	if c == nil || c.AS2 != nil {
		return nil, false
	}
	var found *Partner
	for _, p := range r.ofConn[connectionID] {
		if len(p.Identifiers) > 0 {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = p
	}
	return found, found != nil
}

// IsInternal reports whether a partner is an internal endpoint: it has no identifiers and its
// first connection is a directory or HTTP. Towards such a one the envelope's parties stay those
// of the original.
func (r *Registry) IsInternal(p *Partner) bool {
	if p == nil || len(p.Identifiers) > 0 || len(p.Connections) == 0 {
		return false
	}
	c := r.connByID[p.Connections[0]]
	return c != nil && c.AS2 == nil
}

// PartnersOf returns the partners that are bound to a connection, in the order of the file.
func (r *Registry) PartnersOf(connectionID string) []*Partner {
	return slices.Clone(r.ofConn[connectionID])
}

// compareKey is the form in which identifiers are compared: X12.5 ISA06 and ISA08 are filled with
// blanks that do not count, an EDIFACT identifier without qualifier equals one with an empty
// qualifier, and Peppol participant identifiers do not tell capitals from small letters.
func compareKey(id edi.Identifier) string {
	space, rest, ok := strings.Cut(string(id), ":")
	if !ok {
		return string(id)
	}
	switch space {
	case "peppol":
		return strings.ToLower(string(id))
	case "gs":
		return string(edi.GSIdentifier(rest))
	case "edifact":
		qualifier, name, has := strings.Cut(rest, ":")
		if !has {
			qualifier, name = "", rest
		}
		return string(edi.EDIFACTIdentifier(qualifier, name))
	case "x12":
		qualifier, name, _ := strings.Cut(rest, ":")
		return string(edi.X12Identifier(qualifier, name))
	}
	return string(id)
}

// Holder holds the current Registry. Whoever handles a message takes it once, so that a reload
// in between changes nothing for that message. The zero Holder holds Empty.
type Holder struct{ current atomic.Pointer[Registry] }

// NewHolder holds r.
func NewHolder(r *Registry) *Holder {
	h := new(Holder)
	h.current.Store(r)
	return h
}

// Current returns the registry of this moment, never nil.
func (h *Holder) Current() *Registry {
	if r := h.current.Load(); r != nil {
		return r
	}
	h.current.CompareAndSwap(nil, Empty())
	return h.current.Load()
}

// Swap puts r in place and returns the one before, nil when there was none.
func (h *Holder) Swap(r *Registry) *Registry { return h.current.Swap(r) }
