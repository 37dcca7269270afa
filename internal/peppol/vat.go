package peppol

import (
	"math/big"
)

// parties says which tax identifiers a category asks for.
type parties uint8

const (
	sellerTax         parties = iota // the seller's VAT or tax identifier, or the VAT identifier of his representative
	sellerVAT                        // only VAT identifiers
	sellerAndBuyer                   // the first, and a VAT or legal identifier of the buyer
	sellerAndBuyerVAT                // VAT identifiers of both
	nobodyVAT                        // none at all
)

// identified reports whether the parties of the document are identified as asked.
func (inv *Invoice) identified(p parties) bool {
	s := &inv.seen
	switch p {
	case sellerTax:
		return s.sellerTaxID || s.agentVATID
	case sellerVAT:
		return s.sellerVATID || s.agentVATID
	case sellerAndBuyer:
		return (s.sellerTaxID || s.agentVATID) && (s.buyerVATID || s.buyerLegalID)
	case sellerAndBuyerVAT:
		return (s.sellerVATID || s.agentVATID) && s.buyerVATID
	}
	return !s.sellerVATID && !s.agentVATID && !s.buyerVATID
}

// wantedParties says it in words.
var wantedParties = [...]string{
	sellerTax:         "give the seller's VAT or tax registration identifier or the VAT identifier of the tax representative",
	sellerVAT:         "give the VAT identifier of the seller or of the tax representative",
	sellerAndBuyer:    "give a tax identifier of the seller or his representative and a VAT or legal identifier of the buyer",
	sellerAndBuyerVAT: "give the VAT identifiers of the seller or his representative and of the buyer",
	nobodyVAT:         "leave out the VAT identifiers of seller, representative and buyer",
}

// rate says which VAT rate a category has.
type rate uint8

const (
	zeroRate rate = iota
	positiveRate
	anyRate // zero or more
	noRate
)

var wantedRates = [...]string{
	zeroRate: "the rate must be 0", positiveRate: "the rate must be above 0", anyRate: "the rate must be 0 or more", noRate: "there must be no rate",
}

func (w rate) holds(c *TaxCategory, r *Report) bool {
	switch w {
	case zeroRate:
		d, ok := r.decimal(&c.Percent)
		return ok && d.Sign() == 0
	case positiveRate:
		s, ok := r.sign(&c.Percent)
		return ok && s > 0
	case anyRate:
		s, ok := r.sign(&c.Percent)
		return ok && s >= 0
	}
	return !c.Percent.Exists()
}

// vatFamily is a VAT category with what its rules, which are the same ten for all categories,
// ask for.
type vatFamily struct {
	id      string // as rule ids have it
	code    Category
	name    string
	parties parties
	rate    rate
	byRate  bool // the breakdown has one part for each rate, and tax
	reason  bool // an exemption reason is wanted; otherwise none is allowed

	// breakdown says when rule 01 holds.
	breakdown func(*seen) bool
	// in returns for the rules 02, 03 and 04 whether the category is used, and whether it is in
	// the sense of the exception; in some rules the two differ.
	line, allowance, surcharge func(*seen) (used, excepted bool)
}

// oneBreakdown is rule 01 of most categories: where the category is used at all, the breakdown
// has it exactly once.
func oneBreakdown(c Category) func(*seen) bool {
	return func(s *seen) bool {
		return !(s.otherVAT | s.classifiedVAT).has(c) || s.breakdownCount[c] == 1
	}
}

func lineUse(c Category) func(*seen) (bool, bool) {
	return func(s *seen) (bool, bool) { return s.classifiedVAT.has(c), s.classifiedVAT.has(c) }
}

func chargeUse(c Category, k ChargeKind) func(*seen) (bool, bool) {
	return func(s *seen) (bool, bool) { return s.chargesVAT[k].has(c), s.chargesVAT[k].has(c) }
}

