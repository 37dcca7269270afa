package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "20s": 20 * time.Second, "72h": 72 * time.Hour, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour,
		"1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "1.5h": 90 * time.Minute, "400d": 9600 * time.Hour,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "d", "20", "-1s", "+1s", "1d-1h", "1d+1h", "-1d", "30 d", "1dd", "1w", "999999999d", "106751d99999h", "1.5d", "abc"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("%q was read as %v", in, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"0": 0, "1024": 1024, "2GiB": 2 << 30, "64KiB": 64 << 10, "10KB": 10_000, "10kB": 10_000, "3MB": 3_000_000, "1TiB": 1 << 40, "7B": 7, "10 MiB": 10 << 20, "1.5GiB": 3 << 29,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "B", "-1", "-1KB", "1.5", "1.5B", "2GIB", "2G", "9223372036854775808", "9000000TiB", "9000000.5TiB", "1e3KB", "NaNKB", "infKB", "0x10KB", "+1"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("%q was read as %v", in, got)
		}
	}
}

func TestUnitsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Min(0).Draw(t, "duration"))
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%d as %s: %d, %v", d, FormatDuration(d), got, err)
		}
		n := rapid.Int64Min(0).Draw(t, "size")
		if got, err := ParseSize(FormatSize(n)); err != nil || got != n {
			t.Fatalf("%d as %s: %d, %v", n, FormatSize(n), got, err)
		}
	})
	for d, want := range map[time.Duration]string{time.Minute: "1m", time.Hour: "1h", 30 * dayLength: "30d", 90 * time.Minute: "1h30m", 0: "0s", 10 * time.Second: "10s", 72 * time.Hour: "3d"} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v shows as %q, want %q", d, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"listen", "public_url", "max_message", "tls"}
	for in, want := range map[string]string{"lsiten": "listen", "publicurl": "public_url", "max_mesage": "max_message", "TLS": "tls", "tsl": "tls", "quite_different": "", "x": "", "": ""} {
		if got := Nearest(in, words); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
