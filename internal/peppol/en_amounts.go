package peppol

import "strings"

// chargeRules are those about allowances and charges of document and lines.
func chargeRules() []Rule {
	charges := func(inv *Invoice) []Charge { return inv.Charges }
	at := func(l Level, k ChargeKind) func(*Charge) bool {
		return func(c *Charge) bool { return c.Level == l && c.Kind == k }
	}
	amount := func(_ *Invoice, c *Charge, _ *Report) bool { return c.Amount.Exists() }
	reason := func(_ *Invoice, c *Charge, _ *Report) bool { return c.Reason.Exists() || c.ReasonCode.Exists() }
	category := func(inv *Invoice, c *Charge, _ *Report) bool {
		for _, t := range c.Categories(inv) {
			if t.VAT && t.ID.Exists() {
				return true
			}
		}
		return false
	}
	always := func(id, terms, message string) Rule { // the published form of these four cannot fail
		return document(id, terms, message, func(*Invoice, *Report) bool { return true })
	}
	a, s := at(DocumentLevel, Allowance), at(DocumentLevel, Surcharge)
	la, ls := at(LineLevel, Allowance), at(LineLevel, Surcharge)
	return family("chargeRules",
		each("BR-31", "BT-92", "The allowance has no amount.", charges, a, amount),
		each("BR-32", "BT-95", "The allowance has no VAT category.", charges, a, category),
		each("BR-33", "BT-97 BT-98", "The allowance has no reason.", charges, a, reason),
		always("BR-CO-05", "BT-97 BT-98", "Reason and reason code of the allowance mean the same; nothing to check by program."),
		each("BR-CO-21", "BT-97 BT-98", "The allowance needs a reason, as text or code.", charges, a, reason),
		each("BR-36", "BT-99", "The charge has no amount.", charges, s, amount),
		each("BR-37", "BT-102", "The charge has no VAT category.", charges, s, category),
		each("BR-38", "BT-104 BT-105", "The charge has no reason.", charges, s, reason),
		always("BR-CO-06", "BT-104 BT-105", "Reason and reason code of the charge mean the same; nothing to check by program."),
		each("BR-CO-22", "BT-104 BT-105", "The charge needs a reason, as text or code.", charges, s, reason),
		each("BR-41", "BT-136", "The allowance of the line has no amount.", charges, la, amount),
		each("BR-42", "BT-139 BT-140", "The allowance of the line has no reason.", charges, la, reason),
		always("BR-CO-07", "BT-139 BT-140", "Reason and reason code of the line's allowance mean the same; nothing to check by program."),
		each("BR-CO-23", "BT-139 BT-140", "The allowance of the line needs a reason, as text or code.", charges, la, reason),
		each("BR-43", "BT-141", "The charge of the line has no amount.", charges, ls, amount),
		each("BR-44", "BT-144 BT-145", "The charge of the line has no reason.", charges, ls, reason),
		always("BR-CO-08", "BT-144 BT-145", "Reason and reason code of the line's charge mean the same; nothing to check by program."),
		each("BR-CO-24", "BT-144 BT-145", "The charge of the line needs a reason, as text or code.", charges, ls, reason),
	)
}

