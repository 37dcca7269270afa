package dial

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestClassOfAddress(t *testing.T) {
	t.Parallel()
	j := newJudge()
	for addr, want := range map[string]class{
		"8.8.8.8":                public,
		"1.1.1.1":                public,
		"172.15.255.255":         public,
		"172.32.0.1":             public,
		"100.63.255.255":         public,
		"100.128.0.1":            public,
		"2606:4700:4700::1111":   public,
		"::ffff:8.8.8.8":         public,
		"64:ff9b::808:808":       public,
		"2002:808:808::1":        public,
		"127.0.0.1":              loopback,
		"127.255.255.254":        loopback,
		"::1":                    loopback,
		"::1%lo":                 loopback,
		"::ffff:127.0.0.1":       loopback,
		"64:ff9b::7f00:1":        loopback,
		"2002:7f00:1::":          loopback,
		"10.0.0.1":               private,
		"172.16.0.1":             private,
		"172.31.255.255":         private,
		"192.168.1.1":            private,
		"::ffff:192.168.1.1":     private,
		"64:ff9b::c0a8:101":      private,
		"64:ff9b:1::808:808":     private,
		"2002:a00:1::1":          private,
		"100.64.0.1":             private,
		"100.127.255.255":        private,
		"198.18.0.1":             private,
		"fc00::1":                private,
		"fd12:3456::1":           private,
		"fec0::1":                private,
		"0.0.0.0":                unspecified,
		"0.1.2.3":                unspecified,
		"::":                     unspecified,
		"::ffff:0.0.0.0":         unspecified,
		"169.254.1.1":            linkLocal,
		"fe80::1":                linkLocal,
		"fe80::1%eth0":           linkLocal,
		"224.0.0.1":              multicast,
		"239.255.255.250":        multicast,
		"ff02::1":                multicast,
		"169.254.169.254":        metadata,
		"::ffff:169.254.169.254": metadata,
		"64:ff9b::a9fe:a9fe":     metadata,
		"169.254.170.2":          metadata,
		"100.100.100.200":        metadata,
		"168.63.129.16":          metadata,
		"192.0.0.192":            metadata,
		"fd00:ec2::254":          metadata,
		"fd20:ce::254":           metadata,
		"192.0.0.1":              reserved,
		"192.0.2.1":              reserved,
		"198.51.100.1":           reserved,
		"203.0.113.1":            reserved,
		"240.0.0.1":              reserved,
		"255.255.255.255":        reserved,
		"100::1":                 reserved,
		"2001:0:1::1":            reserved,
		"2001:db8::1":            reserved,
		"::7f00:1":               reserved,
	} {
		if got := j.class(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is %v, want %v", addr, got, want)
		}
	}
	if got := j.class(netip.Addr{}); got != unspecified {
		t.Errorf("no address is %v", got)
	}
}

func TestPermit(t *testing.T) {
	t.Parallel()
	j := newJudge()
	for _, tc := range []struct {
		addr          string
		literal       bool
		policy        Policy
		allowed       bool
		remedyMatches string
	}{
		{"8.8.8.8", false, Policy{}, true, ""},
		{"8.8.8.8", true, Policy{}, true, ""},
		{"127.0.0.1", true, Policy{}, false, "allow_private"},
		{"127.0.0.1", true, Policy{Trusted: true}, true, ""},
		{"127.0.0.1", false, Policy{Trusted: true}, false, "allow_private"},
		{"127.0.0.1", false, Policy{AllowPrivate: true}, true, ""},
		{"10.1.2.3", true, Policy{}, false, "local file"},
		{"10.1.2.3", true, Policy{Trusted: true}, true, ""},
		{"10.1.2.3", false, Policy{Trusted: true}, false, "allow_private"},
		{"10.1.2.3", true, Policy{AllowPrivate: true}, true, ""},
		{"169.254.169.254", true, Policy{AllowPrivate: true, Trusted: true}, false, "another address"},
		{"fd00:ec2::254", true, Policy{AllowPrivate: true, Trusted: true}, false, "another address"},
		{"0.0.0.0", true, Policy{AllowPrivate: true, Trusted: true}, false, "another address"},
		{"224.0.0.1", true, Policy{AllowPrivate: true, Trusted: true}, false, "another address"},
		{"fe80::1", true, Policy{AllowPrivate: true, Trusted: true}, false, "another address"},
		{"255.255.255.255", true, Policy{AllowPrivate: true, Trusted: true}, false, "another address"},
	} {
		err := j.permit("host", netip.MustParseAddr(tc.addr), tc.literal, tc.policy)
		if (err == nil) != tc.allowed {
			t.Errorf("%s, literal %v, %+v: %v", tc.addr, tc.literal, tc.policy, err)
			continue
		}
		var blocked *BlockedError
		if err != nil && (!errors.As(err, &blocked) || !strings.Contains(err.Error(), tc.remedyMatches)) {
			t.Errorf("%s: %v, want a BlockedError that says %q", tc.addr, err, tc.remedyMatches)
		}
	}
}

// FuzzClass looks for an address that escapes by being written as an IPv6 address.
func FuzzClass(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "8.8.8.8", "169.254.169.254", "0.0.0.0", "100.64.0.1"} {
		a := netip.MustParseAddr(seed).As4()
		f.Add(a[0], a[1], a[2], a[3])
	}
	j := newJudge()
	f.Fuzz(func(t *testing.T, a, b, c, d byte) {
		plain := netip.AddrFrom4([4]byte{a, b, c, d})
		want := j.class(plain)
		mapped := netip.AddrFrom16(plain.As16())
		nat64 := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: a, b, c, d})
		sixTo4 := netip.AddrFrom16([16]byte{0x20, 0x02, a, b, c, d})
		for _, x := range []netip.Addr{mapped, nat64, sixTo4} {
			if got := j.class(x); got != want {
				t.Errorf("%s is %v, but %s is %v", x, got, plain, want)
			}
		}
		if want == public && (plain.IsLoopback() || plain.IsPrivate() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified()) {
			t.Errorf("%s is public", plain)
		}
	})
}
