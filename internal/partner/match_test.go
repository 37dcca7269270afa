package partner

import (
	"fmt"
	"testing"

	"github.com/edihub/edihub/internal/edi"
)

const matching = `
own: [{id: hub, identifiers: ["x12:ZZ:OURCO", "gs:OURCO"]}, {id: sub, identifiers: ["x12:ZZ:SUBCO"]}]
connections: [{id: van, directory: {in: a, out: b}}, {id: files, directory: {in: c, out: d}}]
partners:
  - {id: acme, connections: [van], identifiers: ["x12:ZZ:ACME", "edifact:14:541", "edifact:ALPHA", "peppol:0088:AbC"]}
  - {id: beta, connections: [van, files], identifiers: ["x12:ZZ:BETA", "edifact::GAMMA"]}
  - {id: erp, connections: [files]}
`

func TestRouteSemantics(t *testing.T) {
	t.Parallel()
	r := parse(t, matching+`
routes:
  - {match: {from: acme, to: hub, document: "x12:850"}, to: erp}                       # 1: keys are ANDed
  - {match: {from: [acme, beta], document: ["x12:810", "edifact:INV*"]}, to: erp}      # 2: values are ORed
  - {match: {receiver: ["x12:ZZ:SUBCO  "], sender: "x12:ZZ:BETA"}, to: erp}            # 3: identifiers
  - {match: {document: opaque, from: acme}, to: erp}                                   # 4: opaque
  - {match: {sender: "edifact:ALPHA"}, to: beta}                                       # 5: no qualifier
  - {match: {document: "edifact:*"}, to: acme}                                         # 6: wildcard
  - {match: {from: acme, to: hub, document: "x12:*"}, to: beta}                        # 7: behind 1
  - {match: {from: erp}, to: beta}                                                     # 8
`)
	for _, tc := range []struct {
		q    RouteQuery
		want int // position; 0: none
	}{
		{RouteQuery{From: "acme", To: "hub", Document: "x12:850"}, 1},
		{RouteQuery{From: "acme", To: "sub", Document: "x12:850"}, 0},
		{RouteQuery{From: "beta", To: "hub", Document: "x12:850"}, 0},
		{RouteQuery{From: "beta", To: "hub", Document: "x12:810"}, 2},
		{RouteQuery{From: "acme", Document: "edifact:INVOIC"}, 2},
		{RouteQuery{From: "erp", Document: "edifact:INVOIC"}, 6},
		{RouteQuery{From: "acme", Document: "edifact:ORDERS"}, 6},
		{RouteQuery{From: "beta", Sender: "x12:ZZ:BETA", Receiver: "x12:ZZ:SUBCO", Document: "x12:999"}, 3},
		{RouteQuery{From: "beta", Sender: "x12:ZZ:BETA", Receiver: edi.X12Identifier("ZZ", "SUBCO          "), Document: "x12:999"}, 3},
		{RouteQuery{From: "beta", Sender: "x12:01:BETA", Receiver: "x12:ZZ:SUBCO", Document: "x12:999"}, 0},
		{RouteQuery{From: "beta", Sender: "x12:ZZ:BETA", Document: "x12:999"}, 0},
		{RouteQuery{From: "acme", Standard: edi.Opaque}, 4},
		{RouteQuery{From: "acme", Document: "opaque"}, 4},
		{RouteQuery{From: "beta", Standard: edi.Opaque}, 0},
		{RouteQuery{From: "beta", Sender: edi.EDIFACTIdentifier("", "ALPHA"), Document: "edifact:ORDERS"}, 5},
		{RouteQuery{From: "acme", To: "hub", Document: "x12:997"}, 7},
		{RouteQuery{From: "erp", Document: "x12:850"}, 8},
		{RouteQuery{Document: "x12:850"}, 0},
		{RouteQuery{Document: "ubl:Invoice", From: "acme", To: "hub"}, 0},
	} {
		got, ok := r.Route(tc.q)
		switch {
		case tc.want == 0 && ok:
			t.Errorf("%+v took route %d", tc.q, got.Position)
		case tc.want > 0 && (!ok || got.Position != tc.want):
			t.Errorf("%+v: %+v, want route %d", tc.q, got, tc.want)
		}
	}
}

