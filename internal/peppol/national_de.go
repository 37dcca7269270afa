package peppol

import (
	"regexp"
	"strings"
)

var (
	cashDiscount = regexp.MustCompile(`(?:^|\r?\n)#SKONTO#TAGE=[0-9]+#PROZENT=[0-9]+\.[0-9]{2}(?:#BASISBETRAG=-?[0-9]+\.[0-9]{2})?#$`)
	discountMark = regexp.MustCompile(`#.+#`)
	mailAddress  = regexp.MustCompile(`^[^@ \t\r\n]+@([^@. \t\r\n]+\.)+[^@. \t\r\n]+$`)
	absoluteURL  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]+:`)
)

// germanRules are those for invoices within Germany.
func germanRules() []Rule {
	fill := func(id, term, message string, role AddressRole, f func(*Address) *Field) Rule {
		return each(id, term, message, func(inv *Invoice) []Address { return inv.Addresses }, func(a *Address) bool { return a.Top && a.Role == role },
			func(_ *Invoice, a *Address, _ *Report) bool { return f(a).Filled() })
	}
	city := func(a *Address) *Field { return &a.City }
	zone := func(a *Address) *Field { return &a.Zone }
	contact := func(id, term, message string, holds func(*Contact) bool) Rule {
		return whole(id, term, message, func(inv *Invoice, r *Report) {
			for i := range inv.Sellers {
				if p := &inv.Sellers[i]; p.Top && p.Contact.Node != 0 && !holds(&p.Contact) {
					r.Fail(p.Contact.Node)
				}
			}
		})
	}
	means := func(id, term, message string, holds func(*Means) bool, of ...string) Rule {
		return each(id, term, message, allMeans, func(m *Means) bool {
			for _, c := range of {
				if m.Top && m.Code.Norm() == c {
					return true
				}
			}
			return false
		}, func(_ *Invoice, m *Means, _ *Report) bool { return holds(m) })
	}
	return family("germanRules", national((*Invoice).german, []Rule{
		document("DE-R-001", "BG-16", "The invoice needs payment instructions.", func(inv *Invoice, _ *Report) bool {
			for i := range inv.Means {
				if inv.Means[i].Top {
					return true
				}
			}
			return false
		}),
		whole("DE-R-002", "BG-6", "The seller needs a contact.", func(inv *Invoice, r *Report) {
			for i := range inv.Sellers {
				if p := &inv.Sellers[i]; p.Top && p.Contact.Node == 0 {
					r.Fail(p.Outer)
				}
			}
		}),
		fill("DE-R-003", "BT-37", "The seller's address has no city.", SellerAddress, city),
		fill("DE-R-004", "BT-38", "The seller's address has no post code.", SellerAddress, zone),
		contact("DE-R-005", "BT-41", "The seller's contact has no name.", func(c *Contact) bool { return c.Name.Filled() }),
		contact("DE-R-006", "BT-42", "The seller's contact has no telephone number.", func(c *Contact) bool { return c.Phone.Filled() }),
		contact("DE-R-007", "BT-43", "The seller's contact has no mail address.", func(c *Contact) bool { return c.Mail.Filled() }),
		fill("DE-R-008", "BT-52", "The buyer's address has no city.", BuyerAddress, city),
		fill("DE-R-009", "BT-53", "The buyer's address has no post code.", BuyerAddress, zone),
		fill("DE-R-010", "BT-77", "The address of delivery has no city.", DeliveryAddress, city),
		fill("DE-R-011", "BT-78", "The address of delivery has no post code.", DeliveryAddress, zone),
		each("DE-R-014", "BT-119", "The part of the VAT breakdown has no rate.", func(inv *Invoice) []Subtotal { return inv.Subtotals }, func(s *Subtotal) bool { return s.Top },
			func(inv *Invoice, s *Subtotal, _ *Report) bool {
				for _, c := range s.Categories(inv) {
					if c.Percent.Filled() {
						return true
					}
				}
				return false
			}),
		document("DE-R-015", "BT-10", "The invoice needs the buyer's reference (Leitweg-ID).", func(inv *Invoice, _ *Report) bool { return inv.BuyerReference.Filled() }),
		document("DE-R-016", "BT-31 BT-32 BG-11", "With these VAT categories the seller needs a VAT or tax identifier, or a representative.", germanTaxID),
		document("DE-R-017", "BT-3", "The type should be 326, 380, 381, 384, 389, 875, 876 or 877.", func(inv *Invoice, _ *Report) bool {
			return germanType(inv.Type.Norm()) || germanType(inv.CreditType.Norm())
		}).warning(),
		whole("DE-R-018", "BT-20", "A line of the payment terms that begins with # must be a cash discount as #SKONTO#TAGE=n#PROZENT=n.nn#, and end its line.", cashDiscounts),
		means("DE-R-019", "BT-84", "The account of a SEPA credit transfer should be an IBAN.", func(m *Means) bool {
			return m.Code.Norm() != "58" || iban(withoutSpace(m.AccountID.Text))
		}, "30", "58").warning(),
		means("DE-R-020", "BT-91", "The account of a SEPA direct debit should be an IBAN.", func(m *Means) bool { return iban(withoutSpace(m.DebitAccount.Text)) }, "59").warning(),
		document("DE-R-022", "BT-125", "The names of the attached files must differ.", func(inv *Invoice, _ *Report) bool {
			names := map[string]bool{}
			for i := range inv.Attachments {
				a := &inv.Attachments[i]
				if !a.Top || !a.HasFile {
					continue
				}
				if names[a.File] {
					return false
				}
				names[a.File] = true
			}
			return true
		}),
		means("DE-R-023-1", "BG-17", "A credit transfer needs the payee's account.", func(m *Means) bool { return m.Account != 0 }, "30", "58"),
		means("DE-R-023-2", "BG-18 BG-19", "A credit transfer can have neither card nor mandate.", func(m *Means) bool { return m.Card == 0 && m.Mandate == 0 }, "30", "58"),
		means("DE-R-024-1", "BG-18", "A card payment needs the card.", func(m *Means) bool { return m.Card != 0 }, "48", "54", "55"),
		means("DE-R-024-2", "BG-17 BG-19", "A card payment can have neither account nor mandate.", func(m *Means) bool { return m.Account == 0 && m.Mandate == 0 }, "48", "54", "55"),
		means("DE-R-025-1", "BG-19", "A direct debit needs the mandate.", func(m *Means) bool { return m.Mandate != 0 }, "59"),
		means("DE-R-025-2", "BG-17 BG-18", "A direct debit can have neither account nor card.", func(m *Means) bool { return m.Account == 0 && m.Card == 0 }, "59"),
		document("DE-R-026", "BT-3 BG-3", "A corrected invoice (384) should refer to the preceding one.", func(inv *Invoice, _ *Report) bool {
			if inv.Type.Norm() != "384" && inv.CreditType.Norm() != "384" {
				return true
			}
			for i := range inv.Billing {
				if b := &inv.Billing[i]; b.Top && b.Invoice != 0 {
					return true
				}
			}
			return false
		}).warning(),
		contact("DE-R-027", "BT-42", "A telephone number should have at least three digits.", func(c *Contact) bool {
			n := 0
			for i := 0; i < len(c.Phone.Text); i++ {
				if isDigit(c.Phone.Text[i]) {
					n++
				}
			}
			return n >= 3
		}).warning(),
		contact("DE-R-028", "BT-43", "A mail address should have one @ with a domain behind it.", func(c *Contact) bool { return mailAddress.MatchString(c.Mail.Norm()) }).warning(),
		document("DE-R-030", "BT-90", "A direct debit needs the creditor's identifier (scheme SEPA) of seller or payee.", func(inv *Invoice, _ *Report) bool {
			return !inv.mandated() || sepa(inv, inv.Sellers) || sepa(inv, inv.Payees)
		}),
		document("DE-R-031", "BT-91", "A direct debit needs the account that is debited.", func(inv *Invoice, _ *Report) bool {
			for i := range inv.Means {
				if m := &inv.Means[i]; m.Top && m.DebitAccount.Exists() {
					return true
				}
			}
			return !inv.mandated()
		}),
		whole("DE-R-T02", "BT-124", "The location of an external document should be an absolute URL.", func(inv *Invoice, r *Report) {
			for i := range inv.Attachments {
				if a := &inv.Attachments[i]; a.Top && a.External != 0 && !absoluteURL.MatchString(a.URI.Text) {
					r.Differ(a.External, a.URI.Text, "")
				}
			}
		}).warning(),
	})...)
}

func germanType(code string) bool {
	switch code {
	case "326", "380", "384", "389", "381", "875", "876", "877":
		return true
	}
	return false
}

// germanTaxID is DE-R-016.
func germanTaxID(inv *Invoice, _ *Report) bool {
	const asked = categories(1<<StandardRate | 1<<ZeroRated | 1<<Exempt | 1<<ReverseCharge | 1<<IntraCommunity | 1<<Export | 1<<Canary | 1<<CeutaMelilla)
	for i := range inv.Representatives {
		if inv.Representatives[i].Top {
			return true
		}
	}
	for i := range inv.Sellers {
		p := &inv.Sellers[i]
		schemes := p.Schemes(inv)
		for j := range schemes {
			if t := &schemes[j]; p.Top && t.Of == p.Node && t.Company.Filled() {
				return true
			}
		}
	}
	for i := range inv.Categories {
		c := &inv.Categories[i]
		if !asked.has(c.Code) || c.ID.Text != c.Code.String() {
			continue
		}
		switch c.Place {
		case LinePlace:
			if inv.Lines[c.Owner].Top {
				return false
			}
		case ChargePlace:
			g := &inv.Charges[c.Owner]
			if g.Level == DocumentLevel && (g.Indicator.Text == "false" || g.Indicator.Text == "true") {
				return false
			}
		}
	}
	return true
}

// cashDiscounts is DE-R-018.
func cashDiscounts(inv *Invoice, r *Report) {
	for i := range inv.Terms {
		t := &inv.Terms[i]
		marks := discountMark.FindAllStringIndex(t.Text, -1)
		behind := t.Text
		if len(marks) > 0 {
			behind = t.Text[marks[len(marks)-1][1]:]
		}
		ended := strings.Contains(behind[:len(behind)-len(strings.TrimLeft(behind, " \t\r\n"))], "\n")
		for line := range strings.SplitSeq(t.Text, "\n") {
			line = normalize(line)
			if strings.HasPrefix(line, "#") && (!cashDiscount.MatchString(line) || !ended) {
				r.Differ(t.Node, line, "")
				break
			}
		}
	}
}

// mandated reports whether there is a direct debit.
func (inv *Invoice) mandated() bool {
	for i := range inv.Means {
		if m := &inv.Means[i]; m.Top && m.Mandate != 0 {
			return true
		}
	}
	return false
}

// sepa reports whether a party has an identifier of a creditor.
func sepa(inv *Invoice, ps []Party) bool {
	for i := range ps {
		for _, id := range ps[i].IDs(inv) {
			if ps[i].Top && id.HasScheme && id.Scheme == "SEPA" {
				return true
			}
		}
	}
	return false
}
