package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
)

const (
	isa     = "ISA*00*          *00*          *ZZ*ALPHA          *ZZ*BETA           *260301*1200*U*00401*000000001*0*T*>~"
	whole   = isa + "GS*PO*ALPHA*BETA*20260301*1200*7*X*004010~ST*850*0001~BEG*00*SA*PO77**20260301~PO1*1*5*EA*9.25**VN*W-1~SE*4*0001~GE*1*7~IEA*1*000000001~"
	order   = "UNB+UNOA:3+ALPHA:ZZ+BETA:ZZ+260301:1200+R1'UNH+1+ORDERS:D:96A:UN'BGM+220+PO1+9'UNT+3+1'UNZ+1+R1'"
	ublFile = `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"><cbc:CustomizationID>urn:x</cbc:CustomizationID><cbc:ID>I1</cbc:ID></Invoice>`
	cii     = `<?xml version="1.0"?><rsm:CrossIndustryInvoice xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100" xmlns:ram="r">` +
		`<rsm:ExchangedDocumentContext><ram:GuidelineSpecifiedDocumentContextParameter><ram:ID>urn:cen.eu:en16931:2017</ram:ID></ram:GuidelineSpecifiedDocumentContextParameter></rsm:ExchangedDocumentContext>` +
		`<rsm:ExchangedDocument><ram:ID>I7</ram:ID><ram:TypeCode>380</ram:TypeCode></rsm:ExchangedDocument><rsm:SupplyChainTradeTransaction><ram:ApplicableHeaderTradeAgreement>` +
		`<ram:SellerTradeParty><ram:URIUniversalCommunication><ram:URIID schemeID="0088">401</ram:URIID></ram:URIUniversalCommunication></ram:SellerTradeParty>` +
		`<ram:BuyerTradeParty><ram:URIUniversalCommunication><ram:URIID schemeID="9930">DE1</ram:URIID></ram:URIUniversalCommunication></ram:BuyerTradeParty>` +
		`</ram:ApplicableHeaderTradeAgreement></rsm:SupplyChainTradeTransaction></rsm:CrossIndustryInvoice>`
)