// lineRules are those about lines.
func lineRules() []Rule {
	return family("lineRules",
		perLine("BR-21", "BT-126", "The line has no identifier.", func(_ *Invoice, l *Line, r *Report) bool { return r.single(&l.ID) && l.ID.Filled() }),
		perLine("BR-22", "BT-129", "The line has no quantity.", func(_ *Invoice, l *Line, _ *Report) bool { return l.Invoiced.Exists() || l.Credited.Exists() }),
		perLine("BR-23", "BT-130", "The quantity of the line has no unit.", func(_ *Invoice, l *Line, _ *Report) bool { return l.Invoiced.HasUnit || l.Credited.HasUnit }),
		perLine("BR-24", "BT-131", "The line has no net amount.", func(_ *Invoice, l *Line, _ *Report) bool { return l.Net.Exists() }),
		perLine("BR-25", "BT-153", "The item of the line has no name.", func(_ *Invoice, l *Line, r *Report) bool { return r.single(&l.Name) && l.Name.Filled() }),
		perLine("BR-26", "BT-146", "The item of the line has no net price.", func(_ *Invoice, l *Line, _ *Report) bool { return l.Price.Exists() }),
		perLine("BR-27", "BT-146", "The net price of the item is negative.", func(_ *Invoice, l *Line, r *Report) bool {
			for i := range l.Prices {
				if s, ok := r.sign(&l.Prices[i]); ok && s >= 0 {
					return true
				}
			}
			s, ok := r.sign(&l.Price.Number)
			return ok && s >= 0
		}),
		perLine("BR-28", "BT-148", "The gross price of the item is negative.", func(inv *Invoice, l *Line, r *Report) bool {
			some := false
			charges := l.Charges(inv)
			for i := range charges {
				c := &charges[i]
				if c.Level != PriceLevel || !c.Base.Exists() {
					continue
				}
				some = true
				if s, ok := r.sign(&c.Base.Number); ok && s >= 0 {
					return true
				}
			}
			return !some
		}),
		perLine("BR-CO-04", "BT-151", "The line has no VAT category.", func(inv *Invoice, l *Line, _ *Report) bool {
			cs := l.Categories(inv)
			for i := range cs {
				if c := &cs[i]; c.Place == LinePlace && c.VAT && c.ID.Exists() {
					return true
				}
			}
			return false
		}),
	)
}

// totalRules are those about the sums of the document.
func totalRules() []Rule {
	totals := func(inv *Invoice) []Totals { return inv.Totals }
	has := func(id, term, message string, f func(*Totals) *Amount) Rule {
		return each(id, term, message, totals, nil, func(_ *Invoice, t *Totals, _ *Report) bool { return f(t).Exists() })
	}
	return family("totalRules",
		has("BR-12", "BT-106", "The sum of the lines is missing.", func(t *Totals) *Amount { return &t.Lines }),
		has("BR-13", "BT-109", "The total without VAT is missing.", func(t *Totals) *Amount { return &t.TaxExclusive }),
		has("BR-14", "BT-112", "The total with VAT is missing.", func(t *Totals) *Amount { return &t.TaxInclusive }),
		has("BR-15", "BT-115", "The amount due is missing.", func(t *Totals) *Amount { return &t.Payable }),
		each("BR-CO-10", "BT-106 BT-131", "The sum of the lines must be what the lines add up to.", totals, nil, func(inv *Invoice, t *Totals, r *Report) bool {
			var sum Decimal
			for i := range inv.Lines {
				if d, ok := r.decimal(&inv.Lines[i].Net.Number); ok {
					sum = sum.Add(d)
				}
			}
			return r.equal(t.Node, &t.Lines, sum.Round(2))
		}),
		each("BR-CO-11", "BT-107 BT-92", "The sum of the allowances must be what they add up to.", totals, nil, func(inv *Invoice, t *Totals, r *Report) bool {
			return chargeTotal(inv, t, &t.Allowances, Allowance, r)
		}),
		each("BR-CO-12", "BT-108 BT-99", "The sum of the charges must be what they add up to.", totals, nil, func(inv *Invoice, t *Totals, r *Report) bool {
			return chargeTotal(inv, t, &t.Charges, Surcharge, r)
		}),
		each("BR-CO-13", "BT-109 BT-106 BT-107 BT-108", "The total without VAT must be the sum of the lines less allowances plus charges.", totals, nil, withoutTax),
		whole("BR-CO-14", "BT-110 BT-117", "The total of VAT must be what the breakdown adds up to.", taxTotals),
		document("BR-CO-15", "BT-112 BT-109 BT-110", "The total with VAT must be the total without it plus the VAT, of which there must be one total in the document's currency.", withTax),
		each("BR-CO-16", "BT-115 BT-112 BT-113 BT-114", "The amount due must be the total with VAT less what was paid plus the rounding.", totals, nil, due),
	)
}

