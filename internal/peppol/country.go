package peppol

import "strings"

// vatCountry returns the first two characters of the party's first VAT identifier, or "". The
// reference asks for the scheme VAT without any leniency here.
func (p *Party) vatCountry(inv *Invoice) string {
	schemes := p.Schemes(inv)
	for i := range schemes {
		if t := &schemes[i]; t.Of == p.Node && t.Scheme.Text == "VAT" {
			if c := head(t.Company.Text, 2); c != "" {
				return c
			}
		}
	}
	return ""
}

// vatSchemes returns the party's VAT registrations, whose scheme is VAT when normalised.
func (p *Party) vatSchemes(inv *Invoice) []*TaxScheme {
	var out []*TaxScheme
	schemes := p.Schemes(inv)
	for i := range schemes {
		if t := &schemes[i]; t.Of == p.Node && t.Scheme.Norm() == "VAT" {
			out = append(out, t)
		}
	}
	return out
}

func upperNorm(s string) string { return strings.ToUpper(normalize(s)) }

// nation returns a party's country for the national rules: of its VAT identifier, else of its
// address, else XX. What stands before its own address may be a representative's.
func nation(inv *Invoice, own, representative *Party) string {
	if c := own.vatCountry(inv); c != "" {
		return upperNorm(c)
	}
	if representative != nil {
		if c := representative.vatCountry(inv); c != "" {
			return upperNorm(c)
		}
	}
	if c := &own.Address.Country; c.Exists() {
		return upperNorm(c.Text)
	}
	return "XX"
}

// nations are the countries that decide which national rules apply.
type nations struct {
	seller        string // of the seller or of the representative's VAT identifier
	own           string // of the seller
	buyer         string
	sellerAddress string // in upper case and normalised
	buyerAddress  string
	agentAddress  string
}

func (inv *Invoice) locate() {
	seller, buyer, agent := inv.Seller(), inv.Buyer(), firstTop(inv.Representatives)
	inv.nations = nations{
		seller: nation(inv, seller, agent), own: nation(inv, seller, nil), buyer: nation(inv, buyer, nil),
		sellerAddress: upperNorm(seller.Address.Country.Text), buyerAddress: upperNorm(buyer.Address.Country.Text),
		agentAddress: upperNorm(agent.Address.Country.Text),
	}
}

// german reports whether both addresses are in Germany.
func (inv *Invoice) german() bool {
	return inv.nations.sellerAddress == "DE" && inv.nations.buyerAddress == "DE"
}

// national makes rules that are only judged where the condition holds.
func national(when func(*Invoice) bool, rules []Rule) []Rule {
	for i := range rules {
		if check := rules[i].Document; check != nil {
			rules[i].Document = func(inv *Invoice, r *Report) {
				if when(inv) {
					check(inv, r)
				}
			}
			continue
		}
		holds := rules[i].Line
		rules[i].Line = func(inv *Invoice, l *Line, r *Report) bool { return !when(inv) || holds(inv, l, r) }
	}
	return rules
}

// What rules of many countries are judged for.
func topMeans(m *Means) bool        { return m.Top }
func allMeans(i *Invoice) []Means   { return i.Means }
func allSellers(i *Invoice) []Party { return i.Sellers }
func allBuyers(i *Invoice) []Party  { return i.Buyers }
func present(p *Party) bool         { return p.Node != 0 }
