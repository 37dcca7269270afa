package peppol

import (
	"strings"
)

// danishRules are those of Denmark.
func danishRules() []Rule {
	seller := func(inv *Invoice) bool { return inv.Seller().Address.Country.Text == "DK" }
	both := func(inv *Invoice) bool { return seller(inv) && inv.Buyer().Address.Country.Text == "DK" }
	means := func(id, terms, message string, holds func(*Means) bool) Rule {
		return each(id, terms, message, allMeans, topMeans, func(inv *Invoice, m *Means, _ *Report) bool { return inv.CreditNote || holds(m) })
	}
	cvr := func(p *Party) bool { return !p.LegalID.Exists() || normalize(p.LegalID.Scheme) == "0184" }
	rules := national(seller, []Rule{
		document("DK-R-002", "BT-30", "A Danish seller needs his legal registration (CVR number).", func(inv *Invoice, _ *Report) bool { return inv.Seller().LegalID.Filled() }),
		document("DK-R-014", "BT-30", "The legal registration of a Danish seller must have the scheme 0184.", func(inv *Invoice, _ *Report) bool { return cvr(inv.Seller()) }),
		document("DK-R-016", "BT-115", "The amount due of a Danish credit note cannot be negative.", func(inv *Invoice, _ *Report) bool {
			if !inv.CreditNote || !both(inv) {
				return true
			}
			for i := range inv.Totals {
				if t := &inv.Totals[i]; t.Top && number(t.Payable.Text) < 0 {
					return false
				}
			}
			return true
		}),
	})
	return family("danishRules", append(rules, national(both, []Rule{
		perLine("DK-R-003", "BT-158", "The version of UNSPSC must be 19.05.01 or 26.08.01.", func(_ *Invoice, l *Line, _ *Report) bool {
			return !l.Proper || !l.ListTST || l.ListVersion
		}),
		each("DK-R-004", "BT-97 BT-98", "With reason code ZZZ the reason must be a four-digit tax code, or code and text with # between.", func(inv *Invoice) []Charge { return inv.Charges }, nil, func(_ *Invoice, c *Charge, _ *Report) bool {
			if c.ReasonCode.Text != "ZZZ" {
				return true
			}
			n, s := number(c.Reason.Text), c.Reason.Text
			return runes(c.Reason.Norm()) == 4 && n >= 0 && n <= 9999 || strings.Contains(s, "#") && !strings.HasPrefix(s, "#") && !strings.HasSuffix(s, "#")
		}),
		means("DK-R-005", "BT-81", "Denmark knows the payment means 1, 10, 31, 42, 48, 49, 50, 58, 59, 93 and 97 only.", func(m *Means) bool {
			return strings.Contains(" 1 10 31 42 48 49 50 58 59 93 97 ", " "+m.Code.Text+" ")
		}),
		means("DK-R-006", "BT-84 BT-86", "A Danish bank transfer needs account and registration number.", func(m *Means) bool {
			return m.Code.Text != "31" && m.Code.Text != "42" || m.AccountID.Filled() && m.BranchID.Filled()
		}),
		means("DK-R-007", "BT-89 BT-91", "A Danish direct debit needs mandate and account.", func(m *Means) bool {
			return m.Code.Text != "49" || m.MandateID.Filled() && m.DebitAccount.Filled()
		}),
		means("DK-R-008", "BT-83 BT-84", "A Danish giro payment needs a card type of 01, 04 or 15 and an account of seven or eight digits.", func(m *Means) bool {
			return m.Code.Text != "50" || begins(m, "01#", "04#", "15#") && (allDigits(m.AccountID.Text, 7) || allDigits(m.AccountID.Text, 8))
		}),
		means("DK-R-009", "BT-83", "The payment reference of card types 04 and 15 must have 16 digits behind the card type.", func(m *Means) bool {
			return m.Code.Text != "50" || !begins(m, "04#", "15#") || runes(m.PaymentID.Text) == 19
		}),
		means("DK-R-010", "BT-83 BT-84", "A Danish FIK payment needs a card type of 71, 73 or 75 and a creditor of eight characters.", func(m *Means) bool {
			return m.Code.Text != "93" || begins(m, "71#", "73#", "75#") && runes(m.AccountID.Text) == 8
		}),
		means("DK-R-011", "BT-83", "The payment reference of card types 71 and 75 must have 15 or 16 digits behind the card type.", func(m *Means) bool {
			n := runes(m.PaymentID.Text)
			return m.Code.Text != "93" || !begins(m, "71#", "75#") || n == 18 || n == 19
		}),
		whole("DK-R-013", "BT-29 BT-46", "The identifier of a party needs a scheme.", func(inv *Invoice, r *Report) {
			for _, list := range [][]Party{inv.Sellers, inv.Buyers} {
				for i := range list {
					if !list[i].Top {
						continue
					}
					for _, id := range list[i].IDs(inv) {
						if trimSpace(id.Scheme) == "" {
							r.Fail(id.Node)
						}
					}
				}
			}
		}),
		each("DK-R-017", "BT-47", "The legal registration of a Danish buyer must have the scheme 0184.", allBuyers, func(p *Party) bool { return p.Top && p.Node != 0 }, func(_ *Invoice, p *Party, _ *Report) bool { return cvr(p) }),
	})...)...)
}

// begins reports whether the payment reference begins with one of the card types.
func begins(m *Means, types ...string) bool {
	for _, t := range types {
		if strings.HasPrefix(m.PaymentID.Text, t) {
			return true
		}
	}
	return false
}
