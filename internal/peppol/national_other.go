package peppol

import (
	"strings"
)

// norwegianRules are those of Norway.
func norwegianRules() []Rule {
	return family("norwegianRules", national(func(inv *Invoice) bool { return inv.nations.seller == "NO" }, []Rule{
		each("NO-R-001", "BT-31", "A Norwegian VAT identifier must be NO, an organisation number and MVA.", allSellers, present, func(inv *Invoice, p *Party, _ *Report) bool {
			for _, t := range p.vatSchemes(inv) {
				s := t.Company.Text
				if strings.HasPrefix(s, "NO") && !(len(s) == 14 && allDigits(s[2:11], 9) && s[11:] == "MVA" && mod11(s[2:11])) {
					return false
				}
			}
			return true
		}),
		each("NO-R-002", "BT-32", "A Norwegian seller should give the words Foretaksregisteret as tax registration.", allSellers, present, func(inv *Invoice, p *Party, _ *Report) bool {
			for _, t := range p.Schemes(inv) {
				if t.Of == p.Node && t.Scheme.Norm() == "TAX" && t.Company.Norm() == "Foretaksregisteret" {
					return true
				}
			}
			return false
		}).warning(),
	})...)
}

// italianRules are those of Italy.
func italianRules() []Rule {
	address := func(id, term, message string, f func(*Address) *Field) Rule {
		return each(id, term, message, allSellers, present, func(_ *Invoice, p *Party, _ *Report) bool { return f(&p.Address).Exists() })
	}
	return family("italianRules", national(func(inv *Invoice) bool { return inv.nations.seller == "IT" }, []Rule{
		whole("IT-R-001", "BT-32", "The tax registration of an Italian seller must have 11 to 16 capital letters or digits.", func(inv *Invoice, r *Report) {
			for i := range inv.Sellers {
				p := &inv.Sellers[i]
				for _, t := range p.Schemes(inv) {
					if t.Of != p.Node || t.Scheme.Norm() == "VAT" {
						continue
					}
					if s := t.Company.Norm(); len(s) < 11 || len(s) > 16 || !all(s, letters[:26]+"0123456789") {
						r.Differ(t.Node, t.Company.Text, "")
					}
				}
			}
		}),
		address("IT-R-002", "BT-35", "The address of an Italian seller has no street.", func(a *Address) *Field { return &a.Street }),
		address("IT-R-003", "BT-37", "The address of an Italian seller has no city.", func(a *Address) *Field { return &a.City }),
		address("IT-R-004", "BT-38", "The address of an Italian seller has no post code.", func(a *Address) *Field { return &a.Zone }),
	})...)
}

// icelandicRules are those of Iceland.
func icelandicRules() []Rule {
	seller := func(inv *Invoice) bool { return inv.Seller().Address.Country.Text == "IS" }
	both := func(inv *Invoice) bool { return seller(inv) && inv.Buyer().Address.Country.Text == "IS" }
	kennitala := func(p *Party) bool { return p.LegalID.Exists() && p.LegalID.Scheme == "0196" }
	located := func(p *Party) bool { return p.Address.Street.Exists() && p.Address.Zone.Exists() }
	isType := func(f *Field) bool { c := f.Norm(); return c == "380" || c == "381" }
	account := func(id, code, message string) Rule {
		return document(id, "BT-84", message, func(inv *Invoice, _ *Report) bool {
			some := false
			for i := range inv.Means {
				m := &inv.Means[i]
				if !m.Top || m.Code.Text != code {
					continue
				}
				some = true
				if m.AccountID.Exists() && runes(m.AccountID.Norm()) == 12 {
					return true
				}
			}
			return !some
		})
	}
	final := func(id, message string, holds func(*Invoice, *Attachment) bool) Rule { // the last day of payment
		return document(id, "BT-122 BT-9", message, func(inv *Invoice, _ *Report) bool {
			for i := range inv.Attachments {
				if a := &inv.Attachments[i]; a.Top && a.Description.Text == "EINDAGI" && !holds(inv, a) {
					return false
				}
			}
			return true
		})
	}
	rules := national(seller, []Rule{
		document("IS-R-001", "BT-3", "The type of an Icelandic document should be 380 or 381.", func(inv *Invoice, _ *Report) bool { return isType(&inv.Type) || isType(&inv.CreditType) }).warning(),
		document("IS-R-002", "BT-30", "An Icelandic seller needs his kennitala, with the scheme 0196.", func(inv *Invoice, _ *Report) bool { return kennitala(inv.Seller()) }),
		document("IS-R-003", "BT-35 BT-38", "The address of an Icelandic seller needs street and post code.", func(inv *Invoice, _ *Report) bool { return located(inv.Seller()) }),
		account("IS-R-006", "9", "The account of payment means 9 must have 12 digits."),
		account("IS-R-007", "42", "The account of payment means 42 must have 12 digits."),
		final("IS-R-008", "The last day of payment (EINDAGI) must be a date as YYYY-MM-DD.", func(_ *Invoice, a *Attachment) bool {
			_, ok := parseDate(a.ID.Text)
			return ok && runes(a.ID.Text) == 10
		}),
		final("IS-R-009", "With a last day of payment (EINDAGI) the due date must be given.", func(inv *Invoice, _ *Attachment) bool { return inv.Due.Exists() }),
		final("IS-R-010", "The due date must not be after the last day of payment (EINDAGI).", func(inv *Invoice, a *Attachment) bool {
			return inv.Due.Exists() && a.ID.Exists() && inv.Due.Text <= a.ID.Text
		}),
	})
	buyer := func(id, terms, message string, holds func(*Party) bool) Rule {
		return whole(id, terms, message, func(inv *Invoice, r *Report) {
			for i := range inv.Buyers {
				if p := &inv.Buyers[i]; p.Top && !holds(p) {
					r.Fail(p.Outer)
				}
			}
		})
	}
	return family("icelandicRules", append(rules, national(both, []Rule{
		buyer("IS-R-004", "BT-47", "An Icelandic buyer needs his kennitala, with the scheme 0196.", kennitala),
		buyer("IS-R-005", "BT-50 BT-53", "The address of an Icelandic buyer needs street and post code.", located),
	})...)...)
}

