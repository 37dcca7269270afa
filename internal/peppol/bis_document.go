package peppol

import (
	"strings"

	"github.com/edihub/edihub/internal/peppol/codes"
)

const billing = "urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0"

// knownProfile reports whether the ProfileID is one of the four that Peppol BIS Billing knows.
func (inv *Invoice) knownProfile() bool {
	switch inv.Profile.Norm() {
	case "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0", "urn:peppol:france:billing:regulated", "urn:peppol:france:billing:non-regulated",
		"urn:peppol:bis:billing_with_response":
		return true
	}
	return false
}

// bisDocumentRules are those of Peppol BIS Billing about the document as a whole.
func bisDocumentRules() []Rule {
	endpoint := func(id, term, message string, list func(*Invoice) []Party) Rule {
		return each(id, term, message, list, func(p *Party) bool { return p.Node != 0 }, func(_ *Invoice, p *Party, _ *Report) bool { return p.Endpoint.Exists() })
	}
	return family("bisDocumentRules",
		document("PEPPOL-EN16931-R001", "BT-23", "The document names no business process (ProfileID).", func(inv *Invoice, _ *Report) bool { return inv.Profile.Exists() }),
		document("PEPPOL-EN16931-R002", "BG-1", "The document has more than one note; only between German parties it may.", func(inv *Invoice, _ *Report) bool {
			return inv.Notes <= 1 || inv.german()
		}),
		document("PEPPOL-EN16931-R003", "BT-10 BT-13", "The document needs the buyer's reference or an order number.", func(inv *Invoice, _ *Report) bool {
			return inv.BuyerReference.Exists() || inv.OrderNumber.Exists()
		}),
		document("PEPPOL-EN16931-R004", "BT-24", "CustomizationID must begin with "+billing+" and hold no version behind it.", func(inv *Invoice, r *Report) bool {
			id := inv.Customization.Norm()
			if strings.HasPrefix(id, billing) && !strings.Contains(id, "::") {
				return true
			}
			r.Differ(inv.at(&inv.Customization), inv.Customization.Text, billing)
			return true // reported
		}),
		whole("PEPPOL-EN16931-R005", "BT-6", "The currency of tax is that of the document; leave it out.", func(inv *Invoice, r *Report) {
			for i := range inv.TaxCodes {
				if c := &inv.TaxCodes[i]; c.Norm() == c.Document.Norm() {
					r.Fail(c.Node)
				}
			}
		}),
		document("PEPPOL-EN16931-R007", "BT-23", "ProfileID is none of the business processes of Peppol BIS Billing.", func(inv *Invoice, r *Report) bool {
			if !inv.knownProfile() {
				r.Differ(inv.at(&inv.Profile), inv.Profile.Text, "")
			}
			return true // reported
		}),
		whole("PEPPOL-EN16931-R008", "", "The element is empty; leave it out.", func(inv *Invoice, r *Report) {
			for _, n := range inv.Empty {
				r.Fail(n)
			}
		}),
		endpoint("PEPPOL-EN16931-R010", "BT-49", "The buyer has no electronic address.", func(inv *Invoice) []Party { return inv.Buyers }),
		endpoint("PEPPOL-EN16931-R020", "BT-34", "The seller has no electronic address.", func(inv *Invoice) []Party { return inv.Sellers }),
		document("PEPPOL-EN16931-R053", "BG-23", "The document must have one total of tax with a breakdown.", func(inv *Invoice, _ *Report) bool {
			with, _ := inv.taxTotalKinds()
			return with == 1
		}),
		document("PEPPOL-EN16931-R054", "BT-111", "The document must have one total of tax without a breakdown where it has a currency of tax, and none otherwise.", func(inv *Invoice, _ *Report) bool {
			_, without := inv.taxTotalKinds()
			return without == min(1, len(inv.TaxCurrencies))
		}),
		document("PEPPOL-EN16931-R055", "BT-110 BT-111", "The totals of tax in the two currencies must have the same sign.", sameSign),
		document("PEPPOL-EN16931-R080", "BT-11", "A credit note has at most one project reference.", func(inv *Invoice, _ *Report) bool {
			count := 0
			for i := range inv.Attachments {
				if a := &inv.Attachments[i]; a.Top && a.TypeCode.Text == "50" {
					count++
				}
			}
			return count <= 1 || !inv.CreditNote
		}),
		each("PEPPOL-EN16931-R061", "BT-89", "A direct debit needs the reference of the mandate.", func(inv *Invoice) []Means { return inv.Means },
			func(m *Means) bool { c := m.Code.Norm(); return !m.Code.Repeated && (c == "49" || c == "59") },
			func(_ *Invoice, m *Means, _ *Report) bool { return m.MandateID.Exists() }),
	)
}

