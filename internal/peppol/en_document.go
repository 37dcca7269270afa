package peppol

import (
	"strings"
	"sync"

	"github.com/edihub/edihub/internal/peppol/codes"
)

// documentRules are those of EN 16931-1 about the document as a whole.
func documentRules() []Rule {
	filled := func(id, term, message string, f func(*Invoice) *Field) Rule {
		return document(id, term, message, func(inv *Invoice, r *Report) bool { return r.single(f(inv)) && f(inv).Filled() })
	}
	return family("documentRules",
		filled("BR-01", "BT-24", "The document names no specification (CustomizationID).", func(inv *Invoice) *Field { return &inv.Customization }),
		filled("BR-02", "BT-1", "The document has no number.", func(inv *Invoice) *Field { return &inv.Number }),
		filled("BR-03", "BT-2", "The document has no date of issue.", func(inv *Invoice) *Field { return &inv.Issued }),
		document("BR-04", "BT-3", "The document has no type code.", func(inv *Invoice, r *Report) bool {
			return r.single(&inv.Type) && inv.Type.Filled() || r.single(&inv.CreditType) && inv.CreditType.Filled()
		}),
		document("BR-05", "BT-5", "The document has no currency.", func(inv *Invoice, r *Report) bool {
			if len(inv.Currencies) > 1 {
				r.spoil(inv.Currencies[1].Node, badRepeated)
			}
			return len(inv.Currencies) > 0 && inv.Currencies[0].Filled()
		}),
		document("BR-06", "BT-27", "The seller has no name.", func(inv *Invoice, r *Report) bool { return named(inv.Sellers, r) }),
		document("BR-07", "BT-44", "The buyer has no name.", func(inv *Invoice, r *Report) bool { return named(inv.Buyers, r) }),
		document("BR-08", "BG-5", "The seller has no postal address.", func(inv *Invoice, _ *Report) bool { return addressed(inv.Sellers) }),
		document("BR-10", "BG-8", "The buyer has no postal address.", func(inv *Invoice, _ *Report) bool { return addressed(inv.Buyers) }),
		document("BR-16", "BG-25", "The document has no line.", func(inv *Invoice, _ *Report) bool {
			for i := range inv.Lines {
				if inv.Lines[i].Top {
					return true
				}
			}
			return false
		}),
		document("BR-53", "BT-6 BT-111", "The document has a currency of tax, but no total of tax in it.", taxInCurrency),
		document("BR-CO-03", "BT-7 BT-8", "The tax point stands as a date and as a code; give one of them.", func(inv *Invoice, _ *Report) bool {
			if !inv.TaxPoint.Exists() {
				return true
			}
			for i := range inv.Periods {
				if inv.Periods[i].Top && inv.Periods[i].Code.Exists() {
					return false
				}
			}
			return true
		}),
		document("BR-CO-18", "BG-23", "The document has no VAT breakdown.", func(inv *Invoice, _ *Report) bool {
			for i := range inv.Subtotals {
				if inv.Subtotals[i].Top {
					return true
				}
			}
			return false
		}),
	)
}

// named reports whether one of the parties where the model has them is registered under a name.
func named(ps []Party, r *Report) bool {
	found := false
	for i := range ps {
		if p := &ps[i]; p.Top && p.Registered.Exists() {
			if found {
				r.spoil(p.Registered.Node, badRepeated)
			}
			found = true
			if !r.single(&p.Registered) || !p.Registered.Filled() {
				return false
			}
		}
	}
	return found
}

func addressed(ps []Party) bool {
	for i := range ps {
		if ps[i].Top && ps[i].Address.Node != 0 {
			return true
		}
	}
	return false
}

func taxInCurrency(inv *Invoice, _ *Report) bool {
	if len(inv.TaxCurrencies) == 0 {
		return true
	}
	totals := map[string]bool{}
	for i := range inv.TaxTotals {
		if a := &inv.TaxTotals[i].Amount; a.HasCurrency {
			totals[a.Currency] = true
		}
	}
	for i := range inv.TaxCurrencies {
		if !totals[inv.TaxCurrencies[i].Text] {
			return false
		}
	}
	return true
}

