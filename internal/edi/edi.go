// Package edi holds the values that every floor of the hub shares: object ids, identifiers of
// parties, envelopes as the readers find them, positions, findings and their codes. It does no
// I/O and imports nothing of the hub.
package edi

import (
	"strconv"
	"strings"
)

// Standard names the syntax of a document.
type Standard string

// The standards that the hub tells apart.
const (
	EDIFACT Standard = "edifact" // ISO 9735
	X12     Standard = "x12"     // ASC X12.5, X12.6
	UBL     Standard = "ubl"     // OASIS UBL 2.1 Invoice and CreditNote
	Opaque  Standard = "opaque"  // anything else: carried unchanged where a route names it
)

// Identifier is a name-spaced identifier of a party: "edifact:14:5412345000020", "x12:ZZ:OURCO",
// "gs:OURCO" or "peppol:0088:5412345000020". It is name-spaced because qualifier 14 is GS1 in
// EDIFACT and DUNS-plus-suffix in X12.
type Identifier string

// EDIFACTIdentifier builds the identifier of S002/S003 0004+0007. A missing qualifier equals an
// empty one: "edifact::SENDER".
func EDIFACTIdentifier(qualifier, id string) Identifier {
	return Identifier("edifact:" + strings.TrimRight(qualifier, " ") + ":" + strings.TrimRight(id, " "))
}

// X12Identifier builds the identifier of ISA05/ISA06 or ISA07/ISA08; trailing blanks do not count.
func X12Identifier(qualifier, id string) Identifier {
	return Identifier("x12:" + strings.TrimRight(qualifier, " ") + ":" + strings.TrimRight(id, " "))
}

// GSIdentifier builds the identifier of GS02 or GS03.
func GSIdentifier(id string) Identifier { return Identifier("gs:" + strings.TrimRight(id, " ")) }

// PeppolIdentifier builds the identifier of an EndpointID or SBDH party with its scheme.
func PeppolIdentifier(scheme, id string) Identifier {
	return Identifier("peppol:" + strings.TrimSpace(scheme) + ":" + strings.TrimSpace(id))
}

// DocumentType names a kind of document for agreements and routes: "edifact:ORDERS", "x12:850",
// "ubl:Invoice" or "opaque".
func DocumentType(s Standard, typ string) string {
	if s == Opaque {
		return string(Opaque)
	}
	return string(s) + ":" + typ
}

// Position says where in a document something stands.
type Position struct {
	Segment    int   `json:"segment_position,omitempty"` // UNH or ST is 1; 0 is unknown
	Element    int   `json:"element,omitempty"`          // from 1; the tag does not count
	Component  int   `json:"component,omitempty"`        // from 1
	Repetition int   `json:"repetition,omitempty"`       // from 1
	Offset     int64 `json:"offset,omitempty"`           // bytes from the start of the file
	Line       int   `json:"line,omitempty"`             // from 1, XML only
}

// Severity of a finding. A document with a fatal finding is not valid.
type Severity string

// The two severities.
const (
	Fatal   Severity = "fatal"
	Warning Severity = "warning"
)

// Finding is one thing that a check has to say about a document. All acknowledgements are
// functions of the list of findings.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Ruleset  string   `json:"ruleset,omitempty"`
	Location string   `json:"location,omitempty"` // XPath
	Segment  string   `json:"segment,omitempty"`  // tag
	Position
	Terms    []string `json:"terms,omitempty"`
	Message  string   `json:"message"`
	Actual   string   `json:"actual,omitempty"`
	Expected string   `json:"expected,omitempty"`
	// Loop is the innermost segment group or loop that the segment stands in: "SG26", "N1". Empty
	// outside of any.
	Loop string `json:"loop,omitempty"`
	// DataElement is the number of the data element or composite as its standard writes it:
	// "0062", "C082" (ISO 9735), "98", "C040" (X12).
	DataElement string `json:"data_element,omitempty"`
}

// HasFatal reports whether one of the findings is fatal.
func HasFatal(fs []Finding) bool {
	for i := range fs {
		if fs[i].Severity == Fatal {
			return true
		}
	}
	return false
}

// Party is one side of an interchange as the envelope names it.
type Party struct {
	Qualifier string `json:"qualifier,omitempty"`
	ID        string `json:"id"`
}