// vatFamilies lists the categories. What differs from the pattern differs in the reference.
func vatFamilies() []vatFamily {
	fs := []vatFamily{
		{id: "S", code: StandardRate, name: "Standard rated", parties: sellerTax, rate: positiveRate, byRate: true},
		{id: "Z", code: ZeroRated, name: "Zero rated", parties: sellerTax, rate: zeroRate},
		{id: "E", code: Exempt, name: "Exempt from VAT", parties: sellerTax, rate: zeroRate, reason: true},
		{id: "AE", code: ReverseCharge, name: "Reverse charge", parties: sellerAndBuyer, rate: zeroRate, reason: true},
		{id: "IC", code: IntraCommunity, name: "Intra-community supply", parties: sellerAndBuyerVAT, rate: zeroRate, reason: true},
		{id: "G", code: Export, name: "Export outside the EU", parties: sellerVAT, rate: zeroRate, reason: true},
		{id: "O", code: NotSubject, name: "Not subject to VAT", parties: nobodyVAT, rate: noRate, reason: true},
		{id: "AF", code: Canary, name: "IGIC", parties: sellerTax, rate: anyRate, byRate: true},
		{id: "AG", code: CeutaMelilla, name: "IPSI", parties: sellerTax, rate: anyRate, byRate: true},
	}
	for i := range fs {
		f := &fs[i]
		f.breakdown, f.line = oneBreakdown(f.code), lineUse(f.code)
		f.allowance, f.surcharge = chargeUse(f.code, Allowance), chargeUse(f.code, Surcharge)
		switch f.code {
		case StandardRate: // the scheme does not matter
			f.breakdown = func(s *seen) bool {
				used := (s.charges[UnknownKind] | s.charges[Allowance] | s.charges[Surcharge] | s.classified).has(StandardRate)
				return used == s.breakdown.has(StandardRate)
			}
			f.line = func(s *seen) (bool, bool) { return s.classifiedVAT.has(StandardRate), s.classified.has(StandardRate) }
		case Canary:
			f.breakdown = func(s *seen) bool {
				if s.chargedVAT().has(Canary) {
					return s.breakdownExact.has(Canary)
				}
				return !s.breakdownVAT.has(Canary)
			}
			f.surcharge = func(s *seen) (bool, bool) {
				return s.chargesVAT[Surcharge].has(Canary), s.chargesVATExact[Surcharge].has(Canary)
			}
		case CeutaMelilla:
			f.breakdown = func(s *seen) bool {
				if s.chargedVAT().has(CeutaMelilla) {
					return s.breakdownVATExact.has(CeutaMelilla)
				}
				return !s.breakdownVAT.has(CeutaMelilla)
			}
		case Export:
			f.allowance = func(s *seen) (bool, bool) {
				return s.charges[Allowance].has(Export), s.chargesVAT[Allowance].has(Export)
			}
			f.surcharge = func(s *seen) (bool, bool) {
				return s.charges[Surcharge].has(Export), s.chargesVAT[Surcharge].has(Export)
			}
		case NotSubject: // only at document level
			f.allowance = func(s *seen) (bool, bool) {
				return s.documentVAT[Allowance].has(NotSubject), s.documentVAT[Allowance].has(NotSubject)
			}
			f.surcharge = func(s *seen) (bool, bool) {
				return s.documentVAT[Surcharge].has(NotSubject), s.documentVAT[Surcharge].has(NotSubject)
			}
		}
	}
	return fs
}

// chargedVAT returns the categories of lines, allowances and charges.
func (s *seen) chargedVAT() categories {
	return s.chargesVAT[UnknownKind] | s.chargesVAT[Allowance] | s.chargesVAT[Surcharge] | s.classifiedVAT
}

// vatRules makes the rules of all categories.
func vatRules() []Rule {
	var rules []Rule
	for _, f := range vatFamilies() {
		rules = append(rules, f.rules()...)
	}
	rules = append(rules, intraCommunityRules()...)
	rules = append(rules, notSubjectRules()...)
	return append(rules, splitPaymentRules()...)
}

// rules makes rules 01 to 10 of a category.
func (f vatFamily) rules() []Rule {
	id := func(n string) string { return "BR-" + f.id + "-" + n }
	what := "VAT category " + f.code.String() + " (" + f.name + "): "
	uses := func(n, terms, where string, use func(*seen) (bool, bool)) Rule {
		return document(id(n), terms, what+"with such "+where+", "+wantedParties[f.parties]+".", func(inv *Invoice, _ *Report) bool {
			used, excepted := use(&inv.seen)
			return used && inv.identified(f.parties) || !excepted
		})
	}
	breakdown := what + "where it is used, the VAT breakdown must have it exactly once."
	if f.byRate {
		breakdown = what + "the VAT breakdown must have it where it is used, and only there."
	}
	return family("vatFamily.rules",
		document(id("01"), "BG-23 BT-118", breakdown, func(inv *Invoice, _ *Report) bool { return f.breakdown(&inv.seen) }),
		uses("02", "BT-31 BT-32 BT-63 BT-48 BT-151", "a line", f.line),
		uses("03", "BT-31 BT-32 BT-63 BT-48 BT-95", "an allowance", f.allowance),
		uses("04", "BT-31 BT-32 BT-63 BT-48 BT-102", "a charge", f.surcharge),
		each(id("05"), "BT-151 BT-152", what+"on a line "+wantedRates[f.rate]+".", allCategories,
			func(c *TaxCategory) bool { return c.Place == LinePlace && c.Code == f.code && c.VAT },
			func(_ *Invoice, c *TaxCategory, r *Report) bool { return f.rate.holds(c, r) }),
		f.chargeRate(id("06"), "BT-95 BT-96", what+"on an allowance "+wantedRates[f.rate]+".", Allowance),
		f.chargeRate(id("07"), "BT-102 BT-103", what+"on a charge "+wantedRates[f.rate]+".", Surcharge),
		f.inBreakdown(id("08"), "BT-116 BT-131 BT-92 BT-99", what+"the taxable amount must be the sum of its lines and charges less its allowances.", f.taxable),
		f.inBreakdown(id("09"), "BT-117 BT-116 BT-119", what+f.wantedTax(), f.tax),
		f.inBreakdown(id("10"), "BT-120 BT-121", what+f.wantedReason(), func(_ *Invoice, _ *Subtotal, c *TaxCategory, _ *Report) bool {
			return (c.Reason.Exists() || c.ReasonCode.Exists()) == f.reason
		}),
	)
}