func TestMatchAllTakesAll(t *testing.T) {
	t.Parallel()
	r := parse(t, matching+"routes: [{match: {}, to: erp}]\n")
	for _, q := range []RouteQuery{{}, {From: "nobody"}, {Standard: edi.Opaque}, {From: "acme", To: "hub", Document: "ubl:Invoice"}} {
		if _, ok := r.Route(q); !ok {
			t.Errorf("%+v found no route", q)
		}
	}
	if !r.Routes()[0].Match.All() {
		t.Error("match: {} is not all")
	}
}

func TestEnvelopeDefaultFollowsTheDocuments(t *testing.T) {
	t.Parallel()
	r := parse(t, matching+`
routes:
  - {match: {document: ["ubl:Invoice", opaque]}, to: erp}
  - {match: {document: ["ubl:*", "x12:850"]}, to: erp}
  - {match: {document: "ubl:CreditNote", from: acme}, to: erp, envelope: keep}
  - {match: {document: "x12:8*"}, to: erp, x12: {segment: ~, element: "|"}}
  - {match: {document: "x12:9*"}, to: erp, x12: {segment: null}}
`)
	for i, want := range []string{"none", "new", "keep", "new", "new"} {
		if got := r.Routes()[i].Envelope; got != want {
			t.Errorf("route %d: %s, want %s", i+1, got, want)
		}
	}
	if x := r.Routes()[3].X12; x.Segment != "~" || x.Element != "|" {
		t.Errorf("a bare ~ is %+v", x)
	}
	if x := r.Routes()[4].X12; x != (X12Writing{}) {
		t.Errorf("null is %+v", x)
	}
}

func TestAgreementSemantics(t *testing.T) {
	t.Parallel()
	r := parse(t, matching+`
agreements:
  - {match: {from: acme, to: hub, document: "x12:850"}}
  - {match: {to: [hub, sub], document: ["x12:8*"]}}
  - {match: {from: acme, sender: "x12:ZZ:ACME"}}
  - {match: {from: hub, to: acme}}
`)
	for _, tc := range []struct {
		from, to, doc string
		sender        edi.Identifier
		want          int
	}{
		{"acme", "hub", "x12:850", "", 1},
		{"acme", "hub", "x12:856", "", 2},
		{"beta", "sub", "x12:850", "", 2},
		{"acme", "beta", "x12:850", "", 0},
		{"acme", "beta", "x12:850", "x12:ZZ:ACME", 3},
		{"hub", "acme", "x12:997", "x12:ZZ:OURCO", 4},
		{"hub", "beta", "x12:997", "", 0},
	} {
		a := r.Agreement(tc.from, tc.to, tc.doc, tc.sender, "")
		if a == nil || a.Position != tc.want || a.Split != "messages" {
			t.Errorf("%+v: %+v", tc, a)
		}
	}
	if r.Agreement("x", "y", "z", "", "") != r.Default() {
		t.Error("without a match the defaults hold")
	}
}

// TestIndexFindsWhatAScanFinds compares the look-up by sender with the definition.
func TestIndexFindsWhatAScanFinds(t *testing.T) {
	t.Parallel()
	yaml := matching + "routes:\n"
	froms := []string{"", "acme", "beta", "erp", "[acme, erp]"}
	docs := []string{"", "x12:850", "x12:8*", "opaque", "edifact:*"}
	for i := range 40 {
		m := ""
		if f := froms[(i*7+3)%len(froms)]; f != "" {
			m += "from: " + f + ", "
		}
		if d := docs[(i*3+i/5)%len(docs)]; d != "" {
			m += "document: '" + d + "', "
		}
		if i%3 == 0 {
			m += "to: hub, "
		}
		if i%4 == 1 {
			m += "receiver: ['x12:ZZ:BETA', 'x12:ZZ:OURCO '], "
		}
		yaml += fmt.Sprintf("  - {match: {%s}, to: erp}\n", m)
	}
	r := parse(t, yaml)
	for _, from := range []string{"", "acme", "beta", "erp", "hub"} {
		for _, to := range []string{"hub", "sub"} {
			for i, doc := range []string{"x12:850", "x12:810", "opaque", "edifact:ORDERS", "ubl:Invoice"} {
				want := 0
				receiver := []edi.Identifier{"", "x12:ZZ:BETA", "x12:ZZ:OURCO"}[i%3]
				for _, x := range r.Routes() {
					if e := r.routeIndex.entries[x.Position-1]; e.matches(&query{from: from, to: to, document: doc, receiver: compareKey(receiver)}) {
						want = x.Position
						break
					}
				}
				got, ok := r.Route(RouteQuery{From: from, To: to, Document: doc, Receiver: receiver})
				if ok != (want > 0) || (ok && got.Position != want) {
					t.Errorf("%s to %s, %s: %+v, want %d", from, to, doc, got, want)
				}
			}
		}
	}
}

