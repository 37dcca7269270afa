package dial

import (
	"fmt"
	"net/netip"
)

// class says what kind of address a connection would go to.
type class int

const (
	public class = iota
	// local addresses are opened by AllowPrivate, or by a literal in a local file.
	loopback
	private
	// never: nothing opens these.
	unspecified
	linkLocal
	multicast
	metadata
	reserved
)

func (c class) String() string {
	return [...]string{"public", "loopback", "private", "unspecified", "link-local", "multicast", "cloud metadata", "reserved"}[c]
}

type block struct {
	prefix netip.Prefix
	class  class
}

// blocks returns what the predicates of netip.Addr do not know: parts of the IANA IPv4 and IPv6
// special-purpose address registries (RFC 6890) and the metadata services of clouds.
// The first match wins.
func blocks() []block {
	return []block{
		// A metadata service gives credentials to whoever asks, and some of its addresses are
		// inside ranges that an operator may open.
		{netip.MustParsePrefix("169.254.169.254/32"), metadata},
		{netip.MustParsePrefix("169.254.170.0/24"), metadata},
		{netip.MustParsePrefix("100.100.100.200/32"), metadata},
		{netip.MustParsePrefix("168.63.129.16/32"), metadata},
		{netip.MustParsePrefix("192.0.0.192/32"), metadata},
		{netip.MustParsePrefix("fd00:ec2::/32"), metadata},
		{netip.MustParsePrefix("fd20:ce::/32"), metadata},

		{netip.MustParsePrefix("100.64.0.0/10"), private}, // RFC 6598, carrier-grade NAT
		{netip.MustParsePrefix("198.18.0.0/15"), private}, // RFC 2544, benchmarks
		{netip.MustParsePrefix("fec0::/10"), private},     // RFC 3879, site-local
		{netip.MustParsePrefix("64:ff9b:1::/48"), private},

		{netip.MustParsePrefix("0.0.0.0/8"), unspecified},
		{netip.MustParsePrefix("192.0.0.0/24"), reserved},
		{netip.MustParsePrefix("192.0.2.0/24"), reserved}, // RFC 5737, documentation
		{netip.MustParsePrefix("198.51.100.0/24"), reserved},
		{netip.MustParsePrefix("203.0.113.0/24"), reserved},
		{netip.MustParsePrefix("192.88.99.0/24"), reserved}, // RFC 7526, 6to4 relay
		{netip.MustParsePrefix("240.0.0.0/4"), reserved},
		{netip.MustParsePrefix("100::/64"), reserved},      // RFC 6666, discard
		{netip.MustParsePrefix("2001::/32"), reserved},     // RFC 4380, Teredo
		{netip.MustParsePrefix("2001:db8::/32"), reserved}, // RFC 3849, documentation
		{netip.MustParsePrefix("3fff::/20"), reserved},     // RFC 9637, documentation
		{netip.MustParsePrefix("::/96"), reserved},         // RFC 4291 §2.5.5.1, IPv4-compatible
	}
}

// judge tells the class of an address. An IPv6 address that carries an IPv4 address is as good
// as that address.
type judge struct {
	blocks []block
	nat64  netip.Prefix // RFC 6052 §2.1
	sixTo4 netip.Prefix // RFC 3056 §2
}

func newJudge() judge {
	return judge{
		blocks: blocks(),
		nat64:  netip.MustParsePrefix("64:ff9b::/96"),
		sixTo4: netip.MustParsePrefix("2002::/16"),
	}
}

func (j judge) class(a netip.Addr) class {
	a = a.WithZone("").Unmap()
	if a.Is6() {
		b := a.As16()
		switch {
		case j.nat64.Contains(a):
			return j.class(netip.AddrFrom4([4]byte(b[12:16])))
		case j.sixTo4.Contains(a):
			return j.class(netip.AddrFrom4([4]byte(b[2:6])))
		}
	}
	switch {
	case !a.IsValid() || a.IsUnspecified():
		return unspecified
	case a.IsLoopback():
		return loopback
	case a.IsMulticast():
		return multicast
	}
	for _, b := range j.blocks {
		if b.prefix.Contains(a) {
			return b.class
		}
	}
	switch {
	case a.IsLinkLocalUnicast():
		return linkLocal
	case a.IsPrivate():
		return private
	}
	return public
}

// permit returns a *BlockedError unless the policy lets a connection go to a. literal says that
// the URL names the address itself.
func (j judge) permit(host string, a netip.Addr, literal bool, p Policy) error {
	c := j.class(a)
	switch c {
	case public:
		return nil
	case loopback, private:
		if p.AllowPrivate || literal && p.Trusted {
			return nil
		}
	case unspecified, linkLocal, multicast, metadata, reserved:
	}
	return &BlockedError{Host: host, Addr: a, Class: c.String(), Remedy: remedy(c, literal)}
}

func remedy(c class, literal bool) string {
	switch {
	case c != loopback && c != private:
		return "use another address"
	case literal:
		return "set allow_private: true for the connection, or name the address in a local file"
	}
	return "set allow_private: true for the connection"
}

// BlockedError says that the hub does not connect to an address.
type BlockedError struct {
	Host   string     // as the URL names it
	Addr   netip.Addr // what it stands for
	Class  string     // "loopback", "private", "link-local", "cloud metadata" …
	Remedy string
}

// Error implements error.
func (e *BlockedError) Error() string {
	if e.Host == e.Addr.String() {
		return fmt.Sprintf("%s is a %s address: %s", e.Addr, e.Class, e.Remedy)
	}
	return fmt.Sprintf("%s resolves to %s, a %s address: %s", e.Host, e.Addr, e.Class, e.Remedy)
}
