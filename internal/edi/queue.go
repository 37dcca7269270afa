package edi

// Stage is a step of the pipeline. The order of the values is the rank in which lanes are
// locked.
type Stage uint8

// The stages.
const (
	Parser Stage = iota + 1
	Validator
	Router
	Sender
)

// Stages lists them in rank order.
func Stages() []Stage { return []Stage{Parser, Validator, Router, Sender} }

// String returns the name that configuration, API and queues use.
func (s Stage) String() string {
	switch s {
	case Parser:
		return "parser"
	case Validator:
		return "validator"
	case Router:
		return "router"
	case Sender:
		return "sender"
	}
	return "stage-" + itoa(int64(s))
}

// ParseStage reads a stage's name.
func ParseStage(s string) (Stage, bool) {
	for _, x := range Stages() {
		if x.String() == s {
			return x, true
		}
	}
	return 0, false
}

// Kind says which object an id names.
type Kind uint8

// The objects of CONTRACTS, Objects.
const (
	KindTransmission Kind = iota + 1
	KindInterchange
	KindMessage
	KindDelivery
)

// String returns the word that the API uses.
func (k Kind) String() string {
	switch k {
	case KindTransmission:
		return "transmission"
	case KindInterchange:
		return "interchange"
	case KindMessage:
		return "message"
	case KindDelivery:
		return "delivery"
	}
	return "unknown"
}

// Copy is what a queue carries: a copy of a work row's name and generation, never a body (claim
// check). It runs only while the row has this generation and is ready.
type Copy struct {
	Stage   Stage
	ID      ID
	Kind    Kind
	Lane    int64
	Seq     int64
	Gen     int64
	Free    bool   // its lane does not order
	Topic   string // the queue beside the stage's own: the connection of a sender
	Crashes int    // how often the process died or the stage panicked with it; it runs alone then
}
