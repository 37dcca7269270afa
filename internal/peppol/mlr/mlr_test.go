package mlr

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"

	"github.com/edihub/edihub/internal/edi"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

func response(code Code, findings ...edi.Finding) *Response {
	return &Response{
		ID: "MLR-1", At: time.Date(2026, 10, 2, 13, 4, 5, 0, time.FixedZone("", 3600)), Sender: edi.Party{Qualifier: "0208", ID: "0123456749"},
		Receiver: edi.Party{Qualifier: "0088", ID: "7300010000001"}, Document: "2026-4711", TypeCode: "380", Code: code, Findings: findings,
	}
}

var (
	wrongTotal = edi.Finding{Rule: "BR-CO-15", Severity: edi.Fatal, Ruleset: "en16931", Location: "/Invoice/cac:LegalMonetaryTotal[1]/cbc:TaxInclusiveAmount[1]", Message: "The total is wrong.", Actual: "1250.00", Expected: "1225.00"}
	noTerm     = edi.Finding{Rule: "NO-R-002", Severity: edi.Warning, Ruleset: "peppol", Location: "/Invoice", Message: "A word is missing."}
	badXML     = edi.Finding{Rule: "UBL-XML-TRUNCATED", Severity: edi.Fatal, Ruleset: "ubl", Message: "The document <ends> too early & without warning.\x01"}
)

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Response{
		"accepted":               response(Accepted),
		"accepted_with_warnings": response(Accepted, noTerm),
		"rejected_by_rules":      response(Rejected, noTerm, wrongTotal),
		"rejected_for_syntax":    response(Rejected, badXML),
	} {
		if r.Code != For(r.Findings) {
			t.Errorf("%s: code %s", name, For(r.Findings))
		}
		got, err := Build(r)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".xml")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil { //nolint:gosec // It is a test file.
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is\n%s", name, got)
		}
	}
}

// TestForm looks at what the rules of the BIS ask of every response: no empty element, and a place,
// a text and a reason for each line.
func TestForm(t *testing.T) {
	t.Parallel()
	var many []edi.Finding
	for range MaxLines + 20 {
		many = append(many, wrongTotal)
	}
	r := response(Rejected, many...)
	r.TypeCode, r.Suppressed = "", 7
	out, err := Build(r)
	if err != nil {
		t.Fatal(err)
	}
	doc := etree.NewDocument()
	if err := doc.ReadFromBytes(out); err != nil {
		t.Fatal(err)
	}
	for _, e := range doc.FindElements("//*") {
		if len(e.ChildElements()) == 0 && strings.TrimSpace(e.Text()) == "" {
			t.Errorf("%s is empty", e.GetPath())
		}
	}
	for _, path := range []string{"cac:LineReference/cbc:LineID", "cac:Response/cbc:Description", "cac:Response/cac:Status/cbc:StatusReasonCode"} {
		if n := len(doc.FindElements("//cac:LineResponse/" + path)); n != MaxLines {
			t.Errorf("%d lines have %s", n, path)
		}
	}
	if s := doc.FindElement("//cac:DocumentResponse/cac:Response/cbc:Description").Text(); s != "Errors: 120, warnings: 0. Not listed: 27." {
		t.Errorf("summary %q", s)
	}
	if doc.FindElement("//cbc:DocumentTypeCode") != nil {
		t.Error("a type code out of nothing")
	}
}

func TestIncomplete(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Response){
		"id": func(r *Response) { r.ID = "" }, "document": func(r *Response) { r.Document = "" }, "code": func(r *Response) { r.Code = "" },
		"sender": func(r *Response) { r.Sender.ID = "" }, "scheme": func(r *Response) { r.Receiver.Qualifier = "" },
	} {
		r := response(Accepted)
		change(r)
		if _, err := Build(r); !errors.Is(err, ErrIncomplete) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
