package peppol

import "github.com/edihub/edihub/internal/peppol/ubl"

// Node names an element of the document that an Invoice was read from; 0 is no element.
type Node = ubl.Node

// Field is a business term as it stands in the document.
type Field struct {
	Text     string // with all white space
	Node     Node   // 0 when the term is absent
	Repeated bool   // further elements of the same name follow where one is expected
}

// Exists reports whether the element is there, if only empty.
func (f *Field) Exists() bool { return f.Node != 0 }

// Norm returns the text with white space cut at the ends and single inside.
func (f *Field) Norm() string { return normalize(f.Text) }

// Filled reports whether there is more than white space in the element.
func (f *Field) Filled() bool { return trimSpace(f.Text) != "" }

// ID is an identifier with its scheme.
type ID struct {
	Field
	Scheme    string
	HasScheme bool
}

// Number is a decimal of the document. OK tells that the text is one; an absent or malformed one
// is not.
type Number struct {
	Field
	Value Decimal
	OK    bool
}

// Amount is a number with the code of its currency.
type Amount struct {
	Number
	Currency    string
	HasCurrency bool
}

// Quantity is a number with the code of its unit.
type Quantity struct {
	Number
	Unit    string
	HasUnit bool
}

// span is a range of one of the Invoice's lists.
type span struct{ from, to int32 }

func (s span) len() int { return int(s.to - s.from) }

// Invoice is a UBL Invoice or CreditNote in the terms of EN 16931-1. It also keeps what the
// model does not foresee but the rules of the reference do look at: groups that are repeated
// and groups at places where the model has none. The lists hold the groups of the whole document
// in document order; Top tells that one stands where the model has it, directly below the
// document element. The strings are parts of the document that was read.
type Invoice struct {
	Source     Source
	Root       Node
	CreditNote bool // the document element is CreditNote

	Customization  Field   // BT-24
	Profile        Field   // BT-23
	Number         Field   // BT-1
	Issued         Field   // BT-2
	Due            Field   // BT-9
	Type           Field   // BT-3 of an invoice
	CreditType     Field   // BT-3 of a credit note
	TaxPoint       Field   // BT-7
	Currencies     []Field // BT-5
	TaxCurrencies  []Field // BT-6
	BuyerReference Field   // BT-10
	OrderNumber    Field   // BT-13
	Notes          int     // BG-1, how many
	Terms          []Field // BT-20

	Sellers         []Party // BG-4
	Buyers          []Party // BG-7
	Payees          []Party // BG-10
	Representatives []Party // BG-11

	Lines       []Line        // BG-25
	Charges     []Charge      // BG-20, BG-21, BG-27, BG-28 and those of prices
	Categories  []TaxCategory // BG-23, BG-30 and those of Charges
	Totals      []Totals      // BG-22
	TaxTotals   []TaxTotal    // BT-110, BT-111
	Subtotals   []Subtotal    // BG-23
	Means       []Means       // BG-16
	Periods     []Period      // BG-14, BG-26
	Deliveries  []Delivery    // BG-13
	Attachments []Attachment  // BG-24
	Billing     []Billing     // BG-3
	TaxSchemes  []TaxScheme   // BT-31, BT-32, BT-48, BT-63
	PartyIDs    []ID          // BT-29, BT-46, BT-60
	LegalIDs    []ID          // BT-30, BT-47
	PartyNames  []Field       // BT-28, BT-45, BT-59, BT-62
	Addresses   []Address     // BG-5, BG-8, BG-12, BG-15
	Properties  []Property    // BG-32

	Amounts     []CurrencyUse // every amount with its currency
	Dates       []Field       // every date
	Identifiers []Identifier  // identifiers that may have a scheme with a check digit
	ItemIDs     []ID          // BT-157
	ItemClasses []ID          // BT-158; the scheme is the list
	Empty       []Node        // elements without children and text
	MIMECodes   []ID          // BT-125-1
	TypeCodes   []Field       // BT-3 of invoices, at any place
	CreditCodes []Field       // BT-3 of credit notes, at any place
	TaxCodes    []TaxCode     // BT-6 at any place
	OrderLines  []Field       // BT-132
	BaseUnits   []BaseUnit    // BT-150 of prices at any place
	CardNumbers []Field       // BT-87
	Abroad      bool          // a country other than IT is named
	someLines   [2]bool       // there are invoice lines, credit note lines
	sums        sums
	nations     nations
	seen        seen
}

// Source answers what reports ask about the elements of the document.
type Source interface {
	Path(Node) string // XPath with positions
	Line(Node) int    // from 1
}

// Party is one of the parties. Seller and buyer are one level deeper in the document than the
// others; Outer is that level.
type Party struct {
	Outer, Node Node // Node is 0 where the inner level is missing
	Top         bool
	Endpoint    ID      // BT-34, BT-49
	Address     Address // BG-5, BG-8, BG-12
	Legal       Node    // the legal entity
	Registered  Field   // BT-27, BT-44
	LegalID     ID      // BT-30, BT-47: the first
	Contact     Contact // BG-6, BG-9
	ids         span
	legals      span
	names       span
	schemes     span
}

