package edi

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// ID names an object of the hub: a UUIDv7 (RFC 9562 §5.7). The first 48 bits are the
// creation time in Unix milliseconds, so ids sort by age.
type ID [16]byte

// ErrID is returned by ParseID for text that is not a UUID.
var ErrID = errors.New("not a UUID")

// NewID returns a fresh random UUIDv7 for the given time.
func NewID(now time.Time) ID {
	var id ID
	// crypto/rand.Read never returns an error and always fills the slice.
	_, _ = rand.Read(id[6:])
	id.stamp(now.UnixMilli())
	return id
}

// Derive returns the id of a child object. The same parent, kind and position always give
// the same id, so that a split done twice creates its children once (DESIGN §3, Splits).
// The child carries the parent's time.
func (id ID) Derive(kind string, position int64) ID {
	h := sha256.New()
	h.Write(id[:])
	h.Write([]byte(kind))
	var p [9]byte                                       // the leading zero byte ends the kind
	binary.BigEndian.PutUint64(p[1:], uint64(position)) //nolint:gosec // G115: the bits are hashed, not read as a number.
	h.Write(p[:])
	var out ID
	copy(out[6:], h.Sum(nil))
	out.stamp(id.millis())
	return out
}

func (id *ID) stamp(ms int64) {
	var t [8]byte
	binary.BigEndian.PutUint64(t[:], uint64(ms)) //nolint:gosec // G115: times before 1970 do not occur.
	copy(id[:6], t[2:])
	id[6] = 0x70 | id[6]&0x0f // version 7
	id[8] = 0x80 | id[8]&0x3f // variant 10
}

func (id ID) millis() int64 {
	var t [8]byte
	copy(t[2:], id[:6])
	return int64(binary.BigEndian.Uint64(t[:])) //nolint:gosec // G115: 48 bits.
}

// Time returns the creation time that the id carries, in UTC, to the millisecond.
func (id ID) Time() time.Time { return time.UnixMilli(id.millis()).UTC() }

// IsZero reports whether the id was never set.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the canonical 36-character form; the zero id is the empty string.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	b[8] = '-'
	hex.Encode(b[9:13], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:36], id[10:16])
	return string(b[:])
}

// ParseID reads the canonical form in either case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, ErrID
	}
	compact := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
	if _, err := hex.Decode(id[:], []byte(compact)); err != nil {
		return ID{}, ErrID
	}
	return id, nil
}

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; the empty text is the zero id.
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = ID{}
		return nil
	}
	v, err := ParseID(string(b))
	if err != nil {
		return err
	}
	*id = v
	return nil
}
