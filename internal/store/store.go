// Package store is the seam to the durable state of the hub: work rows, lanes, natural keys,
// objects and bodies. Its specification is the suite in storetest, which runs against every
// driver.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/edihub/edihub/internal/edi"
)

// Errors that callers decide on.
var (
	// ErrNotFound: there is no such object.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the store cannot take writes now (disk full, locked, gone). Nothing was
	// written; the caller answers 503 or waits.
	ErrUnavailable = errors.New("store unavailable")
	// ErrInUse: another hub holds the same data.
	ErrInUse = errors.New("data folder is in use by another hub")
)

// Store keeps everything that must survive. It is safe for concurrent use.
type Store interface {
	// Update runs fn in a transaction that is durable when Update returns nil. Calls from many
	// goroutines share one commit; fn is kept apart from its neighbours by a savepoint, so an
	// error of fn undoes fn alone. fn must be quick and must not call the store but through tx.
	// After an error of the commit itself nothing of fn happened and the error is
	// ErrUnavailable.
	Update(ctx context.Context, fn func(tx Tx) error) error

	Reader

	// StageBody prepares content for SaveBody: small content is compressed in memory, large
	// content is written to a file and fsynced, so that the commit never waits for it.
	StageBody(ctx context.Context, src edi.Source) (*Body, error)
	// OpenBody opens a body. The Source is valid until Close.
	OpenBody(ctx context.Context, ref Ref) (BodySource, error)

	// Ping reports whether a write would succeed, within the deadline of ctx.
	Ping(ctx context.Context) error
	// Boot is the number of this start of the process; it rises with each.
	Boot() int64
	// Close waits for running transactions and closes the store.
	Close() error
}

// BodySource is an open body.
type BodySource interface {
	edi.Source
	Close() error
}

// Body is content that is ready to be saved.
type Body struct {
	Ref  Ref
	Size int64
	// Data is what goes into the row; nil for content that lies in a file.
	Data []byte
	// Packed says that Data is compressed.
	Packed bool
	// Plain is the content itself where it is small, for the cache.
	Plain []byte
}

// Tx is a transaction. What it locks stays locked until its end. Slices may be of any length;
// a driver sends each call as one round trip.
type Tx interface {
	// Lanes locks the lanes (in rank and id order), making those that are missing. The result
	// has the order of specs; equal specs share one *Lane. Policy and order of an existing lane
	// follow the spec when it is empty (Next == Tail), else they stay.
	Lanes(specs []LaneSpec) ([]*Lane, error)
	// LanesByID is Lanes for lanes that exist; unknown ids give nil.
	LanesByID(ids []int64) ([]*Lane, error)
	// SaveLanes writes lanes back.
	SaveLanes(lanes []*Lane) error

	// Work locks rows; missing ones are nil.
	Work(keys []WorkKey) ([]*Work, error)
	// InsertWork adds rows; one that exists stays as it is and is reported as false.
	InsertWork(rows []*Work) ([]bool, error)
	// SaveWork writes rows back that this transaction has locked.
	SaveWork(rows []*Work) error
	// DeleteWork removes rows, each only in the generation that is named.
	DeleteWork(rows []*Work) error
	// Parked returns up to n parked rows of a lane with seq >= from, in order.
	Parked(lane, from int64, n int) ([]*Work, error)
	// KeyBusy reports whether a row with this key that the lane went past is not through, with
	// a sequence below before.
	KeyBusy(lane int64, key string, before int64) (bool, error)
	// NextKeyHeld returns the first key-held row of the key, or nil.
	NextKeyHeld(lane int64, key string) (*Work, error)

	// Claim inserts natural keys. The result has, for a key that was there (and not older than
	// since), what holds it; else nil.
	Claim(keys []NaturalKey, since []time.Time) ([]*NaturalKey, error)
	// Number takes n control numbers of a sequence and returns the first. Numbers run from start to
	// limit and begin at 1 again.
	Number(sequence string, start, limit, n int64) (int64, error)

	SaveBody(b *Body) error
	InsertTransmission(t *Transmission) error
	SaveTransmission(t *Transmission) error
	// InsertInterchange adds it, or leaves the one that is there (a chunk done twice).
	InsertInterchange(ic *Interchange) error
	SaveInterchange(ic *Interchange) error
	Interchange(id edi.ID) (*Interchange, error)
	// InsertMessages adds those that are not there yet.
	InsertMessages(ms []*Message) error
	SaveMessages(ms []*Message) error
	Message(id edi.ID) (*Message, error)
	// MessagesOf returns up to n messages of an interchange with position > after, in order.
	MessagesOf(interchange edi.ID, after, n int) ([]*Message, error)
	InsertDelivery(d *Delivery) error
	SaveDelivery(d *Delivery) error
	Delivery(id edi.ID) (*Delivery, error)
	// EndMessages moves messages to a terminal state and counts their interchanges down. It
	// returns the interchanges whose last message ended.
	EndMessages(ids []edi.ID, state, code string, at time.Time) ([]edi.ID, error)
	// Reopen is the reverse of EndMessages for one message whose dead letter runs again.
	Reopen(id edi.ID, state string) error
	AddEvents(es []Event) error
	SaveSetting(name string, value []byte) error
}