func TestParties(t *testing.T) {
	t.Parallel()
	r := parse(t, matching)
	for _, tc := range []struct {
		id      edi.Identifier
		party   string
		own, ok bool
	}{
		{"x12:ZZ:ACME", "acme", false, true},
		{"x12:ZZ:ACME           ", "acme", false, true}, // X12 fills with blanks
		{"x12:ZZ :ACME ", "acme", false, true},
		{"x12:01:ACME", "", false, false},
		{"x12:ZZ:acme", "", false, false},
		{"edifact:14:541", "acme", false, true},
		{"edifact::541", "", false, false},
		{"edifact::ALPHA", "acme", false, true}, // a missing qualifier equals an empty one
		{"edifact:GAMMA", "beta", false, true},
		{"edifact:14:ALPHA", "", false, false},
		{"x12:14:541", "", false, false}, // another name space
		{"peppol:0088:abc", "acme", false, true},
		{"gs:OURCO", "hub", true, true},
		{"gs:OURCO ", "hub", true, true},
		{"x12:ZZ:SUBCO", "sub", true, true},
		{"", "", false, false},
		{"nonsense", "", false, false},
	} {
		party, own, ok := r.PartyByIdentifier(tc.id)
		if party != tc.party || own != tc.own || ok != tc.ok {
			t.Errorf("%q: %q %v %v", tc.id, party, own, ok)
		}
	}
}

func TestBoundTo(t *testing.T) {
	t.Parallel()
	r := parse(t, matching)
	for _, tc := range []struct {
		connection string
		id         edi.Identifier
		want       string
	}{
		{"van", "x12:ZZ:ACME", "acme"},
		{"files", "x12:ZZ:ACME", ""}, // the envelope names a partner of another connection
		{"files", "x12:ZZ:BETA", "beta"},
		{"van", "x12:ZZ:BETA", "beta"},
		{"van", "x12:ZZ:NOBODY", ""},
		{"files", "x12:ZZ:OURCO", "erp"}, // the internal endpoint speaks for us
		{"van", "x12:ZZ:OURCO", ""},      // nobody else does
		{"nowhere", "x12:ZZ:ACME", ""},
	} {
		p, ok := r.BoundTo(tc.connection, tc.id)
		if ok != (tc.want != "") || (ok && p.ID != tc.want) {
			t.Errorf("%s over %s: %+v", tc.id, tc.connection, p)
		}
	}
	if !r.IsInternal(r.Partner("erp")) || r.IsInternal(r.Partner("beta")) || r.IsInternal(nil) {
		t.Error("the wrong partners are internal")
	}
	if ps := r.PartnersOf("van"); len(ps) != 2 || ps[0].ID != "acme" || len(r.PartnersOf("files")) != 2 || len(r.PartnersOf("x")) != 0 {
		t.Errorf("%v", ps)
	}
}

func TestNobodyBehindAS2SpeaksForUs(t *testing.T) {
	t.Parallel()
	r := parse(t, change(t, `, identifiers: ["edifact:14:5412345000013", "x12:ZZ:ACME"]`, ""))
	if p, ok := r.BoundTo("acme-as2", "x12:ZZ:OURCO"); ok {
		t.Errorf("%s may send with our identifier", p.ID)
	}
	if r.IsInternal(r.Partner("acme")) {
		t.Error("a partner behind AS2 is internal")
	}
	if !hasWarning(r.Warnings(), WarnNoIdentifiers, "partner acme") {
		t.Errorf("%v", r.Warnings())
	}
	// Two endpoints without identifiers on one connection cannot be told apart.
	r = parse(t, matching[:len(matching)-1]+"\n  - {id: erp2, connections: [files]}\n")
	if _, ok := r.BoundTo("files", "x12:ZZ:OURCO"); ok {
		t.Error("one of two was picked")
	}
}

