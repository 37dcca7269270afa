// Package codes holds the code lists that the rules of EN 16931 and Peppol BIS Billing name, and
// answers whether a code is in one.
package codes

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed lists.txt
var lists string

// The lists. A list whose name ends in Peppol is the one that Peppol BIS Billing uses where it
// differs from that of EN 16931.
var (
	InvoiceTypes          = named("uncl1001-invoice")           // BT-3 of an invoice
	CreditNoteTypes       = named("uncl1001-creditnote")        // BT-3 of a credit note
	InvoiceTypesPeppol    = named("uncl1001-invoice-peppol")    // PEPPOL-EN16931-P0100
	CreditNoteTypesPeppol = named("uncl1001-creditnote-peppol") // PEPPOL-EN16931-P0101
	Currencies            = named("iso4217")
	CurrenciesPeppol      = named("iso4217-peppol")
	TaxPointDates         = named("uncl2005") // BT-8
	References            = named("uncl1153") // scheme of BT-18 and BT-128
	NoteSubjects          = named("uncl4451") // BT-21
	IdentifierSchemes     = named("icd-iso6523")
	Classifications       = named("uncl7143") // scheme of BT-158
	Countries             = named("iso3166-1")
	PaymentMeans          = named("uncl4461") // BT-81
	VATCategories         = named("uncl5305")
	AllowanceReasons      = named("uncl5189")
	ChargeReasons         = named("uncl7161")
	VATExemptions         = named("vatex") // BT-121, in upper case
	Units                 = named("unece-rec20-21")
	EndpointSchemes       = named("eas")
	EndpointSchemesPeppol = named("eas-peppol")
	VATPrefixes           = named("vat-country-prefix")
	MediaTypes            = named("mime")
)

// List is a code list. Its methods may be called at the same time by many.
type List struct {
	name string
	load func() *table
}

// table is a list that was loaded.
type table struct {
	version, title string
	codes          []string
	short          []uint64 // open addressing; codes of at most eight bytes as numbers, 0 is empty
	long           map[string]bool
}

func named(name string) *List {
	return &List{name: name, load: sync.OnceValue(func() *table { return load(name) })}
}

// Name returns the name of the list, as in "iso4217".
func (l *List) Name() string { return l.name }

// Version returns the version of the rules that the list was taken from.
func (l *List) Version() string { return l.load().version }

// Title says what the list is.
func (l *List) Title() string { return l.load().title }

// Codes returns the codes in the order of the list; the caller must not change them.
func (l *List) Codes() []string { return l.load().codes }

// Has reports whether a code is in the list. Case and white space count.
func (l *List) Has(code string) bool {
	t := l.load()
	if len(code) > 8 {
		return t.long[code]
	}
	n := pack(code)
	if n == 0 {
		return false
	}
	mask := len(t.short) - 1
	for i := spread(n) & mask; ; i = (i + 1) & mask {
		if t.short[i] == n {
			return true
		}
		if t.short[i] == 0 {
			return false
		}
	}
}

// pack makes a number of at most eight bytes. A code with a zero byte is none: no list has one,
// and none may look like a shorter code.
func pack(code string) uint64 {
	var n uint64
	for i := range len(code) {
		if code[i] == 0 {
			return 0
		}
		n = n<<8 | uint64(code[i])
	}
	return n
}

func spread(n uint64) int { return int(n * 0x9e3779b97f4a7c15 >> 40) }

// load reads a list out of the text. The text is part of the program: what is wrong with it is a
// fault of the program, which the tests find.
func load(name string) *table {
	_, rest, ok := strings.Cut(lists, "\nlist "+name+" ")
	head, rest, _ := strings.Cut(rest, "\n")
	if !ok {
		panic(fmt.Sprintf("code list %s is not part of the program", name))
	}
	body, _, _ := strings.Cut(rest, "\nlist ")
	t := &table{codes: strings.Fields(body), long: map[string]bool{}}
	t.version, t.title, _ = strings.Cut(head, " ")
	size := 8
	for size < 2*len(t.codes) {
		size *= 2
	}
	t.short = make([]uint64, size)
	for _, c := range t.codes {
		if len(c) > 8 {
			t.long[c] = true
			continue
		}
		i := spread(pack(c)) & (size - 1)
		for t.short[i] != 0 {
			i = (i + 1) & (size - 1)
		}
		t.short[i] = pack(c)
	}
	return t
}