func (f vatFamily) wantedTax() string {
	if f.byRate {
		return "the tax amount must be the taxable amount times the rate, to less than 1."
	}
	return "the tax amount must be 0."
}

func (f vatFamily) wantedReason() string {
	if f.reason {
		return "the breakdown must give an exemption reason, as text or code."
	}
	return "the breakdown must give no exemption reason."
}

func allCategories(inv *Invoice) []TaxCategory { return inv.Categories }

// chargeRate makes rule 06 or 07.
func (f vatFamily) chargeRate(id, terms, message string, k ChargeKind) Rule {
	return whole(id, terms, message, func(inv *Invoice, r *Report) {
		if !inv.seen.chargesVAT[k].has(f.code) {
			return
		}
		for i := range inv.Categories {
			c := &inv.Categories[i]
			if c.Place != ChargePlace || c.Code != f.code || !c.VAT || inv.Charges[c.Owner].Kind != k {
				continue
			}
			r.fresh()
			if !f.rate.holds(c, r) {
				r.Differ(c.Node, c.Percent.Text, "")
			}
		}
	})
}

// inBreakdown makes a rule that is judged for each part of the breakdown of this category.
func (f vatFamily) inBreakdown(id, terms, message string, holds func(*Invoice, *Subtotal, *TaxCategory, *Report) bool) Rule {
	return whole(id, terms, message, func(inv *Invoice, r *Report) {
		if !inv.seen.breakdownVAT.has(f.code) {
			return
		}
		for i := range inv.Categories {
			c := &inv.Categories[i]
			if !c.Top || c.Code != f.code || !c.VAT {
				continue
			}
			r.fresh()
			if !holds(inv, &inv.Subtotals[c.Owner], c, r) {
				r.Fail(c.Node)
			}
		}
	})
}

// taxable is rule 08.
func (f vatFamily) taxable(inv *Invoice, s *Subtotal, c *TaxCategory, r *Report) bool {
	if f.byRate {
		return f.taxableByRate(inv, s, c, r)
	}
	sum := inv.sum(sumKey{code: f.code}, r)
	amount, ok := r.decimal(&s.Taxable.Number)
	invoice, credit := inv.someLines[0], inv.someLines[1]
	if ok && (invoice && amount.Equal(sum.total(0)) || credit && amount.Equal(sum.total(1))) {
		return true
	}
	return differs(s, c, sum, invoice, r)
}

// differs reports the sum that the taxable amount should be, that of the document's own kind.
func differs(s *Subtotal, c *TaxCategory, sum *sum, invoice bool, r *Report) bool {
	which := 1
	if invoice {
		which = 0
	}
	r.Differ(c.Node, s.Taxable.Text, sum.total(which).String())
	return true // reported
}

// taxableByRate is rule 08 of the categories whose breakdown has a part for each rate. It compares
// to less than 1, and not in decimals: the reference takes 1 from the taxable amount as a double.
func (f vatFamily) taxableByRate(inv *Invoice, s *Subtotal, c *TaxCategory, r *Report) bool {
	percent, ok := r.decimal(&c.Percent)
	if !ok {
		return true
	}
	sum := inv.sum(rateKey(f.code, percent), r)
	invoice, credit := inv.someLines[0], inv.someLines[1]
	if f.code == StandardRate {
		invoice, credit = sum.some[0] || sum.charged, sum.some[1] || sum.charged
	}
	if s.Taxable.Exists() && !s.Taxable.OK {
		if _, ok := parseDouble(s.Taxable.Text); !ok {
			r.spoil(s.Taxable.Node, badDecimal)
		}
		return false
	}
	if s.Taxable.OK && (invoice && withinOne(&s.Taxable.Number, sum.total(0)) || credit && withinOne(&s.Taxable.Number, sum.total(1))) {
		return true
	}
	return differs(s, c, sum, invoice, r)
}

var (
	almostOne = DecimalFromInt(999, 3)
	beyondOne = DecimalFromInt(1001, 3)
	huge      = DecimalFromInt(1_000_000_000, 0)
)

