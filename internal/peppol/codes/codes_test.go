package codes

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var all = []*List{
	InvoiceTypes, CreditNoteTypes, InvoiceTypesPeppol, CreditNoteTypesPeppol, Currencies, CurrenciesPeppol, TaxPointDates, References,
	NoteSubjects, IdentifierSchemes, Classifications, Countries, PaymentMeans, VATCategories, AllowanceReasons, ChargeReasons, VATExemptions,
	Units, EndpointSchemes, EndpointSchemesPeppol, VATPrefixes, MediaTypes,
}

func TestEveryCodeIsFound(t *testing.T) {
	t.Parallel()
	for _, l := range all {
		if len(l.Codes()) < 3 || l.Version() == "" || l.Title() == "" || l.Name() == "" {
			t.Errorf("%s: %d codes, version %q, title %q", l.Name(), len(l.Codes()), l.Version(), l.Title())
		}
		sorted := slices.Clone(l.Codes())
		slices.Sort(sorted)
		if n := len(slices.Compact(sorted)); n != len(l.Codes()) {
			t.Errorf("%s: a code stands twice", l.Name())
		}
		for _, c := range l.Codes() {
			if !l.Has(c) {
				t.Errorf("%s does not have %s", l.Name(), c)
			}
			for _, other := range []string{c + " ", " " + c, c + "\x00", "\x00" + c, c + "_", strings.ToLower(c) + "~"} {
				if l.Has(other) {
					t.Errorf("%s has %q", l.Name(), other)
				}
			}
		}
		if l.Has("") || l.Has("\x00") || l.Has(strings.Repeat("A", 1000)) {
			t.Errorf("%s has what is no code", l.Name())
		}
	}
}

func TestListsDiffer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list *List
		code string
		in   bool
	}{
		{Currencies, "EUR", true}, {Currencies, "eur", false}, {Currencies, "STD", true}, {CurrenciesPeppol, "STD", false}, {CurrenciesPeppol, "STN", true}, {Currencies, "STN", false},
		{Units, "XRO", true}, {Units, "RO", false}, {Units, "C62", true}, {Countries, "GR", true}, {Countries, "EL", false}, {VATPrefixes, "EL", true},
		{VATExemptions, "VATEX-EU-132-1A", true}, {VATExemptions, "vatex-eu-132-1a", false}, {MediaTypes, "application/pdf", true}, {MediaTypes, "application/PDF", false},
		{VATCategories, "B", true}, {VATCategories, "X", false}, {InvoiceTypes, "381", false}, {CreditNoteTypes, "381", true}, {EndpointSchemes, "0088", true},
	} {
		if got := c.list.Has(c.code); got != c.in {
			t.Errorf("%s in %s: %v", c.code, c.list.Name(), got)
		}
	}
}

// TestCorpus compares the lists with those of the conformance corpus.
func TestCorpus(t *testing.T) {
	t.Parallel()
	shared := os.Getenv("EDIHUB_SHARED")
	if shared == "" {
		t.Skip("EDIHUB_SHARED names no folder with the conformance corpus")
	}
	for _, l := range all {
		f, err := os.Open(filepath.Join(shared, "conformance/en16931/codelists", l.Name()+".tsv"))
		if err != nil {
			t.Fatal(err)
		}
		n := -1 // the heading
		for s := bufio.NewScanner(f); s.Scan(); n++ {
			if n >= 0 && !l.Has(s.Text()) {
				t.Errorf("%s does not have %s", l.Name(), s.Text())
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if n != len(l.Codes()) {
			t.Errorf("%s has %d codes, the corpus %d", l.Name(), len(l.Codes()), n)
		}
	}
}

func BenchmarkHas(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if !Units.Has("C62") || Currencies.Has("XYZ") {
			b.Fatal("wrong answer")
		}
	}
}
