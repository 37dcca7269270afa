package x12

import (
	"reflect"
	"strings"
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

var testDelimiters = edi.Delimiters{Element: '*', Component: '>', Segment: '~'}

// order puts segments between the head and the first line of an 850. They begin at segment 3.
func order(middle string) string {
	return "ST*850*0001~BEG*00*SA*PO77**20260301~" + middle + "PO1*1*5*EA*9.25**VN*W-1~SE*1*0001~"
}

// notice makes an 856 with HL segments, which begin at segment 3.
func notice(hl string) string { return "ST*856*0001~BSN*00*SHIP1*20260301*1200~" + hl + "SE*1*0001~" }

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version, body string
		want                []place
	}{
		{"valid", "004010", order("N1*BT*ACME*92*12~"), nil},
		{"version of a guide", "004010VICS", order(""), nil},
		{"unknown tag", "004010", order("ZZZ*1~"), []place{{"SEGMENT-UNKNOWN", "ZZZ", "", "", "", 3, 0, 0}}},
		{"tag of another set", "004010", order("BSN*00~"), []place{{"SEGMENT-NOT-IN-SET", "BSN", "", "", "", 3, 0, 0}}},
		{"mandatory segment missing", "004010", "ST*850*0001~PO1*1~SE*3*0001~", []place{{"SEGMENT-MISSING", "BEG", "", "", "", 2, 0, 0}}},
		{"mandatory loop missing", "004010", "ST*850*0001~BEG*00*SA*PO77**20260301~SE*3*0001~", []place{{"SEGMENT-MISSING", "PO1", "PO1", "", "", 3, 0, 0}}},
		{"first of a loop missing", "004010", order("N3*STREET~N4*TOWN~"), []place{{"SEGMENT-MISSING", "N1", "N1", "", "", 3, 0, 0}}},
		{"order", "004010", order("N1*BT*ACME~CUR*BY*EUR~"), []place{{"SEGMENT-ORDER", "CUR", "N1", "", "", 4, 0, 0}}},
		{"over max use", "004010", order("CUR*BY*EUR~CUR*BY*EUR~"), []place{{"SEGMENT-REPEAT", "CUR", "", "", "", 4, 0, 0}}},
		{"over max use in a loop", "004010", order("N1*BT*ACME~N3*A~N3*B~N3*C~N3*D~"), []place{{"SEGMENT-REPEAT", "N3", "N1", "", "", 6, 0, 0}}},
		{"loop too often", "004010", order(strings.Repeat("SAC*A*B310~", 26)), []place{{"LOOP-REPEAT", "SAC", "SAC", "", "", 28, 0, 0}}},
		{"element missing", "004010", order("REF**1~"), []place{{"ELEMENT-MISSING", "REF", "", "128", "", 3, 1, 0}}},
		{"outside of its loop", "004010", order("N2*A~"), []place{{"SEGMENT-UNEXPECTED", "N2", "", "", "", 3, 0, 0}}},
		{"too many elements", "004010", order("N1*BT*A~N2*A*B*C~"), []place{{"ELEMENTS-MANY", "N2", "N1", "", "C", 4, 3, 0}}},
		{"too many components", "004010", order("REF*IA*A>B~"), []place{{"COMPONENTS-MANY", "REF", "", "127", "B", 3, 2, 2}}},
		{"too short", "004010", order("REF*I*1~"), []place{{"ELEMENT-SHORT", "REF", "", "128", "I", 3, 1, 0}}},
		{"blanks fill up a value", "004010", order("REF*I *1~"), nil},
		{"too long", "004010", order("REF*IA*1234567890123456789012345678901~"), []place{{"ELEMENT-LONG", "REF", "", "127", "1234567890123456789012345678901", 3, 2, 0}}},
		{"letters in a number", "004010", order("PO1*1*X*EA~"), []place{{"ELEMENT-TYPE", "PO1", "PO1", "330", "X", 3, 2, 0}}},
		{"point in an implied decimal", "004010", order("SAC*A*B310***1.5~"), []place{{"ELEMENT-NUMBER", "SAC", "SAC", "610", "1.5", 3, 5, 0}}},
		{"comma in a decimal", "004010", order("PO1*1*1,5*EA~"), []place{{"ELEMENT-NUMBER", "PO1", "PO1", "330", "1,5", 3, 2, 0}}},
		{"decimal without leading digit", "004010", order("PO1*1*.5*EA~"), nil},
		{"sign and point do not count", "004010", order("PO1*1*-12345678.9*EA~"), nil},
		{"date", "004010", order("DTM*002*20260230~"), []place{{"ELEMENT-DATE", "DTM", "", "373", "20260230", 3, 2, 0}}},
		{"leap day", "004010", order("DTM*002*20240229~"), nil},
		{"short date", "004010", order("DTM*002*260301~"), []place{{"ELEMENT-SHORT", "DTM", "", "373", "260301", 3, 2, 0}}},
		{"time", "004010", order("DTM*002*20260301*2460~"), []place{{"ELEMENT-TIME", "DTM", "", "337", "2460", 3, 3, 0}}},
		{"time with seconds", "004010", order("DTM*002*20260301*23595999~"), nil},
		{"control character", "004010", order("REF*IA*A\x07B~"), []place{{"ELEMENT-CHARSET", "REF", "", "127", "A\x07B", 3, 2, 0}}},
		{"note P", "004010", order("N1*BT*ACME*92~"), []place{{"ELEMENT-CONDITION", "N1", "N1", "67", "", 3, 4, 0}}},
		{"note R", "004010", order("N1*BT~"), []place{{"ELEMENT-CONDITION", "N1", "N1", "93", "", 3, 2, 0}}},
		{"note C", "004010", order("PO1*1**EA*9.25~"), []place{{"ELEMENT-CONDITION", "PO1", "PO1", "330", "", 3, 2, 0}}},
		{"note L", "004010", order("MEA*WT*G*****03*XX~"), []place{{"ELEMENT-CONDITION", "MEA", "", "739", "", 3, 3, 0}}},
		{"note E", "004010", order("MEA*WT*G*1*LB****03~"), []place{{"ELEMENT-EXCLUSION", "MEA", "", "936", "03", 3, 8, 0}}},
		{"997 of 004010", "004010", "ST*997*0001~AK1*PO*1~AK2*850*0001~AK3*N1*3*N1*8~AK4*2*93*1~AK5*R*5~AK9*R*1*1*0~SE*8*0001~", nil},
		{"997 of 005010", "005010", "ST*997*0001~AK1*PO*1*005010~AK2*850*0001~AK5*A~AK9*A*1*1*1~SE*6*0001~", nil},
		{"999", "005010X231A1", "ST*999*0001*005010X231A1~AK1*PO*1*005010~AK2*850*0001~IK3*REF*5**8~CTX*SITUATIONAL TRIGGER*REF*5**2~IK4*2*127*4*A~IK5*R*5~AK9*R*1*1*0~SE*9*0001~", nil},
		{"AK5 missing", "004010", "ST*997*0001~AK1*PO*1~AK2*850*0001~AK9*R*1*1*0~SE*5*0001~", []place{{"SEGMENT-MISSING", "AK5", "AK2", "", "", 4, 0, 0}}},
		{"unknown version", "007010", order(""), []place{{"DIRECTORY-UNKNOWN", "ST", "", "", "007010", 1, 1, 0}}},
		{"unknown set", "004010", "ST*837*0001~SE*2*0001~", []place{{"MESSAGE-UNKNOWN", "ST", "", "", "837", 1, 1, 0}}},
		{"empty", "004010", "", []place{{"MESSAGE-UNKNOWN", "ST", "", "", "", 1, 1, 0}}},
		{"no version", "", order(""), []place{{"DIRECTORY-UNKNOWN", "ST", "", "", "", 1, 1, 0}}},

		{"HL", "004010", notice("HL*1**S~HL*2*1*O~HL*3*2*I~HL*4*1*O~"), nil},
		{"HL01 twice", "004010", notice("HL*1**S~HL*1*1*O~"), []place{{"HL-ID", "HL", "HL", "628", "1", 4, 1, 0}}},
		{"HL02 unknown", "004010", notice("HL*1**S~HL*2*7*O~"), []place{{"HL-PARENT", "HL", "HL", "734", "7", 4, 2, 0}}},
		{"HL02 is itself", "004010", notice("HL*1*1*S~"), []place{{"HL-PARENT", "HL", "HL", "734", "1", 3, 2, 0}}},
		{"HL04 and no child", "004010", notice("HL*1**S*1~HL*2**O*0~"), []place{{"HL-CHILD", "HL", "", "736", "1", 3, 4, 0}}},
		{"HL04 and a child", "004010", notice("HL*1**S*0~HL*2*1*O~HL*3*1*O~"), []place{{"HL-CHILD", "HL", "", "736", "0", 3, 4, 0}}},
		{"HL with ids of its own", "004010", notice("HL*A**S~HL*5*A*O~HL*2*5*I~"), nil},
		{"HL with ids of its own twice", "004010", notice("HL*A**S~HL*5*A*O~HL*A*5*I~"), []place{{"HL-ID", "HL", "HL", "628", "A", 5, 1, 0}}},
		{"an id that an odd HL would have had", "004010", notice("HL*A**S~HL*B*1*O~"), []place{{"HL-PARENT", "HL", "HL", "734", "1", 4, 2, 0}}},
	} {
		d := testDelimiters
		found, err := Check(t.Context(), strings.NewReader(c.body), d, &CheckOptions{Version: c.version})
		if err != nil {
			t.Fatal(err)
		}
		got := placesOf(found)
		if len(c.want) == 0 && len(got) == 0 {
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestLoopIdentifiers(t *testing.T) {
	t.Parallel()
	set := func(inner string) string { return "ST*850*0001~BEG*00*SA*PO77**20260301~PO1*1~" + inner + "SE*1*0001~" }
	for name, c := range map[string]struct {
		body string
		want []place
	}{
		"pair":   {set("LS*LDT~LDT*AF*1*DA~LE*LDT~"), nil},
		"other":  {set("LS*LDT~LDT*AF*1*DA~LE*X~"), []place{{"LS-LE", "LE", "PO1", "447", "X", 6, 1, 0}}},
		"no LE":  {set("LS*LDT~LDT*AF*1*DA~"), []place{{"LS-LE", "LS", "", "447", "LDT", 4, 1, 0}}},
		"no LS":  {set("LE*LDT~"), []place{{"LS-LE", "LE", "PO1", "447", "LDT", 4, 1, 0}}},
		"no LS2": {set("LDT*AF*1*DA~LE*LDT~"), []place{{"LS-LE", "LE", "PO1", "447", "LDT", 5, 1, 0}}},
	} {
		found, err := Check(t.Context(), strings.NewReader(c.body), testDelimiters, &CheckOptions{Version: "004010"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, placesOf(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestManyHL: the ids of a hierarchy are looked up in a time that does not grow with it.
func TestManyHL(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("HL*1**S~")
	for n := 2; n <= 20_000; n++ {
		b.WriteString("HL*" + itoa(n) + "*" + itoa(n-1) + "*I~")
	}
	found, err := Check(t.Context(), strings.NewReader(notice(b.String())), testDelimiters, &CheckOptions{Version: "004010"})
	if err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func itoa(n int) string {
	var b [12]byte
	i := len(b)
	for ; n > 0; n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return string(b[i:])
}

func TestAllTables(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"004010", "005010"} {
		d, err := Library().Directory(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range d.Messages() {
			if _, err := Library().Message(name, typ); err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range []string{"control.00401", "control.00501"} {
		d, err := Library().Directory(name)
		if err != nil {
			t.Fatal(err)
		}
		for tag, n := range map[string]int{"ISA": 16, "GS": 8, "GE": 2, "IEA": 2, "TA1": 5} {
			if s := d.Segment(tag); s == nil || len(s.Refs) != n {
				t.Errorf("%s in %s: %+v", tag, name, s)
			}
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("004010", []byte(order("N1*BT*ACME*92~N3*A~ZZZ~MEA*WT*G*1*LB****03~")))
	f.Add("004010", []byte(notice("HL*1**S*1~HL*A*9*O*0~HL*2*1*I~")))
	f.Add("005010", []byte("ST*999*0001~AK1*PO*1~IK4*2>3*127~SE*1*0001~"))
	f.Fuzz(func(t *testing.T, version string, body []byte) {
		o := &CheckOptions{Version: version, MaxSegmentBytes: 4096, MaxFindings: 10, Policy: &tables.Policy{WarnOnly: []string{"length"}}}
		found, err := Check(t.Context(), strings.NewReader(string(body)), testDelimiters, o)
		again, err2 := Check(t.Context(), strings.NewReader(string(body)), testDelimiters, o)
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
	isa := func(date, repetition, version string) string {
		return "ISA*00*          *00*          *ZZ*ALPHA          *ZZ*BETA           *" + date + "*1200*" + repetition + "*" + version + "*000000001*0*T*>~"
	}
	for _, c := range []struct {
		version, raw string
		want         []place
	}{
		{"00401", isa("260301", "U", "00401"), nil},
		{"00501", isa("260301", "^", "00501"), nil},
		{"00401", isa("261301", "U", "00401"), []place{{"ELEMENT-DATE", "ISA", "", "I08", "261301", 0, 9, 0}}},
		{"00401", "GS*PO*ALPHA*BETA*20260301*1200*7*X*004010~", nil},
		{"00401", "GS*PO*ALPHA*BETA*20260301*2500*7*X*004010~", []place{{"ELEMENT-TIME", "GS", "", "337", "2500", 0, 5, 0}}},
		{"00401", "GE*1~", []place{{"ELEMENT-MISSING", "GE", "", "28", "", 0, 2, 0}}},
		{"00401", "TA1*000000001*260301*1200*A*000~", nil},
		{"00401", "N1*X~", nil},
	} {
		d := testDelimiters
		if c.version == "00501" {
			d.Repetition = '^'
		}
		found, err := CheckSegment(t.Context(), []byte(c.raw), d, c.version, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, placesOf(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.raw, diff)
		}
	}
}
