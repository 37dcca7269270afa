package spool_test

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/edihub/edihub/internal/spool"
)

func reserve(t *testing.T, m *spool.Meter, partner, source string, n int64) *spool.Reservation {
	t.Helper()
	r, err := m.Reserve(partner, source, n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMeterNamesTheLimit(t *testing.T) {
	t.Parallel()
	limits := spool.Limits{Total: 100, PerPartner: 60, PerSource: 50}
	for _, tc := range []struct {
		name            string
		partner, source string
		n               int64
		scope           spool.Scope
		key             string
		max, used       int64
	}{
		{"fits", "acme", "10.0.0.1", 10, "", "", 0, 0},
		{"all that is left for the source", "other", "10.0.0.1", 10, "", "", 0, 0},
		{"source full", "other", "10.0.0.1", 11, spool.ScopeSource, "10.0.0.1", 50, 40},
		{"partner full", "acme", "10.0.0.2", 21, spool.ScopePartner, "acme", 60, 40},
		{"hub full", "other", "10.0.0.2", 61, spool.ScopeTotal, "", 100, 40},
		{"no partner known yet", "", "10.0.0.2", 50, "", "", 0, 0},
		{"nobody known", "", "", 60, "", "", 0, 0},
		{"nothing", "acme", "10.0.0.1", 0, "", "", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := spool.NewMeter(limits)
			first := reserve(t, m, "acme", "10.0.0.1", 40)
			defer first.Release()
			r, err := m.Reserve(tc.partner, tc.source, tc.n)
			if tc.scope == "" {
				if err != nil {
					t.Fatal(err)
				}
				if r.Held() != tc.n || m.Used() != 40+tc.n {
					t.Errorf("holds %d, used %d", r.Held(), m.Used())
				}
				r.Release()
			} else {
				var typed *spool.MeterError
				if !errors.As(err, &typed) {
					t.Fatalf("Reserve = %v, want a MeterError", err)
				}
				want := spool.MeterError{Scope: tc.scope, Key: tc.key, Max: tc.max, Used: tc.used, Asked: tc.n}
				if *typed != want {
					t.Errorf("Reserve = %+v, want %+v", *typed, want)
				}
			}
			if m.Used() != 40 {
				t.Errorf("used %d afterwards, want 40", m.Used())
			}
		})
	}
}

func TestReservationGrowsAndGoesOnce(t *testing.T) {
	t.Parallel()
	m := spool.NewMeter(spool.Limits{Total: 100})
	r := reserve(t, m, "acme", "10.0.0.1", 10)
	if err := r.Grow(80); err != nil {
		t.Fatal(err)
	}
	if err := r.Grow(11); err == nil {
		t.Error("grew beyond the limit")
	}
	if err := r.Grow(-1); err == nil {
		t.Error("grew by a negative number")
	}
	if r.Held() != 90 || m.Used() != 90 {
		t.Errorf("holds %d, used %d; want 90 of both", r.Held(), m.Used())
	}
	r.Release()
	r.Release()
	if r.Held() != 0 || m.Used() != 0 {
		t.Errorf("holds %d, used %d after Release", r.Held(), m.Used())
	}
	if err := r.Grow(1); err == nil || m.Used() != 0 {
		t.Errorf("Grow after Release = %v, used %d", err, m.Used())
	}
}

func TestMeterLimitsCanBeOff(t *testing.T) {
	t.Parallel()
	m := spool.NewMeter(spool.Limits{Total: -1, PerPartner: -1, PerSource: -1})
	r := reserve(t, m, "acme", "10.0.0.1", 1<<62)
	defer r.Release()
	if err := r.Grow(1 << 61); err != nil {
		t.Error(err)
	}
	if err := r.Grow(1<<63 - 1); err == nil {
		t.Error("the count went over the end of its type")
	}
	byDefault := spool.NewMeter(spool.Limits{})
	if _, err := byDefault.Reserve("acme", "", spool.DefaultPerPartner+1); err == nil {
		t.Error("the default for a partner is not set")
	}
}

func TestMeteredReader(t *testing.T) {
	t.Parallel()
	body := content(200_000)
	m := spool.NewMeter(spool.Limits{Total: 1 << 20})
	r := reserve(t, m, "acme", "10.0.0.1", 0)
	got, err := io.ReadAll(r.Reader(bytes.NewReader(body)))
	if err != nil || !bytes.Equal(got, body) {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	if r.Held() != 4*64<<10 {
		t.Errorf("holds %d for 200,000 bytes, want four steps of 64 KiB", r.Held())
	}
	r.Release()

	r = reserve(t, m, "acme", "10.0.0.1", 200_000)
	if _, err := io.Copy(io.Discard, r.Reader(bytes.NewReader(body))); err != nil {
		t.Fatal(err)
	}
	if r.Held() != 200_000 {
		t.Errorf("holds %d: what was reserved beforehand was not used", r.Held())
	}
	r.Release()

	small := spool.NewMeter(spool.Limits{Total: 128 << 10})
	r = reserve(t, small, "acme", "10.0.0.1", 0)
	defer r.Release()
	reader := r.Reader(bytes.NewReader(body))
	n, err := io.Copy(io.Discard, reader)
	var typed *spool.MeterError
	if !errors.As(err, &typed) || n > 128<<10 {
		t.Fatalf("read %d bytes, %v; want a MeterError within the limit", n, err)
	}
	if _, err := reader.Read(make([]byte, 1)); !errors.As(err, &typed) {
		t.Errorf("a reader with a hole went on: %v", err)
	}
}

func TestMeterIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	const limit = 1000
	m := spool.NewMeter(spool.Limits{Total: limit, PerPartner: limit, PerSource: limit})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 200 {
				r, err := m.Reserve(string(rune('a'+i%3)), string(rune('a'+i%5)), 50)
				if err != nil {
					continue
				}
				_ = r.Grow(70) // A refusal is fine here.
				if used := m.Used(); used > limit {
					t.Errorf("%d bytes in flight, %d allowed", used, limit)
				}
				r.Release()
			}
		})
	}
	wg.Wait()
	if m.Used() != 0 {
		t.Errorf("%d bytes in flight at the end", m.Used())
	}
	full := reserve(t, m, "a", "a", limit)
	full.Release()
}
