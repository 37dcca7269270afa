package peppol

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func dec(t testing.TB, s string) Decimal {
	t.Helper()
	d, ok := ParseDecimal(s)
	if !ok {
		t.Fatalf("%q is a decimal", s)
	}
	return d
}

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0": "0", "1.50": "1.50", "+1": "1", "-.5": "-0.5", "5.": "5", " 12\n": "12", "007": "7", "-0.00": "0.00",
		"9223372036854775807": "9223372036854775807", "9223372036854775808": "9223372036854775808",
		"-123456789012345678901234567890.123": "-123456789012345678901234567890.123",
	} {
		if got := dec(t, in).String(); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{"", " ", ".", "-", "1e3", "1,5", "1.2.3", "NaN", "INF", "0x1", "1 2", "٣", strings.Repeat("9", maxDigits+1)} {
		if d, ok := ParseDecimal(in); ok {
			t.Errorf("%q must not be a decimal, is %s", in, d)
		}
	}
}

// TestRound pins the direction of halves (XPath and XQuery Functions §6.4.4).
func TestRound(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"0.005", "0.01"}, {"-0.005", "0.00"}, {"-0.006", "-0.01"}, {"-0.015", "-0.01"}, {"2.5", "2.5"}, {"1.2349", "1.23"}, {"1.235", "1.24"}, {"-1.235", "-1.23"},
		{"12345678901234567890.125", "12345678901234567890.13"}, {"-12345678901234567890.125", "-12345678901234567890.12"},
	} {
		if got := dec(t, c[0]).Round(2).String(); got != c[1] {
			t.Errorf("round(%s) is %s, want %s", c[0], got, c[1])
		}
	}
	if got := dec(t, "-2.5").Round(0).String(); got != "-2" {
		t.Errorf("round(-2.5) is %s", got)
	}
}

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"1", "3", "0.333333333333333333"}, {"2", "3", "0.666666666666666667"}, {"-2", "3", "-0.666666666666666667"}, {"10", "4", "2.5"}, {"7", "1", "7"}, {"7", "-1", "-7"},
		{"1", "7000", "0.000142857142857143"}, {"100", "0.3", "333.333333333333333333"},
	} {
		if q, ok := dec(t, c[0]).Div(dec(t, c[1])); !ok || q.String() != c[2] {
			t.Errorf("%s / %s is %s, want %s", c[0], c[1], q, c[2])
		}
	}
	if _, ok := one.Div(Decimal{}); ok {
		t.Error("division by zero")
	}
}

