package ack

import "github.com/edihub/edihub/internal/edi"

// Status is the word of an acknowledgement about one level of an interchange.
type Status string

// The statuses.
const (
	Unknown     Status = ""                     // a code that no standard has
	Receipt     Status = "received"             // arrived; nothing is said about the content yet
	AllAccepted Status = "accepted"             //
	WithErrors  Status = "accepted_with_errors" //
	Partly      Status = "partly"               // some groups or messages are refused
	Refused     Status = "refused"              //
)

// The kinds of acknowledgements, as edihub ack names them.
const (
	KindContrl = "contrl"
	KindTA1    = "ta1"
	Kind997    = "997"
	Kind999    = "999"
)

// Report is what one acknowledgement says. It speaks of one interchange (CONTRL, TA1) or of one
// functional group (997, 999), which whoever sent it finds by the references.
type Report struct {
	Kind string `json:"kind"`
	// Ref is the reference of the acknowledgement itself: UNH 0062, ST02; empty for a TA1.
	Ref string `json:"ref,omitempty"`
	// ControlRef is that of the interchange it speaks of: UCI 0020, TA101. Empty in 997 and 999,
	// which name their group only.
	ControlRef string `json:"control_ref,omitempty"`
	// Sender and Receiver are those of the interchange it speaks of (UCI S002, S003).
	Sender   edi.Party `json:"sender,omitzero"`
	Receiver edi.Party `json:"receiver,omitzero"`
	// Date and Time are TA102 and TA103.
	Date string `json:"date,omitempty"`
	Time string `json:"time,omitempty"`
	// Status of the interchange (CONTRL, TA1) or of the group (997, 999). A CONTRL with action 7
	// that rejects something below is Partly.
	Status Status `json:"status"`
	// Action is the code behind Status as it came: 0083, TA104, AK901.
	Action string `json:"action,omitempty"`
	Error
	// Codes are all codes of this level: 0085, TA105 or AK905 to AK909.
	Codes    []string        `json:"codes,omitempty"`
	Groups   []GroupReport   `json:"groups,omitempty"`
	Messages []MessageReport `json:"messages,omitempty"` // CONTRL: those in no group
	// More says that a limit was reached and the rest was not kept.
	More bool `json:"more,omitempty"`
}

// GroupReport is what is said about one functional group.
type GroupReport struct {
	FunctionID string `json:"function_id,omitempty"` // AK101
	ControlRef string `json:"control_ref"`           // AK102, UCF 0048
	Version    string `json:"version,omitempty"`     // AK103
	Status     Status `json:"status"`
	Action     string `json:"action,omitempty"`
	Error
	Codes []string `json:"codes,omitempty"`
	// Included, Received and Accepted are AK902 to AK904; -1 where a number is not there.
	Included int             `json:"included"`
	Received int             `json:"received"`
	Accepted int             `json:"accepted"`
	Messages []MessageReport `json:"messages,omitempty"`
}

// MessageReport is what is said about one message. What is not listed shares the status of the
// level above: see MessageStatus.
type MessageReport struct {
	Type    string `json:"type,omitempty"`
	Version string `json:"version,omitempty"`
	Ref     string `json:"ref"`
	Status  Status `json:"status"`
	Action  string `json:"action,omitempty"`
	Error
	Codes  []string `json:"codes,omitempty"`
	Errors []Error  `json:"errors,omitempty"`
}

// Error is one error of an acknowledgement. Positions count as in edi.Position: UNH or ST is
// segment 1, the tag is no element.
type Error struct {
	Code string `json:"code,omitempty"`
	Tag  string `json:"segment,omitempty"`
	edi.Position
	Loop        string   `json:"loop,omitempty"`
	DataElement string   `json:"data_element,omitempty"`
	Value       string   `json:"value,omitempty"`
	Context     []string `json:"context,omitempty"` // CTX of a 999, as they stand
}

// MessageStatus is what the report says about one message, listed or not. Group is empty where
// there are none. For a 997 or 999 it is the reference of its only group.
func (r *Report) MessageStatus(group, ref string) Status {
	find := func(ms []MessageReport, above Status) Status {
		for i := range ms {
			if ms[i].Ref == ref {
				return ms[i].Status
			}
		}
		if above == Partly || above == WithErrors {
			return AllAccepted
		}
		return above
	}
	if group == "" {
		return find(r.Messages, r.Status)
	}
	for i := range r.Groups {
		if r.Groups[i].ControlRef == group {
			return find(r.Groups[i].Messages, r.Groups[i].Status)
		}
	}
	if r.Kind == Kind997 || r.Kind == Kind999 {
		return Unknown
	}
	return find(nil, r.Status)
}
