package edifact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi/charset"
	"github.com/edihub/edihub/internal/edi/scan"
	"github.com/edihub/edihub/internal/edi/scan/scantest"
)

// value returns a value of the first segment with a tag, as text in the character set of the
// interchange, and the place of the first byte that does not belong to that set.
func value(t *testing.T, in, tag string, element, component int) (string, int) {
	t.Helper()
	var set charset.Set
	text, outside, found := "", -1, false
	good, err := Walk(strings.NewReader(in), Limits{}, func(v *scan.Visit) {
		if bytes.HasPrefix(v.Raw, []byte("UNB")) {
			set, _ = charset.ByIdentifier(string(v.Raw[4:8]))
		}
		if found || !bytes.HasPrefix(v.Raw, []byte(tag)) {
			return
		}
		found = true
		var f scan.Fields
		f.Reset(v.Raw, v.Delimiters)
		b := f.Bytes(element, component)
		text, outside = set.Lenient(b), set.Check(b)
	})
	if err != nil || !good || !found {
		t.Fatalf("good %v, found %v, %v", good, found, err)
	}
	return text, outside
}

// TestValues reads single values as a business application would see them.
func TestValues(t *testing.T) {
	t.Parallel()
	with := func(syntax, segment string) string {
		return strings.Replace(one(segment+"UNS+S'", 6), "UNOA:3", syntax, 1)
	}
	for _, c := range []struct {
		name, in, tag      string
		element, component int
		want               string
		outside            int
	}{
		{"E01 released release character before a terminator", with("UNOA:3", "FTX+AAI+++WHY??'"), "FTX", 4, 1, "WHY?", -1},
		{"E01 released terminator", with("UNOA:3", "FTX+AAI+++WHY?'S'"), "FTX", 4, 1, "WHY'S", -1},
		{"E10 tag alone", with("UNOA:3", "ODI'"), "ODI", 1, 1, "", -1},
		{"E11 line break, UNOA", with("UNOA:3", "FTX+AAI+++FIRST LINE\r\nSECOND'"), "FTX", 4, 1, "FIRST LINE\r\nSECOND", 10},
		{"E11 line break, UNOC", with("UNOC:3", "FTX+AAI+++FIRST LINE\r\nSECOND'"), "FTX", 4, 1, "FIRST LINE\r\nSECOND", -1},
		{"E12 a number with sign and mark", with("UNOA:3", "MOA+203:-123456789012345.67'"), "MOA", 1, 2, "-123456789012345.67", -1},
		{"E12 a text of 70 with a released quote", with("UNOA:3", "FTX+AAI+++"+strings.Repeat("A", 69)+"?''"), "FTX", 4, 1, strings.Repeat("A", 69) + "'", -1},
		{"E13 tag of another standard", with("UNOA:3", "END+2+X?, Y'"), "END", 2, 1, "X, Y", -1},
		{"E14 ISO 8859-1", with("UNOC:3", "NAD+BY+1::9++S\xfcd Lager'"), "NAD", 4, 1, "Süd Lager", -1},
		{"E14 ISO 8859-2", with("UNOD:3", "NAD+BY+1::9++\xa3\xf3d\xbc'"), "NAD", 4, 1, "Łódź", -1},
		{"E14 UTF-8", with("UNOW:4", "NAD+BY+1::9++S\xc3\xbcd'"), "NAD", 4, 1, "Süd", -1},
		{"E14 UTF-8 under ISO 8859-1", with("UNOC:3", "NAD+BY+1::9++S\xc3\x9fd'"), "NAD", 4, 1, "SÃ\u009fd", 2},
		{"E14 a byte that is no UTF-8", with("UNOY:3", "NAD+BY+1::9++S\xfcd'"), "NAD", 4, 1, "S\ufffdd", 1},
	} {
		got, outside := value(t, c.in, c.tag, c.element, c.component)
		if got != c.want || outside != c.outside {
			t.Errorf("%s: %q with a strange byte at %d, want %q and %d", c.name, got, outside, c.want, c.outside)
		}
	}
}

// TestDecimalMark: E06. The UNA names the mark; without one it is the point.
func TestDecimalMark(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]byte{"UNA:+,? '": ',', "UNA:+.? '": '.', "": '.'} {
		events, err := scantest.Collect(open(strings.NewReader(in + one("PRI+AAA:12,50'UNS+S'", 6))))
		if err != nil || len(scantest.Rules(events)) > 0 {
			t.Fatal(err, scantest.Rules(events))
		}
		if got := events[0].Interchange.Delimiters.Decimal; got != want {
			t.Errorf("%q: mark %q", in, got)
		}
	}
}

// TestWrappedAnywhere: wherever something has wrapped the lines, the envelope is read as it was
// meant, with one remark.
func TestWrappedAnywhere(t *testing.T) {
	t.Parallel()
	in := one("FTX+AAI+++WHY'"+body, 9)
	for n := 9; n < len(unb); n++ {
		events, err := scantest.Collect(open(strings.NewReader(wrap(in, n))))
		if err != nil {
			t.Fatal(err)
		}
		rules := scantest.Rules(events)
		if end := events[len(events)-1].Interchange; len(rules) != 1 || rules[0] != "EDI-WRAPPED" || end.Segments != 11 || end.Messages != 1 {
			t.Errorf("%d columns: findings %v, %d segments", n, rules, end.Segments)
		}
	}
}