// dutchRules are those of the Netherlands.
func dutchRules() []Rule {
	seller := func(inv *Invoice) bool { return inv.nations.sellerAddress == "NL" }
	both := func(inv *Invoice) bool { return seller(inv) && inv.nations.buyerAddress == "NL" }
	agent := func(inv *Invoice) bool { return seller(inv) && inv.nations.agentAddress == "NL" }
	address := func(id, terms, message string, role AddressRole) Rule {
		return each(id, terms, message, func(inv *Invoice) []Address { return inv.Addresses }, func(a *Address) bool { return a.Role == role }, func(_ *Invoice, a *Address, _ *Report) bool {
			return a.Street.Exists() && a.City.Exists() && a.Zone.Exists()
		})
	}
	legal := func(id, term, message string, list func(*Invoice) []Party) Rule {
		return whole(id, term, message, func(inv *Invoice, r *Report) {
			for _, p := range list(inv) {
				for _, x := range p.Legals(inv) {
					scheme := " " + x.Scheme + " "
					if !strings.Contains(scheme, " 0106 ") && !strings.Contains(scheme, " 0190 ") || !x.Filled() {
						r.Fail(x.Node)
					}
				}
			}
		})
	}
	rules := national(seller, []Rule{
		whole("NL-R-001", "BT-25", "A Dutch credit note must name the invoice that it is for.", func(inv *Invoice, r *Report) {
			for i := range inv.Billing {
				if b := &inv.Billing[i]; b.Top && b.ID.Exists() {
					return
				}
			}
			for i := range inv.CreditCodes {
				r.Fail(inv.CreditCodes[i].Node)
			}
		}),
		address("NL-R-002", "BT-35 BT-37 BT-38", "The address of a Dutch seller needs street, city and post code.", SellerAddress),
		legal("NL-R-003", "BT-30", "The legal registration of a Dutch seller must be a KVK number or OIN (scheme 0106 or 0190).", allSellers),
		each("NL-R-007", "BG-16", "A Dutch invoice needs payment means.", func(inv *Invoice) []Totals { return inv.Totals }, nil, func(inv *Invoice, t *Totals, r *Report) bool {
			if len(inv.Means) > 0 {
				return true
			}
			d, ok := r.decimal(&t.Payable.Number)
			if inv.CreditNote {
				return ok && d.Sign() >= 0
			}
			return ok && d.Sign() <= 0
		}),
		each("NL-R-009", "BT-132 BT-13", "A reference to an order line needs the number of the order.", func(inv *Invoice) []Field { return inv.OrderLines }, nil, func(inv *Invoice, _ *Field, _ *Report) bool {
			return inv.OrderNumber.Exists()
		}),
	})
	rules = append(rules, national(both, []Rule{
		address("NL-R-004", "BT-50 BT-52 BT-53", "The address of a Dutch buyer needs street, city and post code.", BuyerAddress),
		legal("NL-R-005", "BT-47", "The legal registration of a Dutch buyer must be a KVK number or OIN (scheme 0106 or 0190).", allBuyers),
		each("NL-R-008", "BT-81", "The Netherlands know the payment means 30, 48, 49, 57, 58 and 59 only.", allMeans, nil, func(_ *Invoice, m *Means, _ *Report) bool {
			switch m.Code.Norm() {
			case "30", "48", "49", "57", "58", "59":
				return true
			}
			return false
		}),
	})...)
	return family("dutchRules", append(rules, national(agent, []Rule{
		address("NL-R-006", "BT-64 BT-66 BT-67", "The address of a Dutch tax representative needs street, city and post code.", RepresentativeAddress),
	})...)...)
}
