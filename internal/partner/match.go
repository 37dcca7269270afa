package partner

import (
	"slices"
	"strings"

	"github.com/edihub/edihub/internal/edi"
)

// RouteQuery is what the router knows of a message. From and To are ids of partners or own
// identities found through the envelope; empty where none was found.
type RouteQuery struct {
	From, To         string
	Sender, Receiver edi.Identifier
	Document         string       // edi.DocumentType, for example "x12:850"
	Standard         edi.Standard // edi.Opaque stands for Document "opaque"
}

// All reports whether the match names nothing and so matches all.
func (m *Match) All() bool {
	return len(m.From) == 0 && len(m.To) == 0 && len(m.Sender) == 0 && len(m.Receiver) == 0 && len(m.Document) == 0
}

func anyString(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }

func anyDocument(list []string, v string) bool {
	if len(list) == 0 {
		return true
	}
	for _, pattern := range list {
		if documentMatches(pattern, v) {
			return true
		}
	}
	return false
}

// documentMatches compares a pattern with at most one "*", at its end.
func documentMatches(pattern, document string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(document, head)
	}
	return pattern == document
}

// anyKey is anyString for identifiers in the form of compareKey.
func anyKey(list []string, key string) bool {
	return len(list) == 0 || (key != "" && slices.Contains(list, key))
}

// entry is a match with its identifiers in the form in which they are compared.
type entry struct {
	*Match
	senders, receivers []string
}

// matches reports whether the keys of the match hold: keys are ANDed, list values ORed, an absent
// key matches all.
func (e *entry) matches(q *query) bool {
	return anyString(e.From, q.from) && anyString(e.To, q.to) && anyDocument(e.Document, q.document) &&
		anyKey(e.senders, q.sender) && anyKey(e.receivers, q.receiver)
}

// query is what a message brings to a match.
type query struct{ from, to, document, sender, receiver string }

// matchIndex finds the first entry that matches without trying all of them: most entries of a hub
// with many partners name a receiver's identifier or a sender.
type matchIndex struct {
	entries    []entry
	byReceiver map[string][]int // positions in order, of entries that name a receiver
	byFrom     map[string][]int // of the others that name who it is from
	open       []int            // of all others
}

func newMatchIndex(n int, at func(int) *Match) matchIndex {
	x := matchIndex{entries: make([]entry, n), byReceiver: make(map[string][]int), byFrom: make(map[string][]int)}
	for i := range n {
		m := at(i)
		x.entries[i] = entry{Match: m, senders: compareKeys(m.Sender), receivers: compareKeys(m.Receiver)}
		switch {
		case len(m.Receiver) > 0:
			for _, k := range x.entries[i].receivers {
				x.byReceiver[k] = append(x.byReceiver[k], i)
			}
		case len(m.From) > 0:
			for _, k := range m.From {
				x.byFrom[k] = append(x.byFrom[k], i)
			}
		default:
			x.open = append(x.open, i)
		}
	}
	return x
}

func compareKeys(ids []edi.Identifier) []string {
	var out []string
	for _, id := range ids {
		if k := compareKey(id); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// first returns the lowest position among those that may match whom it is from and the receiver's
// identifier, and that ok accepts; -1 when there is none.
func (x *matchIndex) first(from, receiver string, ok func(*entry, int) bool) int {
	lists := [3][]int{x.byReceiver[receiver], x.byFrom[from], x.open}
	for {
		next := -1
		for l := range lists {
			if len(lists[l]) > 0 && (next < 0 || lists[l][0] < lists[next][0]) {
				next = l
			}
		}
		if next < 0 {
			return -1
		}
		i := lists[next][0]
		lists[next] = lists[next][1:]
		if ok(&x.entries[i], i) {
			return i
		}
	}
}

func (x *matchIndex) find(q *query) int {
	return x.first(q.from, q.receiver, func(e *entry, _ int) bool { return e.matches(q) })
}

// Agreement returns what holds between two parties (ids of partners or own identities) for a
// document (edi.DocumentType): the first match, else the defaults. It never returns nil.
func (r *Registry) Agreement(from, to, document string, sender, receiver edi.Identifier) *Agreement {
	i := r.agreementIndex.find(&query{from: from, to: to, document: document, sender: compareKey(sender), receiver: compareKey(receiver)})
	if i < 0 {
		return r.fallback
	}
	return r.agreements[i]
}

// Route returns the first route that matches.
func (r *Registry) Route(q RouteQuery) (*Route, bool) {
	document := q.Document
	if q.Standard == edi.Opaque {
		document = string(edi.Opaque)
	}
	i := r.routeIndex.find(&query{from: q.From, to: q.To, document: document, sender: compareKey(q.Sender), receiver: compareKey(q.Receiver)})
	if i < 0 {
		return nil, false
	}
	return r.routes[i], true
}

// ParserLane says how the parser takes what comes over a connection. It gates by connection
// unless every agreement that a partner of that connection can match says ordering none; the
// policy is the strictest of theirs. Hold-key is block here, because no key is known before
// parsing (DESIGN §3). Where no partner is bound there is no agreement, and the policy is skip.
func (r *Registry) ParserLane(connectionID string) (ordered bool, policy Poison) {
	l, ok := r.lanes[connectionID]
	if !ok {
		return true, Skip
	}
	return l.ordered != nil, l.policy
}

// parserLane is what the agreements that the partners of a connection can match say together.
type parserLane struct {
	ordered *Agreement // one that keeps an order, a named one before the defaults
	free    *Agreement // one that keeps none
	policy  Poison
}

// parserLane looks through the agreements, the defaults included, that one of the partners can
// match as the sender.
func (r *Registry) parserLane(partners []*Partner) parserLane {
	l := parserLane{policy: Skip}
	for _, p := range partners {
		covered := false
		for i, a := range r.agreements {
			e := &r.agreementIndex.entries[i]
			if !anyString(e.From, p.ID) || !canSend(p, e) {
				continue
			}
			l.add(a)
			// Whatever this partner sends matches here, so later ones are out of its reach.
			if covered = len(e.To)+len(e.Receiver)+len(e.Document)+len(e.Sender) == 0; covered {
				break
			}
		}
		if !covered {
			l.add(r.fallback)
		}
	}
	return l
}

func (l *parserLane) add(a *Agreement) {
	switch {
	case a.Ordering.By == ByNone:
		l.free = a
	case l.ordered == nil || l.ordered.Position == 0:
		l.ordered = a
	}
	if a.OnPoison != Skip {
		l.policy = Block
	}
}

// canSend reports whether an envelope of the partner can carry one of the senders. An internal
// endpoint has no identifiers of its own, so it can carry any.
func canSend(p *Partner, e *entry) bool {
	if len(e.senders) == 0 || len(p.Identifiers) == 0 {
		return true
	}
	return slices.ContainsFunc(p.Identifiers, func(id edi.Identifier) bool { return anyKey(e.senders, compareKey(id)) })
}
