package edifact

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
)

// unaLength is the length of a service string advice (ISO 9735-1 §7.1).
const unaLength = 9

// header reports whether a UNA or UNB begins an interchange here. Inside an interchange a UNB
// must be followed by the running element separator or begin like a UNB of its own, and a UNA by
// its UNB: data that merely begins with the letters is neither.
func (s *splitter) header(head []byte) bool {
	if len(head) < 4 || head[0] != 'U' || head[1] != 'N' {
		return false
	}
	inside := s.books.Open() && !s.books.Headless()
	switch head[2] {
	case 'B':
		if !inside {
			return plausible(head[3])
		}
		return head[3] == s.d.Element || len(head) > 7 && (head[3] == '+' || head[3] == levelB().Element) && string(head[4:7]) == "UNO"
	case 'A':
		return afterUNA(head) > 0
	}
	return false
}

// afterUNA is the distance from a UNA to the UNB behind it, 0 when none follows. Where the UNA
// has not its nine bytes, the UNB is looked for near it.
func afterUNA(head []byte) int {
	if len(head) > unaLength {
		rest := bytes.TrimLeft(head[unaLength:], " \t\r\n")
		if len(rest) > 3 && string(rest[:3]) == "UNB" && plausible(rest[3]) {
			return len(head) - len(rest)
		}
	}
	const near = 16
	i := bytes.Index(head[3:min(len(head), near)], []byte("UNB"))
	if i < 0 || len(head) <= 3+i+3 || !plausible(head[3+i+3]) {
		return 0
	}
	return 3 + i
}

// readUNA returns the delimiters that a UNA names, or the default ones with a finding.
func readUNA(head []byte, at int64) (edi.Delimiters, []edi.Finding) {
	bad := func(message string) []edi.Finding {
		return []edi.Finding{{
			Rule: "EDI-UNA", Severity: edi.Fatal, Segment: "UNA", Position: edi.Position{Offset: at},
			Actual: scan.Clip(head[:min(len(head), unaLength)]), Expected: "UNA:+.? '", Message: message,
		}}
	}
	if len(head) < unaLength || bytes.Contains(head[3:unaLength], []byte("UN")) {
		return defaults(), bad("the UNA has not its nine bytes, so that the default delimiters were used; write a blank for each one that is not used")
	}
	d := edi.Delimiters{Component: head[3], Element: head[4], Decimal: head[5], Release: head[6], Repetition: head[7], Segment: head[8]}
	if d.Release == ' ' {
		d.Release = 0
	}
	if d.Repetition == ' ' {
		d.Repetition = 0
	}
	used := []byte{d.Component, d.Element, d.Segment}
	if d.Release != 0 {
		used = append(used, d.Release)
	}
	for i, c := range used {
		if !plausible(c) || bytes.IndexByte(used[:i], c) >= 0 {
			return defaults(), bad("the UNA names a delimiter twice, or a letter, digit or blank, so that the default delimiters were used; name different special characters")
		}
	}
	return d, nil
}

// begin opens the interchange whose UNA or UNB comes next.
func (s *splitter) begin() error {
	offset := s.sc.Offset()
	found := s.before(offset)
	head := s.sc.Head()
	s.d = defaults()
	var una []byte
	if head[2] == 'A' {
		d, bad := readUNA(head, offset)
		s.d = d
		found = append(found, bad...)
		skip := afterUNA(head)
		s.visit.Header(head[:min(skip, unaLength)], offset, s.d)
		una = bytes.Clone(head[:min(skip, unaLength)])
		s.sc.Discard(int64(skip))
		head = s.sc.Head()
	}
	if sep := head[3]; sep != s.d.Element {
		switch {
		case una == nil && sep == levelB().Element:
			s.d = levelB()
		default:
			found = append(found, edi.Finding{
				Rule: "EDI-UNB-SEPARATOR", Severity: edi.Fatal, Segment: "UNB", Position: edi.Position{Offset: s.sc.Offset()},
				Actual: scan.Clip(head[3:4]), Expected: string([]byte{s.d.Element}),
				Message: "the byte after UNB is not the element separator; name the delimiters in a UNA or use the default ones",
			})
			s.d = defaults()
			s.d.Element = sep
		}
	}
	given := s.d.Repetition
	s.d.Repetition = 0 // until the syntax version is known
	s.sc.SetDelimiters(s.d)
	seg, err := s.sc.Next()
	if err != nil {
		return err
	}
	wrapped := scan.Wrapped("UNB", seg.Raw, seg.Offset)
	s.wrapped = len(wrapped) > 0
	found = append(found, wrapped...)
	s.f.Reset(scan.Unwrap(seg.Raw), s.d)
	ic := s.interchange()
	ic.Offset = offset
	ic.ServiceUNA = una != nil
	ic.Header = slices.Concat(una, seg.Raw)
	if seg.Terminated {
		ic.Header = append(ic.Header, s.d.Segment)
	} else {
		found = append(found, edi.Finding{
			Rule: "EDI-NO-TERMINATOR", Severity: edi.Fatal, Segment: "UNB", Position: edi.Position{Offset: seg.Offset},
			Message: "the file ends inside a segment; end the last segment with the terminator too",
		})
	}
	s.repetition(given, una != nil, ic.Version)
	ic.Delimiters = s.d
	s.visit.Segment(seg, 0, s.d)
	return s.books.OpenInterchange(ic, scan.At{Offset: seg.Offset, End: seg.End}, false, found...)
}