// at returns where a finding about a field belongs: at the document element where it is absent.
func (inv *Invoice) at(f *Field) Node {
	if f.Node != 0 {
		return f.Node
	}
	return inv.Root
}

// taxTotalKinds counts the totals of tax below the document element, with and without a breakdown.
func (inv *Invoice) taxTotalKinds() (with, without int) {
	for i := range inv.TaxTotals {
		switch t := &inv.TaxTotals[i]; {
		case !t.Top:
		case t.subtotals.len() > 0:
			with++
		default:
			without++
		}
	}
	return with, without
}

// sameSign is R055.
func sameSign(inv *Invoice, r *Report) bool {
	if len(inv.TaxCurrencies) == 0 {
		return true
	}
	if len(inv.TaxCurrencies) > 1 {
		r.spoil(inv.TaxCurrencies[1].Node, badRepeated)
	}
	var tax, doc [2]bool // at most, at least 0
	note := func(s int, dst *[2]bool) {
		dst[0], dst[1] = dst[0] || s <= 0, dst[1] || s >= 0
	}
	for i := range inv.TaxTotals {
		t := &inv.TaxTotals[i]
		if !t.Top || !t.Amount.HasCurrency {
			continue
		}
		isTax := t.Amount.Currency == inv.TaxCurrencies[0].Norm()
		isDoc := len(inv.Currencies) > 0 && t.Amount.Currency == inv.Currencies[0].Norm()
		if !isTax && !isDoc {
			continue
		}
		s, ok := r.sign(&t.Amount.Number)
		if !ok {
			continue
		}
		if isTax {
			note(s, &tax)
		}
		if isDoc {
			note(s, &doc)
		}
	}
	return tax[0] && doc[0] || tax[1] && doc[1]
}

