package pipeline

import (
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/store"
)

// ParserLane is the lane of what arrives by a connection: before the envelope is read, the
// connection is all that is known of the origin.
func ParserLane(r *partner.Registry, connection string) store.LaneSpec {
	ordered, policy := r.ParserLane(connection)
	if policy == partner.HoldKey {
		policy = partner.Block // the parser knows no key
	}
	return store.LaneSpec{Stage: store.Parser, Name: "conn:" + connection, Ordered: ordered, Policy: string(policy)}
}

// MessageLane is the lane of a message behind the parser: sender × receiver, with the key of the
// agreement's ordering (DESIGN §3, Lanes).
func MessageLane(stage store.Stage, a *partner.Agreement, from, to string, interchange edi.ID, d *edi.Document) store.LaneSpec {
	s := store.LaneSpec{Stage: stage, Name: from + ">" + to, Ordered: a.Ordering.By != partner.ByNone, Policy: string(a.OnPoison)}
	key := ""
	switch a.Ordering.By {
	case partner.ByInterchange:
		key = "interchange:" + interchange.String()
	case partner.ByDocument:
		key = "document:" + DocumentKey(d)
	case partner.ByCustomer:
		if d.Buyer != "" {
			key = "customer:" + d.Buyer
		}
	case partner.ByPartner, partner.ByNone:
	}
	if key != "" {
		s.Name += "/" + key
	}
	return s
}

// OutLane is the lane of a delivery: the message's lane and the destination.
func OutLane(l store.LaneSpec, connection string) store.LaneSpec {
	l.Stage = store.Sender
	l.Name += "/to:" + connection
	return l
}

// DocumentKey is the key of ordering by document and of hold-key: the purchase order's number
// where the type has one, else the document's own.
func DocumentKey(d *edi.Document) string {
	if d.OrderNo != "" {
		return d.OrderNo
	}
	return d.Number
}

// HoldKey is the key that a row waits for under on_poison: hold-key, else "".
func HoldKey(a *partner.Agreement, d *edi.Document) string {
	if a.OnPoison != partner.HoldKey {
		return ""
	}
	return DocumentKey(d)
}

// DecideFor counts decisions of an interchange whose messages wait; the last one emits the row that
// builds its deliveries, in the lane of the interchange's sender and receiver.
func DecideFor(a *partner.Agreement, ic *store.Interchange, n int) Decide {
	return Decide{Interchange: ic.ID, Count: n, Emit: Emission{
		Stage: store.Router, Kind: store.KindInterchange, ID: ic.ID,
		Lane: store.LaneSpec{Stage: store.Router, Name: ic.From + ">" + ic.To, Ordered: a.Ordering.By != partner.ByNone, Policy: string(a.OnPoison)},
	}}
}