// TestDecimalAgainstBig compares the arithmetic with that of math/big, over the border of 64 bits.
func TestDecimalAgainstBig(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[0-9]{1,22}(\.[0-9]{1,22})?`)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		x, ok := ParseDecimal(a)
		y, ok2 := ParseDecimal(b)
		if !ok || !ok2 {
			t.Fatalf("%q or %q is no decimal", a, b)
		}
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		for name, c := range map[string]struct {
			got  Decimal
			want *big.Rat
		}{
			"add": {x.Add(y), new(big.Rat).Add(p, q)}, "sub": {x.Sub(y), new(big.Rat).Sub(p, q)}, "mul": {x.Mul(y), new(big.Rat).Mul(p, q)},
			"abs": {x.Abs(), new(big.Rat).Abs(p)}, "percent": {x.Percent(), new(big.Rat).Quo(p, big.NewRat(100, 1))}, "reduce": {x.reduce(), p},
		} {
			if c.got.Rat().Cmp(c.want) != 0 {
				t.Errorf("%s of %s and %s is %s, want %s", name, a, b, c.got, c.want.FloatString(50))
			}
		}
		if x.Cmp(y) != p.Cmp(q) || x.Sign() != p.Sign() {
			t.Errorf("%s against %s: %d, sign %d", a, b, x.Cmp(y), x.Sign())
		}
		r := x.Round(2).Rat() // x - r is in [-0.005, 0.005)
		diff := new(big.Rat).Sub(p, r)
		if half := big.NewRat(5, 1000); diff.Cmp(half) >= 0 || diff.Cmp(new(big.Rat).Neg(half)) < 0 {
			t.Errorf("round of %s is %s", a, x.Round(2))
		}
	})
}

func TestDecimalsOfInvoicesAllocateNothing(t *testing.T) {
	a, b := dec(t, "123456.78"), dec(t, "0.21")
	if n := testing.AllocsPerRun(100, func() {
		_ = a.Mul(b).Round(2).Add(a).Sub(b).Cmp(a)
		_, _ = ParseDecimal("98765432.10")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWithinOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		taxable, sum string
		want         bool
	}{
		{"100.00", "100.99", true}, {"100.00", "101.00", false}, {"100.00", "99.00", false}, {"100.00", "99.01", true}, {"100.00", "250", false},
		// In xs:double 8.1 - 1 is a little less than 7.1, 1.1 - 1 a little more than 0.1, and 1e16 ± 1 is 1e16.
		{"8.1", "7.1", true}, {"1.1", "0.1", false}, {"10000000000000000", "10000000000000000", false},
	} {
		n := Number{Field: Field{Text: c.taxable, Node: 1}, Value: dec(t, c.taxable), OK: true}
		if got := withinOne(&n, dec(t, c.sum)); got != c.want {
			t.Errorf("%s and %s: %v", c.taxable, c.sum, got)
		}
	}
}

func TestParseDate(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"2026-02-28", "2024-02-29", "2000-02-29", "2026-12-31Z", "2026-01-01+14:00", "2026-01-01-05:30", " 2026-01-01 ", "-0044-03-15", "12026-01-01"} {
		if _, ok := parseDate(s); !ok {
			t.Errorf("%q is a date", s)
		}
	}
	for _, s := range []string{"", "2026-02-29", "1900-02-29", "2026-13-01", "2026-00-01", "2026-1-1", "26-01-01", "2026-01-01T00:00:00", "2026-01-01+15:00", "20260101", "0000-01-01", "02026-01-01", "2026-01-01+1:00", "2026/01/01"} {
		if _, ok := parseDate(s); ok {
			t.Errorf("%q is no date", s)
		}
	}
	order := []string{"-0044-03-15", "1999-12-31", "2000-01-01", "2026-01-01+02:00", "2026-01-01", "2026-01-01-02:00", "2026-01-02+14:00", "2026-03-01", "10000-01-01"}
	for i := 1; i < len(order); i++ {
		a, _ := parseDate(order[i-1])
		b, _ := parseDate(order[i])
		if !a.before(b) || b.before(a) {
			t.Errorf("%s and %s", order[i-1], order[i])
		}
	}
}

func TestCheckDigits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check     func(string) bool
		good, bad []string
	}{
		"GLN":        {gln, []string{"7300010000001", "4006381333931"}, []string{"7300010000002", "", "73000100000O1", "4006381333930"}},
		"mod 11":     {mod11, []string{"974760673"}, []string{"974760674", "000000000", "", "97476067X"}},
		"mod 97":     {mod97, []string{"0123456749", "0202239951"}, []string{"0202239950", "020223995", "020223995X"}},
		"Luhn":       {luhn, []string{"5560360793", "5560160680"}, []string{"5560360794", "556036079", "55603607XX"}},
		"ABN":        {abn, []string{"51824753556"}, []string{"51824753557", "5182475355"}},
		"TIN":        {tin, []string{"123456783", "1234567830"}, []string{"123456789", "12345678", "12345678X"}},
		"IPA":        {codiceIPA, []string{"ABC123"}, []string{"ABC12", "ABC-12"}},
		"CF":         {codiceFiscale, []string{"RSSMRA85T10A562S", "12345678901"}, []string{"RSSMRA85T10A5621", "1234567890", "1234567890X"}},
		"IVA":        {partitaIVA, []string{"IT00743110157", "FR1"}, []string{"IT00743110158", "IT1", "it1234567890X"}},
		"IBAN":       {iban, []string{"DE89370400440532013000", "GB82WEST12345698765432"}, []string{"DE88370400440532013000", "D189370400440532013000", "DE8", "DE89 3704"}},
		"Dutch VAT":  {dutchVAT, []string{"NL123456789B01"}, []string{"NL123456789X01", "NL12345678B01"}},
		"Danish VAT": {danish, []string{"DK12345678"}, []string{"DK1234567", "SE12345678"}},
	} {
		for _, s := range c.good {
			if !c.check(s) {
				t.Errorf("%s: %q is right", name, s)
			}
		}
		for _, s := range c.bad {
			if c.check(s) {
				t.Errorf("%s: %q is wrong", name, s)
			}
		}
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "  ": "", "a": "a", " a  b\n\tc ": "a b c", "a b": "a b", "a\tb": "a b", "ä  ö": "ä ö"} {
		if got := normalize(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if head("äöü", 2) != "äö" || tail("äöü", 2) != "ü" || head("a", 5) != "a" || tail("a", 5) != "" || runes("ä€😀") != 3 {
		t.Error("characters are not bytes")
	}
}
