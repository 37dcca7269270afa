package edifact

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
)

// place is what a test says about a finding.
type place struct {
	Rule, Segment, Loop, DataElement, Actual string
	At, Element, Component                   int
}

func placesOf(fs []edi.Finding) []place {
	var out []place
	for _, f := range fs {
		out = append(out, place{strings.TrimPrefix(f.Rule, "EDI-"), f.Segment, f.Loop, f.DataElement, f.Actual, f.Position.Segment, f.Element, f.Component})
	}
	return out
}

func check(t testing.TB, version, body string) []edi.Finding {
	t.Helper()
	d := defaults()
	if strings.HasSuffix(version, ":4") {
		d.Repetition = '*'
	}
	found, err := Check(context.Background(), strings.NewReader(body), d, &CheckOptions{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// orders puts segments between the begin and the end of an ORDERS. They begin at segment 4.
func orders(release, middle, tail string) string {
	return "UNH+1+ORDERS:D:" + release + ":UN'BGM+220+PO1+9'DTM+137:20260301:102'" + middle + "UNS+S'" + tail + "UNT+1+1'"
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version, body string
		want                []place
	}{
		{"valid", "UNOC:3", orders("96A", "NAD+BY+5412345000013::9'LIN+1++4000862141404:EN'QTY+21:5'", ""), nil},
		{"E13 a tag of no directory", "UNOA:3", orders("96A", "END+2+X?, Y'", ""), []place{{"SEGMENT-UNKNOWN", "END", "", "", "", 4, 0, 0}}},
		{"a tag of another message", "UNOC:3", orders("96A", "STS+1'", ""), []place{{"SEGMENT-NOT-IN-SET", "STS", "", "", "", 4, 0, 0}}},
		{"segment missing", "UNOC:3", "UNH+1+ORDERS:D:96A:UN'BGM+220'UNS+S'UNT+1+1'", []place{{"SEGMENT-MISSING", "DTM", "", "", "", 3, 0, 0}}},
		{"order", "UNOC:3", orders("96A", "NAD+BY'PAI+1'", ""), []place{{"SEGMENT-ORDER", "PAI", "SG2", "", "", 5, 0, 0}}},
		{"two changed places", "UNOC:3", "UNH+1+ORDERS:D:96A:UN'DTM+137'BGM+220'UNS+S'UNT+1+1'", []place{{"SEGMENT-ORDER", "BGM", "", "", "", 3, 0, 0}}},
		{"without its group", "UNOC:3", orders("96A", "NAD+BY'COM+1:TE'LIN+1'", ""), []place{{"SEGMENT-UNEXPECTED", "COM", "SG2", "", "", 5, 0, 0}}},
		{"first of a group missing", "UNOC:3", orders("96A", "LIN+1'QTY+21:1'FTX+AAI'IMD+F'QTY+21:2'PRI+AAA:1'LIN+3'", ""), []place{{"SEGMENT-MISSING", "LIN", "SG25", "", "", 7, 0, 0}}},
		{"segment too often", "UNOC:3", orders("96A", "PAI+1'PAI+2'PAI+3'NAD+BY'", ""), []place{{"SEGMENT-REPEAT", "PAI", "", "", "", 5, 0, 0}}},
		{"group too often", "UNOC:3", orders("96A", strings.Repeat("TAX+7'", 6), ""), []place{{"LOOP-REPEAT", "TAX", "SG6", "", "", 9, 0, 0}}},
		{"element missing", "UNOC:3", orders("96A", "NAD+'", ""), []place{
			{"ELEMENT-MISSING", "NAD", "SG2", "3035", "", 4, 1, 0}, {"TRAILING-SEPARATOR", "NAD", "SG2", "", "", 4, 1, 0},
		}},
		{"component missing", "UNOC:3", orders("96A", "NAD+BY+:160'", ""), []place{{"COMPONENT-MISSING", "NAD", "SG2", "3039", "", 4, 2, 1}}},
		{"too many elements", "UNOC:3", orders("96A", "PAI+1+2+3'", ""), []place{{"ELEMENTS-MANY", "PAI", "", "", "2", 4, 2, 0}}},
		{"too many components", "UNOC:3", orders("96A", "FTX+AAI:1:2'", ""), []place{{"COMPONENTS-MANY", "FTX", "", "4451", "1", 4, 1, 2}}},
		{"too long", "UNOC:3", orders("96A", "FTX+AAI+++"+strings.Repeat("A", 71)+"'", ""), []place{{"ELEMENT-LONG", "FTX", "", "4440", strings.Repeat("A", 71), 4, 4, 1}}},
		{"E12 length without release characters", "UNOC:3", orders("96A", "FTX+AAI+++"+strings.Repeat("A", 69)+"?''", ""), nil},
		{"blanks at the end do not count", "UNOC:3", orders("96A", "FTX+AAI+++"+strings.Repeat("A", 70)+"   '", ""), nil},
		{"E12 only digits of numbers count", "UNOC:3", orders("96A", "", "MOA+79:-1234567890123456.78'"), nil},
		{"number too long", "UNOC:3", orders("96A", "", "MOA+79:1234567890123456789'"), []place{{"ELEMENT-LONG", "MOA", "", "5004", "1234567890123456789", 5, 1, 2}}},
		{"letters in a number", "UNOC:3", orders("96A", "", "MOA+79:12X'"), []place{{"ELEMENT-TYPE", "MOA", "", "5004", "12X", 5, 1, 2}}},
		{"E06 comma and point", "UNOC:3", orders("96A", "", "MOA+79:12,50'"), nil},
		{"E06 two marks", "UNOC:3", orders("96A", "", "MOA+79:12,5,0'"), []place{{"ELEMENT-NUMBER", "MOA", "", "5004", "12,5,0", 5, 1, 2}}},
		{"plus", "UNOC:3", orders("96A", "", "MOA+79:?+12'"), []place{{"ELEMENT-NUMBER", "MOA", "", "5004", "+12", 5, 1, 2}}},
		{"minus behind", "UNOC:3", orders("96A", "", "MOA+79:12-'"), []place{{"ELEMENT-NUMBER", "MOA", "", "5004", "12-", 5, 1, 2}}},
		{"no digit before the mark", "UNOC:3", orders("96A", "", "MOA+79:.5'"), []place{{"ELEMENT-DIGIT", "MOA", "", "5004", ".5", 5, 1, 2}}},
		{"no digit behind the mark", "UNOC:3", orders("96A", "", "MOA+79:5.'"), []place{{"ELEMENT-NUMBER", "MOA", "", "5004", "5.", 5, 1, 2}}},
		{"code", "UNOC:3", orders("96A", "NAD+ZZZZ'", ""), []place{{"ELEMENT-LONG", "NAD", "SG2", "3035", "ZZZZ", 4, 1, 0}}},
		{"code of no list", "UNOC:3", orders("96A", "NAD+QQQ'", ""), []place{{"ELEMENT-CODE", "NAD", "SG2", "3035", "QQQ", 4, 1, 0}}},
		{"code in a composite", "UNOC:3", "UNH+1+ORDERS:D:96A:UN'BGM+QQQ'DTM+137'UNS+S'UNT+1+1'", []place{{"ELEMENT-CODE", "BGM", "", "1001", "QQQ", 2, 1, 1}}},
		{"code of a list of its own", "UNOC:3", "UNH+1+ORDERS:D:96A:UN'BGM+QQQ:113:9'DTM+137'UNS+S'UNT+1+1'", nil},
		{"code that the agency keeps", "UNOC:3", "UNH+1+ORDERS:D:96A:UN'BGM+QQQ::6'DTM+137'UNS+S'UNT+1+1'", []place{{"ELEMENT-CODE", "BGM", "", "1001", "QQQ", 2, 1, 1}}},
		{"small letters in UNOA", "UNOA:3", orders("96A", "FTX+AAI+++Text'", ""), []place{{"ELEMENT-CHARSET", "FTX", "", "4440", "Text", 4, 4, 1}}},
		{"small letters in UNOB", "UNOB:3", orders("96A", "FTX+AAI+++Text'", ""), nil},
		{"E11 line break inside", "UNOA:3", orders("96A", "FTX+AAI+++FIRST\r\nSECOND'", ""), []place{{"ELEMENT-CHARSET", "FTX", "", "4440", "FIRST\r\nSECOND", 4, 4, 1}}},
		{"E14 Latin 1", "UNOC:3", orders("96A", "NAD+BY+1::9++S\xfcd Lager'", ""), nil},
		{"UTF-8 counted in characters", "UNOW:4", orders("20B", "FTX+AAI+++"+strings.Repeat("ü", 512)+"'", ""), nil},
		{"UTF-8 too long", "UNOW:4", orders("20B", "FTX+AAI+++"+strings.Repeat("ü", 513)+"'", ""), []place{{"ELEMENT-LONG", "FTX", "", "4440", strings.Repeat("ü", 49) + "\xc3", 4, 4, 1}}},
		{"broken UTF-8", "UNOW:4", orders("20B", "FTX+AAI+++\xff'", ""), []place{{"ELEMENT-CHARSET", "FTX", "", "4440", "\xff", 4, 4, 1}}},
		{"repeated element of syntax 4", "UNOC:4", orders("20B", "NAD+BY*SU'", ""), []place{{"ELEMENT-REPEAT", "NAD", "SG2", "3035", "SU", 4, 1, 0}}},
		{"syntax 3 CONTRL", "UNOC:3", "UNH+1+CONTRL:D:3:UN'UCI+R1+A:14+B:14+7'UNT+3+1'", nil},
		{"syntax 4 CONTRL", "UNOC:4", "UNH+1+CONTRL:4:1:UN'UCI+R1+A:14+B:14+7'UNT+3+1'", nil},
		{"CONTRL without UCI", "UNOC:3", "UNH+1+CONTRL:D:3:UN'UNT+2+1'", []place{{"SEGMENT-MISSING", "UCI", "", "", "", 2, 0, 0}}},
		{"unknown directory", "UNOC:3", "UNH+1+ORDERS:D:55Z:UN'XXX'", []place{{"DIRECTORY-UNKNOWN", "UNH", "", "", "D.55Z", 1, 2, 3}}},
		{"unknown type", "UNOC:3", "UNH+1+ORDERZ:D:96A:UN'XXX'", []place{{"MESSAGE-UNKNOWN", "UNH", "", "", "ORDERZ", 1, 2, 1}}},
		{"unknown syntax", "UNOC:7", "UNH+1+ORDERS:D:96A:UN'", []place{{"SYNTAX-UNKNOWN", "UNH", "", "", "UNOC:7", 1, 2, 0}}},
		{"empty", "UNOC:3", "", []place{{"DIRECTORY-UNKNOWN", "UNH", "", "", ".", 1, 2, 3}}},
		{"package", "UNOC:4", "UNO+1+1:2+1+3'ABCUNP+3+1'", nil},
	} {
		if diff := cmp.Diff(c.want, placesOf(check(t, c.version, c.body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDecimalMarkOfUNA(t *testing.T) {
	t.Parallel()
	d := defaults()
	d.Decimal = ','
	for version, want := range map[string]int{"UNOA:3": 1, "UNOA:4": 0} {
		found, err := Check(t.Context(), strings.NewReader(orders("96A", "", "MOA+79:12.50'MOA+86:1,5'")), d, &CheckOptions{Version: version, ServiceUNA: true})
		if err != nil || len(found) != want {
			t.Errorf("%s: %+v, %v", version, found, err)
		}
	}
}

func TestFindingTellsAll(t *testing.T) {
	t.Parallel()
	found, err := Check(t.Context(), strings.NewReader(orders("96A", "NAD+BY+1?+1:160:9:7'", "")), defaults(), &CheckOptions{Version: "UNOC:3", Base: 1000})
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	f := found[0]
	f.Message = ""
	want := edi.Finding{
		Rule: edi.RuleComponentsMany, Severity: edi.Fatal, Ruleset: "D.96A", Segment: "NAD", Loop: "SG2", DataElement: "C082", Actual: "7", Expected: "3",
		Position: edi.Position{Segment: 4, Element: 2, Component: 4, Offset: 1000 + int64(strings.Index(orders("96A", "NAD+BY+1?+1:160:9:7'", ""), "7'UNS"))},
	}
	f.DataElement = want.DataElement
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFlood: any number of errors makes a list of bounded length, and fatal ones are not lost
// behind warnings.
func TestFlood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, middle string
		policy       tables.Policy
		fatal        int // at least
		last         edi.Severity
		message      string
	}{
		{"fatal", strings.Repeat("ZQX+1'", 40_000), tables.Policy{}, 100, edi.Fatal, "was not checked"},
		{"structure", strings.Repeat("NAD+BY'COM+1:TE'BGM+220'RFF+ON'UNS+S'", 10_000), tables.Policy{}, 100, edi.Fatal, "was not checked"},
		{"warnings", strings.Repeat("NAD+QQQ'", 90), tables.Policy{WarnOnly: []string{"code"}}, 0, "", ""},
		{"warnings, then fatal", "NAD+QQQ'" + strings.Repeat("LIN+1++A:QQQ'", 200) + "ZQX'ZQX'", tables.Policy{WarnOnly: []string{"code", "length"}}, 2, edi.Warning, "103 more"},
	} {
		found, err := Check(t.Context(), strings.NewReader(orders("96A", c.middle, "")), defaults(), &CheckOptions{Version: "UNOC:3", Policy: &c.policy})
		if err != nil {
			t.Fatal(err)
		}
		fatal := 0
		for _, f := range found {
			if f.Severity == edi.Fatal && f.Rule != edi.RuleFindingsLimit {
				fatal++
			}
		}
		last := found[len(found)-1]
		if len(found) > 101 || fatal < c.fatal {
			t.Errorf("%s: %d findings, %d fatal", c.name, len(found), fatal)
		}
		if c.last != "" && (last.Rule != edi.RuleFindingsLimit || last.Severity != c.last || !strings.Contains(last.Message, c.message)) {
			t.Errorf("%s: the last is %+v", c.name, last)
		}
	}
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Check(ctx, strings.NewReader(orders("96A", strings.Repeat("NAD+BY'", 50), "")), defaults(), &CheckOptions{Version: "UNOC:3"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestLongSegment(t *testing.T) {
	t.Parallel()
	_, err := Check(t.Context(), strings.NewReader(orders("96A", "FTX+AAI+++"+strings.Repeat("A", 5000)+"'", "")), defaults(), &CheckOptions{Version: "UNOC:3", MaxSegmentBytes: 1000})
	var limit *edi.LimitError
	if !errors.As(err, &limit) {
		t.Errorf("%v", err)
	}
}

// TestConcurrent: the same document gives the same findings, whoever checks beside.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	bodies := []string{
		orders("96A", "NAD+QQQ'LIN+1'COM+1:TE'ZQX'", ""), orders("01B", "NAD+BY+:1'PAI+1'PAI+2'UNS+S'", ""), orders("20B", strings.Repeat("ZQX'", 200), ""),
	}
	want := make([][]edi.Finding, len(bodies))
	for i, b := range bodies {
		want[i] = check(t, "UNOC:3", b)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 60 {
				i := n % len(bodies)
				if got := check(t, "UNOC:3", bodies[i]); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("body %d: %+v, want %+v", i, got, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestAllTables compiles every message of every directory.
func TestAllTables(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"D.96A", "D.01B", "D.20B", "service.1", "service.2", "service.3", "service.4"} {
		d, err := Library().Directory(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range d.Messages() {
			for n := 1; n <= 4; n++ {
				if _, err := Library().Message(name, typ, fmt.Sprintf("service.%d", n)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if _, err := Library().Directory("D.00Z"); !errors.Is(err, tables.ErrNoDirectory) {
		t.Errorf("%v", err)
	}
	if _, err := Library().Message("D.96A", "NOSUCH"); !errors.Is(err, tables.ErrNoMessage) {
		t.Errorf("%v", err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("UNOA:3", []byte(orders("96A", "NAD+BY+5412345000013::9'LIN+1'QTY+21:5'ZQX'COM+1:TE'", "MOA+79:1,5'")))
	f.Add("UNOW:4", []byte(orders("20B", "FTX+AAI+++\xff?+*:'NAD+BY*SU++::'", "")))
	f.Add("UNOC:3", []byte("UNH+1+CONTRL:D:3:UN'UCI+R1'UNT'"))
	f.Fuzz(func(t *testing.T, version string, body []byte) {
		d := defaults()
		if strings.HasSuffix(version, ":4") {
			d.Repetition = '*'
		}
		o := &CheckOptions{Version: version, MaxSegmentBytes: 4096, MaxFindings: 10}
		found, err := Check(t.Context(), strings.NewReader(string(body)), d, o)
		again, err2 := Check(t.Context(), strings.NewReader(string(body)), d, o)
		if (err == nil) != (err2 == nil) || !reflect.DeepEqual(found, again) {
			t.Fatalf("%+v, %v; then %+v, %v", found, err, again, err2)
		}
		if len(found) > 11 {
			t.Fatalf("%d findings", len(found))
		}
		for _, x := range found {
			if _, ok := edi.RuleOf(x.Rule); !ok || x.Message == "" || x.Severity == "" || len(x.Actual) > edi.MaxActual || x.Offset > int64(len(body)) {
				t.Fatalf("%+v", x)
			}
		}
	})
}

func TestCheckSegment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, raw string
		want         []place
	}{
		{"UNOA:3", "UNB+UNOA:3+ALPHA:ZZ+BETA:ZZ+260301:1200+R1'", nil},
		{"UNOC:4", "UNB+UNOC:4+ALPHA:ZZ+BETA:ZZ+20260301:1200+R1'", nil},
		{"UNOC:4", "UNB+UNOC:4+ALPHA:ZZ+BETA:ZZ+260301:1200+R1'", []place{{"ELEMENT-SHORT", "UNB", "", "0017", "260301", 0, 4, 1}}},
		{"UNOA:3", "UNB+UNOA:3+ALPHA:ZZ++260301:1200+R1'", []place{{"ELEMENT-MISSING", "UNB", "", "S003", "", 0, 3, 0}}},
		{"UNOA:3", "UNZ+1+R1'", nil},
		{"UNOA:3", "UNH+X'", nil},
		{"UNOA:9", "UNB+X'", nil},
	} {
		found, err := CheckSegment(t.Context(), []byte(c.raw), defaults(), c.version, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, placesOf(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.raw, diff)
		}
	}
}