func TestConnectionByAS2IsExact(t *testing.T) {
	t.Parallel()
	r := parse(t, secured)
	if c, own, ok := r.ConnectionByAS2("ACME AS2", "OURCO"); !ok || c.ID != "acme-as2" || own.ID != "hub" {
		t.Errorf("%v %v %v", c, own, ok)
	}
	for _, pair := range [][2]string{{"acme as2", "OURCO"}, {"ACME AS2", "ourco"}, {"ACME AS2 ", "OURCO"}, {`"ACME AS2"`, "OURCO"}, {"OURCO", "ACME AS2"}, {"", ""}} {
		if c, own, ok := r.ConnectionByAS2(pair[0], pair[1]); ok || c != nil || own != nil {
			t.Errorf("%q found %v", pair, c)
		}
	}
}

func TestParserLane(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		yaml    string
		ordered bool
		policy  Poison
		forced  bool
	}{
		"defaults":                      {"", true, Block, false},
		"all none":                      {"defaults: {ordering: {by: none}, on_poison: skip}\n", false, Skip, false},
		"defaults remain":               {"agreements: [{match: {from: acme, to: hub}, ordering: {by: none}, on_poison: skip}]\n", true, Block, true},
		"defaults out of reach":         {"agreements: [{match: {from: [acme, beta]}, ordering: {by: none}, on_poison: skip}]\n", false, Skip, false},
		"defaults out of reach for one": {"agreements: [{match: {from: acme}, ordering: {by: none}, on_poison: skip}]\n", true, Block, true},
		"catch-all":                     {"agreements: [{match: {}, ordering: {by: none}, on_poison: skip}]\n", false, Skip, false},
		"others do not matter":          {"agreements: [{match: {from: erp}}, {match: {}, ordering: {by: none}, on_poison: skip}]\n", false, Skip, false},
		"others' senders do not matter": {"agreements: [{match: {sender: 'x12:ZZ:ELSE'}}, {match: {}, ordering: {by: none}, on_poison: skip}]\n", false, Skip, false},
		"behind a catch-all":            {"agreements: [{match: {}, ordering: {by: none}, on_poison: skip}, {match: {from: acme}}]\n", false, Skip, false},
		"one of two orders":             {"agreements: [{match: {from: beta, document: 'x12:*'}, on_poison: skip}, {match: {}, ordering: {by: none}, on_poison: skip}]\n", true, Skip, true},
		"by sender":                     {"agreements: [{match: {sender: 'x12:ZZ:BETA '}, on_poison: skip}, {match: {}, ordering: {by: none}, on_poison: skip}]\n", true, Skip, true},
		"any order counts":              {"defaults: {ordering: {by: document}, on_poison: skip}\n", true, Skip, false},
		"hold-key is block":             {"defaults: {on_poison: hold-key}\n", true, Block, false},
		"the strictest":                 {"agreements: [{match: {from: acme, to: hub}, on_poison: hold-key}]\ndefaults: {on_poison: skip}\n", true, Block, false},
		"unordered may be strict":       {"defaults: {ordering: {by: none}}\n", false, Block, false},
		"an agreement inherits":         {"agreements: [{match: {from: acme}, on_poison: block}]\ndefaults: {on_poison: skip, ordering: {by: none}}\n", false, Block, false},
	} {
		r := parse(t, matching+tc.yaml)
		ordered, policy := r.ParserLane("van")
		if ordered != tc.ordered || policy != tc.policy {
			t.Errorf("%s: %v %s, want %v %s", name, ordered, policy, tc.ordered, tc.policy)
		}
		if got := hasWarning(r.Warnings(), WarnLaneForced, "connection van"); got != tc.forced {
			t.Errorf("%s: warning %v, want %v", name, got, tc.forced)
		}
	}
	r := parse(t, matching[:len(matching)-1]+"\n")
	if ordered, policy := r.ParserLane("nowhere"); !ordered || policy != Skip {
		t.Errorf("a connection without partners: %v %s", ordered, policy)
	}
}

func hasWarning(ws []Warning, code, object string) bool {
	for _, w := range ws {
		if w.Code == code && w.Object == object {
			return true
		}
	}
	return false
}

func BenchmarkRoute(b *testing.B) {
	yaml := matching + "routes:\n"
	for i := range 1000 {
		yaml += fmt.Sprintf("  - {match: {receiver: 'x12:ZZ:R%d'}, to: erp}\n", i)
	}
	r, err := Parse([]byte(yaml), b.TempDir(), LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	q := RouteQuery{From: "acme", To: "hub", Receiver: "x12:ZZ:R999", Document: "x12:850"}
	for b.Loop() {
		if _, ok := r.Route(q); !ok {
			b.Fatal("no route")
		}
	}
}