// equal reports whether an amount is what was computed, and says what it should be.
func (r *Report) equal(n Node, a *Amount, want Decimal) bool {
	d, ok := r.decimal(&a.Number)
	if ok && d.Equal(want) {
		return true
	}
	r.Differ(n, a.Text, want.String())
	return true // reported
}

// chargeTotal is BR-CO-11 and BR-CO-12.
func chargeTotal(inv *Invoice, t *Totals, a *Amount, k ChargeKind, r *Report) bool {
	var sum Decimal
	some := false
	for i := range inv.Charges {
		if c := &inv.Charges[i]; t.Top && c.Level == DocumentLevel && c.Kind == k {
			some = true
			if d, ok := r.decimal(&c.Amount.Number); ok {
				sum = sum.Add(d)
			}
		}
	}
	if !a.Exists() && !some {
		return true
	}
	return r.equal(t.Node, a, sum.Round(2))
}

// withoutTax is BR-CO-13.
func withoutTax(_ *Invoice, t *Totals, r *Report) bool {
	want, ok := r.decimal(&t.Lines.Number)
	round := false
	if t.Charges.Exists() {
		d, ok2 := r.decimal(&t.Charges.Number)
		want, ok, round = want.Add(d), ok && ok2, true
	}
	if t.Allowances.Exists() {
		d, ok2 := r.decimal(&t.Allowances.Number)
		want, ok, round = want.Sub(d), ok && ok2, true
	}
	if !ok {
		return false
	}
	if round {
		want = want.Round(2)
	}
	return r.equal(t.Node, &t.TaxExclusive, want)
}

// taxTotals is BR-CO-14.
func taxTotals(inv *Invoice, r *Report) {
	for i := range inv.TaxTotals {
		t := &inv.TaxTotals[i]
		if !t.Top || t.subtotals.len() == 0 {
			continue
		}
		r.fresh()
		var sum Decimal
		parts := t.Subtotals(inv)
		for j := range parts {
			if d, ok := r.decimal(&parts[j].Tax.Number); ok {
				sum = sum.Add(d)
			}
		}
		r.equal(t.Node, &t.Amount, sum.Round(2))
	}
}

// withTax is BR-CO-15.
func withTax(inv *Invoice, r *Report) bool {
	type total struct {
		amount *Amount
		count  int
	}
	in := map[string]total{}
	for i := range inv.TaxTotals {
		if t := &inv.TaxTotals[i]; t.Top && t.Amount.HasCurrency {
			in[t.Amount.Currency] = total{&t.Amount, in[t.Amount.Currency].count + 1}
		}
	}
	for i := range inv.Currencies {
		t := in[inv.Currencies[i].Text]
		if t.count != 1 {
			return false
		}
		tax, ok := r.decimal(&t.amount.Number)
		if !ok || !withTaxEqual(inv, tax, r) {
			return false
		}
	}
	return true
}

// withTaxEqual compares the totals with and without tax.
func withTaxEqual(inv *Invoice, tax Decimal, r *Report) bool {
	var total *Totals
	for i := range inv.Totals {
		if t := &inv.Totals[i]; t.Top {
			if total != nil {
				r.spoil(t.Node, badRepeated)
				return false
			}
			total = t
		}
	}
	if total == nil {
		return false
	}
	net, ok := r.decimal(&total.TaxExclusive.Number)
	gross, ok2 := r.decimal(&total.TaxInclusive.Number)
	if !ok || !ok2 {
		return false
	}
	want := net.Add(tax).Round(2)
	if !gross.Equal(want) {
		r.Differ(total.TaxInclusive.Node, total.TaxInclusive.Text, want.String())
	}
	return true // reported
}

