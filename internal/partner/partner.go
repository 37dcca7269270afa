// Package partner holds who the hub knows: its own identities, the connections that bytes
// travel by, the partners behind them, the agreements with them, and the routes. A Registry is
// an immutable snapshot with a version; every message records the version that it used.
package partner

import (
	"crypto"
	"crypto/x509"
	"slices"
	"time"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
)

// Own is one of our own identities.
type Own struct {
	ID          string
	AS2ID       string // compared exactly, stored unquoted
	Keys        []Key
	Identifiers []edi.Identifier
}

// Key is a private key of ours with its certificate and the time in which it is used.
type Key struct {
	Certificate *x509.Certificate
	Private     crypto.Signer // an RSA key is a crypto.Decrypter too
	From, Until time.Time     // zero: not bounded
	Use         []Use
}

// Certificate is a partner's certificate from the partner's record, the only place that is
// trusted.
type Certificate struct {
	Certificate *x509.Certificate
	From, Until time.Time
	Use         []Use
}

// Use says what a key or certificate is for.
type Use string

// The uses.
const (
	UseSign    Use = "sign"
	UseEncrypt Use = "encrypt"
	UseDecrypt Use = "decrypt"
	UseTLS     Use = "tls"
)

// Connection is a way for bytes. Exactly one of AS2, Directory and HTTP is set.
type Connection struct {
	ID           string
	AS2          *AS2
	Directory    *Directory
	HTTP         *HTTP
	Certificates []Certificate
	InFlight     int // sends at the same time; default 4
	Retry        Retry
	AllowPrivate bool // the URL's host name may resolve to a private or loopback address
	ManagedBy    string
}

// URL is where the connection sends to, empty for a directory.
func (c *Connection) URL() string {
	switch {
	case c.AS2 != nil:
		return c.AS2.URL
	case c.HTTP != nil:
		return c.HTTP.URL
	}
	return ""
}

// DialRule is what a dialer must hold to: a local file is trusted to name a private address
// literally, while a name may change its mind after it was checked.
type DialRule struct {
	URL            string
	PrivateLiteral bool // a loopback or private address may stand in the URL itself
	PrivateByName  bool // the URL's host name may resolve to one
}

// DialRule returns the rule for this connection's URL.
func (c *Connection) DialRule() DialRule {
	return DialRule{
		URL:            c.URL(),
		PrivateLiteral: c.AllowPrivate || c.ManagedBy == ManagedByFile,
		PrivateByName:  c.AllowPrivate,
	}
}

// Retry says how long and how often a send is tried again.
type Retry struct {
	For   time.Duration // default 72 h
	First time.Duration // default 30 s
	Max   time.Duration // default 15 min
}

// AS2 settings of a connection (RFC 4130).
type AS2 struct {
	ID         string // the partner's AS2 name, unquoted
	Own        string // id of our own identity
	URL        string
	Sign       string // none | sha1 | sha256 | sha384 | sha512
	Encrypt    string // none | 3des | aes128-cbc | aes192-cbc | aes256-cbc | aes128-gcm | aes256-gcm
	Compress   string // none | before | after
	Require    []string
	MaxMessage int64 // bytes; 0 is the hub's own limit
	MDN        MDN
}

// Requires reports whether the connection demands "signed" or "encrypted" of what comes in.
func (a *AS2) Requires(what string) bool {
	return slices.Contains(a.Require, what)
}

// MDN settings of a connection.
type MDN struct {
	Mode    string // sync | async | none
	Signed  bool
	Timeout time.Duration
	Resends int
}

// Directory settings of a connection. Paths are absolute once loaded.
type Directory struct {
	Out       string        // where deliveries are put; empty: nothing goes out
	Name      string        // pattern of file names: {type} {sender} {receiver} {control_ref} {id}
	In        string        // what is polled; empty: nothing comes in
	StableFor time.Duration // default 5 s
}

// HTTP settings of a connection.
type HTTP struct {
	URL     string
	HMACKey config.Secret
}

