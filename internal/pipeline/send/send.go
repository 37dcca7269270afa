// Package send is the seam between the sender stage and the endpoints: what an endpoint is
// given, and the words in which it answers.
package send

import (
	"context"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
)

// Delivery is one file for one endpoint, as an endpoint sees it.
type Delivery struct {
	ID         edi.ID
	Generation int    // rises with each resend that begins a new Message-ID
	MessageID  string // a function of message, destination and generation; the same for each retry
	Connection *partner.Connection
	Own        *partner.Own // who we are on this connection, nil where it does not matter
	Payload    edi.Source
	Standard   edi.Standard
	Media      string // MIME type of the payload, for example "application/edifact"

	// What a file name pattern may name.
	Type       string // message type, of the first message
	Sender     string // sender's identifier in the envelope, without its name space
	Receiver   string
	ControlRef string
}

// Status is what an endpoint says of an attempt.
type Status int

// The five answers. Nothing but Delivered moves a delivery to "delivered".
const (
	// Delivered: the receiver's own proof is here.
	Delivered Status = iota + 1
	// Pending: the receiver has the bytes, the proof comes later (asynchronous MDN).
	Pending
	// Retry: refused, cut or overloaded; the same bytes go again under the same Message-ID.
	Retry
	// Failed: a negative MDN or a permanent answer. Only resend begins again.
	Failed
	// Unknown: the bytes may or may not have arrived. They go again under the same
	// Message-ID; when the time for retries is over the delivery ends as "unknown".
	Unknown
)

// Result of one attempt.
type Result struct {
	Status   Status
	Proof    string        // "mdn", "http-2xx" or "file"; with Delivered and Pending
	Code     string        // stable code of what went wrong, for example "HTTP_503"
	Detail   string        // one line for a person; holds no payload and no secret
	After    time.Duration // what the receiver asked for (Retry-After), 0 for the usual back-off
	Evidence []byte        // the signed MDN, kept for disputes; at most 64 KiB
	MIC      string        // what we computed, "base64, algorithm"
}

// Endpoint sends. It is safe for concurrent use, honours ctx, and never retries by itself.
type Endpoint interface {
	Send(ctx context.Context, d *Delivery) Result
}