// bisLineRules are those about lines, prices, allowances and charges.
func bisLineRules() []Rule {
	charges := func(inv *Invoice) []Charge { return inv.Charges }
	proper := func(c *Charge) bool { return c.Proper }
	ofPrice := func(c *Charge) bool { return c.Level == PriceLevel }
	both := func(c *Charge) bool { return c.Proper && c.Factor.Exists() == c.Base.Exists() }
	return family("bisLineRules",
		each("PEPPOL-EN16931-R040", "BT-92 BT-93 BT-94 BT-99 BT-100 BT-101", "The amount must be base times percentage, to 0.02.", charges, both, percentage),
		each("PEPPOL-EN16931-R041", "BT-93 BT-100 BT-137 BT-142", "There is a percentage, but no base that it is of.", charges, proper, func(_ *Invoice, c *Charge, _ *Report) bool {
			return !c.Factor.Exists() || c.Base.Exists()
		}),
		each("PEPPOL-EN16931-R042", "BT-94 BT-101 BT-138 BT-143", "There is a base, but no percentage of it.", charges, proper, func(_ *Invoice, c *Charge, _ *Report) bool {
			return c.Factor.Exists() || !c.Base.Exists()
		}),
		each("PEPPOL-EN16931-R043", "BG-20 BG-21 BG-27 BG-28", "The indicator must be true or false in letters.", charges, both, func(_ *Invoice, c *Charge, _ *Report) bool {
			w := c.Indicator.Norm()
			return w == "true" || w == "false"
		}),
		each("PEPPOL-EN16931-R044", "BT-147", "A price has allowances only, no charges.", charges, ofPrice, func(_ *Invoice, c *Charge, _ *Report) bool {
			return c.Indicator.Norm() == "false"
		}),
		each("PEPPOL-EN16931-R046", "BT-146 BT-147 BT-148", "The net price must be the gross price less the allowance.", charges, ofPrice, func(_ *Invoice, c *Charge, r *Report) bool {
			if !c.Base.Exists() {
				return true
			}
			net, ok := r.decimal(&c.Price)
			gross, ok2 := r.decimal(&c.Base.Number)
			less, ok3 := r.decimal(&c.Amount.Number)
			return ok && ok2 && ok3 && net.Equal(gross.Sub(less))
		}),
		perLine("PEPPOL-EN16931-R100", "BT-128", "A line refers to one object at most.", func(_ *Invoice, l *Line, _ *Report) bool { return l.References <= 1 }),
		perLine("PEPPOL-EN16931-R101", "BT-128", "The document reference of a line must be an invoiced object (type 130).", func(_ *Invoice, l *Line, _ *Report) bool {
			return l.References == 0 || l.Object
		}),
		whole("PEPPOL-EN16931-R110", "BT-134 BT-73", "The period of the line begins before that of the document.", func(inv *Invoice, r *Report) {
			inside(inv, r, func(p *Period) *Field { return &p.Start }, func(line, document moment) bool { return !line.before(document) })
		}),
		whole("PEPPOL-EN16931-R111", "BT-135 BT-74", "The period of the line ends after that of the document.", func(inv *Invoice, r *Report) {
			inside(inv, r, func(p *Period) *Field { return &p.End }, func(line, document moment) bool { return !document.before(line) })
		}),
		perLine("PEPPOL-EN16931-R120", "BT-131 BT-129 BT-146 BT-149 BG-27 BG-28", "The net amount of the line must be quantity times price plus charges less allowances, to 0.02.", netAmount),
		perLine("PEPPOL-EN16931-R121", "BT-149", "The base quantity must be above 0.", func(_ *Invoice, l *Line, r *Report) bool {
			if !l.Base.Exists() {
				return true
			}
			d, ok := r.decimal(&l.Base.Number)
			return ok && d.Sign() > 0
		}),
		whole("PEPPOL-EN16931-R130", "BT-130 BT-150", "The units of price and quantity must be the same.", func(inv *Invoice, r *Report) {
			for i := range inv.BaseUnits {
				if u := &inv.BaseUnits[i]; u.Quantity && (!u.HasOther || u.Other != u.Unit) {
					r.Differ(u.Node, u.Unit, u.Other)
				}
			}
		}),
	)
}

// quantity returns the quantity that belongs to the kind of document.
func (l *Line) quantity(inv *Invoice) *Quantity {
	if inv.CreditNote {
		return &l.Credited
	}
	return &l.Invoiced
}

var twoHundredths = DecimalFromInt(2, 2)

// percentage is R040.
func percentage(_ *Invoice, c *Charge, r *Report) bool {
	if !c.Factor.Exists() {
		return true
	}
	base, ok := r.decimal(&c.Base.Number)
	factor, ok2 := r.decimal(&c.Factor)
	amount, ok3 := r.decimal(&c.Amount.Number)
	if !ok || !ok2 || !ok3 && c.Amount.Exists() {
		return false
	}
	want := base.Mul(factor).Percent()
	if want.Sub(amount).Abs().Cmp(twoHundredths) <= 0 {
		return true
	}
	r.Differ(c.Node, c.Amount.Text, want.Round(2).String())
	return true // reported
}

// inside judges the periods of lines against that of the document.
func inside(inv *Invoice, r *Report, field func(*Period) *Field, holds func(line, document moment) bool) {
	var document *Field
	for i := range inv.Periods {
		if p := &inv.Periods[i]; p.Top && field(p).Exists() {
			document = field(p)
			break
		}
	}
	if document == nil {
		return
	}
	for i := range inv.Periods {
		p := &inv.Periods[i]
		if !p.Proper || !field(p).Exists() {
			continue
		}
		r.fresh()
		d, ok := r.date(document)
		l, ok2 := r.date(field(p))
		if ok && ok2 && !holds(l, d) {
			r.Differ(field(p).Node, field(p).Text, document.Text)
		}
	}
}

