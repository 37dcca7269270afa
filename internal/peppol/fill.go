package peppol

import "github.com/edihub/edihub/internal/peppol/ubl"

// filler walks through a document once and puts what it finds into an Invoice.
type filler struct {
	t   *ubl.Tree
	inv *Invoice

	line     int  // index of the line around, -1 elsewhere
	proper   bool // that line is a proper one
	charge   int  // index of the charge around
	subtotal int  // index of the subtotal around

	found  [8]found // what sibling found last
	scheme Node     // the tax registration that vat is about
	vat    bool
}

// found is the first child of a kind.
type found struct {
	parent, child Node
	kind          ubl.Kind
}

// sibling returns the first child of a kind. It remembers the answer: many children of one
// parent ask the same, and looking through them each time would take the square of their number.
func (f *filler) sibling(parent Node, k ubl.Kind) Node {
	x := &f.found[k%ubl.Kind(len(f.found))]
	if x.parent != parent || x.kind != k {
		*x = found{parent, f.t.Child(parent, k), k}
	}
	return x.child
}

// fill reads a document. The lists of inv keep their room from one document to the next.
func fill(inv *Invoice, t *ubl.Tree) {
	inv.reset()
	inv.Source, inv.Root, inv.CreditNote = t, ubl.Root, t.Kind(ubl.Root) == ubl.CreditNote
	f := filler{t: t, inv: inv, line: -1, charge: -1, subtotal: -1}
	f.root()
	f.blank(ubl.Root)
	f.walk(ubl.Root, t.Kind(ubl.Root))
	inv.finish()
}

// reset empties the invoice and keeps the room of its lists.
func (inv *Invoice) reset() {
	*inv = Invoice{
		Currencies: inv.Currencies[:0], TaxCurrencies: inv.TaxCurrencies[:0], Terms: inv.Terms[:0],
		Sellers: inv.Sellers[:0], Buyers: inv.Buyers[:0], Payees: inv.Payees[:0], Representatives: inv.Representatives[:0],
		Lines: inv.Lines[:0], Charges: inv.Charges[:0], Categories: inv.Categories[:0], Totals: inv.Totals[:0],
		TaxTotals: inv.TaxTotals[:0], Subtotals: inv.Subtotals[:0], Means: inv.Means[:0], Periods: inv.Periods[:0],
		Deliveries: inv.Deliveries[:0], Attachments: inv.Attachments[:0], Billing: inv.Billing[:0], TaxSchemes: inv.TaxSchemes[:0],
		PartyIDs: inv.PartyIDs[:0], PartyNames: inv.PartyNames[:0], Addresses: inv.Addresses[:0], Properties: inv.Properties[:0],
		Amounts: inv.Amounts[:0], Dates: inv.Dates[:0], Identifiers: inv.Identifiers[:0], ItemIDs: inv.ItemIDs[:0],
		ItemClasses: inv.ItemClasses[:0], Empty: inv.Empty[:0], MIMECodes: inv.MIMECodes[:0], TypeCodes: inv.TypeCodes[:0],
		CreditCodes: inv.CreditCodes[:0], TaxCodes: inv.TaxCodes[:0], OrderLines: inv.OrderLines[:0], CardNumbers: inv.CardNumbers[:0],
		BaseUnits: inv.BaseUnits[:0], LegalIDs: inv.LegalIDs[:0],
	}
}

// grow lengthens a list by one zero element and returns its index.
func grow[T any](list *[]T) int {
	var zero T
	*list = append(*list, zero)
	return len(*list) - 1
}

func (f *filler) field(dst *Field, n Node) {
	if dst.Node != 0 {
		dst.Repeated = true
		return
	}
	dst.Node, dst.Text = n, f.t.Text(n)
}

func (f *filler) number(dst *Number, n Node) {
	first := dst.Node == 0
	f.field(&dst.Field, n)
	if first {
		dst.Value, dst.OK = ParseDecimal(dst.Text)
	}
}

func (f *filler) amount(dst *Amount, n Node) {
	first := dst.Node == 0
	f.number(&dst.Number, n)
	if first {
		dst.Currency, dst.HasCurrency = f.t.Attr(n, ubl.CurrencyID)
	}
}

