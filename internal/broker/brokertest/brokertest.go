// Package brokertest is the specification of broker.Broker as a suite. Every driver runs it.
package brokertest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/edi"
)

// patience bounds each wait of the suite; a broker that works never comes near it.
const patience = 20 * time.Second

// Run runs the suite. fresh makes an empty broker, which the suite closes.
func Run(t *testing.T, fresh func(t *testing.T) broker.Broker) {
	t.Helper()
	cases := map[string]func(*testing.T, broker.Broker){
		"hands out in order within a topic":      testOrder,
		"topics take turns":                      testTurns,
		"each copy goes to one consumer":         testCompete,
		"allow holds a topic back and poke":      testAllow,
		"what is not acknowledged comes again":   testRedelivery,
		"returned copies keep their order":       testReturn,
		"receive ends with its context":          testContext,
		"receive ends when the broker is closed": testClose,
		"depth counts ready and unacknowledged":  testDepth,
		"publish after close is refused":         testPublishClosed,
	}
	names := make([]string, 0, len(cases))
	for n := range cases {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		t.Run(n, func(t *testing.T) {
			b := fresh(t)
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			cases[n](t, b)
		})
	}
}

func ctxOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func copies(stage edi.Stage, topic string, from, n int) []edi.Copy {
	out := make([]edi.Copy, n)
	for i := range out {
		out[i] = edi.Copy{Stage: stage, ID: edi.ID{byte(from + i), 1}, Seq: int64(from + i), Gen: 7, Topic: topic, Kind: edi.KindMessage}
	}
	return out
}

