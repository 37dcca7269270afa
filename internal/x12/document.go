package x12

import "strings"

// lookSegments is how many segments of a set are looked at for its own number and partners.
const lookSegments = 40

// naming says which elements of a beginning segment name a document; 0 is "none".
type naming struct{ number, function, version, date, order int }

// beginnings are the beginning segments of the transaction sets (X12.2) with their elements.
var beginnings = map[string]naming{
	"BEG": {number: 3, function: 1, date: 5, order: 3},             // 850
	"BIG": {number: 2, function: 8, date: 1, order: 4},             // 810
	"BCH": {number: 3, function: 1, version: 5, date: 6, order: 3}, // 860
	"BCA": {number: 3, function: 1, version: 5, date: 6, order: 3}, // 865
	"BAK": {number: 3, function: 1, date: 4, order: 3},             // 855
	"BSN": {number: 2, function: 1, date: 3},                       // 856
	"BGN": {number: 2, function: 1, date: 3},                       // 824, 838, 277 and others
	"BIA": {number: 3, function: 1, date: 4},                       // 846
	"BRA": {number: 1, function: 3, date: 2},                       // 861
	"BSS": {number: 2, function: 1, date: 3},                       // 862
	"W05": {number: 2, function: 1, order: 2},                      // 940
	"W06": {number: 2, function: 1, date: 3, order: 2},             // 945
}

// look takes what a segment says about the name of the open set.
func (s *splitter) look(raw []byte) {
	m := s.books.Message()
	if m.Segments > lookSegments {
		s.looking = false
		return
	}
	doc := &m.Document
	switch raw[0] {
	case 'B', 'W':
		if len(raw) < 4 || raw[3] != s.d.Element || doc.Number != "" {
			return
		}
		n, ok := beginnings[string(raw[:3])]
		if !ok {
			return
		}
		s.f.Reset(raw, s.d)
		doc.Number = s.text(n.number)
		doc.Function = s.text(n.function)
		doc.Version = s.text(n.version)
		doc.Date = s.text(n.date)
		doc.OrderNo = s.text(n.order)
	case 'P':
		if s.is(raw, "PO1") { // the header is over
			s.looking = false
			return
		}
		if doc.OrderNo == "" && s.is(raw, "PRF") {
			s.f.Reset(raw, s.d)
			doc.OrderNo = s.text(1)
		}
	case 'I':
		if s.is(raw, "IT1") {
			s.looking = false
		}
	case 'N':
		if doc.Buyer == "" && s.is(raw, "N1") {
			s.f.Reset(raw, s.d)
			if s.text(1) != "BY" {
				return
			}
			if doc.Buyer = s.text(4); doc.Buyer == "" {
				doc.Buyer = s.text(2)
			}
		}
	}
}

// text is an element without the blanks behind it, which do not count (X12.6 AN); empty for 0.
func (s *splitter) text(element int) string {
	if element == 0 {
		return ""
	}
	return strings.TrimRight(string(s.element(element)), " ")
}