// partyRules are those about seller, buyer, payee and representative.
func partyRules() []Rule {
	sellers := func(inv *Invoice) []Party { return inv.Sellers }
	buyers := func(inv *Invoice) []Party { return inv.Buyers }
	agents := func(inv *Invoice) []Party { return inv.Representatives }
	addresses := func(inv *Invoice) []Address { return inv.Addresses }
	role := func(w AddressRole) func(*Address) bool { return func(a *Address) bool { return a.Role == w } }
	country := func(_ *Invoice, a *Address, r *Report) bool { return r.single(&a.Country) && a.Country.Filled() }
	scheme := func(id, terms, message string, list func(*Invoice) []Party) Rule {
		return whole(id, terms, message, func(inv *Invoice, r *Report) {
			for _, p := range list(inv) {
				if e := &p.Endpoint; e.Exists() && !e.HasScheme {
					r.Fail(e.Node)
				}
			}
		})
	}
	return family("partyRules",
		each("BR-09", "BT-40", "The seller's address has no country.", addresses, role(SellerAddress), country),
		each("BR-11", "BT-55", "The buyer's address has no country.", addresses, role(BuyerAddress), country),
		each("BR-20", "BT-69", "The tax representative's address has no country.", addresses, role(RepresentativeAddress), country),
		each("BR-57", "BT-80", "The address of delivery has no country.", addresses, role(DeliveryAddress), func(_ *Invoice, a *Address, _ *Report) bool { return a.Country.Exists() }),
		whole("BR-17", "BT-59", "The payee needs a name, and neither name nor identifier may be the seller's.", payees),
		each("BR-18", "BT-62", "The tax representative has no name.", agents, nil, func(inv *Invoice, p *Party, r *Report) bool {
			names := p.Names(inv)
			if len(names) > 1 {
				r.spoil(names[1].Node, badRepeated)
			}
			return len(names) > 0 && names[0].Filled()
		}),
		each("BR-19", "BG-12", "The tax representative has no postal address.", agents, nil, func(_ *Invoice, p *Party, _ *Report) bool { return p.Address.Node != 0 }),
		each("BR-56", "BT-63", "The tax representative has no VAT identifier.", agents, nil, func(inv *Invoice, p *Party, _ *Report) bool { return p.registered(inv, true) }),
		scheme("BR-62", "BT-34", "The seller's electronic address has no scheme.", sellers),
		scheme("BR-63", "BT-49", "The buyer's electronic address has no scheme.", buyers),
		whole("BR-CO-26", "BT-29 BT-30 BT-31", "The seller needs an identifier: his own, a legal or a VAT identifier.", sellerIdentified),
		each("BR-CO-09", "BT-31 BT-48 BT-63", "A VAT identifier must begin with the code of its country.", func(inv *Invoice) []TaxScheme { return inv.TaxSchemes },
			func(t *TaxScheme) bool { return t.VAT },
			func(_ *Invoice, t *TaxScheme, r *Report) bool {
				prefix := head(t.Company.Text, 2)
				if vatPrefix(prefix) {
					return true
				}
				r.Differ(t.Node, t.Company.Text, "")
				return true // reported
			}),
	)
}

// vatPrefixes is the list in the form in which the reference searches it: with blanks around.
var vatPrefixes = sync.OnceValue(func() string { return " " + strings.Join(codes.VATPrefixes.Codes(), " ") + " " })

// vatPrefix reports whether the first two characters of a VAT identifier are found in the list.
// Less than two characters are found as parts of a code, and so is nothing at all.
func vatPrefix(p string) bool {
	if len(p) == 2 && p[0] != ' ' && p[1] != ' ' {
		return codes.VATPrefixes.Has(p)
	}
	return strings.Contains(vatPrefixes(), p)
}

// payees is BR-17.
func payees(inv *Invoice, r *Report) {
	if len(inv.Payees) == 0 {
		return
	}
	names, ids := map[string]bool{}, map[string]bool{}
	for i := range inv.Sellers {
		s := &inv.Sellers[i]
		if !s.Top {
			continue
		}
		for _, n := range s.Names(inv) {
			names[n.Text] = true
		}
		for _, id := range s.IDs(inv) {
			ids[id.Text] = true
		}
	}
	for i := range inv.Payees {
		p := &inv.Payees[i]
		bad := len(p.Names(inv)) == 0
		for _, n := range p.Names(inv) {
			bad = bad || p.Top && names[n.Text]
		}
		for _, id := range p.IDs(inv) {
			bad = bad || p.Top && ids[id.Text]
		}
		if bad {
			r.Fail(p.Node)
		}
	}
}

