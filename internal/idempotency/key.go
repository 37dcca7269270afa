// Package idempotency derives the natural keys under which an effect happens once, per source
// of messages (CONTRACTS, Duplicates). The keys are rows under a unique constraint; the
// transaction that has the effect inserts them.
package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// hash joins parts so that no two lists of parts give the same bytes.
func hash(parts ...string) [32]byte {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return [32]byte(h.Sum(nil))
}

// AS2 is the key of an AS2 message: AS2-From, AS2-To and Message-ID, the latter without its
// brackets, so that a partner who drops them on a resend is recognised.
func AS2(from, to, messageID string) [32]byte {
	id := strings.TrimSpace(messageID)
	id = strings.TrimSuffix(strings.TrimPrefix(id, "<"), ">")
	return hash("as2", from, to, id)
}

// Interchange is the key of an interchange: sender and receiver with their qualifiers, test flag
// and control reference. Blanks at the ends do not count (X12.5, ISO 9735 fixed fields).
func Interchange(ic *edi.Interchange) [32]byte {
	s, r := ic.Identifiers()
	test := "P"
	if ic.Test {
		test = "T"
	}
	return hash("interchange", string(s), string(r), test, strings.TrimSpace(ic.ControlRef))
}

// Content is the key of what has no control reference: connection, our own id, and the SHA-256
// of the verified content.
func Content(connection, own string, ref store.Ref) [32]byte {
	return hash("content", connection, own, ref.String())
}

// API is the key of a POST: who posted, and the Idempotency-Key.
func API(caller, key string) [32]byte { return hash("api", caller, key) }

// File is the key of a file from a directory: the connection, its claimed name and its content.
func File(connection, key string) [32]byte { return hash("file", connection, key) }
