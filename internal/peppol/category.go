package peppol

// Category is a VAT category code of UNCL 5305 as EN 16931 uses it.
type Category uint8

// The categories. OtherCategory is every other code and none.
const (
	OtherCategory  Category = iota
	StandardRate            // S
	ZeroRated               // Z
	Exempt                  // E
	ReverseCharge           // AE
	IntraCommunity          // K
	Export                  // G
	NotSubject              // O
	Canary                  // L, IGIC
	CeutaMelilla            // M, IPSI
	SplitPayment            // B
	categoryCount
)

var categoryCodes = [categoryCount]string{
	StandardRate: "S", ZeroRated: "Z", Exempt: "E", ReverseCharge: "AE", IntraCommunity: "K", Export: "G", NotSubject: "O",
	Canary: "L", CeutaMelilla: "M", SplitPayment: "B",
}

// String returns the code.
func (c Category) String() string { return categoryCodes[c] }

// categoryOf returns the category of a normalised code.
func categoryOf(code string) Category {
	switch code {
	case "S":
		return StandardRate
	case "Z":
		return ZeroRated
	case "E":
		return Exempt
	case "AE":
		return ReverseCharge
	case "K":
		return IntraCommunity
	case "G":
		return Export
	case "O":
		return NotSubject
	case "L":
		return Canary
	case "M":
		return CeutaMelilla
	case "B":
		return SplitPayment
	}
	return OtherCategory
}

// categories is a set of categories.
type categories uint16

func (s *categories) add(c Category)     { *s |= 1 << c }
func (s categories) has(c Category) bool { return s&(1<<c) != 0 }

// others reports whether there is a category other than c.
func (s categories) others(c Category) bool { return s&^(1<<c) != 0 }

// seen says which categories stand where. "Exact" sets hold the codes that stand without white
// space, "VAT" sets those whose scheme is VAT: the rules differ in what they ask for.
type seen struct {
	classified, classifiedVAT, classifiedExact categories // of items
	other, otherVAT, otherExact                categories // TaxCategory at any place
	charges, chargesVAT, chargesVATExact       [3]categories
	documentVAT                                [3]categories // of charges at document level
	documentExact                              categories
	breakdown, breakdownVAT                    categories // BG-23
	breakdownExact, breakdownVATExact          categories
	breakdownCount                             [categoryCount]int32 // those with the scheme VAT

	sellerTaxID, sellerVATID, agentVATID, buyerVATID, buyerLegalID bool
}

// finish derives what rules ask for again and again.
func (inv *Invoice) finish() {
	for i := range inv.Categories {
		inv.see(&inv.Categories[i])
	}
	inv.locate()
	s := &inv.seen
	for i := range inv.Sellers {
		s.sellerTaxID = s.sellerTaxID || inv.Sellers[i].registered(inv, false)
		s.sellerVATID = s.sellerVATID || inv.Sellers[i].registered(inv, true)
	}
	for i := range inv.Representatives {
		s.agentVATID = s.agentVATID || inv.Representatives[i].registered(inv, true)
	}
	for i := range inv.Buyers {
		s.buyerVATID = s.buyerVATID || inv.Buyers[i].registered(inv, true)
		s.buyerLegalID = s.buyerLegalID || inv.Buyers[i].LegalID.Exists()
	}
}

// registered reports whether the party has a tax identifier, one for VAT if so asked.
func (p *Party) registered(inv *Invoice, vat bool) bool {
	schemes := p.Schemes(inv)
	for i := range schemes {
		if t := &schemes[i]; t.Of == p.Node && t.Company.Exists() && (t.VAT || !vat) {
			return true
		}
	}
	return false
}

func (inv *Invoice) see(c *TaxCategory) {
	s := &inv.seen
	exact := c.Code != OtherCategory && c.ID.Text == categoryCodes[c.Code]
	if c.Classified {
		s.classified.add(c.Code)
		if c.VAT {
			s.classifiedVAT.add(c.Code)
		}
		if exact {
			s.classifiedExact.add(c.Code)
		}
		return
	}
	s.other.add(c.Code)
	if c.VAT {
		s.otherVAT.add(c.Code)
	}
	if exact {
		s.otherExact.add(c.Code)
	}
	switch {
	case c.Place == ChargePlace:
		g := &inv.Charges[c.Owner]
		s.charges[g.Kind].add(c.Code)
		if g.Level == DocumentLevel && exact {
			s.documentExact.add(c.Code)
		}
		if !c.VAT {
			break
		}
		s.chargesVAT[g.Kind].add(c.Code)
		if exact {
			s.chargesVATExact[g.Kind].add(c.Code)
		}
		if g.Level == DocumentLevel {
			s.documentVAT[g.Kind].add(c.Code)
		}
	case c.Place == SubtotalPlace && c.Top:
		s.breakdown.add(c.Code)
		if exact {
			s.breakdownExact.add(c.Code)
		}
		if !c.VAT {
			break
		}
		s.breakdownVAT.add(c.Code)
		if c.ID.Exists() {
			s.breakdownCount[c.Code]++
		}
		if exact {
			s.breakdownVATExact.add(c.Code)
		}
	}
}