// IDs returns the identifiers of the party.
func (p *Party) IDs(inv *Invoice) []ID { return inv.PartyIDs[p.ids.from:p.ids.to] }

// Legals returns all legal registrations of the party.
func (p *Party) Legals(inv *Invoice) []ID { return inv.LegalIDs[p.legals.from:p.legals.to] }

// Names returns the trading names of the party.
func (p *Party) Names(inv *Invoice) []Field { return inv.PartyNames[p.names.from:p.names.to] }

// Schemes returns the tax registrations of the party.
func (p *Party) Schemes(inv *Invoice) []TaxScheme { return inv.TaxSchemes[p.schemes.from:p.schemes.to] }

// AddressRole says whose address one is.
type AddressRole uint8

// Roles of addresses.
const (
	SellerAddress AddressRole = iota + 1
	BuyerAddress
	RepresentativeAddress
	DeliveryAddress
)

// Address is BG-5, BG-8, BG-12 or BG-15. Node is 0 where there is none.
type Address struct {
	Node    Node
	Role    AddressRole
	Top     bool
	Street  Field
	City    Field
	Zone    Field
	Country Field
}

// Contact is BG-6 or BG-9.
type Contact struct {
	Node  Node
	Name  Field
	Phone Field
	Mail  Field
}

// TaxScheme is a tax registration of a party.
type TaxScheme struct {
	Node    Node
	Of      Node // the party
	Company ID
	Scheme  Field // the identifier of the scheme as it stands
	VAT     bool  // the scheme is VAT, in whatever case
}

// Place says what a tax category belongs to.
type Place uint8

// Places of tax categories.
const (
	OtherPlace    Place = iota
	LinePlace           // BG-30
	ChargePlace         // an allowance or charge at any level
	SubtotalPlace       // BG-23
)

// TaxCategory is a VAT category with its rate.
type TaxCategory struct {
	Node       Node
	Place      Place
	Top        bool // of a subtotal: BG-23
	Classified bool // a ClassifiedTaxCategory, wherever it stands
	Code       Category
	VAT        bool // the scheme is VAT, in whatever case
	Owner      int32
	ID         Field
	Percent    Number // BT-119, BT-152, BT-96, BT-103
	Reason     Field  // BT-120
	ReasonCode Field  // BT-121
}

// Level says what an allowance or charge belongs to.
type Level uint8

// Levels of allowances and charges.
const (
	OtherLevel Level = iota
	DocumentLevel
	LineLevel
	PriceLevel
)

// Charge is an allowance or a charge.
type Charge struct {
	Node       Node
	Level      Level
	Proper     bool // of the document or of a proper line
	Kind       ChargeKind
	Indicator  Field
	Amount     Amount
	Base       Amount
	Factor     Number
	Reason     Field
	ReasonCode Field
	Price      Number // of a charge at price level: the price that it belongs to
	categories span
}

// ChargeKind is the value of a charge indicator.
type ChargeKind uint8

// Kinds of charges; UnknownKind is an absent or malformed indicator.
const (
	UnknownKind ChargeKind = iota
	Allowance
	Surcharge
)

// Categories returns the tax categories of the charge.
func (c *Charge) Categories(inv *Invoice) []TaxCategory {
	return inv.Categories[c.categories.from:c.categories.to]
}

// Line is BG-25.
type Line struct {
	Node       Node
	Top        bool
	Proper     bool     // of the kind that belongs to this document, below the document element
	CreditNote bool     // a CreditNoteLine
	ID         Field    // BT-126
	Invoiced   Quantity // BT-129 of an invoice
	Credited   Quantity // BT-129 of a credit note
	Net        Amount   // BT-131
	Name       Field    // BT-153
	Price      Amount   // BT-146, the first
	Base       Quantity // BT-149, the first
	Prices     []Number // BT-146, where there is more than one

	References  int32 // BT-128 and others
	Object      bool  // one of them is an object identifier, type 130
	ListTST     bool  // a classification of UNSPSC
	ListVersion bool  // in one of the versions that Denmark knows
	charges     span
	categories  span
}

// Categories returns the tax categories of the line and of what stands in it.
func (l *Line) Categories(inv *Invoice) []TaxCategory {
	return inv.Categories[l.categories.from:l.categories.to]
}

// Charges returns the allowances and charges of the line, those of its price included.
func (l *Line) Charges(inv *Invoice) []Charge { return inv.Charges[l.charges.from:l.charges.to] }

// Totals is BG-22.
type Totals struct {
	Node         Node
	Top          bool
	Lines        Amount // BT-106
	Allowances   Amount // BT-107
	Charges      Amount // BT-108
	TaxExclusive Amount // BT-109
	TaxInclusive Amount // BT-112
	Prepaid      Amount // BT-113
	Rounding     Amount // BT-114
	Payable      Amount // BT-115
}

// TaxTotal holds the tax in one currency: BT-110 or BT-111.
type TaxTotal struct {
	Node      Node
	Top       bool
	Amount    Amount
	subtotals span
}

