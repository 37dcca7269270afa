package peppol

import (
	"math"
	"strings"
)

func swedish(p *Party) bool { return p.Address.Country.Text == "SE" }

// swedishVAT reports whether a party in Sweden has a Swedish VAT identifier.
func swedishVAT(inv *Invoice, p *Party) bool {
	if !swedish(p) {
		return false
	}
	for _, t := range p.Schemes(inv) {
		if t.Of == p.Node && t.Scheme.Text == "VAT" && head(t.Company.Text, 2) == "SE" {
			return true
		}
	}
	return false
}

func somebody(ps []Party, is func(*Party) bool) bool {
	for i := range ps {
		if is(&ps[i]) {
			return true
		}
	}
	return false
}

func isNumber(s string) bool { return !math.IsNaN(number(s)) }

// swedishRules are those of Sweden.
func swedishRules() []Rule {
	vat := func(id, message string, holds func(company string) bool) Rule {
		return whole(id, "BT-31", message, func(inv *Invoice, r *Report) {
			for i := range inv.Sellers {
				p := &inv.Sellers[i]
				if !swedishVAT(inv, p) {
					continue
				}
				for _, t := range p.Schemes(inv) {
					if t.Of == p.Node && t.Scheme.Text == "VAT" {
						if !holds(t.Company.Text) {
							r.Differ(p.Node, t.Company.Text, "")
						}
						break
					}
				}
			}
		})
	}
	legal := func(id, message string, holds func(*ID) bool) Rule {
		return whole(id, "BT-30", message, func(inv *Invoice, r *Report) {
			for i := range inv.Sellers {
				if p := &inv.Sellers[i]; swedish(p) && p.LegalID.Exists() && !holds(&p.LegalID) {
					r.Differ(p.LegalID.Node, p.LegalID.Text, "")
				}
			}
		})
	}
	giro := func(id, branch, message string, holds func(string) bool) Rule {
		return each(id, "BT-84", message, allMeans, func(m *Means) bool {
			return m.AccountID.Exists() && m.Code.Norm() == "30" && m.BranchID.Norm() == branch
		}, func(_ *Invoice, m *Means, r *Report) bool {
			if !holds(m.AccountID.Norm()) {
				r.Differ(m.AccountID.Node, m.AccountID.Text, "")
			}
			return true // reported
		}).warning()
	}
	seller := func(inv *Invoice) bool { return somebody(inv.Sellers, swedish) }
	rules := []Rule{
		vat("SE-R-001", "A Swedish VAT identifier must have 14 characters.", func(s string) bool { return runes(normalize(s)) == 14 }),
		vat("SE-R-002", "A Swedish VAT identifier must be SE and digits.", func(s string) bool { return isNumber(head(tail(s, 2), 12)) }),
		legal("SE-R-003", "A Swedish organisation number must be digits.", func(id *ID) bool { return isNumber(id.Text) }),
		legal("SE-R-004", "A Swedish organisation number must have ten digits.", func(id *ID) bool { return runes(id.Norm()) == 10 }),
		legal("SE-R-013", "The Swedish organisation number has a wrong check digit.", func(id *ID) bool { return luhn(id.Norm()) }),
		whole("SE-R-005", "BT-32", "The tax registration of a Swedish seller must be the words Godkänd för F-skatt.", func(inv *Invoice, r *Report) {
			for i := range inv.Sellers {
				p := &inv.Sellers[i]
				if !swedish(p) || !p.LegalID.Exists() {
					continue
				}
				for _, t := range p.Schemes(inv) {
					if t.Of == p.Node && !isVAT(t.Scheme.Text) && t.Company.Exists() && normalize(strings.ToUpper(t.Company.Text)) != "GODKÄND FÖR F-SKATT" {
						r.Differ(t.Company.Node, t.Company.Text, "Godkänd för F-skatt")
					}
				}
			}
		}),
		whole("SE-R-006", "BT-152 BT-119", "The standard rates of Sweden are 25, 12 and 6 percent.", func(inv *Invoice, r *Report) {
			if !somebody(inv.Sellers, func(p *Party) bool { return swedishVAT(inv, p) }) {
				return
			}
			for i := range inv.Categories {
				c := &inv.Categories[i]
				if c.ID.Text != "S" {
					continue
				}
				if n := number(c.Percent.Text); n != 25 && n != 12 && n != 6 {
					r.Differ(c.Node, c.Percent.Text, "25, 12, 6")
				}
			}
		}),
	}
	rules = append(rules, national(seller, []Rule{
		giro("SE-R-007", "SE:PLUSGIRO", "A Plusgiro account should be digits.", isNumber),
		giro("SE-R-010", "SE:PLUSGIRO", "A Plusgiro account should have two to eight digits.", func(s string) bool { return runes(s) >= 2 && runes(s) <= 8 }),
		giro("SE-R-008", "SE:BANKGIRO", "A Bankgiro account should be digits.", isNumber),
		giro("SE-R-009", "SE:BANKGIRO", "A Bankgiro account should have seven or eight digits.", func(s string) bool { return runes(s) == 7 || runes(s) == 8 }),
		each("SE-R-011", "BT-81", "For Plusgiro and Bankgiro use payment means 30 with the branch SE:PLUSGIRO or SE:BANKGIRO.", allMeans, nil, func(_ *Invoice, m *Means, _ *Report) bool {
			return m.Code.Text != "50" && m.Code.Text != "56"
		}).warning(),
		each("SE-R-012", "BT-81", "For a domestic transfer use payment means 30.", allMeans, nil, func(inv *Invoice, m *Means, _ *Report) bool {
			return m.Code.Text != "31" || !somebody(inv.Buyers, swedish)
		}).warning(),
	})...)
	return family("swedishRules", rules...)
}