// Status of a partner.
type Status string

// The states of a partner. Only testing and live partners exchange documents. What a draft or
// suspended partner sends is kept as a dead letter; what goes to a suspended one waits, and what
// goes to a draft is a dead letter.
const (
	Draft     Status = "draft"
	Testing   Status = "testing" // takes part as live does, and usage: production takes its tests too
	Live      Status = "live"
	Suspended Status = "suspended"
)

// Partner is a party that envelopes name.
type Partner struct {
	ID          string
	Connections []string // the first one is used for sending
	Status      Status
	Identifiers []edi.Identifier
	ManagedBy   string
}

// Role says on whose behalf we receive (DESIGN §1).
type Role string

// The roles; empty means: by the recipient.
const (
	Endpoint    Role = "endpoint"
	Transparent Role = "transparent"
)

// Poison says what a lane does when its head is dead.
type Poison string

// The three policies, the strictest first.
const (
	Block   Poison = "block"
	Skip    Poison = "skip"
	HoldKey Poison = "hold-key"
)

// OrderBy says what a lane is.
type OrderBy string

// The orderings of DESIGN G3.
const (
	ByPartner     OrderBy = "partner"
	ByInterchange OrderBy = "interchange"
	ByDocument    OrderBy = "document"
	ByCustomer    OrderBy = "customer"
	ByNone        OrderBy = "none"
)

// Match of an agreement or a route. Keys are ANDed, list values ORed, an empty key matches all;
// a document may end in "*".
type Match struct {
	From     []string // partner or own ids
	To       []string
	Sender   []edi.Identifier
	Receiver []edi.Identifier
	Document []string
}

// Agreement is what holds between two parties for some documents.
type Agreement struct {
	Position   int // from 1 in the list; 0: the defaults, where nothing matched
	Match      Match
	Role       Role
	Split      string // messages | preserve
	OnReject   string // message | group | interchange
	OnInvalid  string // reject | hold | deliver
	Validate   Validate
	Duplicates Duplicates
	Usage      string // production | test | both
	Ordering   Ordering
	OnPoison   Poison
	MaxAge     time.Duration
	Acks       Acks
}

// Validate says how deep documents are checked.
type Validate struct {
	Level         string // off | envelope | tables | guideline
	WarnOnly      []string
	TrailerErrors string // reject | warn
	Guideline     string
	Rulebook      *tables.Guideline // what the file named by Guideline says; nil without one
	Rules         []string
	Severity      map[string]string
}

// Ordering of an agreement.
type Ordering struct {
	By      OrderBy
	Advance string // delivered | accepted
}

// Window is one scope of the duplicate check. Actions: repeat-answer | skip | reject | hold | off.
type Window struct {
	Window time.Duration
	Same   string
	Other  string
}

// Duplicates are the scopes of CONTRACTS, Duplicates, that an agreement sets.
type Duplicates struct {
	Interchange Window
	Document    Window
	Content     Window
}

// Acks says which acknowledgements we send.
type Acks struct {
	ContrlReceipt, ContrlAnswer string // always | on-request | errors | never
	TA1                         string
	X12Type                     string // auto | 997 | 999
	X12Answer                   string
	X12AcceptedLoops            bool
	UBL                         string // none | mlr | mlr-errors
	Wait                        time.Duration
}

// Route says where a message goes. The first match wins.
type Route struct {
	Position int // from 1 in the list
	Match    Match
	To       string // partner id
	Envelope string // keep | new | none
	EDIFACT  EDIFACTWriting
	X12      X12Writing
	Control  Control
}

// EDIFACTWriting sets how a new EDIFACT envelope is written; empty values come from the original.
type EDIFACTWriting struct {
	Syntax    string // "UNOC:3"
	UNA       *bool
	LineBreak string // none | lf | crlf
}

// X12Writing sets how a new X12 envelope is written; empty values come from the original.
type X12Writing struct {
	Version, Element, Component, Segment string
}

// Control numbers of new envelopes.
type Control struct {
	Start int64
}
