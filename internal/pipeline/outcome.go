package pipeline

import (
	"context"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/store"
)

// Codes of what falls with a rejected message (on_reject).
const (
	CodeGroup       = "GROUP_INVALID"
	CodeInterchange = "INTERCHANGE_INVALID"
)

// Verdict is what a stage says of a message. There are four and no fifth (DESIGN §3).
type Verdict uint8

// The verdicts. Nothing but Dead, and Hold for a person, starts the poison policy.
const (
	// Done: the effect is in the outcome. A rejection is Done: the sender is told, the lane goes on.
	Done Verdict = iota + 1
	// Retry: again after a while; the row keeps its place in the lane.
	Retry
	// Hold: until a time it acts like Retry, for a person like Dead.
	Hold
	// Dead: our operators must mend it.
	Dead
)

// String returns the word that metrics use.
func (v Verdict) String() string {
	return [...]string{"none", "done", "retry", "hold", "dead"}[v]
}

// Outcome is what a stage wants to happen. It is data: the runner decides in its transaction
// whether it happens.
type Outcome struct {
	Verdict Verdict
	Code    string        // why, with Retry, Hold and Dead
	Detail  string        // one line for a person; no payload
	After   time.Duration // with Retry: 0 takes the usual back-off. With Hold: 0 waits for a person
	Profile int64         // version of the partner records that were used
	Partner string        // whose fault or document it is, for dead letters and metrics

	// Claims are natural keys that the effect needs. They are taken in the transaction; the
	// first that is already taken replaces this outcome by its alternative.
	Claims []Claim
	Write  Write
	Emit   []Emission

	// More continues a split that is too large for one transaction: after this outcome has
	// committed as a chunk, More computes the next. The row stays until the last chunk.
	More func(ctx context.Context) *Outcome
	// Step counts the chunks of a split: this outcome is the one after Step chunks. A chunk
	// whose predecessor is not the last that committed is dropped.
	Step int64
	// Release frees what the outcome's continuation holds, when it is not run to its end.
	Release func()

	crash bool // the stage panicked or ran out of time
}

// Claim of a natural key and what to do when it is taken.
type Claim struct {
	Key   store.NaturalKey
	Since time.Time // older entries do not count
	Same  *Outcome  // taken by the same content
	Other *Outcome  // taken by other content
}

// Write lists the effects of an outcome.
type Write struct {
	Interchanges     []*store.Interchange // inserted, unless they are there
	SaveInterchanges []*store.Interchange
	Messages         []*store.Message // inserted, unless they are there
	SaveMessages     []*store.Message
	End              []End
	Deliveries       []*DeliveryPlan
	Decide           []Decide
	Events           []store.Event
	Born             []*store.Work // dead letters beside the row: a part of a file that is dead
}

// End moves messages to a terminal state.
type End struct {
	Messages []edi.ID
	State    string
	Code     string
	// Interchange ends the same way, where the messages end because it falls as a whole.
	Interchange edi.ID
}

// Decide says that one message of an interchange whose messages wait for each other has its
// decision. The one that leaves none open emits the row that builds the deliveries.
type Decide struct {
	Interchange edi.ID
	Count       int
	Emit        Emission
}

// DeliveryPlan is a delivery whose control numbers the transaction gives.
type DeliveryPlan struct {
	Delivery *store.Delivery
	Numbers  []Sequence
	// Seal completes the delivery with the numbers, one per sequence. It is pure.
	Seal func(d *store.Delivery, numbers []int64) error
}

// Sequence of control numbers.
type Sequence struct {
	Name         string
	Start, Limit int64
	Count        int64
}

// Emission is a work row for a later stage.
type Emission struct {
	Stage store.Stage
	Kind  store.Kind
	ID    edi.ID
	Lane  store.LaneSpec
	Key   string
	Topic string
	// Fused is the outcome of that stage, where it was computed at once. It takes effect in
	// the same transaction when the row's turn has come in its lane; else the row is queued and
	// computed again.
	Fused *Outcome
}

// Task is the input of a stage.
type Task struct {
	Stage        store.Stage
	Kind         store.Kind
	ID           edi.ID
	Transmission *store.Transmission // parser
	Interchange  *store.Interchange  // parser (a part again), validator, router
	Message      *store.Message      // validator, router
	Registry     *partner.Registry
	Now          time.Time
	Step         int64 // chunks of a split that have committed
	Forced       bool

	// Open opens a body; the caller closes it.
	Open func(ref store.Ref) (store.BodySource, error)
	// Stored returns an interchange as the store has it now.
	Stored func(id edi.ID) (*store.Interchange, error)
	// MessagesOf pages through the messages of an interchange: up to n behind position after.
	MessagesOf func(interchange edi.ID, after, n int) ([]*store.Message, error)
}

// Stage is pure: bytes and records in, outcome out. It knows no broker, no transaction, no
// acknowledgement. It honours ctx.
type Stage interface {
	Handle(ctx context.Context, t *Task) *Outcome
}

// StageFunc makes a function a Stage.
type StageFunc func(ctx context.Context, t *Task) *Outcome

// Handle implements Stage.
func (f StageFunc) Handle(ctx context.Context, t *Task) *Outcome { return f(ctx, t) }
