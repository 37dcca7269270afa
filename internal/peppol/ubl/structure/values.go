package structure

import (
	"strings"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

// simple judges an element that holds a value.
func (c *checker) simple(n ubl.Node, typ ubl.Type) {
	if child := c.t.First(n); child != ubl.None {
		c.fail(content, n, c.t.RawName(child), "a value")
		return
	}
	text := c.t.Text(n)
	ok, want := true, ""
	switch typ {
	case ubl.AmountType, ubl.QuantityType, ubl.MeasureType, ubl.NumericType:
		ok, want = isDecimal(collapse(text)), "a decimal number such as 12.50"
	case ubl.IndicatorType:
		ok, want = isBoolean(collapse(text)), "true or false"
	case ubl.DateType:
		ok, want = isDate(collapse(text)), "a date such as 2026-03-31"
	case ubl.TimeType:
		ok, want = isTime(collapse(text)), "a time such as 14:30:00"
	case ubl.BinaryType:
		ok, want = isBase64(text), "base64"
	}
	if !ok {
		c.fail(value, n, text, want)
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func blank(s string) bool { return collapse(s) == "" }

// collapse takes white space off both ends, as the types of XML Schema do that have none inside.
func collapse(s string) string {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// digits is the number of decimal digits that s begins with.
func digits(s string) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// isDecimal reports whether s is an xs:decimal (XML Schema Part 2 §3.2.3).
func isDecimal(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	whole := digits(s)
	if whole == len(s) {
		return whole > 0
	}
	if s[whole] != '.' {
		return false
	}
	fraction := digits(s[whole+1:])
	return whole+fraction > 0 && whole+1+fraction == len(s)
}

func isBoolean(s string) bool { return s == "true" || s == "false" || s == "1" || s == "0" }

// number reads n digits and what must follow them, and returns the rest.
func number(s string, n int, then string) (v int, rest string, ok bool) {
	if len(s) < n || digits(s[:n]) != n {
		return 0, "", false
	}
	for _, c := range s[:n] {
		v = v*10 + int(c-'0')
	}
	rest, ok = strings.CutPrefix(s[n:], then)
	return v, rest, ok
}

// isDate reports whether s is an xs:date (XML Schema Part 2 §3.2.9).
func isDate(s string) bool {
	s = strings.TrimPrefix(s, "-")
	size := digits(s)
	if size < 4 || size > 4 && s[0] == '0' || size > 18 || strings.Trim(s[:size], "0") == "" {
		return false
	}
	year, s, ok := number(s, size, "-")
	if !ok {
		return false
	}
	month, s, ok := number(s, 2, "-")
	if !ok || month < 1 || month > 12 {
		return false
	}
	day, s, ok := number(s, 2, "")
	return ok && day >= 1 && day <= daysOf(year, month) && isZone(s)
}

func daysOf(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// isTime reports whether s is an xs:time (XML Schema Part 2 §3.2.8).
func isTime(s string) bool {
	hour, s, ok := number(s, 2, ":")
	if !ok {
		return false
	}
	minute, s, ok := number(s, 2, ":")
	if !ok || minute > 59 {
		return false
	}
	second, s, ok := number(s, 2, "")
	if !ok || second > 59 {
		return false
	}
	zero := true
	if strings.HasPrefix(s, ".") {
		n := digits(s[1:])
		if n == 0 {
			return false
		}
		zero = strings.Trim(s[1:1+n], "0") == ""
		s = s[1+n:]
	}
	if hour > 23 && (hour != 24 || minute != 0 || second != 0 || !zero) {
		return false
	}
	return isZone(s)
}

// isZone reports whether s is empty or a time zone.
func isZone(s string) bool {
	if s == "" || s == "Z" {
		return true
	}
	if s[0] != '+' && s[0] != '-' {
		return false
	}
	hour, s, ok := number(s[1:], 2, ":")
	if !ok || hour > 14 {
		return false
	}
	minute, s, ok := number(s, 2, "")
	return ok && s == "" && minute <= 59 && (hour < 14 || minute == 0)
}

// base64Digit is the number of a base64 digit and 1, or 0.
var base64Digit = func() (t [256]uint8) {
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = uint8(i + 1)
	}
	return t
}()

// isBase64 reports whether s is an xs:base64Binary (XML Schema Part 2 §3.2.16). The bits of the
// last digit that are not used must be zero.
func isBase64(s string) bool {
	n, pad := 0, 0
	last := uint8(0)
	for i := range len(s) {
		c := s[i]
		switch d := base64Digit[c]; {
		case d != 0:
			if pad > 0 {
				return false
			}
			n++
			last = d - 1
		case c == '=':
			pad++
		case !isSpace(c):
			return false
		}
	}
	if (n+pad)%4 != 0 || pad > 2 || pad > 0 && n == 0 {
		return false
	}
	return pad == 0 || pad == 1 && last&3 == 0 || pad == 2 && last&15 == 0
}