// sumKey names a sum: of a category, or of a category at one rate.
type sumKey struct {
	code  Category
	rated bool
	coef  int64
	scale int32
	long  string // a rate that does not fit coef
}

// sum is what lines, allowances and charges of a category add up to.
type sum struct {
	lines      [2]Decimal // of invoice and credit note lines below the document element
	some       [2]bool    // there are such lines, at any place
	charged    bool       // there is an allowance or charge, at any place
	surcharges Decimal    // at document level
	allowances Decimal
}

// total returns lines + charges - allowances.
func (s *sum) total(credit int) Decimal { return s.lines[credit].Add(s.surcharges).Sub(s.allowances) }

// sums holds the sums of a document. They are made once, in a single pass over the lines, so that
// many lines in many parts of the breakdown do not multiply.
type sums struct {
	made   bool
	broken bool // a value that belongs to them cannot be read
	parts  map[sumKey]*sum
	zero   sum
}

// rateKey returns the key of a category at a rate; 10 and 10.00 are one rate.
func rateKey(code Category, rate Decimal) sumKey {
	rate = rate.reduce()
	if rate.big != nil {
		return sumKey{code: code, rated: true, scale: rate.scale, long: rate.big.String()}
	}
	return sumKey{code: code, rated: true, coef: rate.coef, scale: rate.scale}
}

// rated are the categories whose sums are made for each rate.
const rated = categories(1<<StandardRate | 1<<Canary | 1<<CeutaMelilla)

// sum returns the sum of a key; the rule is silenced where it cannot be made.
func (inv *Invoice) sum(k sumKey, r *Report) *sum {
	s := &inv.sums
	if !s.made {
		inv.makeSums(r)
		s.broken = r.broken
	}
	if s.broken {
		r.broken = true
	}
	if p := s.parts[k]; p != nil {
		return p
	}
	return &s.zero
}

func (inv *Invoice) makeSums(r *Report) {
	s := &inv.sums
	s.made, s.parts = true, map[sumKey]*sum{}
	var last struct { // lines mostly have the keys of the line before
		code Category
		rate Decimal
		a, b *sum
	}
	for i := range inv.Lines {
		l := &inv.Lines[i]
		credit := 0
		if l.CreditNote {
			credit = 1
		}
		net, ok := r.decimal(&l.Net.Number)
		add := func(p *sum) {
			p.some[credit] = true
			if ok && l.Top {
				p.lines[credit] = p.lines[credit].Add(net)
			}
		}
		cs := l.Categories(inv)
		if len(cs) == 1 && cs[0].Place == LinePlace && last.a != nil && cs[0].Code == last.code && cs[0].Percent.OK && !cs[0].Percent.Repeated &&
			cs[0].Percent.Value == last.rate {
			add(last.a)
			if last.b != nil {
				add(last.b)
			}
			continue
		}
		parts := inv.keys(cs, LinePlace, r)
		for _, p := range parts {
			add(p)
		}
		last.a, last.b = nil, nil
		if len(cs) == 1 && cs[0].Percent.OK && cs[0].Percent.Value.big == nil && len(parts) > 0 {
			last.code, last.rate, last.a = cs[0].Code, cs[0].Percent.Value, parts[0]
			if len(parts) > 1 {
				last.b = parts[1]
			}
		}
	}
	for i := range inv.Charges {
		g := &inv.Charges[i]
		parts := inv.keys(g.Categories(inv), ChargePlace, r)
		if len(parts) == 0 {
			continue
		}
		for _, p := range parts {
			p.charged = true
		}
		if g.Level != DocumentLevel || g.Kind == UnknownKind {
			continue
		}
		amount, ok := r.decimal(&g.Amount.Number)
		for _, p := range parts {
			switch {
			case !ok:
			case g.Kind == Surcharge:
				p.surcharges = p.surcharges.Add(amount)
			default:
				p.allowances = p.allowances.Add(amount)
			}
		}
	}
}

// keys returns the sums that a line or charge with these categories belongs to: that of each
// category, and for rated ones that of each category with each rate, since the rules do not ask
// whether category and rate stand together.
func (inv *Invoice) keys(cs []TaxCategory, place Place, r *Report) []*sum {
	var set categories
	for i := range cs {
		if cs[i].Place == place {
			set.add(cs[i].Code)
		}
	}
	if set == 0 {
		return nil
	}
	var out []*sum
	get := func(k sumKey) {
		p := inv.sums.parts[k]
		if p == nil {
			p = &sum{}
			inv.sums.parts[k] = p
		}
		out = append(out, p)
	}
	for c := StandardRate; c < categoryCount; c++ {
		if set.has(c) {
			get(sumKey{code: c})
		}
	}
	if set&rated == 0 {
		return out
	}
	seen := map[sumKey]bool{}
	for i := range cs {
		if cs[i].Place != place {
			continue
		}
		rate, ok := r.decimal(&cs[i].Percent)
		if !ok {
			continue
		}
		for c := StandardRate; c < categoryCount; c++ {
			if k := rateKey(c, rate); set.has(c) && rated.has(c) && !seen[k] {
				seen[k] = true
				get(k)
			}
		}
	}
	return out
}