// repetition sets the repetition separator, which only syntax 4 has (ISO 9735-1 §7): the fifth
// one of the UNA, or "*" without a UNA.
func (s *splitter) repetition(given byte, una bool, version string) {
	_, v, _ := strings.Cut(version, ":")
	if n, err := strconv.Atoi(v); err != nil || n < 4 {
		return
	}
	if !una {
		given = '*'
	}
	if given != s.d.Element && given != s.d.Component && given != s.d.Segment && given != s.d.Release {
		s.d.Repetition = given
		s.sc.SetDelimiters(s.d)
	}
}

// interchange reads the UNB.
func (s *splitter) interchange() edi.Interchange {
	text := func(element, component int) string {
		return strings.TrimRight(s.f.String(element, component), " ")
	}
	syntax := text(1, 1)
	return edi.Interchange{
		Standard:   edi.EDIFACT,
		Sender:     edi.Party{ID: text(2, 1), Qualifier: text(2, 2)},
		Receiver:   edi.Party{ID: text(3, 1), Qualifier: text(3, 2)},
		ControlRef: s.f.String(5, 1),
		Version:    syntax + ":" + text(1, 2),
		Charset:    Charset(syntax),
		AckRequest: text(9, 1) == "1",
		Test:       text(11, 1) == "1",
	}
}

// Charset returns the name of the character set of a syntax identifier (ISO 9735-1 annex A), or
// nothing for one that is not known.
func Charset(syntax string) string {
	switch syntax {
	case "UNOA", "UNOB":
		return "ISO 646"
	case "UNOC":
		return "ISO 8859-1"
	case "UNOD":
		return "ISO 8859-2"
	case "UNOE":
		return "ISO 8859-5"
	case "UNOF":
		return "ISO 8859-7"
	case "UNOG":
		return "ISO 8859-3"
	case "UNOH":
		return "ISO 8859-4"
	case "UNOI":
		return "ISO 8859-6"
	case "UNOJ":
		return "ISO 8859-8"
	case "UNOK":
		return "ISO 8859-9"
	case "UNOL":
		return "ISO 8859-15"
	case "UNOW":
		return "UTF-8"
	case "UNOX":
		return "ISO 2022"
	case "UNOY":
		return "ISO 10646"
	}
	return ""
}

// before returns the remarks on what stood before an interchange.
func (s *splitter) before(at int64) []edi.Finding {
	var found []edi.Finding
	remark := func(rule, message string) {
		found = append(found, edi.Finding{Rule: rule, Severity: edi.Warning, Position: edi.Position{Offset: at}, Message: message})
	}
	if s.bom {
		remark("EDI-BOM", "a byte order mark stands before the interchange and was skipped; write the file without it")
	}
	if s.blank {
		remark("EDI-LEADING-SPACE", "white space stands before the first interchange and was skipped; begin the file with UNA or UNB")
	}
	s.started, s.bom, s.blank, s.indented, s.empty = true, false, false, false, 0
	return found
}

// lookAhead is how many bytes of a text are searched for an interchange behind it.
const lookAhead = 4096

// ahead is the distance to an interchange that begins behind a text which is no message; 0 when
// there is none.
func (s *splitter) ahead() int {
	text := s.sc.Peek(lookAhead)
	n := Find(text)
	if n <= 0 || bytes.Contains(text[:n], []byte("UNH")) {
		return 0
	}
	return n
}

// beginHeadless opens an interchange without header over what stands outside any. A UNA at its
// beginning still names its delimiters.
func (s *splitter) beginHeadless() error {
	at := s.sc.Offset()
	found := append(s.before(at), edi.Finding{
		Rule: "EDI-DATA-OUTSIDE", Severity: edi.Fatal, Position: edi.Position{Offset: at},
		Message: "the data here stands outside an interchange; put it between a UNB and its UNZ or remove it",
	})
	if n := s.ahead(); n > 0 {
		s.sc.Discard(int64(n))
		end := scan.At{Offset: at, End: s.sc.Offset()}
		if err := s.books.OpenInterchange(edi.Interchange{Standard: edi.EDIFACT, Offset: at, Delimiters: s.d}, end, true, found...); err != nil {
			return err
		}
		s.books.CutInterchange("UNB", end)
		return nil
	}
	una := false
	if head := s.sc.Head(); len(head) >= 3 && string(head[:3]) == "UNA" {
		var bad []edi.Finding
		s.d, bad = readUNA(head, at)
		found = append(found, bad...)
		s.sc.Discard(unaLength)
		una = true
	}
	s.d.Repetition = 0
	s.sc.SetDelimiters(s.d)
	end := s.sc.Offset()
	return s.books.OpenInterchange(edi.Interchange{Standard: edi.EDIFACT, Offset: at, Delimiters: s.d, ServiceUNA: una}, scan.At{Offset: at, End: end}, true, found...)
}
