package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/charset"
	"github.com/edihub/edihub/internal/edi/scan"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/x12"
)

// ErrNotSegments says that a file has no segments to print.
var ErrNotSegments = errors.New("the file is neither EDIFACT nor X12, so that it has no segments; look at it as it is")

// Pretty writes one segment a line, indented by its level. Values are shown as UTF-8 by the
// character set of their interchange; what a terminal would obey is replaced. Binary data is
// named and not shown. The result is for eyes: it is not what arrived. It reports whether all
// envelopes are good. Errors are ErrNotSegments, *edi.LimitError, and those of reading and
// writing.
func Pretty(r io.Reader, o Options, w io.Writer) (good bool, err error) {
	standard, br, err := open(r)
	if err != nil {
		return false, err
	}
	p := &printer{w: bufio.NewWriter(w), set: charset.Bytes}
	switch standard {
	case string(edi.EDIFACT):
		good, err = edifact.Walk(br, o.EDIFACT, p.segment)
	case string(edi.X12):
		good, err = x12.Walk(br, o.X12, p.segment)
	default:
		return false, ErrNotSegments
	}
	return good, errors.Join(err, p.w.Flush())
}

type printer struct {
	w   *bufio.Writer
	set charset.Set
}

// segment prints one segment. Errors of writing stay in the writer until it is flushed.
func (p *printer) segment(v *scan.Visit) {
	for range v.Depth {
		_, _ = p.w.WriteString("  ")
	}
	if v.Depth == 0 && len(v.Raw) > 8 && string(v.Raw[:3]) == "UNB" {
		p.set = charset.Bytes
		if set, ok := charset.ByIdentifier(string(v.Raw[4:8])); ok {
			p.set = set
		}
	}
	_, _ = p.w.WriteString(visible(p.set.Lenient(v.Raw)))
	if v.Binary > 0 {
		_, _ = fmt.Fprintf(p.w, "[%d bytes]", v.Binary)
	}
	if v.Terminated {
		_, _ = p.w.WriteString(visible(p.set.Lenient([]byte{v.Delimiters.Segment})))
	}
	_ = p.w.WriteByte('\n')
}

// visible replaces what is no character to look at.
func visible(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= ' ' && s[i] < utf8.RuneSelf && s[i] != 0x7f
	}
	if plain {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '␊'
		case r == '\r':
			return '␍'
		case r == ' ' || unicode.IsPrint(r):
			return r
		}
		return '·'
	}, s)
}