func (f *filler) quantity(dst *Quantity, n Node) {
	first := dst.Node == 0
	f.number(&dst.Number, n)
	if first {
		dst.Unit, dst.HasUnit = f.t.Attr(n, ubl.UnitCode)
	}
}

func (f *filler) id(dst *ID, n Node, scheme ubl.AttrName) {
	first := dst.Node == 0
	f.field(&dst.Field, n)
	if first {
		dst.Scheme, dst.HasScheme = f.t.Attr(n, scheme)
	}
}

func (f *filler) listed(list *[]Field, n Node) { f.field(&(*list)[grow(list)], n) }

// root reads what stands directly below the document element.
func (f *filler) root() {
	inv, t := f.inv, f.t
	for c := t.First(ubl.Root); c != ubl.None; c = t.Next(c) {
		switch t.Kind(c) {
		case ubl.CbcCustomizationID:
			f.field(&inv.Customization, c)
		case ubl.CbcProfileID:
			f.field(&inv.Profile, c)
		case ubl.CbcID:
			f.field(&inv.Number, c)
		case ubl.CbcIssueDate:
			f.field(&inv.Issued, c)
		case ubl.CbcDueDate:
			f.field(&inv.Due, c)
		case ubl.CbcInvoiceTypeCode:
			f.field(&inv.Type, c)
		case ubl.CbcCreditNoteTypeCode:
			f.field(&inv.CreditType, c)
		case ubl.CbcTaxPointDate:
			f.field(&inv.TaxPoint, c)
		case ubl.CbcDocumentCurrencyCode:
			f.listed(&inv.Currencies, c)
		case ubl.CbcTaxCurrencyCode:
			f.listed(&inv.TaxCurrencies, c)
		case ubl.CbcBuyerReference:
			f.field(&inv.BuyerReference, c)
		case ubl.CbcNote:
			inv.Notes++
		case ubl.CacOrderReference:
			if n := t.Child(c, ubl.CbcID); n != ubl.None {
				f.field(&inv.OrderNumber, n)
			}
		case ubl.CacPaymentTerms:
			if n := t.Child(c, ubl.CbcNote); n != ubl.None {
				f.listed(&inv.Terms, n)
			}
		}
	}
}

// walk visits the children of n, which is of kind k.
func (f *filler) walk(n Node, k ubl.Kind) {
	t := f.t
	for c, end := n+1, t.End(n); c < end; c = t.End(c) {
		f.visit(c, t.Kind(c), n, k)
	}
}

// visit puts an element into the lists that it belongs to and goes on below it.
func (f *filler) visit(c Node, k ubl.Kind, parent Node, pk ubl.Kind) {
	f.blank(c)
	if f.basic(c, k, parent, pk) {
		f.walk(c, k)
		return
	}
	switch k {
	case ubl.CacInvoiceLine, ubl.CacCreditNoteLine:
		f.fillLine(c, k, parent)
	case ubl.CacAllowanceCharge:
		f.fillCharge(c, parent, pk)
	case ubl.CacTaxCategory, ubl.CacClassifiedTaxCategory:
		f.fillCategory(c, k, parent, pk)
	case ubl.CacTaxTotal:
		f.fillTaxTotal(c, parent)
	case ubl.CacTaxSubtotal:
		f.fillSubtotal(c, parent, pk)
	case ubl.CacAccountingSupplierParty:
		f.outerParty(&f.inv.Sellers, c, k, parent, SellerAddress)
	case ubl.CacAccountingCustomerParty:
		f.outerParty(&f.inv.Buyers, c, k, parent, BuyerAddress)
	case ubl.CacPayeeParty:
		f.fillParty(&f.inv.Payees, c, c, k, parent == ubl.Root, 0)
	case ubl.CacTaxRepresentativeParty:
		f.fillParty(&f.inv.Representatives, c, c, k, parent == ubl.Root, RepresentativeAddress)
	default:
		f.group(c, k, parent, pk)
		f.walk(c, k)
	}
}

// blank notes an element without children and text.
func (f *filler) blank(c Node) {
	if f.t.End(c) != c+1 {
		return
	}
	if text := f.t.Text(c); text == "" || isSpace(text[0]) && trimSpace(text) == "" {
		f.inv.Empty = append(f.inv.Empty, c)
	}
}

