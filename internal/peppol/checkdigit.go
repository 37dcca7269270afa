package peppol

import "strings"

// allDigits reports whether s is n decimal digits; n < 0 is any number but none.
func allDigits(s string, n int) bool {
	if n >= 0 && len(s) != n || s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// all reports whether each byte of s is in the set.
func all(s, set string) bool {
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(set, s[i]) < 0 {
			return false
		}
	}
	return true
}

// gln checks a number of GS1 (GS1 General Specifications §7.9.1): weights 3 and 1 from the right.
func gln(s string) bool {
	if !allDigits(s, -1) {
		return false
	}
	sum, last := 0, len(s)-1
	for i := 0; i < last; i++ {
		weight := 1
		if (last-i)%2 == 1 {
			weight = 3
		}
		sum += weight * int(s[i]-'0')
	}
	return (10-sum%10)%10 == int(s[last]-'0')
}

// mod11 checks a Norwegian organisation number: weights 2 to 7 from the right.
func mod11(s string) bool {
	if !allDigits(s, -1) || strings.Trim(s, "0") == "" {
		return false
	}
	sum, last := 0, len(s)-1
	for i := 0; i < last; i++ {
		sum += ((last-1-i)%6 + 2) * int(s[i]-'0')
	}
	return (11-sum%11)%11 == int(s[last]-'0')
}

// mod97 checks a Belgian enterprise number: ten digits, of which the last two are 97 less the
// rest of the division of the others by 97.
func mod97(s string) bool {
	if !allDigits(s, 10) {
		return false
	}
	n, _ := digits(s[:8])
	check, _ := digits(s[8:])
	return check == 97-n%97
}

// luhn checks a Swedish organisation number. The reference looks at the first ten digits and does
// not mind more.
func luhn(s string) bool {
	if !allDigits(s, -1) || len(s) < 10 {
		return false
	}
	sum := 0
	for i := range 9 {
		d := int(s[i] - '0')
		if i%2 == 0 {
			d = 2*d%10 + 2*d/10
		}
		sum += d
	}
	return (10-sum%10)%10 == int(s[9]-'0')
}

// abn checks an Australian business number.
func abn(s string) bool {
	if !allDigits(s, 11) {
		return false
	}
	sum := 10 * (int(s[0]-'0') - 1)
	for i := 1; i < 11; i++ {
		sum += (2*i - 1) * int(s[i]-'0')
	}
	return sum%89 == 0
}

// tin checks a Greek tax number: the first nine characters count.
func tin(s string) bool {
	if len(s) < 9 || !allDigits(s[:9], 9) {
		return false
	}
	sum := 0
	for i := range 8 {
		sum += int(s[i]-'0') << (8 - i)
	}
	return sum%11%10 == int(s[8]-'0')
}

const (
	letters      = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	lettersOrNum = letters + "0123456789"
)

// integer reports whether a normalised text is an xs:integer.
func integer(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return allDigits(s, -1)
}

// codiceIPA checks the code of an Italian public office.
func codiceIPA(s string) bool { return len(s) == 6 && all(s, lettersOrNum) }

// codiceFiscale checks the form of an Italian tax code: of a person with 16 characters, of a
// company with 11.
func codiceFiscale(s string) bool {
	switch runes(s) {
	case 11:
		return integer(s)
	case 16:
		return len(s) == 16 && all(s[:6], letters) && integer(trimSpace(s[6:8])) && all(s[8:9], letters) && integer(trimSpace(s[9:11])) &&
			integer(trimSpace(s[14:15])) && all(s[15:], letters)
	}
	return false
}

// partitaIVA checks an Italian VAT number; numbers of other countries are not looked at.
func partitaIVA(s string) bool {
	if !strings.HasPrefix(s, "IT") && !strings.HasPrefix(s, "it") {
		return true
	}
	s = s[2:]
	if !allDigits(s, 11) {
		return false
	}
	sum := 0
	for i := range 11 {
		d := int(s[i] - '0')
		if i%2 == 1 {
			d = 2*d%10 + 2*d/10
		}
		sum += d
	}
	return sum%10 == 0
}

// danish reports whether s is DK and eight digits.
func danish(s string) bool {
	return len(s) == 10 && s[:2] == "DK" && allDigits(s[2:], 8)
}

// dutchVAT reports whether s has the form of a Dutch VAT number.
func dutchVAT(s string) bool {
	return len(s) == 14 && s[:2] == "NL" && allDigits(s[2:11], 9) && s[11] == 'B' && allDigits(s[12:], 2)
}

// iban checks an account number from which white space was taken (ISO 13616, ISO 7064 MOD 97-10).
// Small letters count by their own code, as the reference has it.
func iban(s string) bool {
	if len(s) < 4 || len(s) > 34 || !all(s[:2], letters[:26]) || !allDigits(s[2:4], 2) || !all(s[4:], lettersOrNum) {
		return false
	}
	rest := 0
	add := func(c byte) {
		if c > 64 {
			rest = (rest*100 + int(c) - 55) % 97
		} else {
			rest = (rest*10 + int(c) - 48) % 97
		}
	}
	for i := 4; i < len(s); i++ {
		add(s[i])
	}
	for i := range 4 {
		add(s[i])
	}
	return rest == 1
}

