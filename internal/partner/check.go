package partner

import (
	"crypto/rsa"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/edihub/edihub/internal/config"
)

// reference is an id in a match that must be a partner's or one of our own.
type reference struct {
	id    string
	place config.Place
}

// folder is a path of a directory connection.
type folder struct {
	path, what string
	place      config.Place
}

// crossCheck finds what single records cannot tell.
func (b *builder) crossCheck() {
	if len(b.registry.owns) == 0 && len(b.problems) == 0 {
		b.problems = append(b.problems, config.Problem{Key: "own", Text: "nobody says who we are", Remedy: "add at least one record under own:"})
	}
	owns, connections, partners := b.uniqueIDs()
	b.checkAS2(owns)
	b.checkSecurity(owns)
	for i, p := range b.registry.partners {
		seen := make(map[string]bool)
		for _, id := range p.Connections {
			if connections[id] == nil {
				b.fail(b.places.connections[i], fmt.Sprintf("connection %q does not exist", id), nearestOf(b, id, connections))
			} else if seen[id] {
				b.fail(b.places.connections[i], fmt.Sprintf("connection %q stands here twice", id), "name it once")
			}
			seen[id] = true
		}
	}
	for _, ref := range b.references {
		if owns[ref.id] == nil && partners[ref.id] == nil {
			all := make(map[string]struct{})
			for id := range owns {
				all[id] = struct{}{}
			}
			for id := range partners {
				all[id] = struct{}{}
			}
			b.fail(ref.place, fmt.Sprintf("%q is neither a partner nor one of our own identities", ref.id), nearestOf(b, ref.id, all))
		}
	}
	for i, r := range b.registry.routes {
		b.checkTarget(b.places.routeTo[i], r.To, partners, connections)
	}
	b.checkFolders()
}

// nearestOf is the remedy for an id that does not exist. It looks for the one that was meant only
// as long as there are few problems: in a large file where nothing fits it would take minutes.
func nearestOf[V any](b *builder, id string, m map[string]V) string {
	const few = 100
	if len(b.problems) > few {
		return "name an existing id"
	}
	ids := make([]string, 0, len(m))
	for k := range m {
		ids = append(ids, k)
	}
	sort.Strings(ids)
	if near := config.Nearest(id, ids); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(ids) > 8 {
		return "name an existing id"
	}
	return "known: " + strings.Join(ids, ", ")
}

// uniqueIDs refuses an id that two records have. Own identities and partners share one name
// space, because a match names either.
func (b *builder) uniqueIDs() (map[string]*Own, map[string]*Connection, map[string]*Partner) {
	owns := make(map[string]*Own)
	for i, o := range b.registry.owns {
		if o.ID != "" && owns[o.ID] != nil {
			b.fail(b.places.own[i], fmt.Sprintf("own id %q is used twice", o.ID), "give each record an id of its own")
			continue
		}
		owns[o.ID] = o
	}
	connections := make(map[string]*Connection)
	for i, c := range b.registry.connections {
		if c.ID != "" && connections[c.ID] != nil {
			b.fail(b.places.connection[i], fmt.Sprintf("connection id %q is used twice", c.ID), "give each record an id of its own")
			continue
		}
		connections[c.ID] = c
	}
	partners := make(map[string]*Partner)
	for i, p := range b.registry.partners {
		switch {
		case p.ID == "":
		case partners[p.ID] != nil:
			b.fail(b.places.partner[i], fmt.Sprintf("partner id %q is used twice", p.ID), "give each record an id of its own")
			continue
		case owns[p.ID] != nil:
			b.fail(b.places.partner[i], fmt.Sprintf("id %q is one of our own identities already", p.ID), "own identities and partners need different ids, because a match names either")
		}
		partners[p.ID] = p
	}
	return owns, connections, partners
}

// checkAS2 resolves the own identity of each AS2 connection and refuses names that do not tell
// one record from another.
func (b *builder) checkAS2(owns map[string]*Own) {
	ours := make(map[string]*Own)
	for _, o := range b.registry.owns {
		if o.AS2ID == "" {
			continue
		}
		if first := ours[o.AS2ID]; first != nil {
			b.fail(b.places.as2[o], fmt.Sprintf("AS2 name %q is that of our own identity %q already", o.AS2ID, first.ID), "each own identity needs a name of its own")
			continue
		}
		ours[o.AS2ID] = o
	}
	pairs := make(map[as2Pair]*Connection)
	for _, c := range b.registry.connections {
		if c.AS2 == nil {
			continue
		}
		place := b.places.as2[c]
		if first := ours[c.AS2.ID]; first != nil {
			b.fail(place, fmt.Sprintf("AS2 name %q is that of our own identity %q", c.AS2.ID, first.ID), "write the partner's AS2 name")
		}
		b.resolveOwn(c, owns)
		pair := as2Pair{from: c.AS2.ID, to: c.AS2.Own}
		if first := pairs[pair]; first != nil && c.AS2.ID != "" {
			b.fail(place, fmt.Sprintf("AS2 name %q is in connection %q with the same own identity", c.AS2.ID, first.ID), "one connection for one pair of names; several partners can share a connection")
			continue
		}
		pairs[pair] = c
	}
}