// netAmount is R120.
func netAmount(inv *Invoice, l *Line, r *Report) bool {
	net, ok := r.decimal(&l.Net.Number)
	if !ok && l.Net.Exists() {
		return false
	}
	quantity := one
	if q := l.quantity(inv); q.Exists() {
		if quantity, ok = r.decimal(&q.Number); !ok {
			return false
		}
	}
	price, ok := r.decimal(&l.Price.Number)
	if !ok && l.Price.Exists() {
		return false
	}
	if l.Base.Exists() {
		base, ok := r.decimal(&l.Base.Number)
		if !ok {
			return false
		}
		if q, ok := price.Div(base); ok {
			price = q
		}
	}
	var allowances, surcharges Decimal
	charges := l.Charges(inv)
	for i := range charges {
		c := &charges[i]
		if c.Level != LineLevel {
			continue
		}
		switch c.Indicator.Norm() {
		case "false":
			if d, ok := r.decimal(&c.Amount.Number); ok {
				allowances = allowances.Add(d)
			}
		case "true":
			if d, ok := r.decimal(&c.Amount.Number); ok {
				surcharges = surcharges.Add(d)
			}
		}
	}
	want := quantity.Mul(price).Add(surcharges.Round(2)).Sub(allowances.Round(2))
	if want.Sub(net).Abs().Cmp(twoHundredths) <= 0 {
		return true
	}
	r.Differ(l.Node, l.Net.Text, want.Round(2).String())
	return true // reported
}

