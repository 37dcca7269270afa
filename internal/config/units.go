package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const dayLength = 24 * time.Hour

// ParseDuration reads "30d", "72h", "1h30m", "1d12h" or "20s". A day is 24 hours. Negative
// values are refused, "0" needs no unit.
func ParseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	var days time.Duration
	rest := s
	if head, tail, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(head, 10, 32)
		if err != nil || n > uint64(math.MaxInt64/int64(dayLength)) {
			return 0, fmt.Errorf("%q is not a duration", s)
		}
		days, rest = time.Duration(n)*dayLength, tail
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || rest[0] == '+' || rest[0] == '-' || d > math.MaxInt64-days {
		return 0, fmt.Errorf("%q is not a duration", s)
	}
	return days + d, nil
}

// FormatDuration is the shortest text that ParseDuration reads as d.
func FormatDuration(d time.Duration) string {
	if d > 0 && d%dayLength == 0 {
		return strconv.FormatInt(int64(d/dayLength), 10) + "d"
	}
	s := d.String()
	// Duration writes 1h0m0s.
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

type sizeUnit struct {
	name  string
	bytes int64
}

// sizeUnits are ordered so that the longer names come before those that end alike.
func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3},
		{"B", 1}, {"", 1},
	}
}

// ParseSize reads "2GiB" (powers of 1,024), "10KB" (powers of 1,000) or a plain number of bytes.
func ParseSize(s string) (int64, error) {
	for _, u := range sizeUnits() {
		head, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		head = strings.TrimSpace(head)
		n, err := strconv.ParseUint(head, 10, 63)
		if err != nil {
			// Whole numbers are exact; a fraction such as 1.5GiB is rounded down to a byte.
			f, ferr := strconv.ParseFloat(head, 64)
			if ferr != nil || u.bytes == 1 || !strings.Contains(head, ".") || strings.Trim(head, "0123456789.") != "" || f*float64(u.bytes) >= math.MaxInt64 {
				return 0, fmt.Errorf("%q is not a size", s)
			}
			return int64(f * float64(u.bytes)), nil
		}
		if n > uint64(math.MaxInt64/u.bytes) { //nolint:gosec // G115: positive.
			return 0, fmt.Errorf("%q is beyond the largest size", s)
		}
		return int64(n) * u.bytes, nil
	}
	return 0, fmt.Errorf("%q is not a size", s)
}

// FormatSize is the shortest text that ParseSize reads as n.
func FormatSize(n int64) string {
	for _, u := range sizeUnits() {
		if n != 0 && n%u.bytes == 0 && u.bytes > 1 && u.name != "kB" {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Nearest returns the word among the candidates that a person most likely meant, "" when none
// is near.
func Nearest(word string, candidates []string) string {
	best, distance := "", 0
	lower := strings.ToLower(word)
	for _, c := range candidates {
		d := editDistance(lower, strings.ToLower(c))
		if best == "" || d < distance {
			best, distance = c, d
		}
	}
	if best == "" || distance > max(2, len(word)/3) || distance >= max(len(word), len(best)) {
		return ""
	}
	return best
}

// editDistance counts insertions, deletions, exchanges and swaps of neighbours.
func editDistance(a, b string) int {
	const longest = 64 // longer words are not typing errors of a key
	if len(a) > longest || len(b) > longest {
		return longest
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
