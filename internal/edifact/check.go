package edifact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
	"github.com/edihub/edihub/internal/edi/tables"
)

// CheckOptions say how one message is checked.
type CheckOptions struct {
	// Version is the syntax identifier and version of the interchange: "UNOA:3".
	Version string
	// ServiceUNA says that a UNA named the decimal mark.
	ServiceUNA bool
	// Base is the place of the message in its file, in bytes.
	Base int64
	// Policy decides on severities; nil keeps the defaults of the rules.
	Policy *tables.Policy
	// Guideline narrows the tables; nil is none.
	Guideline *tables.Guideline
	// MaxFindings is the longest list; 0 is tables.DefaultMaxFindings.
	MaxFindings int
	// MaxSegmentBytes is the largest segment, in bytes; 0 is scan.DefaultMaxSegmentBytes.
	MaxSegmentBytes int
}

// Check compares one message, UNH to UNT or UNO to UNP, with the tables of the directory that its
// header names: order and number of segments and groups, elements, components, lengths, types,
// codes, and the characters of the syntax level. What has no table gets one finding that says so.
// A missing UNT is not reported here: that is the business of the splitter. Memory is bounded by
// the largest segment; Check is safe for concurrent use. An error is a failed read, an
// *edi.LimitError or that of ctx.
func Check(ctx context.Context, r io.Reader, d edi.Delimiters, o *CheckOptions) ([]edi.Finding, error) {
	head, rest, err := openHeader(r, d)
	if err != nil {
		return nil, err
	}
	id, syntax, _ := strings.Cut(o.Version, ":")
	t := &tables.Options{
		Delimiters: d, Base: o.Base, Charset: levelCharset(id), Marks: marks(syntax, d, o.ServiceUNA), Binary: scan.UNOPackage,
		Policy: cmp.Or(o.Policy, &tables.Policy{}), MaxFindings: o.MaxFindings, MaxSegmentBytes: o.MaxSegmentBytes,
	}
	m, trouble := find(head, o)
	if trouble != nil {
		return t.Alone(*trouble), nil
	}
	return m.CheckBy(ctx, rest, t, o.Guideline)
}

// CheckSegment checks the elements of one segment of the envelope (UNB, UNG, UNE or UNZ), which
// comes with its terminator and stands at base in its file. Its findings have no segment position.
// A segment that the tables of the syntax version do not have gives none.
func CheckSegment(ctx context.Context, raw []byte, d edi.Delimiters, version string, base int64, policy *tables.Policy) ([]edi.Finding, error) {
	id, syntax, _ := strings.Cut(version, ":")
	tag, _, _ := bytes.Cut(raw, []byte{d.Element})
	m, err := library.Message("service."+syntax, string(tag))
	if err != nil || len(tag) != 3 || string(tag[:2]) != "UN" || string(tag) == "UNO" {
		return nil, nil //nolint:nilerr // There is no table, which the check of the message reports.
	}
	found, err := m.Check(ctx, bytes.NewReader(raw), &tables.Options{
		Delimiters: d, Base: base, Charset: levelCharset(id), Marks: [2]byte{'.', ','}, Policy: policy,
	})
	for i := range found {
		found[i].Position.Segment = 0
	}
	return found, err
}

// unh is what a header says about the table that a message needs.
type unh struct{ tag, typ, version, release, agency string }

// headBytes is how much of a message is looked at for its header.
const headBytes = 1024

// openHeader reads the header of a message and gives back a reader that begins with it again.
func openHeader(r io.Reader, d edi.Delimiters) (unh, io.Reader, error) {
	head, rest, err := tables.Peek(r, headBytes)
	if err != nil {
		return unh{}, nil, err
	}
	var f scan.Fields
	raw := firstSegment(head, d)
	f.Reset(raw, d)
	text := func(e, c int) string { return strings.TrimRight(f.String(e, c), " ") }
	tag, _, _ := bytes.Cut(raw, []byte{d.Element})
	return unh{tag: string(tag), typ: text(2, 1), version: text(2, 2), release: text(2, 3), agency: text(2, 4)}, rest, nil
}

// firstSegment is what stands before the first terminator that is not released.
func firstSegment(head []byte, d edi.Delimiters) []byte {
	head = bytes.TrimLeft(head, " \t\r\n")
	for i := 0; i < len(head); i++ {
		switch c := head[i]; {
		case c == d.Release && d.Release != 0:
			i++
		case c == d.Segment:
			return head[:i]
		}
	}
	return head
}

// find finds the table of a message, or says why there is none.
func find(h unh, o *CheckOptions) (*tables.Message, *edi.Finding) {
	_, syntax, _ := strings.Cut(o.Version, ":")
	trouble := func(rule, actual, expected, message string, component int) *edi.Finding {
		return &edi.Finding{
			Rule: rule, Segment: "UNH", Actual: actual[:min(len(actual), edi.MaxActual)], Expected: expected, Message: message,
			Position: edi.Position{Segment: 1, Element: 2, Component: component, Offset: o.Base},
		}
	}
	service := "service." + syntax
	if _, err := library.Directory(service); err != nil {
		return nil, trouble(edi.RuleSyntaxUnknown, o.Version, "1 to 4", "there are no tables of this syntax version, so the message was not checked; use syntax version 1 to 4", 0)
	}
	if h.tag == "UNO" && syntax == "4" {
		m, err := library.Message(service, "UNO")
		if err == nil {
			return m, nil
		}
	}
	directory := h.version + "." + h.release
	if o.Guideline != nil {
		if m := o.Guideline.Table(directory, h.typ, service); m != nil {
			return m, nil
		}
	}
	// ISO 9735-4, -6 and -9: the service messages belong to the syntax, not to a directory.
	if !strings.HasPrefix(h.typ, "UN") { // those are segments of the envelope
		if m, err := library.Message(service, h.typ); err == nil {
			return m, nil
		}
	}
	m, err := library.Message(directory, h.typ, service)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, tables.ErrNoMessage):
		return nil, trouble(edi.RuleMessageUnknown, h.typ, "", "there is no table of this message type in its directory, so the message was not checked; name the type in a guideline with tables of its own, or set this rule to off", 1)
	}
	return nil, trouble(edi.RuleDirectoryUnknown, directory, strings.Join(Directories(), ", "), "there are no tables of this directory, so the message was not checked; name them in a guideline, or set this rule to off", 3)
}

// marks are the decimal marks of an interchange: until syntax 3 that of the UNA where there is
// one, else and from syntax 4 on either (ISO 9735-1 §10.1).
func marks(syntax string, d edi.Delimiters, una bool) [2]byte {
	if una && syntax < "4" && (d.Decimal == '.' || d.Decimal == ',') {
		return [2]byte{d.Decimal, d.Decimal}
	}
	return [2]byte{'.', ','}
}
