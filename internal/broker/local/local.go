// Package local is the broker of a hub without a broker: the work rows in the store are the
// queue, and this package hands their copies to the pools of the same process. It keeps nothing;
// after a start the relay hands over again what the store holds.
package local

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
)

// Broker is an in-process broker.
type Broker struct {
	clock clock.Clock

	mu        sync.Mutex
	closed    bool
	stages    map[edi.Stage]*stage
	nextToken uint64
}

// stage holds the queues of one stage. Topics with copies stand in a ring so that they take
// turns: one busy partner does not starve the others.
type stage struct {
	topics  map[string]*topic
	ring    []*topic // topics with copies, next turn first
	ready   int
	unacked int
	waiters map[*consumer]struct{}
}

type topic struct {
	name  string
	queue []queued // from head on
	head  int
	ring  bool
}

type queued struct {
	copy  edi.Copy
	again bool
}

// New makes a broker.
func New(c clock.Clock) *Broker {
	return &Broker{clock: c, stages: map[edi.Stage]*stage{}}
}

var _ broker.Broker = (*Broker)(nil)

func (b *Broker) stage(s edi.Stage) *stage {
	st := b.stages[s]
	if st == nil {
		st = &stage{topics: map[string]*topic{}, waiters: map[*consumer]struct{}{}}
		b.stages[s] = st
	}
	return st
}

func (s *stage) topic(name string) *topic {
	t := s.topics[name]
	if t == nil {
		t = &topic{name: name}
		s.topics[name] = t
	}
	return t
}

func (s *stage) enter(t *topic) {
	if !t.ring && t.len() > 0 {
		t.ring = true
		s.ring = append(s.ring, t)
	}
}

func (t *topic) len() int { return len(t.queue) - t.head }

func (t *topic) push(q queued) { t.queue = append(t.queue, q) }

func (t *topic) pushFront(q queued) {
	if t.head > 0 {
		t.head--
		t.queue[t.head] = q
		return
	}
	t.queue = append([]queued{q}, t.queue...)
}

func (t *topic) pop() queued {
	q := t.queue[t.head]
	t.head++
	if t.head == len(t.queue) {
		t.queue, t.head = t.queue[:0], 0
	} else if t.head > 1024 && t.head*2 > len(t.queue) {
		t.queue = append(t.queue[:0], t.queue[t.head:]...)
		t.head = 0
	}
	return q
}

// Publish implements broker.Broker.
func (b *Broker) Publish(_ context.Context, copies []edi.Copy) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return broker.ErrClosed
	}
	for _, c := range copies {
		s := b.stage(c.Stage)
		t := s.topic(c.Topic)
		t.push(queued{copy: c})
		s.ready++
		s.enter(t)
		s.wake()
	}
	return nil
}

func (s *stage) wake() {
	for c := range s.waiters {
		c.poke()
	}
}

// Depth implements broker.Broker.
func (b *Broker) Depth(_ context.Context, s edi.Stage) (broker.Depth, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.stage(s)
	return broker.Depth{Ready: st.ready, Unacked: st.unacked}, nil
}

// Connected implements broker.Broker: there is nothing to lose the connection to.
func (b *Broker) Connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.closed
}

// Close implements broker.Broker.
func (b *Broker) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range b.stages {
		s.wake()
	}
	return nil
}

// Subscribe implements broker.Broker.
func (b *Broker) Subscribe(_ context.Context, sub broker.Subscription) (broker.Consumer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, broker.ErrClosed
	}
	c := &consumer{b: b, sub: sub, held: map[uint64]queued{}, bell: make(chan struct{}, 1)}
	b.stage(sub.Stage).waiters[c] = struct{}{}
	return c, nil
}

type consumer struct {
	b      *Broker
	sub    broker.Subscription
	bell   chan struct{}
	held   map[uint64]queued // guarded by b.mu
	closed bool              // guarded by b.mu
}

func (c *consumer) poke() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// Poke implements broker.Consumer.
func (c *consumer) Poke() { c.poke() }

// Receive implements broker.Consumer.
func (c *consumer) Receive(ctx context.Context, limit int, wait time.Duration) ([]broker.Delivery, error) {
	var got []broker.Delivery
	var over <-chan time.Time
	for {
		more, err := c.take(limit - len(got))
		if err != nil && len(got) == 0 {
			return nil, err
		}
		got = append(got, more...)
		if err != nil || len(got) >= limit || (len(got) > 0 && wait <= 0) {
			return got, nil
		}
		if len(got) > 0 && over == nil {
			t, stop := c.b.clock.NewTimer(wait)
			defer stop()
			over = t
		}
		select {
		case <-c.bell:
		case <-over:
			return got, nil
		case <-ctx.Done():
			if len(got) > 0 {
				return got, nil
			}
			return nil, context.Cause(ctx)
		}
	}
}

// take hands out what is there. Each turn of the ring gives one copy of a topic.
func (c *consumer) take(limit int) ([]broker.Delivery, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.closed || c.b.closed {
		return nil, broker.ErrClosed
	}
	s := c.b.stage(c.sub.Stage)
	var out []broker.Delivery
	allowed := map[string]int{}
	blocked := 0
	for len(out) < limit && len(s.ring) > blocked {
		t := s.ring[0]
		s.ring = s.ring[1:]
		if c.sub.Allow != nil {
			left, asked := allowed[t.name]
			if !asked {
				left = c.sub.Allow(t.name)
			}
			allowed[t.name] = left - 1
			if left <= 0 {
				s.ring = append(s.ring, t)
				blocked++
				continue
			}
		}
		q := t.pop()
		if t.len() > 0 {
			s.ring = append(s.ring, t)
		} else {
			t.ring = false
			delete(s.topics, t.name)
		}
		blocked = 0
		c.b.nextToken++
		c.held[c.b.nextToken] = q
		s.ready--
		s.unacked++
		out = append(out, broker.Delivery{Copy: q.copy, Token: c.b.nextToken, Redelivered: q.again})
	}
	return out, nil
}

// Ack implements broker.Consumer.
func (c *consumer) Ack(ds []broker.Delivery) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	for _, d := range ds {
		if _, ok := c.held[d.Token]; ok {
			delete(c.held, d.Token)
			c.b.stage(c.sub.Stage).unacked--
		}
	}
}

// Return implements broker.Consumer. What is returned goes to the front, the last one first, so
// that it comes again in the order in which it was taken.
func (c *consumer) Return(ds []broker.Delivery) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	for _, d := range slices.Backward(ds) {
		if q, ok := c.held[d.Token]; ok {
			c.giveBack(d.Token, q)
		}
	}
	c.b.stage(c.sub.Stage).wake()
}

func (c *consumer) giveBack(token uint64, q queued) {
	delete(c.held, token)
	s := c.b.stage(c.sub.Stage)
	t := s.topic(q.copy.Topic)
	q.again = true
	t.pushFront(q)
	s.unacked--
	s.ready++
	s.enter(t)
}

// Close implements broker.Consumer.
func (c *consumer) Close() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	s := c.b.stage(c.sub.Stage)
	delete(s.waiters, c)
	tokens := make([]uint64, 0, len(c.held))
	for t := range c.held {
		tokens = append(tokens, t)
	}
	slices.Sort(tokens)
	for _, token := range slices.Backward(tokens) {
		c.giveBack(token, c.held[token])
	}
	s.wake()
	c.poke()
	return nil
}