// bisCodeRules are those about code lists, dates and currencies.
func bisCodeRules() []Rule {
	field := func(f *Field) Node { return f.Node }
	coded := func(id, term, message string, list func(*Invoice) []Field, ok func(string) bool) Rule {
		return whole(id, term, message, func(inv *Invoice, r *Report) {
			for i := range list(inv) {
				if f := &list(inv)[i]; !ok(f.Text) {
					r.Differ(field(f), f.Text, "")
				}
			}
		})
	}
	reason := func(id, term, message, indicator string, list *codes.List) Rule {
		return whole(id, term, message, func(inv *Invoice, r *Report) {
			for i := range inv.Charges {
				c := &inv.Charges[i]
				if c.Indicator.Text == indicator && c.ReasonCode.Exists() && !list.Has(c.ReasonCode.Norm()) {
					r.Differ(c.ReasonCode.Node, c.ReasonCode.Text, "")
				}
			}
		})
	}
	types := func(inv *Invoice) []Field { return inv.TypeCodes }
	exemption := func(id, code string, want Category) Rule {
		return whole(id, "BT-118 BT-121", "Exemption code "+code+" belongs to VAT category "+want.String()+".", func(inv *Invoice, r *Report) {
			for i := range inv.Categories {
				c := &inv.Categories[i]
				if !c.Classified && c.ReasonCode.Exists() && !c.ReasonCode.Repeated && strings.ToUpper(c.ReasonCode.Text) == code && c.Code != want {
					r.Differ(c.Node, c.ID.Text, want.String())
				}
			}
		})
	}
	return family("bisCodeRules",
		whole("PEPPOL-EN16931-CL001", "BT-125", "The media type of the attachment is not allowed.", func(inv *Invoice, r *Report) {
			for i := range inv.MIMECodes {
				if m := &inv.MIMECodes[i]; m.HasScheme && !codes.MediaTypes.Has(m.Scheme) {
					r.Differ(m.Node, m.Scheme, "")
				}
			}
		}),
		reason("PEPPOL-EN16931-CL002", "BT-98 BT-140", "The reason code of the allowance is not in UNCL 5189 as Peppol uses it.", "false", codes.AllowanceReasons),
		reason("PEPPOL-EN16931-CL003", "BT-105 BT-145", "The reason code of the charge is not in UNCL 7161 as Peppol uses it.", "true", codes.ChargeReasons),
		whole("PEPPOL-EN16931-CL006", "BT-8", "The code of the tax point is not in UNCL 2005 as Peppol uses it.", func(inv *Invoice, r *Report) {
			for i := range inv.Periods {
				if p := &inv.Periods[i]; p.Code.Exists() && !codes.TaxPointDates.Has(p.Code.Norm()) {
					r.Differ(p.Code.Node, p.Code.Text, "")
				}
			}
		}),
		whole("PEPPOL-EN16931-CL007", "BT-5", "The currency of the amount is not in ISO 4217.", func(inv *Invoice, r *Report) {
			last := ""
			for i := range inv.Amounts {
				a := &inv.Amounts[i]
				if a.Has && a.Currency == last && last != "" {
					continue
				}
				if a.Has && codes.CurrenciesPeppol.Has(a.Currency) {
					last = a.Currency
					continue
				}
				r.Differ(a.Node, a.Currency, "")
			}
		}),
		whole("PEPPOL-EN16931-CL008", "BT-34 BT-49", "The scheme of the electronic address is not in the list of Peppol.", func(inv *Invoice, r *Report) {
			for i := range inv.Identifiers {
				if x := &inv.Identifiers[i]; x.Endpoint && x.HasScheme && !codes.EndpointSchemesPeppol.Has(x.Scheme) {
					r.Differ(x.Node, x.Scheme, "")
				}
			}
		}),
		coded("PEPPOL-EN16931-F001", "BT-2 BT-7 BT-9 BT-72 BT-73 BT-74", "The date must be written YYYY-MM-DD.", func(inv *Invoice) []Field { return inv.Dates }, func(s string) bool {
			_, ok := parseDate(s)
			return ok && len(s) == 10
		}),
		whole("PEPPOL-EN16931-P0100", "BT-3", "The type of the invoice is not allowed in this business process.", func(inv *Invoice, r *Report) {
			for i := range inv.TypeCodes {
				if f := &inv.TypeCodes[i]; inv.knownProfile() && !codes.InvoiceTypesPeppol.Has(f.Norm()) {
					r.Differ(f.Node, f.Text, "")
				}
			}
		}),
		whole("PEPPOL-EN16931-P0101", "BT-3", "The type of the credit note is not allowed in this business process.", func(inv *Invoice, r *Report) {
			for i := range inv.CreditCodes {
				if f := &inv.CreditCodes[i]; inv.knownProfile() && !codes.CreditNoteTypesPeppol.Has(f.Norm()) {
					r.Differ(f.Node, f.Text, "")
				}
			}
		}),
		exemption("PEPPOL-EN16931-P0104", "VATEX-EU-G", Export),
		exemption("PEPPOL-EN16931-P0105", "VATEX-EU-O", NotSubject),
		exemption("PEPPOL-EN16931-P0106", "VATEX-EU-IC", IntraCommunity),
		exemption("PEPPOL-EN16931-P0107", "VATEX-EU-AE", ReverseCharge),
		exemption("PEPPOL-EN16931-P0108", "VATEX-EU-D", Exempt),
		exemption("PEPPOL-EN16931-P0109", "VATEX-EU-F", Exempt),
		exemption("PEPPOL-EN16931-P0110", "VATEX-EU-I", Exempt),
		exemption("PEPPOL-EN16931-P0111", "VATEX-EU-J", Exempt),
		each("PEPPOL-EN16931-P0112", "BT-3", "Partial and corrected invoices (326, 384) are for German parties only.", types, nil, func(inv *Invoice, f *Field, _ *Report) bool {
			t := f.Norm()
			return t != "326" && t != "384" || inv.german()
		}),
		whole("PEPPOL-EN16931-R051", "BT-5", "The amount must be in the currency of the document.", func(inv *Invoice, r *Report) {
			last, ok := "", false // mostly all are the same
			allowed := map[string]bool{}
			for i := range inv.Currencies {
				allowed[inv.Currencies[i].Text] = true
			}
			for i := range inv.Amounts {
				a := &inv.Amounts[i]
				if !a.Document {
					continue
				}
				if a.Currency != last || !ok {
					last, ok = a.Currency, allowed[a.Currency]
				}
				if !ok || !a.Has {
					r.Differ(a.Node, a.Currency, inv.currency())
				}
			}
		}),
	)
}

// currency returns the currency of the document, or "".
func (inv *Invoice) currency() string {
	if len(inv.Currencies) > 0 {
		return inv.Currencies[0].Text
	}
	return ""
}