// Subtotals returns the breakdown of the total.
func (t *TaxTotal) Subtotals(inv *Invoice) []Subtotal {
	return inv.Subtotals[t.subtotals.from:t.subtotals.to]
}

// Subtotal is BG-23.
type Subtotal struct {
	Node       Node
	Top        bool   // in a total below the document element
	InTotal    bool   // in a total at all
	Taxable    Amount // BT-116
	Tax        Amount // BT-117
	categories span
}

// Categories returns the tax categories of the subtotal.
func (s *Subtotal) Categories(inv *Invoice) []TaxCategory {
	return inv.Categories[s.categories.from:s.categories.to]
}

// Means is BG-16.
type Means struct {
	Node         Node
	Top          bool
	Code         Field // BT-81
	PaymentID    Field // BT-83
	Account      Node  // BG-17
	Unnamed      Node  // an account without identifier
	AccountID    Field // BT-84
	BranchID     Field // BT-86
	Card         Node  // BG-18
	Mandate      Node  // BG-19
	MandateID    Field // BT-89
	DebitAccount Field // BT-91
}

// Period is BG-14 or BG-26.
type Period struct {
	Node     Node
	Top      bool
	InLine   bool  // of a line
	Proper   bool  // of a proper line
	Children bool  // there is something in it
	Start    Field // BT-73, BT-134
	End      Field // BT-74, BT-135
	Code     Field // BT-8
}

// Delivery is BG-13.
type Delivery struct {
	Node    Node
	Top     bool
	Date    Field   // BT-72
	Address Address // BG-15
}

// Attachment is BG-24 or BT-18.
type Attachment struct {
	Node        Node
	Top         bool
	ID          ID     // BT-122
	TypeCode    Field  // 50, 130
	Description Field  // BT-123
	File        string // BT-125-2
	HasFile     bool
	External    Node  // BT-124 with its group
	URI         Field // BT-124
}

// Billing is BG-3.
type Billing struct {
	Node    Node
	Top     bool
	Invoice Node  // the reference to an invoice
	ID      Field // BT-25
}

// Property is BG-32.
type Property struct {
	Node        Node
	Name, Value bool
}

// CurrencyUse is an amount's currency.
type CurrencyUse struct {
	Node     Node
	Currency string
	Has      bool
	Document bool // it has to be the currency of the document
}

// Identifier is an identifier whose scheme may name a check digit.
type Identifier struct {
	ID
	Endpoint bool // an electronic address
	VAT      bool // a VAT identifier
}

// TaxCode is a currency of tax with the currency of the document beside it.
type TaxCode struct {
	Field
	Document Field
}

// BaseUnit is the unit of a base quantity, with the quantity that the price is for.
type BaseUnit struct {
	Node     Node
	Unit     string
	Quantity bool // there is one, invoiced or credited
	Other    string
	HasOther bool
}

// firstTop returns the first party that stands where the model has it.
func firstTop(ps []Party) *Party {
	for i := range ps {
		if ps[i].Top {
			return &ps[i]
		}
	}
	return &noParty
}

var noParty Party

// Seller returns the seller; an empty party where the document has none.
func (inv *Invoice) Seller() *Party { return firstTop(inv.Sellers) }

// Buyer returns the buyer; an empty party where the document has none.
func (inv *Invoice) Buyer() *Party { return firstTop(inv.Buyers) }

// normalize is the XPath function normalize-space.
func normalize(s string) string {
	s = trimSpace(s)
	for i := 0; i < len(s); i++ {
		if isSpace(s[i]) && (s[i] != ' ' || isSpace(s[i+1])) {
			return squeeze(s)
		}
	}
	return s
}

func squeeze(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if !isSpace(s[i]) {
			b = append(b, s[i])
		} else if b[len(b)-1] != ' ' {
			b = append(b, ' ')
		}
	}
	return string(b)
}

func (f *Field) node() Node       { return f.Node }
func (p *Party) node() Node       { return p.Node }
func (l *Line) node() Node        { return l.Node }
func (c *Charge) node() Node      { return c.Node }
func (t *TaxCategory) node() Node { return t.Node }
func (t *Totals) node() Node      { return t.Node }
func (t *TaxTotal) node() Node    { return t.Node }
func (s *Subtotal) node() Node    { return s.Node }
func (m *Means) node() Node       { return m.Node }
func (p *Period) node() Node      { return p.Node }
func (d *Delivery) node() Node    { return d.Node }
func (a *Attachment) node() Node  { return a.Node }
func (b *Billing) node() Node     { return b.Node }
func (t *TaxScheme) node() Node   { return t.Node }
func (a *Address) node() Node     { return a.Node }
func (p *Property) node() Node    { return p.Node }
func (u *BaseUnit) node() Node    { return u.Node }
func (c *CurrencyUse) node() Node { return c.Node }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// runes is the XPath function string-length.
func runes(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i]&0xc0 != 0x80 {
			n++
		}
	}
	return n
}

// head is the XPath function substring from the first character on.
func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// tail is the XPath function substring without the first n characters.
func tail(s string, n int) string { return s[len(head(s, n)):] }
