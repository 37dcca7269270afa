package edifact

import (
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
)

// lookSegments is how many segments of a message are looked at for its own number and partners.
const lookSegments = 64

func (s *splitter) text(element, component int) string {
	return strings.TrimRight(s.f.String(element, component), " ")
}

// joined joins components of an element by colons and leaves out empty ones at the end.
func (s *splitter) joined(element, first, last int) string {
	parts := make([]string, 0, 4)
	for c := first; c <= last; c++ {
		parts = append(parts, s.text(element, c))
	}
	return strings.TrimRight(strings.Join(parts, ":"), ":")
}

// openMessage reads a UNH: 0062, and S009 with 0065, 0052, 0054 and 0051.
func (s *splitter) openMessage(raw []byte, at scan.At) error {
	s.f.Reset(raw, s.d)
	s.looking = true
	return s.books.OpenMessage(edi.Message{Ref: s.text(1, 1), Type: s.text(2, 1), Version: s.joined(2, 2, 4), Association: s.text(2, 5)}, at)
}

// openGroup reads a UNG: 0038, S006, S007, 0048 and S008.
func (s *splitter) openGroup(raw []byte, at scan.At) error {
	s.f.Reset(raw, s.d)
	header := make([]byte, len(raw), len(raw)+1)
	copy(header, raw)
	return s.books.OpenGroup(edi.Group{
		FunctionID: s.text(1, 1), Sender: s.text(2, 1), Receiver: s.text(3, 1), ControlRef: s.text(5, 1), Version: s.joined(7, 1, 2),
		Header: append(header, s.d.Segment),
	}, at)
}

// openPackage reads a UNO (ISO 9735-8): 0800, and the object behind it.
func (s *splitter) openPackage(seg *scan.Segment, at scan.At) error {
	s.f.Reset(seg.Raw, s.d)
	s.looking = false
	object := seg.Binary
	if seg.BinaryError != "" {
		object = -1
	}
	if err := s.books.OpenPackage(edi.Message{Ref: s.text(1, 1), Type: "UNO"}, at, object); err != nil {
		return err
	}
	if seg.BinaryError != "" {
		s.books.BadLength("UNO", seg)
	}
	return nil
}

// look takes what a segment says about the name of the open message. Only the header section is
// looked at: it ends at the first line item or UNS.
func (s *splitter) look(raw []byte) {
	m := s.books.Message()
	if m.Segments > lookSegments || s.is(raw, "LIN") || s.is(raw, "UNS") {
		s.looking = false
		return
	}
	doc := &m.Document
	switch raw[0] {
	case 'B':
		if doc.Number != "" || !s.is(raw, "BGM") {
			return
		}
		s.f.Reset(raw, s.d)
		doc.Number, doc.Version, doc.Function = s.text(2, 1), s.text(2, 2), s.text(3, 1)
		if m.Type == "ORDERS" {
			doc.OrderNo = doc.Number
		}
	case 'D':
		if doc.Date == "" && s.is(raw, "DTM") {
			s.f.Reset(raw, s.d)
			if s.text(1, 1) == "137" {
				doc.Date = s.text(1, 2)
			}
		}
	case 'R':
		if doc.OrderNo == "" && s.is(raw, "RFF") {
			s.f.Reset(raw, s.d)
			if s.text(1, 1) == "ON" {
				doc.OrderNo = s.text(1, 2)
			}
		}
	case 'N':
		if doc.Buyer == "" && s.is(raw, "NAD") {
			s.f.Reset(raw, s.d)
			if s.text(1, 1) == "BY" {
				if doc.Buyer = s.text(2, 1); doc.Buyer == "" {
					doc.Buyer = s.text(4, 1)
				}
			}
		}
	}
}