// basic puts a business term that rules look at wherever it stands into its list.
func (f *filler) basic(c Node, k ubl.Kind, parent Node, pk ubl.Kind) bool {
	inv := f.inv
	switch k {
	case ubl.CbcTaxAmount:
		f.currency(c, pk == ubl.CacTaxSubtotal || pk == ubl.CacTaxTotal && f.sibling(parent, ubl.CacTaxSubtotal) != ubl.None)
	case ubl.CbcAmount, ubl.CbcBaseAmount, ubl.CbcPriceAmount, ubl.CbcTaxableAmount, ubl.CbcLineExtensionAmount, ubl.CbcTaxExclusiveAmount,
		ubl.CbcTaxInclusiveAmount, ubl.CbcAllowanceTotalAmount, ubl.CbcChargeTotalAmount, ubl.CbcPrepaidAmount,
		ubl.CbcPayableRoundingAmount, ubl.CbcPayableAmount:
		f.currency(c, true)
	case ubl.CbcIssueDate, ubl.CbcDueDate, ubl.CbcTaxPointDate, ubl.CbcStartDate, ubl.CbcEndDate, ubl.CbcActualDeliveryDate:
		f.listed(&inv.Dates, c)
	case ubl.CbcEndpointID, ubl.CbcCompanyID:
		f.identifier(c, k, parent, pk)
	case ubl.CbcID:
		if pk == ubl.CacPartyIdentification {
			f.identifier(c, k, parent, pk)
		}
	case ubl.CbcIdentificationCode:
		inv.Abroad = inv.Abroad || f.t.Text(c) != "IT"
	case ubl.CbcInvoiceTypeCode:
		f.listed(&inv.TypeCodes, c)
	case ubl.CbcCreditNoteTypeCode:
		f.listed(&inv.CreditCodes, c)
	case ubl.CbcTaxCurrencyCode:
		code := &inv.TaxCodes[grow(&inv.TaxCodes)]
		f.field(&code.Field, c)
		if n := f.sibling(parent, ubl.CbcDocumentCurrencyCode); n != ubl.None {
			f.field(&code.Document, n)
		}
	case ubl.CbcEmbeddedDocumentBinaryObject:
		f.id(&inv.MIMECodes[grow(&inv.MIMECodes)], c, ubl.MimeCode)
	case ubl.CbcLineID:
		if pk == ubl.CacOrderLineReference {
			f.listed(&inv.OrderLines, c)
		}
	case ubl.CbcPrimaryAccountNumberID:
		if pk == ubl.CacCardAccount && f.t.Kind(f.t.Parent(parent)) == ubl.CacPaymentMeans {
			f.listed(&inv.CardNumbers, c)
		}
	case ubl.CbcBaseQuantity:
		if pk == ubl.CacPrice {
			f.baseUnit(c, parent)
		}
	default:
		return false
	}
	return true
}

func (f *filler) baseUnit(c, price Node) {
	unit, ok := f.t.Attr(c, ubl.UnitCode)
	if !ok {
		return
	}
	u := BaseUnit{Node: c, Unit: unit}
	line := f.t.Parent(price)
	invoiced, credited := f.sibling(line, ubl.CbcInvoicedQuantity), f.sibling(line, ubl.CbcCreditedQuantity)
	u.Quantity = invoiced != ubl.None || credited != ubl.None
	quantity := invoiced
	if f.inv.CreditNote {
		quantity = credited
	}
	if quantity != ubl.None {
		u.Other, u.HasOther = f.t.Attr(quantity, ubl.UnitCode)
	}
	f.inv.BaseUnits = append(f.inv.BaseUnits, u)
}

func (f *filler) currency(c Node, document bool) {
	u := &f.inv.Amounts[grow(&f.inv.Amounts)]
	u.Node, u.Document = c, document
	u.Currency, u.Has = f.t.Attr(c, ubl.CurrencyID)
}