// Interchange is an envelope as a splitter found it. Offsets and lengths are bytes of the file
// that was read, so that whatever is forwarded is a byte range of what arrived.
type Interchange struct {
	Standard    Standard
	Sender      Party
	Receiver    Party
	ControlRef  string // UNB 0020 or ISA13, as it stands
	Version     string // "UNOA:3" or "00401"
	Charset     string
	Test        bool // UNB 0035 = 1, ISA15 = T
	AckRequest  bool // UNB 0031 = 1, ISA14 = 1
	Offset      int64
	Length      int64 // up to and with the terminator of UNZ or IEA; 0 until the end was seen
	Segments    int   // UNB..UNZ or ISA..IEA inclusive
	Groups      int
	Messages    int
	Delimiters  Delimiters
	Header      []byte // the raw UNA (if any) and UNB, or ISA, with terminators
	ServiceUNA  bool   // a UNA stood before the UNB
	Profile     string // UBL: ProfileID
	Custom      string // UBL: CustomizationID
	Findings    []Finding
	TrailerSeen bool // UNZ or IEA was read
}

// Delimiters of an interchange; zero means "not used".
type Delimiters struct {
	Component  byte
	Element    byte
	Decimal    byte
	Release    byte
	Repetition byte
	Segment    byte
}

// Identifiers returns the name-spaced identifiers of sender and receiver.
func (ic *Interchange) Identifiers() (sender, receiver Identifier) {
	switch ic.Standard {
	case EDIFACT:
		return EDIFACTIdentifier(ic.Sender.Qualifier, ic.Sender.ID), EDIFACTIdentifier(ic.Receiver.Qualifier, ic.Receiver.ID)
	case X12:
		return X12Identifier(ic.Sender.Qualifier, ic.Sender.ID), X12Identifier(ic.Receiver.Qualifier, ic.Receiver.ID)
	case UBL:
		return PeppolIdentifier(ic.Sender.Qualifier, ic.Sender.ID), PeppolIdentifier(ic.Receiver.Qualifier, ic.Receiver.ID)
	case Opaque:
	}
	return "", ""
}

// Group is a functional group: UNG..UNE or GS..GE.
type Group struct {
	Position   int    // from 1 in its interchange
	FunctionID string // GS01, or UNG 0038
	Sender     string // GS02
	Receiver   string // GS03
	ControlRef string // GS06 or UNG 0048
	Version    string // GS08
	Offset     int64
	Length     int64
	Messages   int
	Header     []byte // the raw GS or UNG with its terminator
	Findings   []Finding
}

// Message is one EDIFACT message, X12 transaction set, UBL document or opaque file.
type Message struct {
	Position int // from 1 in its interchange
	Group    int // position of its group, 0 without groups
	Type     string
	Version  string // "D:96A:UN", GS08/ST03, or the CustomizationID
	// Association is UNH 0057, the association assigned code: "EAN008".
	Association string
	Ref         string // UNH 0062 or ST02
	Segments    int    // UNH..UNT or ST..SE inclusive
	Offset      int64
	Length      int64
	FunctionID  string // GS01 of its group
	Document    Document
	Findings    []Finding
}

// Document is what the business calls a message: its own number and what it refers to.
type Document struct {
	Number   string `json:"number,omitempty"`   // BGM 1004, BEG03, BIG02, BT-1
	Function string `json:"function,omitempty"` // BGM 1225, BEG01, BIG08
	Version  string `json:"version,omitempty"`  // BGM 1056
	OrderNo  string `json:"order_no,omitempty"` // the purchase order's number where the type has one
	Buyer    string `json:"buyer,omitempty"`    // NAD+BY, N1*BY, BT-46 or its endpoint
	Date     string `json:"date,omitempty"`     // as it stands
}

// EventKind tells the events of a splitter apart.
type EventKind int

// Events come in document order: InterchangeBegin (GroupBegin MessageEnd… GroupEnd | MessageEnd…)
// InterchangeEnd, again for each interchange of the file.
const (
	InterchangeBegin EventKind = iota + 1
	GroupBegin
	MessageEnd
	GroupEnd
	InterchangeEnd
)

// Event is one step of a splitter through a file. Interchange is always set; Group and Message
// are set by their kinds. The values belong to the receiver of the event.
type Event struct {
	Kind        EventKind
	Interchange *Interchange
	Group       *Group
	Message     *Message
}

// Splitter walks through a file without holding it: memory is bounded by the largest segment.
// Next returns io.EOF after the last event. Errors in the content are findings, not errors; an
// error is a failed read or a limit (*LimitError).
type Splitter interface {
	Next() (Event, error)
}

// LimitError says that a document is beyond a limit of the hub.
type LimitError struct {
	Limit  string // name of the limit, as in the configuration
	Max    int64
	Offset int64 // bytes from the start of the file
}

// Error implements error.
func (e *LimitError) Error() string {
	return "limit " + e.Limit + " of " + itoa(e.Max) + " exceeded at byte " + itoa(e.Offset)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