// sellerIdentified is BR-CO-26. A creditor's identifier for SEPA identifies nobody.
func sellerIdentified(inv *Invoice, r *Report) {
	for i := 0; i < len(inv.Sellers); {
		outer, found := inv.Sellers[i].Outer, false
		for ; i < len(inv.Sellers) && inv.Sellers[i].Outer == outer; i++ {
			p := &inv.Sellers[i]
			found = found || p.registered(inv, true) || p.LegalID.Exists()
			for _, id := range p.IDs(inv) {
				found = found || !id.HasScheme || id.Scheme != "SEPA"
			}
		}
		if !found {
			r.Fail(outer)
		}
	}
}

// paymentRules are those about payment.
func paymentRules() []Rule {
	means := func(inv *Invoice) []Means { return inv.Means }
	return family("paymentRules",
		each("BR-49", "BT-81", "The payment means have no code.", means, nil, func(_ *Invoice, m *Means, _ *Report) bool { return m.Code.Exists() }),
		whole("BR-50", "BT-84", "A credit transfer needs the identifier of the account.", func(inv *Invoice, r *Report) {
			for i := range inv.Means {
				if m := &inv.Means[i]; m.Unnamed != 0 && (m.Code.Text == "30" || m.Code.Text == "58") {
					r.Fail(m.Unnamed)
				}
			}
		}),
		each("BR-51", "BT-87", "A card number shows at most its first six and last four digits.", func(inv *Invoice) []Field { return inv.CardNumbers }, nil,
			func(_ *Invoice, f *Field, _ *Report) bool { return runes(f.Norm()) <= 10 }).warning(),
		each("BR-61", "BT-84", "A credit transfer needs an account.", means, nil, func(_ *Invoice, m *Means, r *Report) bool {
			if !r.single(&m.Code) {
				return true
			}
			code := m.Code.Norm()
			return code != "30" && code != "58" || m.AccountID.Exists()
		}),
	)
}

// referenceRules are those about other documents, periods and item attributes.
func referenceRules() []Rule {
	periods := func(inv *Invoice) []Period { return inv.Periods }
	ofLine := func(p *Period) bool { return p.InLine }
	ofDocument := func(p *Period) bool { return !p.InLine }
	ids := func(id, term, message string, list func(*Invoice) []ID) Rule {
		return whole(id, term, message, func(inv *Invoice, r *Report) {
			for i := range list(inv) {
				if x := &list(inv)[i]; !x.HasScheme {
					r.Fail(x.Node)
				}
			}
		})
	}
	return family("referenceRules",
		each("BR-29", "BT-73 BT-74", "The invoicing period ends before it begins.", periods, ofDocument, periodInOrder),
		each("BR-30", "BT-134 BT-135", "The period of the line ends before it begins.", periods, ofLine, periodInOrder),
		each("BR-CO-19", "BG-14", "The invoicing period needs a first or a last day, or a code for the tax point.", periods, ofDocument, func(_ *Invoice, p *Period, _ *Report) bool {
			return p.Start.Exists() || p.End.Exists() || p.Code.Exists()
		}),
		each("BR-CO-20", "BG-26", "The period of the line needs a first or a last day.", periods, ofLine, func(_ *Invoice, p *Period, _ *Report) bool {
			return p.Start.Exists() || p.End.Exists()
		}),
		each("BR-52", "BT-122", "The supporting document has no reference.", func(inv *Invoice) []Attachment { return inv.Attachments }, nil, func(_ *Invoice, a *Attachment, r *Report) bool {
			return r.single(&a.ID.Field) && a.ID.Filled()
		}),
		each("BR-54", "BT-160 BT-161", "An item attribute needs a name and a value.", func(inv *Invoice) []Property { return inv.Properties }, nil, func(_ *Invoice, p *Property, _ *Report) bool {
			return p.Name && p.Value
		}),
		each("BR-55", "BT-25", "The reference to a preceding invoice has no number.", func(inv *Invoice) []Billing { return inv.Billing }, nil, func(_ *Invoice, b *Billing, _ *Report) bool {
			return b.ID.Exists()
		}),
		ids("BR-64", "BT-157", "The standard identifier of an item has no scheme.", func(inv *Invoice) []ID { return inv.ItemIDs }),
		ids("BR-65", "BT-158", "The classification of an item names no list.", func(inv *Invoice) []ID { return inv.ItemClasses }),
	)
}

func periodInOrder(_ *Invoice, p *Period, r *Report) bool {
	if !p.Start.Exists() || !p.End.Exists() {
		return true
	}
	start, ok := r.date(&p.Start)
	end, ok2 := r.date(&p.End)
	return ok && ok2 && !end.before(start)
}