func (f *filler) identifier(c Node, k ubl.Kind, parent Node, pk ubl.Kind) {
	i := Identifier{Endpoint: k == ubl.CbcEndpointID}
	f.id(&i.ID, c, ubl.SchemeID)
	if pk == ubl.CacPartyTaxScheme {
		if f.scheme != parent {
			var scheme Field
			f.below(&scheme, parent, ubl.CacTaxScheme, ubl.CbcID)
			f.scheme, f.vat = parent, scheme.Norm() == "VAT"
		}
		i.VAT = f.vat
	}
	if i.HasScheme || i.VAT {
		f.inv.Identifiers = append(f.inv.Identifiers, i)
	}
}

// below reads group/term of n.
func (f *filler) below(dst *Field, n Node, group, term ubl.Kind) {
	t := f.t
	for c, end := n+1, t.End(n); c < end; c = t.End(c) {
		if t.Kind(c) == group {
			for d, last := c+1, t.End(c); d < last; d = t.End(d) {
				if t.Kind(d) == term {
					f.field(dst, d)
				}
			}
		}
	}
}

// group reads a group that is a part of nothing bigger.
func (f *filler) group(c Node, k ubl.Kind, parent Node, pk ubl.Kind) {
	switch k {
	case ubl.CacLegalMonetaryTotal:
		f.totals(c, parent)
	case ubl.CacPaymentMeans:
		f.means(c, parent)
	case ubl.CacInvoicePeriod:
		f.period(c, parent, pk)
	case ubl.CacDelivery:
		f.delivery(c, parent)
	case ubl.CacAdditionalDocumentReference:
		f.attachment(c, parent)
	case ubl.CacBillingReference:
		b := &f.inv.Billing[grow(&f.inv.Billing)]
		b.Node, b.Top = c, parent == ubl.Root
		b.Invoice = f.t.Child(c, ubl.CacInvoiceDocumentReference)
		f.below(&b.ID, c, ubl.CacInvoiceDocumentReference, ubl.CbcID)
	case ubl.CacPartyTaxScheme:
		f.taxScheme(c, parent)
	case ubl.CacAdditionalItemProperty:
		f.inv.Properties = append(f.inv.Properties, Property{
			Node: c, Name: f.t.Child(c, ubl.CbcName) != ubl.None, Value: f.t.Child(c, ubl.CbcValue) != ubl.None,
		})
	}
}

func (f *filler) totals(c, parent Node) {
	v := &f.inv.Totals[grow(&f.inv.Totals)]
	v.Node, v.Top = c, parent == ubl.Root
	t := f.t
	for d := t.First(c); d != ubl.None; d = t.Next(d) {
		switch t.Kind(d) {
		case ubl.CbcLineExtensionAmount:
			f.amount(&v.Lines, d)
		case ubl.CbcAllowanceTotalAmount:
			f.amount(&v.Allowances, d)
		case ubl.CbcChargeTotalAmount:
			f.amount(&v.Charges, d)
		case ubl.CbcTaxExclusiveAmount:
			f.amount(&v.TaxExclusive, d)
		case ubl.CbcTaxInclusiveAmount:
			f.amount(&v.TaxInclusive, d)
		case ubl.CbcPrepaidAmount:
			f.amount(&v.Prepaid, d)
		case ubl.CbcPayableRoundingAmount:
			f.amount(&v.Rounding, d)
		case ubl.CbcPayableAmount:
			f.amount(&v.Payable, d)
		}
	}
}

func (f *filler) means(c, parent Node) {
	m := &f.inv.Means[grow(&f.inv.Means)]
	m.Node, m.Top = c, parent == ubl.Root
	t := f.t
	for d := t.First(c); d != ubl.None; d = t.Next(d) {
		switch t.Kind(d) {
		case ubl.CbcPaymentMeansCode:
			f.field(&m.Code, d)
		case ubl.CbcPaymentID:
			f.field(&m.PaymentID, d)
		case ubl.CacPayeeFinancialAccount:
			m.Account = d
			if id := t.Child(d, ubl.CbcID); m.Unnamed == 0 && (id == ubl.None || trimSpace(t.Text(id)) == "") {
				m.Unnamed = d
			}
			f.below(&m.BranchID, d, ubl.CacFinancialInstitutionBranch, ubl.CbcID)
		case ubl.CacCardAccount:
			m.Card = d
		case ubl.CacPaymentMandate:
			m.Mandate = d
			f.below(&m.DebitAccount, d, ubl.CacPayerFinancialAccount, ubl.CbcID)
		}
	}
	f.below(&m.AccountID, c, ubl.CacPayeeFinancialAccount, ubl.CbcID)
	f.below(&m.MandateID, c, ubl.CacPaymentMandate, ubl.CbcID)
}