// withoutSpace takes all white space out.
func withoutSpace(s string) string {
	return strings.Map(func(c rune) rune {
		if c < 0x80 && isSpace(byte(c)) {
			return -1
		}
		return c
	}, s)
}

// schemeRules check identifiers by the scheme that they name.
func schemeRules() []Rule {
	// The reference judges an identifier by the first rule that fits. That matters for a VAT
	// identifier with a scheme: only a scheme of the rules that stand later gives way.
	check := func(id, scheme, message string, ok func(raw, norm string) bool) Rule {
		return whole(id, "BT-29 BT-30 BT-34 BT-46 BT-47 BT-49", message, func(inv *Invoice, r *Report) {
			for i := range inv.Identifiers {
				x := &inv.Identifiers[i]
				if !x.HasScheme || x.Scheme != scheme || scheme == "9907" && !x.Endpoint || scheme == "0217" && x.dutch() {
					continue
				}
				if !ok(x.Text, x.Norm()) {
					r.Differ(x.Node, x.Text, "")
				}
			}
		})
	}
	norm := func(f func(string) bool) func(string, string) bool { return func(_, n string) bool { return f(n) } }
	number := func(n int) func(string, string) bool { return norm(func(s string) bool { return allDigits(s, n) }) }
	return family("schemeRules",
		check("PEPPOL-COMMON-R040", "0088", "The GLN has a wrong check digit.", norm(gln)),
		check("PEPPOL-COMMON-R041", "0192", "The Norwegian organisation number must have nine digits and the right check digit.", norm(func(s string) bool { return allDigits(s, 9) && mod11(s) })),
		check("PEPPOL-COMMON-R042", "0184", "The Danish CVR number must have eight digits, perhaps with DK before them.", func(s, _ string) bool { return danish(s) || allDigits(s, 8) }),
		check("PEPPOL-COMMON-R043", "0208", "The Belgian enterprise number must have ten digits and the right check digits.", norm(mod97)),
		check("PEPPOL-COMMON-R044", "0201", "The Italian IPA code must have six letters or digits.", norm(codiceIPA)).warning(),
		check("PEPPOL-COMMON-R045", "0210", "The Italian tax code has a wrong form.", norm(codiceFiscale)).warning(),
		check("PEPPOL-COMMON-R046", "9907", "The Italian tax code has a wrong form.", norm(codiceFiscale)).warning(),
		check("PEPPOL-COMMON-R047", "0211", "The Italian VAT number must have 11 digits and the right check digit.", norm(partitaIVA)).warning(),
		check("PEPPOL-COMMON-R049", "0007", "The Swedish organisation number must have ten digits and the right check digit.", norm(func(s string) bool { return len(s) == 10 && luhn(s) })),
		check("PEPPOL-COMMON-R050", "0151", "The Australian business number must have 11 digits and the right check digits.", norm(abn)),
		check("PEPPOL-COMMON-R052", "0096", "The Danish P number must have ten digits.", func(s, _ string) bool { return allDigits(s, 10) }),
		check("PEPPOL-COMMON-R053", "0198", "The Danish SE number must be DK and eight digits.", func(s, _ string) bool { return danish(s) }),
		check("PEPPOL-COMMON-R054", "0106", "The Dutch KVK number must have eight digits.", number(8)).warning(),
		check("PEPPOL-COMMON-R055", "0190", "The Dutch OIN must have 20 digits.", number(20)).warning(),
		check("PEPPOL-COMMON-R056-1", "9944", "The Dutch VAT number must have the form NL123456789B01.", norm(dutchVAT)).warning(),
		whole("PEPPOL-COMMON-R056-2", "BT-31 BT-48 BT-63", "The Dutch VAT identifier must have the form NL123456789B01.", func(inv *Invoice, r *Report) {
			for i := range inv.Identifiers {
				x := &inv.Identifiers[i]
				if x.dutch() && !judgedBefore(x) && !dutchVAT(x.Norm()) {
					r.Differ(x.Node, x.Text, "")
				}
			}
		}).warning(),
		check("PEPPOL-COMMON-R057", "0217", "The identifier must have 12 digits.", number(12)).warning(),
	)
}

// dutch reports whether x is a VAT identifier that begins as a Dutch one.
func (x *Identifier) dutch() bool { return x.VAT && strings.HasPrefix(x.Norm(), "NL") }

// judgedBefore reports whether the scheme of a company's identifier has a rule that goes before
// the one about Dutch VAT identifiers.
func judgedBefore(x *Identifier) bool {
	if !x.HasScheme {
		return false
	}
	switch x.Scheme {
	case "0088", "0192", "0184", "0096", "0198", "0208", "0201", "0210", "0211", "0007", "0151", "0106", "0190", "9944":
		return true
	}
	return false
}
