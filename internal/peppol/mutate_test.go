package peppol

import (
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl"
)

// values that a mutation puts anywhere.
var oddValues = []string{
	"", " ", "0", "1", "-1", "true", "false", "25", "25.000", "-0.005", "1e3", "99999999999999999999999999.99", "0.00000000000000000000001", "NaN", "INF",
	"2026-13-01", "2026-02-28Z", "2026-01-01+14:00", "-0001-01-01", "EUR", "XXX", "S", "AE", " S ", "K", "O", "L", "VAT", "vat", "DE", "DK", "GR", "NL", "0088",
	"9933", "|||||", "#SKONTO#TAGE=1#PROZENT=1.00#\n", "ß€😀", "\t x  y \n", "urn:cen.eu:en16931:2017",
}

// mutateOnce changes one thing: a value, an attribute, or it removes, repeats, moves or reorders.
func mutateOnce(r *rand.Rand, d *elem) {
	var all []*elem
	var collect func(*elem)
	collect = func(e *elem) {
		all = append(all, e)
		for _, k := range e.kids {
			collect(k)
		}
	}
	collect(d)
	x := all[r.IntN(len(all))]
	odd := oddValues[r.IntN(len(oddValues))]
	switch r.IntN(7) {
	case 0:
		x.text, x.kids = odd, nil
	case 1:
		if len(x.attrs) > 0 && x != d {
			x.attrs[r.IntN(len(x.attrs))].Value = odd
		}
	case 2:
		if len(x.attrs) > 0 && x != d {
			x.attrs = x.attrs[1:]
		}
	case 3:
		if x != d {
			x.up.kids = removed(x.up.kids, x)
		}
	case 4:
		if x != d {
			x.up.kids = inserted(x.up.kids, x, x.clone(x.up))
		}
	case 5:
		r.Shuffle(len(x.kids), func(i, j int) { x.kids[i], x.kids[j] = x.kids[j], x.kids[i] })
	case 6: // a copy somewhere else
		if y := all[r.IntN(len(all))]; x != d {
			y.kids = append(y.kids, x.clone(y))
		}
	}
}

// mutated makes the i-th document of the test, always the same.
func mutated(vs []*elem, i int) []byte {
	r := rand.New(rand.NewPCG(16931, uint64(i)))
	d := vs[r.IntN(len(vs))].clone(nil)
	for range 1 + r.IntN(4) {
		mutateOnce(r, d)
	}
	return d.bytes()
}

// TestMutations judges changed documents, one after another and many at the same time: nothing
// may panic, and the verdict may not depend on anything but the document.
func TestMutations(t *testing.T) {
	t.Parallel()
	n := 1000
	if s := os.Getenv("EDIHUB_MUTATIONS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	var vs []*elem
	for _, name := range []string{"", "credit", "AE", "O", "SEK", "debit", "card", "NO", "DK", "IT", "SE", "NL", "DE", "GR", "IS"} {
		vs = append(vs, variants()[name].build(t))
	}
	docs, verdicts := make([][]byte, n), make([]*Verdict, n)
	fired := map[string]bool{}
	for i := range n {
		docs[i] = mutated(vs, i)
		verdicts[i] = bothOrNil(t, docs[i])
		if verdicts[i] == nil {
			continue
		}
		for _, f := range verdicts[i].Findings {
			fired[f.Rule] = true
		}
	}
	var wg sync.WaitGroup
	const workers = 8
	for w := range workers {
		wg.Go(func() {
			for i := n - 1 - w; i >= 0; i -= workers { // in another order, with other documents before
				if v := bothOrNil(t, docs[i]); !reflect.DeepEqual(v, verdicts[i]) {
					t.Errorf("document %d: %v, alone %v", i, v, verdicts[i])
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d documents broke %d rules", n, len(fired))
	if len(fired) < 200 {
		t.Errorf("the mutations broke only %d rules", len(fired))
	}
}

func bothOrNil(t testing.TB, doc []byte) *Verdict {
	v, err := Validate(doc, Options{Sets: Sets(), Exactly: true})
	if err != nil {
		var bad *ubl.XMLError
		if !errors.As(err, &bad) && !errors.Is(err, ubl.ErrNotUBL) {
			t.Errorf("error %v", err)
		}
		return nil
	}
	v.Sets = nil // functions cannot be compared
	return v
}

func FuzzValidate(f *testing.F) {
	f.Add(base(f).bytes())
	f.Add(creditNote(f).bytes())
	for name := range variants() {
		f.Add(variants()[name].build(f).bytes())
	}
	f.Add([]byte("<Invoice xmlns=\"urn:oasis:names:specification:ubl:schema:xsd:Invoice-2\"/>"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := Validate(doc, Options{Sets: Sets(), Exactly: true})
		if err != nil {
			return
		}
		again, err := Validate(doc, Options{Sets: Sets(), Exactly: true})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(v.Findings, again.Findings) {
			t.Errorf("findings %v, then %v", v.Findings, again.Findings)
		}
		for _, x := range v.Findings {
			if x.Rule == "" || x.Message == "" || x.Ruleset == "" || x.Severity != edi.Fatal && x.Severity != edi.Warning {
				t.Errorf("finding %+v", x)
			}
		}
	})
}
