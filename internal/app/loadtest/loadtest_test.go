package loadtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/app/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLoadProvesItself(t *testing.T) {
	for _, o := range []Options{
		{Messages: 240, Partners: 6, Senders: 4, Security: "none", Ordering: "partner", Duplicates: 10, Poison: 10, Size: 2 << 10},
		{Messages: 60, Partners: 3, Senders: 3, Security: "signed+encrypted", Ordering: "partner", Duplicates: 10, Poison: 10, Size: 2 << 10},
		{Messages: 120, Partners: 4, Senders: 8, Security: "none", Ordering: "none", PerInterchange: 5, Size: 1 << 10},
		{Messages: 120, Partners: 3, Senders: 3, Intake: IntakeHTTP, Duplicates: 10, Poison: 10, Size: 2 << 10},
		{Messages: 120, Partners: 3, Senders: 3, Intake: IntakeDirectory, Duplicates: 10, Poison: 10, Size: 2 << 10},
		{Messages: 40, Partners: 2, Senders: 2, Mix: "invoic=1,850=1", Poison: 10, Size: 1 << 10},
		{Messages: 20, Partners: 2, Senders: 2, Mix: "ubl=1", Intake: IntakeHTTP, Size: 4 << 10},
	} {
		if err := o.Defaults(); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%s, %s, %s, %s, %d an interchange", o.Intake, o.Mix, o.Security, o.Ordering, o.PerInterchange), func(t *testing.T) {
			o.Timeout = 2 * time.Minute
			res, err := Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			if !res.Good() {
				t.Fatalf("the run proved nothing: %+v", res)
			}
			poison := int(float64(o.Messages)*o.Poison/100 + 0.5)
			if res.Delivered+res.Rejected+res.Dead != o.Messages || res.Rejected+res.Dead != poison {
				t.Fatalf("%d delivered, %d rejected, %d dead of %d with %d poison", res.Delivered, res.Rejected, res.Dead, o.Messages, poison)
			}
			if want := int(float64(o.Messages)*o.Duplicates/100 + 0.5); res.DuplicatesRecognised != want {
				t.Fatalf("%d duplicates were recognised, want %d: %v", res.DuplicatesRecognised, want, res.Problems)
			}
			if res.Accepted != res.Delivered+res.Rejected+res.Dead+res.DuplicatesRecognised+res.Lost {
				t.Fatalf("the sum is wrong: %+v", res)
			}
			if res.Overlaps != 0 {
				t.Fatalf("%d overlaps", res.Overlaps)
			}
		})
	}
}

// The rate bounds how fast messages are posted, and the delay how fast they are delivered. Only
// lower bounds of time are looked at: no busy machine makes them fail.
func TestRateAndSinkDelay(t *testing.T) {
	t.Parallel()
	o := Options{Messages: 30, Partners: 3, Senders: 3, Size: 1 << 10, Rate: 100, SinkDelay: 40 * time.Millisecond, Timeout: 2 * time.Minute}
	res, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Good() || res.Delivered != o.Messages {
		t.Fatalf("not all was delivered: %+v", res)
	}
	if least := float64(o.Messages-1) / o.Rate; res.ElapsedS < least {
		t.Errorf("%d messages at %.0f a second took %.3f s, want at least %.3f s", o.Messages, o.Rate, res.ElapsedS, least)
	}
	if res.LatencyMS.P50 < 40 {
		t.Errorf("half of the messages had their proof after %.1f ms, the receivers take 40 ms", res.LatencyMS.P50)
	}
}

// Receivers that take messages and never answer hold up nobody else: all that is for the others
// is delivered while they hang.
func TestHangingReceiversHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	o := Options{Messages: 200, Partners: 10, Senders: 10, Hang: 2, Size: 1 << 10, Timeout: 2 * time.Minute}
	res, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Good() || res.Accepted != o.Messages || res.Delivered != 160 {
		t.Fatalf("want 160 of 200 delivered: %+v", res)
	}
	for i, n := range res.PerLane {
		if want := 20; (i < o.Hang && n != 0) || (i >= o.Hang && n != want) {
			t.Errorf("receiver %d got %d messages: %v", i+1, n, res.PerLane)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"--intake":   {Intake: "ftp"},
		"--security": {Security: "sealed"},
		"--ordering": {Ordering: "document"},
		"--mix":      {Mix: "desadv=1"},
		"--poison":   {Poison: 101},
		"--partners": {Partners: 1001},
	} {
		if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// A proof that cannot fail proves nothing: each fault must be seen.
func TestProofSeesFaults(t *testing.T) {
	t.Parallel()
	fresh := func() *proof {
		r := &run{o: Options{Partners: 2, Ordering: "partner", PerInterchange: 1}}
		p := newProof(r)
		r.proof = p
		docs := []document{newDocument(invoic, sound, 1, 1), newDocument(invoic, sound, 1, 2)}
		for _, d := range docs {
			b, spans := interchange([]document{d}, 600)
			p.register([]document{d}, b, spans)
			p.answered([]document{d}, receipt{taken: true})
		}
		return p
	}
	deliver := func(p *proof, serial int, id string, change func([]byte) []byte) {
		b, _ := interchange([]document{newDocument(invoic, sound, 1, serial)}, 600)
		if err := p.take(context.Background(), received("LTR1", id, change(b))); err != nil {
			t.Fatal(err)
		}
	}
	same := func(b []byte) []byte { return b }
	for name, c := range map[string]struct {
		act  func(p *proof)
		seen func(r *Result) int
	}{
		"altered":      {func(p *proof) { deliver(p, 1, "<1>", func(b []byte) []byte { b[300] ^= 1; return b }) }, func(r *Result) int { return r.Altered }},
		"duplicated":   {func(p *proof) { deliver(p, 1, "<1>", same); deliver(p, 1, "<2>", same) }, func(r *Result) int { return r.Duplicated }},
		"out of order": {func(p *proof) { deliver(p, 2, "<2>", same); deliver(p, 1, "<1>", same) }, func(r *Result) int { return r.OutOfOrder }},
		"strange":      {func(p *proof) { deliver(p, 99, "<9>", same) }, func(r *Result) int { return r.Altered }},
	} {
		p := fresh()
		c.act(p)
		if c.seen(&p.res) == 0 || p.res.Good() {
			t.Errorf("%s was not seen: %+v", name, p.res)
		}
	}
	p := fresh()
	deliver(p, 1, "<1>", same)
	deliver(p, 1, "<1>", same) // a retry under the same Message-ID
	if !p.res.Good() {
		t.Errorf("a retry counts as a fault: %+v", p.res)
	}
}

func received(to, id string, payload []byte) *peer.Received {
	return &peer.Received{From: "LTHUB", To: to, MessageID: id, Payload: payload}
}
