package peppol

import (
	"math"
	"regexp"
	"strings"
)

var greekDate = regexp.MustCompile(`^(0?[1-9]|[12][0-9]|3[01])[-\\/ ]?(0?[1-9]|1[0-2])[-\\/ ]?(19|20)[0-9]{2}`)

func greek(country string) bool { return country == "GR" || country == "EL" }

// greekRules are those of Greece.
func greekRules() []Rule {
	sender := func(inv *Invoice) bool { return greek(inv.nations.seller) }
	both := func(inv *Invoice) bool { return sender(inv) && greek(inv.nations.buyer) }
	inGreece := func(inv *Invoice) bool { return sender(inv) && inv.Seller().Address.Country.Text == "GR" }
	own := func(inv *Invoice) bool { return greek(inv.nations.own) }
	segment := func(id, message string, holds func(inv *Invoice, s []string) bool) Rule {
		return whole(id, "BT-1", message, func(inv *Invoice, r *Report) {
			if !inv.Number.Exists() {
				return
			}
			var s []string
			if inv.Number.Text != "" {
				s = strings.Split(inv.Number.Text, "|")
			}
			if !holds(inv, s) {
				r.Differ(inv.Number.Node, inv.Number.Text, "")
			}
		})
	}
	named := func(inv *Invoice, p *Party, _ *Report) bool {
		for _, n := range p.Names(inv) {
			if n.Text != "" {
				return true
			}
		}
		return false
	}
	one := func(inv *Invoice, p *Party, _ *Report) bool {
		t := p.vatSchemes(inv)
		count := 0
		for _, s := range t {
			if s.Company.Exists() {
				count++
			}
		}
		return count == 1 && len(t) == 1 && greekVAT(t[0].Company.Text)
	}
	endpoint := func(id, term, message string, list func(*Invoice) []Party) Rule {
		return whole(id, term, message, func(inv *Invoice, r *Report) {
			for i := range list(inv) {
				if e := &list(inv)[i].Endpoint; e.Exists() && !(e.Scheme == "9933" && tin(e.Text)) {
					r.Differ(e.Node, e.Text, "")
				}
			}
		})
	}
	described := func(inv *Invoice, text string) (count int) {
		for i := range inv.Attachments {
			if a := &inv.Attachments[i]; a.Top && a.Description.Text == text {
				count++
			}
		}
		return count
	}
	const mark, url = "##M.AR.K##", "##INVOICE|URL##"
	rules := national(sender, []Rule{
		segment("GR-R-001-1", "A Greek invoice number has six parts with | between.", func(_ *Invoice, s []string) bool { return len(s) == 6 }),
		segment("GR-R-001-2", "The first part of a Greek invoice number is the tax number of the seller or his representative.", greekIssuer),
		segment("GR-R-001-3", "The second part of a Greek invoice number is the date of issue as DD/MM/YYYY.", greekIssueDate),
		segment("GR-R-001-4", "The third part of a Greek invoice number is a number.", func(_ *Invoice, s []string) bool {
			if len(s) < 3 || trimSpace(s[2]) == "" || math.IsNaN(number(s[2])) {
				return false
			}
			n, ok := ParseDecimal(s[2])
			return ok && !strings.Contains(s[2], ".") && n.Sign() >= 0
		}),
		segment("GR-R-001-5", "The fourth part of a Greek invoice number is 1.1, 1.6, 2.1, 2.4, 5.1 or 5.2.", func(_ *Invoice, s []string) bool {
			if len(s) < 4 {
				return false
			}
			switch s[3] {
			case "1.1", "1.6", "2.1", "2.4", "5.1", "5.2":
				return true
			}
			return false
		}),
		segment("GR-R-001-6", "The fifth part of a Greek invoice number is empty.", func(_ *Invoice, s []string) bool { return len(s) > 4 && s[4] != "" }),
		segment("GR-R-001-7", "The sixth part of a Greek invoice number is empty.", func(_ *Invoice, s []string) bool { return len(s) > 5 && s[5] != "" }),
		each("GR-R-002", "BT-28", "A Greek seller needs his full name.", allSellers, present, named),
		each("GR-S-011", "BT-31", "A Greek seller should have one VAT identifier: EL and a tax number.", allSellers, present, one).warning(),
		whole("GR-R-003", "BT-31", "The VAT identifier of a Greek seller must be EL and a tax number.", func(inv *Invoice, r *Report) {
			for i := range inv.Sellers {
				for _, t := range inv.Sellers[i].vatSchemes(inv) {
					if t.Company.Exists() && !greekVAT(t.Company.Text) {
						r.Differ(t.Company.Node, t.Company.Text, "")
					}
				}
			}
		}),
		each("GR-R-005", "BT-45", "The buyer of a Greek seller needs his full name.", allBuyers, present, named),
		whole("GR-R-008-3", "BT-124", "The address of the invoice at its provider is empty.", func(inv *Invoice, r *Report) {
			for i := range inv.Attachments {
				if a := &inv.Attachments[i]; a.Description.Text == url && !a.URI.Filled() {
					r.Fail(a.Node)
				}
			}
		}),
	})
	rules = append(rules, national(inGreece, []Rule{
		document("GR-R-004-1", "BG-24", "A Greek invoice carries the mark of myDATA once.", func(inv *Invoice, _ *Report) bool { return described(inv, mark) == 1 }),
		whole("GR-R-004-2", "BT-122", "The mark of myDATA must be a positive number.", func(inv *Invoice, r *Report) {
			for i := range inv.Attachments {
				if a := &inv.Attachments[i]; a.Description.Text == mark && a.ID.Exists() && (a.ID.Text == "" || a.ID.Text[0] < '1' || a.ID.Text[0] > '9') {
					r.Differ(a.ID.Node, a.ID.Text, "")
				}
			}
		}),
		document("GR-S-008-1", "BG-24", "A Greek invoice should carry the address of the invoice at its provider.", func(inv *Invoice, _ *Report) bool { return described(inv, url) == 1 }).warning(),
		document("GR-R-008-2", "BG-24", "A Greek invoice carries the address of the invoice at its provider at most once.", func(inv *Invoice, _ *Report) bool { return described(inv, url) <= 1 }),
	})...)
	rules = append(rules, national(own, []Rule{
		endpoint("GR-R-009", "BT-34", "The electronic address of a Greek seller must be his tax number in scheme 9933.", allSellers),
	})...)
	return family("greekRules", append(rules, national(both, []Rule{
		each("GR-R-006", "BT-48", "A Greek buyer must have one VAT identifier: EL and a tax number.", allBuyers, present, one),
		endpoint("GR-R-010", "BT-49", "The electronic address of a Greek buyer must be his tax number in scheme 9933.", allBuyers),
	})...)...)
}

// greekVAT reports whether s is EL and a tax number.
func greekVAT(s string) bool { return strings.HasPrefix(s, "EL") && tin(s[2:]) }

// greekIssuer is GR-R-001-2.
func greekIssuer(inv *Invoice, s []string) bool {
	if len(s) < 1 || runes(normalize(s[0])) != 9 || !tin(s[0]) {
		return false
	}
	for _, list := range [][]Party{inv.Sellers, inv.Representatives} {
		for i := range list {
			p := &list[i]
			for _, t := range p.Schemes(inv) {
				if p.Top && t.Of == p.Node && t.Scheme.Text == "VAT" && head(tail(t.Company.Text, 2), 9) == s[0] {
					return true
				}
			}
		}
	}
	return false
}

// greekIssueDate is GR-R-001-3.
func greekIssueDate(inv *Invoice, s []string) bool {
	if len(s) < 2 || !greekDate.MatchString(s[1]) {
		return false
	}
	in, issued := strings.Split(s[1], "/"), strings.Split(inv.Issued.Text, "-")
	return len(in) >= 3 && len(issued) >= 3 && in[0] == issued[2] && in[1] == issued[1] && in[2] == issued[0]
}