func (f *filler) period(c, parent Node, pk ubl.Kind) {
	p := &f.inv.Periods[grow(&f.inv.Periods)]
	p.Node, p.Top = c, parent == ubl.Root
	p.InLine = pk == ubl.CacInvoiceLine || pk == ubl.CacCreditNoteLine
	p.Proper = p.InLine && f.proper
	t := f.t
	for d := t.First(c); d != ubl.None; d = t.Next(d) {
		p.Children = true
		switch t.Kind(d) {
		case ubl.CbcStartDate:
			f.field(&p.Start, d)
		case ubl.CbcEndDate:
			f.field(&p.End, d)
		case ubl.CbcDescriptionCode:
			f.field(&p.Code, d)
		}
	}
}

func (f *filler) delivery(c, parent Node) {
	i := grow(&f.inv.Deliveries)
	d := &f.inv.Deliveries[i]
	d.Node, d.Top = c, parent == ubl.Root
	t := f.t
	for e := t.First(c); e != ubl.None; e = t.Next(e) {
		switch t.Kind(e) {
		case ubl.CbcActualDeliveryDate:
			f.field(&d.Date, e)
		case ubl.CacDeliveryLocation:
			for a := t.First(e); a != ubl.None; a = t.Next(a) {
				if t.Kind(a) == ubl.CacAddress {
					f.address(&d.Address, a, DeliveryAddress, d.Top)
				}
			}
		}
	}
}

// address reads an address, keeps the first as dst and adds it to the list.
func (f *filler) address(dst *Address, n Node, role AddressRole, top bool) {
	a := Address{Node: n, Role: role, Top: top}
	t := f.t
	for d := t.First(n); d != ubl.None; d = t.Next(d) {
		switch t.Kind(d) {
		case ubl.CbcStreetName:
			f.field(&a.Street, d)
		case ubl.CbcCityName:
			f.field(&a.City, d)
		case ubl.CbcPostalZone:
			f.field(&a.Zone, d)
		case ubl.CacCountry:
			for e := t.First(d); e != ubl.None; e = t.Next(e) {
				if t.Kind(e) == ubl.CbcIdentificationCode {
					f.field(&a.Country, e)
				}
			}
		}
	}
	if role != 0 {
		f.inv.Addresses = append(f.inv.Addresses, a)
	}
	if dst.Node == 0 {
		*dst = a
	} else if a.Country.Node != 0 {
		dst.Country.Repeated = true
	}
}

func (f *filler) attachment(c, parent Node) {
	a := &f.inv.Attachments[grow(&f.inv.Attachments)]
	a.Node, a.Top = c, parent == ubl.Root
	t := f.t
	for d := t.First(c); d != ubl.None; d = t.Next(d) {
		switch t.Kind(d) {
		case ubl.CbcID:
			f.id(&a.ID, d, ubl.SchemeID)
		case ubl.CbcDocumentTypeCode:
			f.field(&a.TypeCode, d)
		case ubl.CbcDocumentDescription:
			f.field(&a.Description, d)
		case ubl.CacAttachment:
			if e := t.Child(d, ubl.CbcEmbeddedDocumentBinaryObject); e != ubl.None {
				a.File, a.HasFile = t.Attr(e, ubl.Filename)
			}
			a.External = t.Child(d, ubl.CacExternalReference)
			f.below(&a.URI, d, ubl.CacExternalReference, ubl.CbcURI)
		}
	}
}

func (f *filler) taxScheme(c, parent Node) {
	s := &f.inv.TaxSchemes[grow(&f.inv.TaxSchemes)]
	s.Node, s.Of = c, parent
	t := f.t
	for d := t.First(c); d != ubl.None; d = t.Next(d) {
		switch t.Kind(d) {
		case ubl.CbcCompanyID:
			f.id(&s.Company, d, ubl.SchemeID)
		case ubl.CacTaxScheme:
			if e := t.Child(d, ubl.CbcID); e != ubl.None {
				f.field(&s.Scheme, e)
				s.VAT = s.VAT || isVAT(t.Text(e))
			}
		}
	}
}

