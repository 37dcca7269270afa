package syntax

import (
	"strings"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

// counted are what may stand once in a document, by the path from the document element.
var counted = [...]struct {
	rule int
	path string
}{
	{sr01, "cac:ContractDocumentReference/cbc:ID"},
	{sr02, "cac:ReceiptDocumentReference/cbc:ID"},
	{sr03, "cac:DespatchDocumentReference/cbc:ID"},
	{sr05, "cac:PaymentTerms/cbc:Note"},
	{sr08, "cac:InvoicePeriod"},
	{sr09, "cac:AccountingSupplierParty/cac:Party/cac:PartyLegalEntity/cbc:RegistrationName"},
	{sr10, "cac:AccountingSupplierParty/cac:Party/cac:PartyName/cbc:Name"},
	{sr11, "cac:AccountingSupplierParty/cac:Party/cac:PartyLegalEntity/cbc:CompanyID"},
	{sr14, "cac:AccountingSupplierParty/cac:Party/cac:PartyLegalEntity/cbc:CompanyLegalForm"},
	{sr15, "cac:AccountingCustomerParty/cac:Party/cac:PartyLegalEntity/cbc:RegistrationName"},
	{sr16, "cac:AccountingCustomerParty/cac:Party/cac:PartyIdentification/cbc:ID"},
	{sr17, "cac:AccountingCustomerParty/cac:Party/cac:PartyLegalEntity/cbc:CompanyID"},
	{sr24, "cac:Delivery"},
	{sr39, "cac:ProjectReference/cbc:ID"},
	{sr40, "cac:AccountingCustomerParty/cac:Party/cac:PartyName/cbc:Name"},
	{sr45, "cac:PaymentMeans/cbc:PaymentDueDate"},
	{sr46, "cac:PaymentMeans/cbc:PaymentMeansCode/@name"},
	{sr49, "cac:InvoicePeriod/cbc:DescriptionCode"},
	{sr54, "cac:PaymentMeans/cac:CardAccount"},
	{sr55, "cac:PaymentMeans/cac:PaymentMandate"},
	{sr56, "cac:OriginatorDocumentReference/cbc:ID"},
}

// state is an element on a path that a rule is about.
type state struct {
	element   int // the rule that forbids the element, or -1
	attribute int // the rule that forbids an attribute of it, or -1
	name      ubl.AttrName
	counter   int          // place in counted and 1, or 0
	counts    ubl.AttrName // what is counted is this attribute, if any
}

// paths is a tree of paths. State 0 is off all of them, state 1 the document element.
type paths struct {
	states []state
	next   map[uint32]uint16 // state and kind to state; what table is made of
	table  []step            // open addressing
}

type step struct {
	key   uint32 // state and kind; 0 is empty
	state uint16
}

func newPaths() *paths {
	none := state{element: -1, attribute: -1}
	return &paths{states: []state{none, none}, next: map[uint32]uint16{}}
}

// kindOf finds the kind of a name with its usual prefix.
var kindOf = func() map[string]ubl.Kind {
	m := map[string]ubl.Kind{}
	for k := range ubl.Kinds() {
		m[k.String()] = k
	}
	return m
}()

// add puts a path into the tree. {line} stands for the lines of both documents.
func (p *paths) add(path string, set func(*state, ubl.AttrName)) {
	if rest, ok := strings.CutPrefix(path, "{line}"); ok {
		p.add("cac:InvoiceLine"+rest, set)
		p.add("cac:CreditNoteLine"+rest, set)
		return
	}
	at := uint16(1)
	path, attribute, _ := strings.Cut(path, "/@")
	for name := range strings.SplitSeq(path, "/") {
		kind, ok := kindOf[name]
		if !ok {
			panic("rule path with the unknown element " + name)
		}
		key := uint32(at)<<16 | uint32(kind)
		if at = p.next[key]; at == 0 {
			at = uint16(len(p.states))
			p.states = append(p.states, state{element: -1, attribute: -1})
			p.next[key] = at
		}
	}
	set(&p.states[at], attributeOf(attribute))
}

func attributeOf(name string) ubl.AttrName {
	if name == "" {
		return ubl.ForeignAttr
	}
	for a := range ubl.AttrNames() {
		if a.String() == name {
			return a
		}
	}
	panic("rule path with the unknown attribute " + name)
}

// pack makes the table after the last path.
func (p *paths) pack() {
	size := 1024
	for size < 3*len(p.next) {
		size *= 2
	}
	p.table = make([]step, size)
	for key, s := range p.next {
		i := spread(key) & (size - 1)
		for p.table[i].key != 0 {
			i = (i + 1) & (size - 1)
		}
		p.table[i] = step{key, s}
	}
}

func spread(key uint32) int { return int(key * 0x9e3779b1 >> 12) }

// child returns the state of a child element.
func (p *paths) child(s uint16, kind ubl.Kind) uint16 {
	if s == 0 {
		return 0
	}
	key := uint32(s)<<16 | uint32(kind)
	mask := len(p.table) - 1
	for i := spread(key) & mask; ; i = (i + 1) & mask {
		switch p.table[i].key {
		case key:
			return p.table[i].state
		case 0:
			return 0
		}
	}
}