func read(t testing.TB, in string) *Report {
	t.Helper()
	rep, err := Read("f", strings.NewReader(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(read(t, "UNA:+.? '"+order))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"file":"f","standard":"edifact","valid_envelope":true,"interchanges":[{"sender":"ALPHA","sender_qualifier":"ZZ","receiver":"BETA","receiver_qualifier":"ZZ","control_ref":"R1",` +
		`"version":"UNOA:3","charset":"ISO 646","test":false,"groups":0,"segments":5,"offset":0,"length":105,` +
		`"messages":[{"type":"ORDERS","version":"D:96A:UN","ref":"1","segments":3,"offset":52,"length":44,"document":{"number":"PO1","function":"9","order_no":"PO1"}}],` +
		`"findings":[]}],"segments":5,"messages":1,"groups":0,"findings":[]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	second := strings.ReplaceAll(strings.ReplaceAll(whole, "~", "!"), "000000001", "000000002")
	for _, c := range []struct {
		name, in, standard              string
		valid                           bool
		ics, groups, messages, segments int
		rule                            string // of the one finding, wherever it is
	}{
		{name: "edifact", in: order, standard: "edifact", valid: true, ics: 1, messages: 1, segments: 5},
		{name: "x12", in: whole, standard: "x12", valid: true, ics: 1, groups: 1, messages: 1, segments: 8},
		{name: "two interchanges", in: whole + "\r\n" + second, standard: "x12", valid: true, ics: 2, groups: 2, messages: 2, segments: 16},
		{name: "only a TA1", in: isa + "TA1*000000050*260301*1200*A*000~IEA*0*000000001~", standard: "x12", valid: true, ics: 1, segments: 3},
		{name: "wrong count", in: strings.Replace(order, "UNT+3", "UNT+4", 1), standard: "edifact", ics: 1, messages: 1, segments: 5, rule: "EDI-UNT-COUNT"},
		{name: "wrong count of a group", in: strings.Replace(whole, "GE*1", "GE*2", 1), standard: "x12", ics: 1, groups: 1, messages: 1, segments: 8, rule: "EDI-GE-COUNT"},
		{name: "text before", in: "From: a\nTo: b\n\n" + order, standard: "edifact", ics: 2, messages: 1, segments: 5, rule: "EDI-DATA-OUTSIDE"},
		{name: "text before an ISA", in: "From: a\nTo: b\n\n" + whole, standard: "x12", ics: 2, groups: 1, messages: 1, segments: 8, rule: "EDI-DATA-OUTSIDE"},
		{name: "ubl", in: ublFile, standard: "ubl", valid: true, ics: 1, messages: 1},
		{name: "ubl cut off", in: ublFile[:len(ublFile)-4], standard: "ubl", ics: 1, messages: 1, rule: "UBL-XML-TRUNCATED"},
		{name: "cii", in: cii, standard: "cii", valid: true, ics: 1, messages: 1},
		{name: "cii cut off", in: cii[:len(cii)-30], standard: "cii", ics: 1, messages: 1, rule: "CII-XML"},
		{name: "cii with a document type", in: strings.Replace(cii, "<rsm:", "<!DOCTYPE a [<!ENTITY b 'c'>]><rsm:", 1), standard: "cii", ics: 1, messages: 1, rule: "CII-XML"},
		{name: "cii of great depth", in: strings.Replace(cii, "<rsm:ExchangedDocument>", strings.Repeat("<a>", 200), 1), standard: "cii", ics: 1, messages: 1, rule: "CII-XML"},
		{name: "other XML", in: "<?xml version='1.0'?><a/>", standard: "unknown", rule: "EDI-UNKNOWN"},
		{name: "text", in: "hello", standard: "unknown", rule: "EDI-UNKNOWN"},
		{name: "NUL bytes", in: strings.Repeat("\x00", 5000), standard: "unknown", rule: "EDI-UNKNOWN"},
		{name: "empty", in: "", standard: "unknown", rule: "EDI-UNKNOWN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rep := read(t, c.in)
			if rep.Standard != c.standard || rep.ValidEnvelope != c.valid || len(rep.Interchanges) != c.ics || rep.Groups != c.groups || rep.Messages != c.messages || rep.Segments != c.segments {
				t.Errorf("got %+v", rep)
			}
			found := append([]edi.Finding{}, rep.Findings...)
			for _, ic := range rep.Interchanges {
				found = append(found, ic.Findings...)
				for _, m := range ic.Messages {
					found = append(found, m.Findings...)
				}
			}
			switch {
			case c.rule == "" && len(found) > 0:
				t.Errorf("findings %+v", found)
			case c.rule != "" && (len(found) != 1 || found[0].Rule != c.rule || found[0].Message == ""):
				t.Errorf("findings %+v, want one %s", found, c.rule)
			}
		})
	}
}

func TestCIIValues(t *testing.T) {
	t.Parallel()
	ic := read(t, cii).Interchanges[0]
	m := ic.Messages[0]
	if ic.Sender != "401" || ic.SenderQualifier != "0088" || ic.Receiver != "DE1" || ic.ReceiverQualifier != "9930" || ic.Version != "urn:cen.eu:en16931:2017" ||
		m.Type != "CrossIndustryInvoice" || m.Document.Number != "I7" || m.Document.Function != "380" || ic.Length != int64(len(cii)) {
		t.Errorf("got %+v", ic)
	}
}

// repeat is an input without an end that counts what is taken of it.
type repeat struct {
	head  string
	taken int64
}

func (r *repeat) Read(b []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(b, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	for i := range b {
		b[i] = 'A'
	}
	r.taken += int64(len(b))
	return len(b), nil
}

func TestLimit(t *testing.T) {
	t.Parallel()
	for _, head := range []string{order[:len(order)-10] + "FTX+AAI+++", isa + "GS*"} {
		r := &repeat{head: head}
		rep, err := Read("f", r, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if rep.ValidEnvelope || len(rep.Findings) != 1 || rep.Findings[0].Rule != "EDI-LIMIT" || rep.Findings[0].Offset == 0 || r.taken > 8<<20 {
			t.Errorf("after %d bytes: %+v", r.taken, rep)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestFailedRead(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"", order[:60], whole[:200], ublFile[:100] + strings.Repeat(" ", 5000), cii[:300] + strings.Repeat(" ", 5000)} {
		r := io.MultiReader(strings.NewReader(head), broken{})
		if _, err := Read("f", r, Options{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%.20q: %v", head, err)
		}
	}
}

func TestPretty(t *testing.T) {
	t.Parallel()
	in := "UNA:+.? '\r\nUNB+UNOC:3+A+B+260301:1200+R1'UNG+ORDERS+A+B+260301:1200+7+UN+D:96A'UNH+1+ORDERS:D:96A:UN'NAD+BY+++S\xfcd?'s\x1b[2J\nLager'UNT+3+1'UNE+1+7'UNZ+1+R1'"
	want := "UNA:+.? '\nUNB+UNOC:3+A+B+260301:1200+R1'\n  UNG+ORDERS+A+B+260301:1200+7+UN+D:96A'\n    UNH+1+ORDERS:D:96A:UN'\n      NAD+BY+++Süd?'s·[2J␊Lager'\n    UNT+3+1'\n  UNE+1+7'\nUNZ+1+R1'\n"
	var out bytes.Buffer
	good, err := Pretty(strings.NewReader(in), Options{}, &out)
	if err != nil || !good {
		t.Fatal(good, err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("EDIFACT (-want +got):\n%s", diff)
	}
	out.Reset()
	x := isa + "GS*PI*A*B*20260301*1200*7*X*004010~ST*275*1~BIN*8*A~B*C:D\n~SE*9*1~GE*1*7~IEA*1*000000001~"
	good, err = Pretty(strings.NewReader(x), Options{}, &out)
	if err != nil || good {
		t.Fatal(good, err)
	}
	want = isa + "\n  GS*PI*A*B*20260301*1200*7*X*004010~\n    ST*275*1~\n      BIN*8*[8 bytes]~\n    SE*9*1~\n  GE*1*7~\nIEA*1*000000001~\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("X12 (-want +got):\n%s", diff)
	}
	if _, err := Pretty(strings.NewReader(ublFile), Options{}, &out); !errors.Is(err, ErrNotSegments) {
		t.Errorf("XML: %v", err)
	}
}

// TestManyFiles makes sure that what is found does not depend on a file's name.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, in := range []string{order, whole, ublFile, cii} {
		name := filepath.Join(dir, fmt.Sprintf("%d.bin", i))
		if err := os.WriteFile(name, []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := Read(name, f, Options{})
		if cerr := f.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		if !rep.ValidEnvelope || rep.File != name {
			t.Errorf("got %+v", rep)
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, in := range []string{order, whole, ublFile, cii, "", "text " + order} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := Read("f", bytes.NewReader(data), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(rep); err != nil {
			t.Fatal(err)
		}
		messages, segments := 0, 0
		for _, ic := range rep.Interchanges {
			messages += len(ic.Messages)
			segments += ic.Segments
			if ic.Offset < 0 || ic.Length < 0 || ic.Offset+ic.Length > int64(len(data)) {
				t.Fatalf("interchange at %d+%d in a file of %d", ic.Offset, ic.Length, len(data))
			}
		}
		if messages != rep.Messages || len(rep.Findings) == 0 && segments != rep.Segments || !rep.ValidEnvelope && len(rep.Interchanges) == 0 && len(rep.Findings) == 0 {
			t.Fatalf("got %+v", rep)
		}
	})
}