// isVAT reports whether a scheme is VAT in upper case and normalised.
func isVAT(s string) bool {
	if s == "VAT" {
		return true
	}
	s = trimSpace(s)
	return len(s) == 3 && s[0]|0x20 == 'v' && s[1]|0x20 == 'a' && s[2]|0x20 == 't'
}

// outerParty reads seller and buyer, who stand one level deeper.
func (f *filler) outerParty(list *[]Party, c Node, k ubl.Kind, parent Node, role AddressRole) {
	t, found := f.t, false
	for d := t.First(c); d != ubl.None; d = t.Next(d) {
		if t.Kind(d) == ubl.CacParty {
			found = true
			f.fillParty(list, d, c, ubl.CacParty, parent == ubl.Root, role)
			f.blank(d)
		} else {
			f.visit(d, t.Kind(d), c, k)
		}
	}
	if !found {
		*list = append(*list, Party{Outer: c, Top: parent == ubl.Root})
	}
}

// fillParty reads a party and what stands in it.
func (f *filler) fillParty(list *[]Party, n, outer Node, k ubl.Kind, top bool, role AddressRole) {
	i := grow(list)
	p := Party{Node: n, Outer: outer, Top: top}
	t := f.t
	p.ids.from, p.names.from, p.legals.from = int32(len(f.inv.PartyIDs)), int32(len(f.inv.PartyNames)), int32(len(f.inv.LegalIDs))
	for c := t.First(n); c != ubl.None; c = t.Next(c) {
		switch t.Kind(c) {
		case ubl.CbcEndpointID:
			f.id(&p.Endpoint, c, ubl.SchemeID)
		case ubl.CacPartyIdentification:
			for d := t.First(c); d != ubl.None; d = t.Next(d) {
				if t.Kind(d) == ubl.CbcID {
					f.id(&f.inv.PartyIDs[grow(&f.inv.PartyIDs)], d, ubl.SchemeID)
				}
			}
		case ubl.CacPartyName:
			for d := t.First(c); d != ubl.None; d = t.Next(d) {
				if t.Kind(d) == ubl.CbcName {
					f.listed(&f.inv.PartyNames, d)
				}
			}
		case ubl.CacPostalAddress:
			f.address(&p.Address, c, role, top)
		case ubl.CacPartyLegalEntity:
			p.Legal = c
			for d := t.First(c); d != ubl.None; d = t.Next(d) {
				switch t.Kind(d) {
				case ubl.CbcRegistrationName:
					f.field(&p.Registered, d)
				case ubl.CbcCompanyID:
					f.id(&p.LegalID, d, ubl.SchemeID)
					f.id(&f.inv.LegalIDs[grow(&f.inv.LegalIDs)], d, ubl.SchemeID)
				}
			}
		case ubl.CacContact:
			f.contact(&p.Contact, c)
		}
	}
	p.ids.to, p.names.to, p.legals.to = int32(len(f.inv.PartyIDs)), int32(len(f.inv.PartyNames)), int32(len(f.inv.LegalIDs))
	p.schemes.from = int32(len(f.inv.TaxSchemes))
	f.walk(n, k)
	p.schemes.to = int32(len(f.inv.TaxSchemes))
	(*list)[i] = p
}

func (f *filler) contact(dst *Contact, n Node) {
	dst.Node = n
	t := f.t
	for d := t.First(n); d != ubl.None; d = t.Next(d) {
		switch t.Kind(d) {
		case ubl.CbcName:
			f.field(&dst.Name, d)
		case ubl.CbcTelephone:
			f.field(&dst.Phone, d)
		case ubl.CbcElectronicMail:
			f.field(&dst.Mail, d)
		}
	}
}