// resolveOwn finds who we are on a connection; where there is one identity only, it need not be
// named.
func (b *builder) resolveOwn(c *Connection, owns map[string]*Own) {
	place := b.places.as2Key[as2Key{c, "own"}]
	if c.AS2.Own == "" {
		var only *Own
		for _, o := range b.registry.owns {
			if o.AS2ID == "" {
				continue
			}
			if only != nil {
				b.fail(place, "own is missing, and there is more than one own identity with an AS2 name", nearestOf(b, "", owns))
				return
			}
			only = o
		}
		if only == nil {
			b.fail(place, "no own identity has an AS2 name", "add as2: {id: …} to a record under own:")
			return
		}
		c.AS2.Own = only.ID
		return
	}
	own := owns[c.AS2.Own]
	switch {
	case own == nil:
		b.fail(place, fmt.Sprintf("own identity %q does not exist", c.AS2.Own), nearestOf(b, c.AS2.Own, owns))
	case own.AS2ID == "":
		b.fail(place, fmt.Sprintf("own identity %q has no AS2 name", c.AS2.Own), "add as2: {id: …} to it")
	}
}

// checkSecurity refuses settings that could never work for want of a key or certificate.
func (b *builder) checkSecurity(owns map[string]*Own) {
	for _, c := range b.registry.connections {
		a := c.AS2
		if a == nil {
			continue
		}
		at := func(key string) config.Place { return b.places.as2Key[as2Key{c, key}] }
		own := owns[a.Own]
		if own != nil {
			addKey := fmt.Sprintf("add a key with use: [sign, decrypt] to own %q (edihub keygen makes one)", own.ID)
			if a.Sign != "none" && !own.hasKey(UseSign) {
				b.fail(at("sign"), fmt.Sprintf("own %q has no key to sign with", own.ID), addKey+", or set sign: none")
			}
			if a.Requires("encrypted") && !own.hasKey(UseDecrypt) {
				b.fail(at("require"), fmt.Sprintf("own %q has no key to decrypt with", own.ID), addKey+", or take encrypted out of require")
			}
		}
		if a.Encrypt != "none" && !c.canEncrypt() {
			b.fail(at("encrypt"), "the partner's record has no certificate to encrypt for", "add an RSA certificate with use: [encrypt], or set encrypt: none")
		}
		if a.Requires("signed") && !c.hasCertificate(UseSign) {
			b.fail(at("require"), "the partner's record has no certificate to prove signatures", "add a certificate with use: [sign], or take signed out of require")
		}
		if a.MDN.Mode != "none" && a.MDN.Signed && !c.hasCertificate(UseSign) {
			b.fail(at("mdn.signed"), "a signed MDN is asked for, and the partner's record has no certificate to prove it", "add a certificate with use: [sign], or set mdn: {signed: false}")
		}
	}
}

// hasKey reports whether a key has the use at any time.
func (o *Own) hasKey(u Use) bool {
	return slices.ContainsFunc(o.Keys, func(k Key) bool {
		_, isRSA := k.Private.(*rsa.PrivateKey)
		return has(k.Use, u) && (isRSA || u != UseDecrypt)
	})
}

func (c *Connection) hasCertificate(u Use) bool {
	return slices.ContainsFunc(c.Certificates, func(k Certificate) bool { return has(k.Use, u) })
}

func (c *Connection) canEncrypt() bool {
	return slices.ContainsFunc(c.Certificates, func(k Certificate) bool {
		_, isRSA := k.Certificate.PublicKey.(*rsa.PublicKey)
		return isRSA && has(k.Use, UseEncrypt)
	})
}

// checkTarget refuses a route that leads nowhere.
func (b *builder) checkTarget(place config.Place, to string, partners map[string]*Partner, connections map[string]*Connection) {
	p := partners[to]
	if to == "" {
		return
	}
	if p == nil {
		b.fail(place, fmt.Sprintf("partner %q does not exist", to), nearestOf(b, to, partners))
		return
	}
	if len(p.Connections) == 0 {
		b.fail(place, fmt.Sprintf("partner %q has no connection to send by", to), "add connections: to the partner")
		return
	}
	c := connections[p.Connections[0]]
	switch {
	case c == nil:
	case c.AS2 != nil && c.AS2.URL == "":
		b.fail(place, fmt.Sprintf("partner %q cannot be sent to: connection %q has no URL", to, c.ID), "add as2: {url: …} to the connection")
	case c.Directory != nil && c.Directory.Out == "":
		b.fail(place, fmt.Sprintf("partner %q cannot be sent to: connection %q has no out directory", to, c.ID), "add directory: {out: …} to the connection")
	}
}

// checkFolders refuses directories that lie in each other: what one connection delivers would
// come in by another.
func (b *builder) checkFolders() {
	all := slices.Clone(b.folders)
	if b.options.DataDir != "" {
		all = append(all, folder{path: absolute(b.options.DataDir), what: "the hub's data directory"})
	}
	for i := range all {
		all[i].path = realPath(all[i].path)
	}
	// With the separator at the end, a folder and all below it stand together.
	sort.SliceStable(all, func(i, j int) bool { return withSlash(all[i].path) < withSlash(all[j].path) })
	top := 0
	for i := 1; i < len(all); i++ {
		outer, inner := all[top], all[i]
		if !strings.HasPrefix(withSlash(inner.path), withSlash(outer.path)) {
			top = i
			continue
		}
		blame, other := inner, outer
		if blame.place == (config.Place{}) || (blame.path == other.path && other.place.Line > blame.place.Line) {
			blame, other = outer, inner
		}
		text := fmt.Sprintf("directory %s lies in %s, or the other way round", blame.path, other.what)
		if blame.path == other.path {
			text = fmt.Sprintf("directory %s is %s too", blame.path, other.what)
		}
		b.fail(blame.place, text, "use directories that lie side by side")
	}
}

func withSlash(path string) string {
	return strings.TrimSuffix(path, string(filepath.Separator)) + string(filepath.Separator)
}

// realPath follows symbolic links in the part of a path that exists.
func realPath(path string) string {
	rest := ""
	for p := path; ; {
		if there, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(there, rest)
		}
		parent := filepath.Dir(p)
		if parent == p {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = parent
	}
}
