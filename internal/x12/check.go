package x12

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

// CheckOptions say how one transaction set is checked.
type CheckOptions struct {
	// Version is the version of the set: ST03 where it is sent, else GS08. Its first six
	// characters name the directory.
	Version string
	// Base is the place of the set in its file, in bytes.
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

// directoryLength is the part of a version that names the directory: version, release and
// subrelease (X12.5 GS08).
const directoryLength = 6

// charset is the extended character set (X12.6 §3.3.2), with the letters of ISO 8859 that
// national sets add. It is never written to.
var charset = tables.NewCharset("X12 extended", func(c byte) bool { return c >= ' ' && c < 0x7f || c >= 0xa0 })

// Check compares one transaction set, ST to SE, with the tables of its version: order and number
// of segments and loops, HL hierarchies, LS and LE, elements, components, relational notes,
// lengths, types and characters. The tables have no code lists. What has no table gets one
// finding that says so. A missing SE is not reported here: that is the business of the splitter.
// Memory is bounded by the largest segment and the ids of HL segments. Check is safe for
// concurrent use. An error is a failed read, an *edi.LimitError or that of ctx.
func Check(ctx context.Context, r io.Reader, d edi.Delimiters, o *CheckOptions) ([]edi.Finding, error) {
	typ, rest, err := setType(r, d)
	if err != nil {
		return nil, err
	}
	t := &tables.Options{
		Delimiters: d, Base: o.Base, Charset: charset, Binary: scan.BINAndBDS, Policy: cmp.Or(o.Policy, &tables.Policy{}),
		MaxFindings: o.MaxFindings, MaxSegmentBytes: o.MaxSegmentBytes, Watch: &hierarchy{},
	}
	m, trouble := find(typ, o)
	if trouble != nil {
		return t.Alone(*trouble), nil
	}
	return m.CheckBy(ctx, rest, t, o.Guideline)
}

// CheckSegment checks the elements of one segment of the envelope (ISA, GS, GE, IEA or TA1), which
// comes with its terminator and stands at base in its file. version is ISA12. Versions before
// 00402 are checked as 00401, later ones as 00501. Findings have no segment position.
func CheckSegment(ctx context.Context, raw []byte, d edi.Delimiters, version string, base int64, policy *tables.Policy) ([]edi.Finding, error) {
	tag, _, _ := bytes.Cut(raw, []byte{d.Element})
	directory := "control.00401"
	if version >= "00402" {
		directory = "control.00501"
	}
	m, err := library.Message(directory, string(tag))
	if err != nil {
		return nil, nil //nolint:nilerr // Other segments do not belong to the envelope.
	}
	if string(tag) == "ISA" {
		d.Component, d.Repetition = 0, 0 // ISA11 and ISA16 hold them as values
	}
	found, err := m.Check(ctx, bytes.NewReader(raw), &tables.Options{Delimiters: d, Base: base, Policy: policy})
	for i := range found {
		found[i].Position.Segment = 0
	}
	return found, err
}

// headBytes is how much of a set is looked at for its header.
const headBytes = 128

// setType reads ST01 and gives back a reader that begins with the set again.
func setType(r io.Reader, d edi.Delimiters) (string, io.Reader, error) {
	head, rest, err := tables.Peek(r, headBytes)
	if err != nil {
		return "", nil, err
	}
	first, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte{d.Segment})
	fields := bytes.SplitN(first, []byte{d.Element}, 3)
	if len(fields) < 2 {
		return "", rest, nil
	}
	return strings.TrimRight(string(fields[1]), " "), rest, nil
}

// find finds the table of a set, or says why there is none.
func find(typ string, o *CheckOptions) (*tables.Message, *edi.Finding) {
	trouble := func(rule, actual, expected, message string) *edi.Finding {
		return &edi.Finding{
			Rule: rule, Segment: "ST", Actual: actual[:min(len(actual), edi.MaxActual)], Expected: expected, Message: message,
			Position: edi.Position{Segment: 1, Element: 1, Offset: o.Base},
		}
	}
	directory := o.Version[:min(len(o.Version), directoryLength)]
	if o.Guideline != nil {
		if m := o.Guideline.Table(directory, typ, "004010"); m != nil {
			return m, nil
		}
	}
	m, err := library.Message(directory, typ)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, tables.ErrNoMessage):
		return nil, trouble(edi.RuleMessageUnknown, typ, "", "there is no table of this transaction set in version "+directory+", so it was not checked; name it in a guideline with tables of its own, or set this rule to off")
	}
	return nil, trouble(edi.RuleDirectoryUnknown, directory, strings.Join(Directories(), ", "), "there are no tables of this version, so the set was not checked; name them in a guideline, or set this rule to off")
}