// fillLine reads a line and what stands in it.
func (f *filler) fillLine(n Node, k ubl.Kind, parent Node) {
	inv, t := f.inv, f.t
	i := grow(&inv.Lines)
	l := &inv.Lines[i]
	l.Node, l.CreditNote = n, k == ubl.CacCreditNoteLine
	if l.CreditNote {
		inv.someLines[1] = true
	} else {
		inv.someLines[0] = true
	}
	l.Top = parent == ubl.Root
	l.Proper = l.Top && l.CreditNote == inv.CreditNote
	for c := t.First(n); c != ubl.None; c = t.Next(c) {
		switch t.Kind(c) {
		case ubl.CbcID:
			f.field(&l.ID, c)
		case ubl.CbcInvoicedQuantity:
			f.quantity(&l.Invoiced, c)
		case ubl.CbcCreditedQuantity:
			f.quantity(&l.Credited, c)
		case ubl.CbcLineExtensionAmount:
			f.amount(&l.Net, c)
		case ubl.CacDocumentReference:
			l.References++
			if d := t.Child(c, ubl.CbcDocumentTypeCode); d != ubl.None && t.Text(d) == "130" {
				l.Object = true
			}
		case ubl.CacItem:
			f.item(l, c)
		case ubl.CacPrice:
			f.price(l, c)
		}
	}
	line, proper := f.line, f.proper
	f.line, f.proper = i, l.Proper
	charges, categories := len(inv.Charges), len(inv.Categories)
	f.walk(n, k)
	f.line, f.proper = line, proper
	l = &inv.Lines[i] // the list may have moved
	l.charges = span{int32(charges), int32(len(inv.Charges))}
	l.categories = span{int32(categories), int32(len(inv.Categories))}
}

func (f *filler) item(l *Line, n Node) {
	t := f.t
	for c := t.First(n); c != ubl.None; c = t.Next(c) {
		switch t.Kind(c) {
		case ubl.CbcName:
			f.field(&l.Name, c)
		case ubl.CacStandardItemIdentification:
			for d := t.First(c); d != ubl.None; d = t.Next(d) {
				if t.Kind(d) == ubl.CbcID {
					f.id(&f.inv.ItemIDs[grow(&f.inv.ItemIDs)], d, ubl.SchemeID)
				}
			}
		case ubl.CacCommodityClassification:
			for d := t.First(c); d != ubl.None; d = t.Next(d) {
				if t.Kind(d) != ubl.CbcItemClassificationCode {
					continue
				}
				class := &f.inv.ItemClasses[grow(&f.inv.ItemClasses)]
				f.id(class, d, ubl.ListID)
				l.ListTST = l.ListTST || class.Scheme == "TST"
				switch version, _ := t.Attr(d, ubl.ListVersionID); version {
				case "19.05.01", "19.0501", "26.08.01", "26.0801":
					l.ListVersion = true
				}
			}
		}
	}
}

func (f *filler) price(l *Line, n Node) {
	t := f.t
	for c := t.First(n); c != ubl.None; c = t.Next(c) {
		switch t.Kind(c) {
		case ubl.CbcPriceAmount:
			if l.Price.Node != 0 {
				if l.Prices == nil {
					l.Prices = append(l.Prices, l.Price.Number)
				}
				f.number(&l.Prices[grow(&l.Prices)], c)
			}
			f.amount(&l.Price, c)
		case ubl.CbcBaseQuantity:
			f.quantity(&l.Base, c)
		}
	}
}

// fillCharge reads an allowance or charge and what stands in it.
func (f *filler) fillCharge(n, parent Node, pk ubl.Kind) {
	inv, t := f.inv, f.t
	i := grow(&inv.Charges)
	g := &inv.Charges[i]
	g.Node = n
	switch {
	case parent == ubl.Root:
		g.Level, g.Proper = DocumentLevel, true
	case pk == ubl.CacInvoiceLine || pk == ubl.CacCreditNoteLine:
		g.Level, g.Proper = LineLevel, f.proper
	case pk == ubl.CacPrice:
		g.Level = PriceLevel
		if p := f.sibling(parent, ubl.CbcPriceAmount); p != ubl.None {
			f.number(&g.Price, p)
		}
	}
	for c := t.First(n); c != ubl.None; c = t.Next(c) {
		switch t.Kind(c) {
		case ubl.CbcChargeIndicator:
			f.field(&g.Indicator, c)
			switch trimSpace(g.Indicator.Text) {
			case "false", "0":
				g.Kind = Allowance
			case "true", "1":
				g.Kind = Surcharge
			}
		case ubl.CbcAmount:
			f.amount(&g.Amount, c)
		case ubl.CbcBaseAmount:
			f.amount(&g.Base, c)
		case ubl.CbcMultiplierFactorNumeric:
			f.number(&g.Factor, c)
		case ubl.CbcAllowanceChargeReason:
			f.field(&g.Reason, c)
		case ubl.CbcAllowanceChargeReasonCode:
			f.field(&g.ReasonCode, c)
		}
	}
	charge, categories := f.charge, len(inv.Categories)
	f.charge = i
	f.walk(n, ubl.CacAllowanceCharge)
	f.charge = charge
	inv.Charges[i].categories = span{int32(categories), int32(len(inv.Categories))}
}

