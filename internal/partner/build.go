package partner

import (
	"fmt"
	"hash"
	"net/netip"
	"net/url"
	"strings"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi/tables"
)

// builder collects records, where they stand, and what is wrong with them.
type builder struct {
	options     LoadOptions
	registry    *Registry
	problems    config.Problems
	digest      hash.Hash
	hasDefaults bool

	identified map[string]ownerOf // by compareKey
	publicKeys map[[32]byte]keyOwner
	folders    []folder
	references []reference
	guidelines map[string]*tables.Guideline // by file; nil where it cannot be used
	places     places
}

// places remembers where records stand, in step with the lists of the registry.
type places struct {
	own, connection, partner, connections []config.Place
	agreement, route, routeTo             []config.Place
	as2                                   map[any]config.Place // by *Own and *Connection
	as2Key                                map[as2Key]config.Place
	certificates                          []certPlace
}

type as2Key struct {
	c   *Connection
	key string
}

// ownerOf says whose an identifier is.
type ownerOf struct {
	own     *Own
	partner *Partner
}

// String names the owner for a person.
func (o ownerOf) String() string {
	if o.own != nil {
		return fmt.Sprintf("our own identity %q", o.own.ID)
	}
	return fmt.Sprintf("partner %q", o.partner.ID)
}

func (b *builder) fail(p config.Place, text, remedy string) {
	b.problems = append(b.problems, p.Problem(text, remedy))
}

// id reads the id of a record. It stands in URLs and queue names.
func (b *builder) id(o *config.Object, example string) string {
	id := o.Required("id", example)
	if id != "" && !recordID(id) {
		o.Fail("id", fmt.Sprintf("%q is not an id", id), "use letters, digits, '.', '-' and '_', at most 64, beginning with a letter or digit")
	}
	return id
}

// recordID reports whether s may be the id of a record.
func recordID(s string) bool {
	for i, c := range []byte(s) {
		letter := (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
		if !letter && (i == 0 || (c != '.' && c != '-' && c != '_')) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// url reads the address of a connection.
func (b *builder) url(o *config.Object, c *Connection, required bool) string {
	const example = "https://acme.example/as2"
	raw := o.String("url", "")
	if raw == "" {
		if required {
			o.Fail("url", "the URL is missing", "add url: "+example)
		}
		return ""
	}
	if err := config.CheckURL(raw, "https", "http"); err != nil {
		o.Fail("url", err.Error(), "write for example "+example)
		return ""
	}
	if c.ManagedBy != ManagedByFile && !c.AllowPrivate && privateLiteral(raw) {
		o.Fail("url", "the URL names a loopback or private address", "set allow_private: true on the connection when this is meant")
	}
	return raw
}

// privateLiteral reports whether the host of a URL is a literal address that no partner on the
// internet has.
func privateLiteral(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsInterfaceLocalMulticast()
}
