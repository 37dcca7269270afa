// Package broker is the seam to the queues that carry copies of work rows to the pools. A queue
// may lose, repeat and reorder copies: the store decides what runs. Its specification is the
// suite in brokertest, which runs against every driver.
package broker

import (
	"context"
	"errors"
	"time"

	"github.com/edihub/edihub/internal/edi"
)

// ErrClosed is returned after Close.
var ErrClosed = errors.New("broker closed")

// Broker carries copies. It is safe for concurrent use.
type Broker interface {
	// Publish hands copies to their queues, in order per (stage, topic). Nil means that each
	// is confirmed and was routed to a queue; after an error any of them may have been.
	Publish(ctx context.Context, copies []edi.Copy) error
	// Subscribe makes a consumer of all queues of a stage. A stage may have many; they compete.
	Subscribe(ctx context.Context, s Subscription) (Consumer, error)
	// Depth counts what is queued and unacknowledged per stage.
	Depth(ctx context.Context, stage edi.Stage) (Depth, error)
	// Connected reports whether Publish can work now.
	Connected() bool
	// Close ends all consumers. Copies that are not acknowledged are forgotten or redelivered.
	Close() error
}

// Subscription asks for the copies of a stage.
type Subscription struct {
	Stage edi.Stage
	// Allow says how many more copies of a topic may be handed out now; nil means any number. It
	// must be quick and must not call the broker.
	Allow func(topic string) int
}

// Consumer takes copies. Receive is called by one goroutine; Ack and Return by any.
type Consumer interface {
	// Receive waits for the first copy, then takes what comes until there are limit of them or
	// wait has passed since the first; wait 0 takes what is there. Topics take turns. It returns
	// ErrClosed after Close and the cause of ctx when that ends first.
	Receive(ctx context.Context, limit int, wait time.Duration) ([]Delivery, error)
	// Poke makes Receive ask Allow again.
	Poke()
	// Ack says that the effect is durable. A delivery of an earlier connection is ignored.
	Ack(ds []Delivery)
	// Return gives deliveries back unprocessed; they come again.
	Return(ds []Delivery)
	// Close gives back what was neither acknowledged nor returned.
	Close() error
}

// Delivery is a copy in the hands of a consumer.
type Delivery struct {
	edi.Copy
	// Token belongs to the driver.
	Token uint64
	// Redelivered says that another consumer had it before.
	Redelivered bool
}

// Depth of a stage's queues.
type Depth struct {
	Ready   int
	Unacked int
}