// due is BR-CO-16.
func due(_ *Invoice, t *Totals, r *Report) bool {
	gross, ok := r.decimal(&t.TaxInclusive.Number)
	payable, ok2 := r.decimal(&t.Payable.Number)
	if !ok || !ok2 {
		return false
	}
	want, is := gross, payable
	if t.Prepaid.Exists() {
		d, ok := r.decimal(&t.Prepaid.Number)
		if !ok {
			return false
		}
		want = gross.Sub(d).Round(2)
	}
	if t.Rounding.Exists() {
		d, ok := r.decimal(&t.Rounding.Number)
		if !ok {
			return false
		}
		is = payable.Sub(d).Round(2)
	}
	if is.Equal(want) {
		return true
	}
	r.Differ(t.Node, t.Payable.Text, want.Add(payable).Sub(is).String())
	return true // reported
}

// breakdownRules are those about the parts of the VAT breakdown.
func breakdownRules() []Rule {
	parts := func(inv *Invoice) []Subtotal { return inv.Subtotals }
	inTotal := func(s *Subtotal) bool { return s.InTotal }
	return family("breakdownRules",
		each("BR-45", "BT-116", "The part of the VAT breakdown has no taxable amount.", parts, inTotal, func(_ *Invoice, s *Subtotal, _ *Report) bool { return s.Taxable.Exists() }),
		each("BR-46", "BT-117", "The part of the VAT breakdown has no tax amount.", parts, inTotal, func(_ *Invoice, s *Subtotal, _ *Report) bool { return s.Tax.Exists() }),
		each("BR-47", "BT-118", "The part of the VAT breakdown has no category.", parts, inTotal, func(inv *Invoice, s *Subtotal, _ *Report) bool {
			for _, c := range s.Categories(inv) {
				if c.VAT && c.ID.Exists() {
					return true
				}
			}
			return false
		}),
		each("BR-48", "BT-119", "The part of the VAT breakdown has no rate.", parts, inTotal, func(inv *Invoice, s *Subtotal, _ *Report) bool {
			for _, c := range s.Categories(inv) {
				if c.VAT && (c.Percent.Exists() || c.Code == NotSubject) {
					return true
				}
			}
			return false
		}),
		each("BR-CO-17", "BT-117 BT-116 BT-119", "The tax amount must be the taxable amount times the rate, to less than 1.", parts, inTotal, taxOfPart),
	)
}

// taxOfPart is BR-CO-17.
func taxOfPart(inv *Invoice, s *Subtotal, r *Report) bool {
	var percent *Number
	cs := s.Categories(inv)
	for i := range cs {
		if c := &cs[i]; c.VAT && c.Percent.Exists() {
			if percent != nil {
				r.spoil(c.Percent.Node, badRepeated)
				return false
			}
			percent = &c.Percent
		}
	}
	tax, ok := r.decimal(&s.Tax.Number)
	if percent == nil {
		return ok && tax.Round(0).Sign() == 0
	}
	rate, ok2 := r.decimal(percent)
	if !ok || !ok2 {
		return false
	}
	if rate.Round(0).Sign() == 0 {
		return tax.Round(0).Sign() == 0
	}
	taxable, ok := r.decimal(&s.Taxable.Number)
	if !ok {
		return false
	}
	want := taxable.Abs().Mul(rate.Percent()).Round(2)
	if near(tax.Abs(), want) {
		return true
	}
	r.Differ(s.Node, s.Tax.Text, want.String())
	return true // reported
}