// Reader reads committed state.
type Reader interface {
	GetTransmission(ctx context.Context, id edi.ID) (*Transmission, error)
	GetInterchange(ctx context.Context, id edi.ID) (*Interchange, error)
	GetMessage(ctx context.Context, id edi.ID) (*Message, error)
	GetDelivery(ctx context.Context, id edi.ID) (*Delivery, error)
	GetWork(ctx context.Context, key WorkKey) (*Work, error)
	GetLane(ctx context.Context, id int64) (*Lane, error)
	GetKey(ctx context.Context, scope Scope, hash [32]byte, since time.Time) (*NaturalKey, error)
	Events(ctx context.Context, object edi.ID) ([]Event, error)
	GetSetting(ctx context.Context, name string) ([]byte, error)

	ListTransmissions(ctx context.Context, f Filter) ([]*Transmission, error)
	ListInterchanges(ctx context.Context, f Filter) ([]*Interchange, error)
	ListMessages(ctx context.Context, f Filter) ([]*Message, error)
	// ListMessagesOf pages through an interchange: up to n messages with position > after, in order.
	ListMessagesOf(ctx context.Context, interchange edi.ID, after, n int) ([]*Message, error)
	ListDeliveries(ctx context.Context, f Filter) ([]*Delivery, error)
	ListLanes(ctx context.Context, after int64, n int) ([]*Lane, error)
	ListDead(ctx context.Context, f DeadFilter) ([]*Work, error)

	// Due returns up to n rows that wait for a time that has come: retries, and leases that ran
	// out.
	Due(ctx context.Context, now time.Time, n int) ([]*Work, error)
	// Turns returns up to n parked rows whose lane has come to them and is not paused.
	Turns(ctx context.Context, n int) ([]*Work, error)
	// KeysFree returns up to n key-held rows whose key is free.
	KeysFree(ctx context.Context, n int) ([]*Work, error)
	// Unhanded returns up to n ready rows that nobody handed to the broker, with a key behind
	// after, in (lane, seq) order.
	Unhanded(ctx context.Context, afterLane, afterSeq int64, n int) ([]*Work, error)
	// Backlog returns up to n ready rows of one lane that nobody handed over, in order.
	Backlog(ctx context.Context, lane int64, n int) ([]*Work, error)
	// Depths counts work rows per stage and state.
	Depths(ctx context.Context) ([]Depth, error)
}

// Depth is the number of work rows of a stage in a state.
type Depth struct {
	Stage  Stage
	State  WorkState
	Topic  string
	Count  int64
	Oldest time.Time
}

// Filter of the object lists. Empty fields match all. Lists run from new to old.
type Filter struct {
	ControlRef  string
	MessageID   string
	DocumentNo  string
	OrderNo     string
	Sender      string // partner id
	Receiver    string
	Type        string
	State       string
	Since       time.Time
	Until       time.Time
	Test        *bool
	Interchange edi.ID // parent
	Parent      edi.ID // transmission
	Before      edi.ID // cursor
	Limit       int
}

// DeadFilter of the dead letters.
type DeadFilter struct {
	Stage     Stage
	Partner   string
	Code      string
	Since     time.Time
	Until     time.Time
	Discarded bool
	Before    edi.ID
	Limit     int
}
