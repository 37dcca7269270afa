package tables

import (
	"bytes"
	"unicode/utf8"
)

// flaw is what is wrong with a value.
type flaw uint8

const (
	fine flaw = iota
	flawShort
	flawLong
	flawType
	flawNumber
	flawDigit
	flawDate
	flawTime
	flawCode
)

// trim drops blanks at the end: they do not count (ISO 9735-1 §11, X12.6 §3.5.1.4).
func trim(v []byte) []byte { return bytes.TrimRight(v, " ") }

// value checks a value that is not empty. It has no release characters left.
func (r *run) value(p *part, v []byte) flaw {
	switch p.typ {
	case TypeAN, TypeID:
		if f := r.length(p, v); f != fine {
			return f
		}
	case TypeA:
		for _, c := range v {
			if c >= '0' && c <= '9' {
				return flawType
			}
		}
		if f := r.length(p, v); f != fine {
			return f
		}
	case TypeN:
		if f := r.number(p, trim(v)); f != fine {
			return f
		}
	case TypeN0:
		if f := number(p, trim(v), 0, 0); f != fine {
			return f
		}
	case TypeR:
		if f := number(p, trim(v), '.', '.'); f != fine {
			return f
		}
	case TypeDT:
		return date(p, trim(v))
	case TypeTM:
		return clock(p, trim(v))
	case TypeFixed:
		return r.length(p, v)
	case TypeB:
		return fine
	}
	if p.set != nil && !p.set.has(trim(v)) {
		return flawCode
	}
	return fine
}

// length compares the number of characters. Blanks at the end fill a value up to its least
// length, but never make it too long.
func (r *run) length(p *part, v []byte) flaw {
	n := int32(len(v)) //nolint:gosec // G115: a segment is at most 1 GiB.
	if n <= p.max && n >= p.min && (!r.utf8 || p.min <= 1) {
		return fine
	}
	if r.utf8 {
		n = int32(utf8.RuneCount(v)) //nolint:gosec // G115: as above.
	}
	if n < p.min {
		return flawShort
	}
	if n <= p.max {
		return fine
	}
	v = trim(v)
	n = int32(len(v)) //nolint:gosec // G115: as above.
	if r.utf8 {
		n = int32(utf8.RuneCount(v)) //nolint:gosec // G115: as above.
	}
	if n > p.max {
		return flawLong
	}
	return fine
}

// number checks an EDIFACT number (ISO 9735-1 §10).
func (r *run) number(p *part, v []byte) flaw { return number(p, v, r.marks[0], r.marks[1]) }

// number checks digits with a minus before them and at most one decimal mark among them, which is
// one of two; 0 is none. Only digits count for the length (ISO 9735-1 §10, X12.6 §3.5.1.1).
func number(p *part, v []byte, mark, other byte) flaw {
	i := 0
	if len(v) > 0 && v[0] == '-' {
		i = 1
	}
	digits := int32(0)
	at := -1
	for ; i < len(v); i++ {
		c := v[i]
		switch {
		case c-'0' <= 9:
			digits++
		case (c == mark || c == other) && c != 0 && at < 0:
			at = i
			if digits == 0 && p.typ == TypeN {
				if i+1 < len(v) && v[i+1]-'0' <= 9 {
					return flawDigit
				}
				return flawNumber
			}
		case c == '.', c == ',', c == '-', c == '+':
			return flawNumber
		default:
			return flawType
		}
	}
	switch {
	case digits == 0:
		return flawNumber
	case at == len(v)-1 && p.typ == TypeN:
		return flawNumber
	case digits > p.max:
		return flawLong
	case digits < p.min:
		return flawShort
	}
	return fine
}

// sizes compares a length with what a date or time may have.
func sizes(p *part, n int) flaw {
	switch {
	case int32(n) < p.min: //nolint:gosec // G115: a segment is at most 1 GiB.
		return flawShort
	case int32(n) > p.max: //nolint:gosec // G115: as above.
		return flawLong
	}
	return fine
}

func allDigits(v []byte) bool {
	for _, c := range v {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

func two(v []byte) int { return int(v[0]-'0')*10 + int(v[1]-'0') }

// date checks YYMMDD or CCYYMMDD (X12.6 §3.5.1.5).
func date(p *part, v []byte) flaw {
	if f := sizes(p, len(v)); f != fine {
		return f
	}
	if !allDigits(v) || len(v) != 6 && len(v) != 8 {
		return flawDate
	}
	year := 2000 + two(v) // YYMMDD: 1900 is no matter, it differs in the 29th of February only
	if len(v) == 8 {
		year = two(v)*100 + two(v[2:])
	}
	v = v[len(v)-4:]
	month, day := two(v), two(v[2:])
	if month < 1 || month > 12 || day < 1 || day > daysIn(month, year) {
		return flawDate
	}
	return fine
}

func daysIn(month, year int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// clock checks HHMM, HHMMSS or HHMMSSd to HHMMSSdd (X12.6 §3.5.1.6).
func clock(p *part, v []byte) flaw {
	if f := sizes(p, len(v)); f != fine {
		return f
	}
	if !allDigits(v) || len(v) < 4 || len(v) == 5 || two(v) > 23 || two(v[2:]) > 59 || len(v) >= 6 && two(v[4:]) > 59 {
		return flawTime
	}
	return fine
}
