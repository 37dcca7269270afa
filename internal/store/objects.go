package store

import (
	"time"

	"github.com/edihub/edihub/internal/edi"
)

// Kind says which object an id names.
type Kind = edi.Kind

// The objects of CONTRACTS, Objects.
const (
	KindTransmission = edi.KindTransmission
	KindInterchange  = edi.KindInterchange
	KindMessage      = edi.KindMessage
	KindDelivery     = edi.KindDelivery
)

// States of objects. They are the words of the API.
const (
	StateAccepted    = "accepted"    // transmission: durable, positive answer
	StateRepeated    = "repeated"    // transmission: a repeat of an accepted one
	StateRefused     = "refused"     // transmission: negative answer, nothing goes on
	StateQuarantined = "quarantined" // transmission: kept for a look, nothing goes on
	StateHeld        = "held"        // transmission or message: waits for a person

	StateStaged    = "staged"    // interchange: split, trailers not checked yet
	StateSplit     = "split"     // interchange: its messages are on their way
	StateRejected  = "rejected"  // the sender's fault, finished
	StateDuplicate = "duplicate" // came before, no second effect
	StateDead      = "dead"      // what our operators must mend
	StateDone      = "done"      // interchange: every message ended

	StateParsed    = "parsed"
	StateValidated = "validated"
	StateRouted    = "routed"
	StateBatched   = "batched" // message: waits for the others of its interchange
	StateSending   = "sending"
	StateDelivered = "delivered"
	StateDiscarded = "discarded"

	StateReady   = "ready"   // delivery: waits for a sender
	StateSent    = "sent"    // delivery: the receiver has it, the proof is awaited
	StateFailed  = "failed"  // delivery: negative MDN or a permanent answer
	StateUnknown = "unknown" // delivery: nobody can say whether it arrived
)

// Transmission is one AS2 message, file or POST that came in.
type Transmission struct {
	ID         edi.ID
	Transport  string // as2 | directory | http
	Connection string // "" when unknown
	Own        string // id of our identity
	From, To   string // AS2 names, or the partners a POST named
	MessageID  string // byte for byte
	FileName   string
	Media      string
	State      string
	Code       string
	Detail     string
	Signed     bool
	Encrypted  bool
	MIC        string
	Content    Ref // what was opened and verified
	Wire       Ref // what travelled; equal to Content where nothing was wrapped
	WireSize   int64
	Size       int64
	Answer     []byte // the MDN as it was sent, head and body
	Source     string // remote address
	At         time.Time
	// WireHead are the header lines without which Wire cannot be opened again: Content-Type, with
	// the boundary of what is signed, and Content-Transfer-Encoding. "" where nothing was wrapped.
	WireHead string
}

// Interchange is UNB..UNZ, ISA..IEA, or one XML document, of a transmission.
type Interchange struct {
	ID           edi.ID
	Transmission edi.ID
	Position     int // from 1 in the transmission
	Connection   string
	Body         Ref
	Envelope     edi.Interchange
	Groups       []edi.Group // in order
	From, To     string      // partner or own ids, "" when unknown
	Role         string
	State        string
	Code         string
	Findings     []edi.Finding
	Total        int  // messages
	Open         int  // messages that have not ended
	Unrouted     int  // where messages wait for each other (Waits), those without a decision
	Preserve     bool // split: preserve
	Profile      int64
	At           time.Time
	OnReject     string // group or interchange: what falls with a rejected message; else ""
}

// Waits reports whether no message leaves before each of the interchange has its verdict: those
// that stay together, and those that may fall with another.
func (ic *Interchange) Waits() bool { return ic.Preserve || ic.OnReject != "" }

// Message is the unit of validation, routing, order and dead letter.
type Message struct {
	ID          edi.ID
	Interchange edi.ID
	Envelope    edi.Message
	Standard    edi.Standard
	From, To    string
	State       string
	Code        string
	Findings    []edi.Finding
	Delivery    edi.ID // the newest
	Profile     int64
	At          time.Time
	ControlRef  string // of its interchange
	Test        bool
}

// Piece of a delivery's bytes: literal bytes, or a range of a body.
type Piece struct {
	Literal []byte `json:"l,omitempty"`
	Body    Ref    `json:"b,omitzero"`
	Offset  int64  `json:"o,omitempty"`
	Length  int64  `json:"n,omitempty"`
	// Translate replaces bytes of the body: pairs of a byte and what stands in its place.
	Translate []byte `json:"t,omitempty"`
}

// Size returns the number of bytes of the piece.
func (p *Piece) Size() int64 {
	if p.Body.IsZero() {
		return int64(len(p.Literal))
	}
	return p.Length
}

// Delivery is one outbound file for one endpoint. Its bytes are its pieces one after another;
// bodies never change, so a retry sends the same bytes.
type Delivery struct {
	ID         edi.ID
	Connection string
	Partner    string
	Own        string
	State      string
	Code       string
	Detail     string
	Envelope   string // keep | new | none
	Standard   edi.Standard
	Type       string
	Sender     string
	Receiver   string
	ControlRef string
	From, To   string
	Pieces     []Piece
	Size       int64
	Messages   []edi.ID
	Generation int
	Tries      int
	Proof      string
	MIC        string
	Ack        string
	Evidence   []byte
	Profile    int64
	At         time.Time
	EndedAt    time.Time
}

// MessageID is the AS2 Message-ID of the delivery's generation, with brackets. It is a function
// of the delivery, so a retry after a crash repeats it (DESIGN §3, Sending).
func (d *Delivery) MessageID(domain string) string {
	if domain == "" {
		domain = "edihub"
	}
	g := ""
	if d.Generation > 0 {
		g = "-g" + itoa(int64(d.Generation))
	}
	return "<" + d.ID.String() + g + "@" + domain + ">"
}

// Event is one step in the time line of an object.
type Event struct {
	Object edi.ID    `json:"-"`
	At     time.Time `json:"at"`
	Name   string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
	Who    string    `json:"who,omitempty"`
}
