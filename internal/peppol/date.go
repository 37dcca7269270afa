package peppol

// moment is the starting instant of an xs:date: days of the proleptic Gregorian calendar and the
// minutes of its time zone. Dates without a zone are taken as UTC, which only matters where one
// has a zone and the other has none.
type moment struct {
	day    int64
	offset int32 // minutes east of UTC
}

// before reports whether m starts before n.
func (m moment) before(n moment) bool {
	return m.day*1440-int64(m.offset) < n.day*1440-int64(n.offset)
}

// parseDate reads the lexical form of xs:date with white space around it (XML Schema 2 §3.2.9): a
// year of four or more digits, perhaps negative, month, day and perhaps a time zone.
func parseDate(s string) (moment, bool) {
	s = trimSpace(s)
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n < 4 || n > 9 || n > 4 && s[0] == '0' || len(s) < n+6 || s[n] != '-' || s[n+3] != '-' {
		return moment{}, false
	}
	year, _ := digits(s[:n])
	month, ok := digits(s[n+1 : n+3])
	day, ok2 := digits(s[n+4 : n+6])
	if negative {
		year = -year
	}
	if !ok || !ok2 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || year == 0 {
		return moment{}, false
	}
	zone, ok := parseZone(s[n+6:])
	return moment{daysBefore(year, month) + int64(day), zone}, ok
}

func parseZone(s string) (int32, bool) {
	if s == "" || s == "Z" {
		return 0, true
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	h, ok := digits(s[1:3])
	m, ok2 := digits(s[4:6])
	if !ok || !ok2 || h > 14 || m > 59 || h == 14 && m > 0 {
		return 0, false
	}
	zone := int32(h*60 + m) //nolint:gosec // At most 840.
	if s[0] == '-' {
		zone = -zone
	}
	return zone, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits reads a short unsigned number.
func digits(s string) (n int, ok bool) {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	}
	return 31
}

// daysBefore counts the days from the beginning of the calendar to a month.
func daysBefore(year, month int) int64 {
	y := int64(year) - 1
	days := y*365 + floor(y, 4) - floor(y, 100) + floor(y, 400)
	for m := 1; m < month; m++ {
		days += int64(daysIn(year, m))
	}
	return days
}

func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