// fillCategory reads a tax category and what stands in it.
func (f *filler) fillCategory(n Node, k ubl.Kind, parent Node, pk ubl.Kind) {
	t := f.t
	c := TaxCategory{Node: n, Classified: k == ubl.CacClassifiedTaxCategory, Owner: -1}
	switch {
	case c.Classified:
		if g := t.Kind(t.Parent(parent)); pk == ubl.CacItem && (g == ubl.CacInvoiceLine || g == ubl.CacCreditNoteLine) {
			c.Place, c.Owner = LinePlace, int32(f.line)
		}
	case pk == ubl.CacAllowanceCharge:
		c.Place, c.Owner = ChargePlace, int32(f.charge)
	case pk == ubl.CacTaxSubtotal:
		c.Place, c.Owner = SubtotalPlace, int32(f.subtotal)
		c.Top = f.inv.Subtotals[f.subtotal].Top
	}
	for d := t.First(n); d != ubl.None; d = t.Next(d) {
		switch t.Kind(d) {
		case ubl.CbcID:
			f.field(&c.ID, d)
		case ubl.CbcPercent:
			f.number(&c.Percent, d)
		case ubl.CbcTaxExemptionReason:
			f.field(&c.Reason, d)
		case ubl.CbcTaxExemptionReasonCode:
			f.field(&c.ReasonCode, d)
		case ubl.CacTaxScheme:
			if e := t.Child(d, ubl.CbcID); e != ubl.None {
				c.VAT = c.VAT || isVAT(t.Text(e))
			}
		}
	}
	c.Code = categoryOf(c.ID.Norm())
	f.inv.Categories = append(f.inv.Categories, c)
	f.walk(n, k)
}

// fillTaxTotal reads a tax total and what stands in it.
func (f *filler) fillTaxTotal(n, parent Node) {
	inv, t := f.inv, f.t
	i := grow(&inv.TaxTotals)
	v := TaxTotal{Node: n, Top: parent == ubl.Root}
	for c := t.First(n); c != ubl.None; c = t.Next(c) {
		if t.Kind(c) == ubl.CbcTaxAmount {
			f.amount(&v.Amount, c)
		}
	}
	v.subtotals.from = int32(len(inv.Subtotals))
	f.walk(n, ubl.CacTaxTotal)
	v.subtotals.to = int32(len(inv.Subtotals))
	inv.TaxTotals[i] = v
}

// fillSubtotal reads a part of a tax breakdown and what stands in it.
func (f *filler) fillSubtotal(n, parent Node, pk ubl.Kind) {
	inv, t := f.inv, f.t
	i := grow(&inv.Subtotals)
	s := &inv.Subtotals[i]
	s.Node, s.InTotal = n, pk == ubl.CacTaxTotal
	s.Top = s.InTotal && t.Parent(parent) == ubl.Root
	for c := t.First(n); c != ubl.None; c = t.Next(c) {
		switch t.Kind(c) {
		case ubl.CbcTaxableAmount:
			f.amount(&s.Taxable, c)
		case ubl.CbcTaxAmount:
			f.amount(&s.Tax, c)
		}
	}
	subtotal, categories := f.subtotal, len(inv.Categories)
	f.subtotal = i
	f.walk(n, ubl.CacTaxSubtotal)
	f.subtotal = subtotal
	inv.Subtotals[i].categories = span{int32(categories), int32(len(inv.Categories))}
}
