package store

import (
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/edihub/edihub/internal/edi"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Stage is a step of the pipeline.
type Stage = edi.Stage

// The stages.
const (
	Parser    = edi.Parser
	Validator = edi.Validator
	Router    = edi.Router
	Sender    = edi.Sender
)

// Stages lists them in rank order.
func Stages() []Stage { return edi.Stages() }

// ParseStage reads a stage's name.
func ParseStage(s string) (Stage, bool) { return edi.ParseStage(s) }

// WorkState of a work row.
type WorkState uint8

// The states. A row is removed when its effect commits.
const (
	Ready     WorkState = iota + 1 // a copy may run
	Parked                         // waits for its turn in the lane
	Retry                          // waits for its time
	Leased                         // a sender has it
	KeyHeld                        // waits for an earlier row of the same key
	Dead                           // waits for a person
	Discarded                      // a person gave it up; kept for the record
)

// String returns the word that the API uses.
func (s WorkState) String() string {
	return [...]string{"none", "ready", "parked", "retry", "leased", "keyheld", "dead", "discarded"}[s]
}

// WorkKey names a work row.
type WorkKey struct {
	Stage Stage
	ID    edi.ID
}

// Work is the row that (stage, object) has from the moment it is emitted until its effect
// commits (DESIGN §3, The work row). The queue carries copies of it.
type Work struct {
	WorkKey
	Kind    Kind
	Lane    int64
	Seq     int64 // place in the lane
	Gen     int64 // raised by retry, wake, replay and lease expiry
	State   WorkState
	Gap     bool   // the lane went on without it
	Key     string // document key, "" where the stage has none
	Topic   string // the queue beside the stage's own: the connection of a sender
	Tries   int
	Crashes int
	Cursor  int64 // chunks that a split has committed
	Due     time.Time
	Since   time.Time // when it was emitted, or replayed
	Owner   string
	Epoch   int64
	Lease   time.Time
	Handed  int64  // start of the process that handed it to the broker; 0: nobody did
	Code    string // why it is dead, or why it waits
	Detail  string
	Partner string // filled when it dies: who sent it, for the filter of dead letters
	Died    time.Time
	Forced  bool // a replay that may pass checks which an operator overrode
}

// Lane is an ordered sequence of work at one stage.
type Lane struct {
	ID      int64
	Stage   Stage
	Name    string // origin [ / key] [ / destination], unique in its stage
	Ordered bool
	Policy  string // block | skip | hold-key
	Next    int64  // the turn; unordered lanes count what is through
	Tail    int64  // the next free sequence
	Waiting int64  // parked rows
	Paused  bool   // by an operator
	Profile int64  // highest profile version that was used
}

// LaneSpec asks for a lane; a missing one is made.
type LaneSpec struct {
	Stage   Stage
	Name    string
	Ordered bool
	Policy  string
}

// Scope of a natural key (CONTRACTS, Duplicates).
type Scope uint8

// The scopes.
const (
	ScopeAS2 Scope = iota + 1
	ScopeInterchange
	ScopeDocument
	ScopeContent
	ScopeAPI
	ScopeFile
)

// String returns the word that metrics use.
func (s Scope) String() string {
	return [...]string{"none", "as2", "interchange", "document", "content", "api", "file"}[s]
}

// NaturalKey is a row under a unique constraint, inserted in the transaction that has the
// effect.
type NaturalKey struct {
	Scope   Scope
	Hash    [32]byte // of the parts of the key
	Content [32]byte // of what the key names; the same key with other content is no repeat
	Object  edi.ID
	At      time.Time
}

// Ref names a body by the SHA-256 of its bytes.
type Ref [32]byte

// IsZero reports whether there is no body.
func (r Ref) IsZero() bool { return r == Ref{} }

// String returns the hash in hexadecimal.
func (r Ref) String() string {
	if r.IsZero() {
		return ""
	}
	return hex.EncodeToString(r[:])
}

// ErrRef is returned for text that is not a SHA-256 in hexadecimal.
var ErrRef = errors.New("not a SHA-256 in hexadecimal")

// MarshalText implements encoding.TextMarshaler.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Ref) UnmarshalText(b []byte) error {
	*r = Ref{}
	if len(b) == 0 {
		return nil
	}
	if n, err := hex.Decode(r[:], b); err != nil || n != len(r) {
		return ErrRef
	}
	return nil
}