func publish(t *testing.T, b broker.Broker, cs []edi.Copy) {
	t.Helper()
	if err := b.Publish(ctxOf(t), cs); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

func subscribe(t *testing.T, b broker.Broker, s broker.Subscription) broker.Consumer {
	t.Helper()
	c, err := b.Subscribe(ctxOf(t), s)
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	return c
}

// receive takes exactly n copies.
func receive(t *testing.T, c broker.Consumer, n int) []broker.Delivery {
	t.Helper()
	var got []broker.Delivery
	for len(got) < n {
		ds, err := c.Receive(ctxOf(t), n-len(got), 0)
		if err != nil {
			t.Fatalf("Receive after %d of %d: %v", len(got), n, err)
		}
		got = append(got, ds...)
	}
	return got
}

func seqs(ds []broker.Delivery) []int64 {
	out := make([]int64, len(ds))
	for i := range ds {
		out[i] = ds[i].Seq
	}
	return out
}

func testOrder(t *testing.T, b broker.Broker) {
	publish(t, b, copies(edi.Parser, "", 1, 30))
	c := subscribe(t, b, broker.Subscription{Stage: edi.Parser})
	got := receive(t, c, 30)
	for i, d := range got {
		if d.Seq != int64(i+1) || d.Gen != 7 || d.Kind != edi.KindMessage || d.Redelivered {
			t.Fatalf("copy %d is %+v", i, d)
		}
	}
	c.Ack(got)
}

func testTurns(t *testing.T, b broker.Broker) {
	publish(t, b, copies(edi.Sender, "busy", 1, 50))
	publish(t, b, copies(edi.Sender, "quiet", 101, 2))
	c := subscribe(t, b, broker.Subscription{Stage: edi.Sender})
	got := receive(t, c, 6)
	quiet := 0
	for _, d := range got {
		if d.Topic == "quiet" {
			quiet++
		}
	}
	if quiet != 2 {
		t.Fatalf("the quiet topic had %d of its 2 copies among the first 6: %v", quiet, seqs(got))
	}
	c.Ack(got)
}

func testCompete(t *testing.T, b broker.Broker) {
	const n = 200
	publish(t, b, copies(edi.Validator, "", 0, n))
	var mu sync.Mutex
	seen := map[int64]int{}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctxOf(t))
	defer cancel()
	for range 4 {
		c := subscribe(t, b, broker.Subscription{Stage: edi.Validator})
		wg.Go(func() {
			for {
				ds, err := c.Receive(ctx, 7, 0)
				if err != nil {
					return
				}
				c.Ack(ds)
				mu.Lock()
				for _, d := range ds {
					seen[d.Seq]++
				}
				if len(seen) == n {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range int64(n) {
		if seen[i] != 1 {
			t.Errorf("copy %d was handed out %d times", i, seen[i])
		}
	}
}

func testAllow(t *testing.T, b broker.Broker) {
	var mu sync.Mutex
	limit := map[string]int{"a": 1, "b": 2}
	c := subscribe(t, b, broker.Subscription{Stage: edi.Sender, Allow: func(topic string) int {
		mu.Lock()
		defer mu.Unlock()
		return limit[topic]
	}})
	publish(t, b, copies(edi.Sender, "a", 1, 3))
	publish(t, b, copies(edi.Sender, "b", 11, 3))
	got := receive(t, c, 3)
	byTopic := map[string]int{}
	for _, d := range got {
		byTopic[d.Topic]++
	}
	if byTopic["a"] != 1 || byTopic["b"] != 2 {
		t.Fatalf("handed out %v, allowed a:1 b:2", byTopic)
	}
	mu.Lock()
	limit["a"], limit["b"] = 0, 0
	mu.Unlock()
	short, stop := context.WithTimeout(ctxOf(t), 30*time.Millisecond)
	defer stop()
	if ds, err := c.Receive(short, 5, 0); err == nil {
		t.Fatalf("handed out %v though nothing is allowed", seqs(ds))
	}
	mu.Lock()
	limit["a"] = 5
	mu.Unlock()
	c.Poke()
	if rest := receive(t, c, 2); rest[0].Topic != "a" || rest[1].Topic != "a" {
		t.Fatalf("after poke: %+v", rest)
	}
}

func testRedelivery(t *testing.T, b broker.Broker) {
	publish(t, b, copies(edi.Router, "", 1, 4))
	c := subscribe(t, b, broker.Subscription{Stage: edi.Router})
	got := receive(t, c, 3)
	c.Ack(got[:1])
	if err := c.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	d := subscribe(t, b, broker.Subscription{Stage: edi.Router})
	again := receive(t, d, 3)
	if want := []int64{2, 3, 4}; !slices.Equal(seqs(again), want) {
		t.Fatalf("after the consumer closed: %v, want %v", seqs(again), want)
	}
	if !again[0].Redelivered || again[2].Redelivered {
		t.Fatalf("redelivered flags are wrong: %+v", again)
	}
	c.Ack(got) // of a consumer that is closed: ignored
	if dep, err := b.Depth(ctxOf(t), edi.Router); err != nil || dep.Unacked != 3 {
		t.Fatalf("depth %+v %v, want 3 unacknowledged", dep, err)
	}
}

func testReturn(t *testing.T, b broker.Broker) {
	publish(t, b, copies(edi.Parser, "", 1, 5))
	c := subscribe(t, b, broker.Subscription{Stage: edi.Parser})
	got := receive(t, c, 3)
	c.Return(got)
	again := receive(t, c, 5)
	if want := []int64{1, 2, 3, 4, 5}; !slices.Equal(seqs(again), want) {
		t.Fatalf("after return: %v, want %v", seqs(again), want)
	}
}

func testContext(t *testing.T, b broker.Broker) {
	c := subscribe(t, b, broker.Subscription{Stage: edi.Parser})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(ctxOf(t))
	cancel(cause)
	if _, err := c.Receive(ctx, 1, 0); !errors.Is(err, cause) {
		t.Fatalf("Receive: %v, want %v", err, cause)
	}
}

func testClose(t *testing.T, b broker.Broker) {
	c := subscribe(t, b, broker.Subscription{Stage: edi.Parser})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Receive(ctxOf(t), 1, 0)
		ended <- err
	}()
	if err := b.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if err := <-ended; !errors.Is(err, broker.ErrClosed) {
		t.Fatalf("Receive: %v, want ErrClosed", err)
	}
	if b.Connected() {
		t.Error("a closed broker says that it is connected")
	}
}

func testDepth(t *testing.T, b broker.Broker) {
	publish(t, b, copies(edi.Parser, "", 1, 5))
	publish(t, b, copies(edi.Router, "", 1, 2))
	c := subscribe(t, b, broker.Subscription{Stage: edi.Parser})
	got := receive(t, c, 3)
	c.Ack(got[:1])
	for stage, want := range map[edi.Stage]broker.Depth{edi.Parser: {Ready: 2, Unacked: 2}, edi.Router: {Ready: 2}} {
		if d, err := b.Depth(ctxOf(t), stage); err != nil || d != want {
			t.Errorf("depth of %s: %+v %v, want %+v", stage, d, err, want)
		}
	}
}

func testPublishClosed(t *testing.T, b broker.Broker) {
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(ctxOf(t), copies(edi.Parser, strconv.Itoa(1), 1, 1)); !errors.Is(err, broker.ErrClosed) {
		t.Fatalf("Publish: %v, want ErrClosed", err)
	}
}