// decimalRules are those about the number of decimals, which is a matter of the text: 25.000 has
// three.
func decimalRules() []Rule {
	const message = " has more than two decimals."
	charge := func(id, term, what string, l Level, k ChargeKind, base bool) Rule {
		return whole(id, term, what+message, func(inv *Invoice, r *Report) {
			for i := range inv.Charges {
				c := &inv.Charges[i]
				if c.Level != l || c.Kind != k {
					continue
				}
				a := &c.Amount
				if base {
					a = &c.Base
				}
				r.fresh()
				r.twoDecimals(c.Node, a)
			}
		})
	}
	total := func(id, term, what string, f func(*Totals) *Amount) Rule {
		return whole(id, term, what+message, func(inv *Invoice, r *Report) {
			for i := range inv.Totals {
				r.fresh()
				r.twoDecimals(inv.Totals[i].Node, f(&inv.Totals[i]))
			}
		})
	}
	part := func(id, term, what string, f func(*Subtotal) *Amount) Rule {
		return whole(id, term, what+message, func(inv *Invoice, r *Report) {
			for i := range inv.Subtotals {
				if s := &inv.Subtotals[i]; s.InTotal {
					r.fresh()
					r.twoDecimals(s.Node, f(s))
				}
			}
		})
	}
	never := func(id, term, message string) Rule { // the published form looks for the currency at the wrong place
		return document(id, term, message, func(*Invoice, *Report) bool { return true })
	}
	return family("decimalRules",
		charge("BR-DEC-01", "BT-92", "The allowance", DocumentLevel, Allowance, false),
		charge("BR-DEC-02", "BT-93", "The base of the allowance", DocumentLevel, Allowance, true),
		charge("BR-DEC-05", "BT-99", "The charge", DocumentLevel, Surcharge, false),
		charge("BR-DEC-06", "BT-100", "The base of the charge", DocumentLevel, Surcharge, true),
		total("BR-DEC-09", "BT-106", "The sum of the lines", func(t *Totals) *Amount { return &t.Lines }),
		total("BR-DEC-10", "BT-107", "The sum of the allowances", func(t *Totals) *Amount { return &t.Allowances }),
		total("BR-DEC-11", "BT-108", "The sum of the charges", func(t *Totals) *Amount { return &t.Charges }),
		total("BR-DEC-12", "BT-109", "The total without VAT", func(t *Totals) *Amount { return &t.TaxExclusive }),
		never("BR-DEC-13", "BT-110", "The total of VAT"+message+" The published rule cannot fail."),
		total("BR-DEC-14", "BT-112", "The total with VAT", func(t *Totals) *Amount { return &t.TaxInclusive }),
		never("BR-DEC-15", "BT-111", "The total of VAT in the currency of tax"+message+" The published rule cannot fail."),
		total("BR-DEC-16", "BT-113", "The amount paid", func(t *Totals) *Amount { return &t.Prepaid }),
		total("BR-DEC-17", "BT-114", "The rounding", func(t *Totals) *Amount { return &t.Rounding }),
		total("BR-DEC-18", "BT-115", "The amount due", func(t *Totals) *Amount { return &t.Payable }),
		part("BR-DEC-19", "BT-116", "The taxable amount", func(s *Subtotal) *Amount { return &s.Taxable }),
		part("BR-DEC-20", "BT-117", "The tax amount", func(s *Subtotal) *Amount { return &s.Tax }),
		perLine("BR-DEC-23", "BT-131", "The net amount of the line"+message, func(_ *Invoice, l *Line, r *Report) bool {
			r.twoDecimals(l.Node, &l.Net)
			return true // reported
		}),
		charge("BR-DEC-24", "BT-136", "The allowance of the line", LineLevel, Allowance, false),
		charge("BR-DEC-25", "BT-137", "The base of the line's allowance", LineLevel, Allowance, true),
		charge("BR-DEC-27", "BT-141", "The charge of the line", LineLevel, Surcharge, false),
		charge("BR-DEC-28", "BT-142", "The base of the line's charge", LineLevel, Surcharge, true),
	)
}

// twoDecimals reports an amount with more than two characters behind its point.
func (r *Report) twoDecimals(n Node, a *Amount) {
	if !r.single(&a.Field) {
		return
	}
	if i := strings.IndexByte(a.Text, '.'); i >= 0 && runes(a.Text[i+1:]) > 2 {
		r.Differ(n, a.Text, "")
	}
}