// withinOne reports whether n - 1 < sum < n + 1, where n ± 1 is computed in xs:double.
func withinOne(n *Number, sum Decimal) bool {
	diff := n.Value.Sub(sum).Abs()
	if n.Value.Abs().Cmp(huge) < 0 { // the error of the double is far below a thousandth
		switch {
		case diff.Cmp(almostOne) < 0:
			return true
		case diff.Cmp(beyondOne) > 0:
			return false
		}
	}
	f, ok := parseDouble(n.Text)
	if !ok {
		return false
	}
	low, high := new(big.Rat).SetFloat64(f-1), new(big.Rat).SetFloat64(f+1)
	return low != nil && high != nil && low.Cmp(sum.Rat()) < 0 && high.Cmp(sum.Rat()) > 0
}

// tax is rule 09.
func (f vatFamily) tax(_ *Invoice, s *Subtotal, c *TaxCategory, r *Report) bool {
	tax, ok := r.decimal(&s.Tax.Number)
	if !f.byRate {
		return ok && tax.Sign() == 0
	}
	taxable, ok2 := r.decimal(&s.Taxable.Number)
	percent, ok3 := r.decimal(&c.Percent)
	if !ok || !ok2 || !ok3 {
		return false
	}
	want := taxable.Abs().Mul(percent.Percent()).Round(2)
	if near(tax.Abs(), want) {
		return true
	}
	r.Differ(c.Node, s.Tax.Text, want.String())
	return true // reported
}

// near reports whether the numbers differ by less than 1.
func near(a, b Decimal) bool { return a.Sub(b).Abs().Cmp(one) < 0 }

var one = DecimalFromInt(1, 0)

// intraCommunityRules are the two rules that only category K has.
func intraCommunityRules() []Rule {
	used := func(inv *Invoice) bool { return inv.seen.breakdownCount[IntraCommunity] > 0 }
	return family("intraCommunityRules",
		document("BR-IC-11", "BT-72 BG-14 BG-26", "An intra-community supply needs the date of delivery or the invoicing period.", func(inv *Invoice, r *Report) bool {
			if !used(inv) {
				return true
			}
			dates := 0
			for i := range inv.Deliveries {
				if d := &inv.Deliveries[i]; d.Top && d.Date.Exists() {
					if dates++; dates > 1 {
						r.spoil(d.Date.Node, badRepeated)
					} else if runes(d.Date.Text) > 1 {
						return true
					}
				}
			}
			for i := range inv.Periods {
				if inv.Periods[i].Top && inv.Periods[i].Children {
					return true
				}
			}
			return false
		}),
		document("BR-IC-12", "BT-80", "An intra-community supply needs the country that the goods are delivered to.", func(inv *Invoice, _ *Report) bool {
			if !used(inv) {
				return true
			}
			for i := range inv.Deliveries {
				if d := &inv.Deliveries[i]; d.Top && runes(d.Address.Country.Text) > 1 {
					return true
				}
			}
			return false
		}),
	)
}

// notSubjectRules are the rules that only category O has: it stands alone.
func notSubjectRules() []Rule {
	alone := func(id, terms, where string, others func(*seen) bool) Rule {
		return document(id, terms, "With VAT category O (Not subject to VAT) in the breakdown, "+where+" may have no other category.", func(inv *Invoice, _ *Report) bool {
			return inv.seen.breakdownCount[NotSubject] == 0 || !others(&inv.seen)
		})
	}
	return family("notSubjectRules",
		alone("BR-O-11", "BG-23", "the breakdown", func(s *seen) bool { return s.breakdownVAT.others(NotSubject) }),
		alone("BR-O-12", "BG-25 BT-151", "lines", func(s *seen) bool { return s.classifiedVAT.others(NotSubject) }),
		alone("BR-O-13", "BG-20 BT-95", "allowances", func(s *seen) bool { return s.chargesVAT[Allowance].others(NotSubject) }),
		alone("BR-O-14", "BG-21 BT-102", "charges", func(s *seen) bool { return s.chargesVAT[Surcharge].others(NotSubject) }),
	)
}

// splitPaymentRules are those of category B, which is Italian.
func splitPaymentRules() []Rule {
	return family("splitPaymentRules",
		document("BR-B-01", "BT-118 BT-151 BT-95 BT-102", "VAT category B (Split payment) is for invoices within Italy.", func(inv *Invoice, _ *Report) bool {
			return !(inv.seen.otherExact | inv.seen.classifiedExact).has(SplitPayment) || !inv.Abroad
		}),
		document("BR-B-02", "BT-118 BT-151 BT-95 BT-102", "VAT category B (Split payment) cannot stand beside category S.", func(inv *Invoice, _ *Report) bool {
			s := inv.seen.breakdownExact | inv.seen.documentExact | inv.seen.classifiedExact
			return !s.has(SplitPayment) || !s.has(StandardRate)
		}),
	)
}
