package partner

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
)

// Who manages a record.
const (
	ManagedByFile = "file"
	ManagedByAPI  = "api"
)

// maxFile is the largest partners file in bytes.
const maxFile = 64 << 20

// LoadOptions of Load, Parse and Build.
type LoadOptions struct {
	Now       time.Time // for warnings about expiry; zero: no such warnings
	DataDir   string    // the hub's own data directory: no directory connection may lie in it
	Version   int64     // 0: derived from the content
	ManagedBy string    // of Load and Parse; default: ManagedByFile
}

// Source is one document with records.
type Source struct {
	Name      string // file name for messages
	BaseDir   string // what paths in it are relative to
	Data      []byte // YAML or JSON
	ManagedBy string // default: ManagedByFile
}

// Warning is something that works but that an operator should know of.
type Warning = config.Warning

// Load reads a partners file. The error is config.Problems with every problem found; a file
// that cannot be opened wraps the error of the file system.
func Load(file string, o LoadOptions) (*Registry, error) {
	data, err := config.ReadFile(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("read the partners: %w", err)
	}
	return Build([]Source{{Name: file, BaseDir: filepath.Dir(file), Data: data, ManagedBy: o.ManagedBy}}, o)
}

// Parse reads a partners document; paths in it are relative to baseDir.
func Parse(data []byte, baseDir string, o LoadOptions) (*Registry, error) {
	return Build([]Source{{Name: "partners", BaseDir: baseDir, Data: data, ManagedBy: o.ManagedBy}}, o)
}

// Build reads several documents as one set of records: those of the file first, then those that
// the API made. Agreements and routes keep that order. The error is config.Problems.
func Build(sources []Source, o LoadOptions) (*Registry, error) {
	b := &builder{options: o, registry: &Registry{fallback: defaultAgreement()}, digest: sha256.New()}
	b.places.as2, b.places.as2Key = make(map[any]config.Place), make(map[as2Key]config.Place)
	var later []func()
	for _, s := range sources {
		if s.ManagedBy == "" {
			s.ManagedBy = ManagedByFile
		}
		b.feed([]byte(s.ManagedBy))
		b.feed(s.Data)
		root, err := config.ParseYAML(s.Name, s.Data)
		if err != nil {
			ps, ok := err.(config.Problems) //nolint:errorlint // ParseYAML returns it unwrapped.
			if !ok {
				return nil, err
			}
			b.problems = append(b.problems, ps...)
			continue
		}
		later = append(later, b.source(s, root))
	}
	// Agreements inherit from the block "defaults", whichever document holds it.
	for _, read := range later {
		read()
	}
	b.crossCheck()
	if err := b.problems.Err(); err != nil {
		return nil, err
	}
	r := b.registry
	r.index()
	sum := b.digest.Sum(nil)
	r.hash = hex.EncodeToString(sum)
	r.version = o.Version
	if r.version == 0 {
		r.version = int64(binary.BigEndian.Uint64(sum) >> 1)
	}
	b.warnAll()
	return r, nil
}

// feed adds a part to the content's hash, with its length so that parts cannot run together.
func (b *builder) feed(part []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(part)))
	_, _ = b.digest.Write(n[:]) // a hash never fails
	_, _ = b.digest.Write(part)
}

// source reads the records of one document and returns what must wait for the others.
func (b *builder) source(s Source, root *config.Node) (later func()) {
	r := &config.Reader{File: s.Name, BaseDir: s.BaseDir}
	top := r.Object(root, "")
	for _, o := range top.Objects("own") {
		b.own(o)
	}
	for _, o := range top.Objects("connections") {
		b.connection(o, s.ManagedBy)
	}
	for _, o := range top.Objects("partners") {
		b.partner(o, s.ManagedBy)
	}
	if top.Has("defaults") {
		if b.hasDefaults {
			top.Fail("defaults", "the block stands in another document already", "keep one of them")
		}
		b.hasDefaults = true
		o := top.Object("defaults")
		b.agreementKeys(o, b.registry.fallback)
		o.Close()
	}
	agreements, routes := top.Objects("agreements"), top.Objects("routes")
	top.Close()
	return func() {
		for _, o := range agreements {
			b.agreement(o)
		}
		for _, o := range routes {
			b.route(o)
		}
		b.problems = append(b.problems, r.Problems...)
	}
}

func (b *builder) own(o *config.Object) {
	own := &Own{ID: b.id(o, "hub")}
	if o.Has("as2") {
		a := o.Object("as2")
		own.AS2ID = as2Name(a, "OURCO")
		b.places.as2[own] = a.Place("id")
		for _, k := range a.Objects("keys") {
			if key, ok := b.key(k, own); ok {
				own.Keys = append(own.Keys, key)
			}
		}
		a.Close()
	}
	own.Identifiers = b.identifiers(o, "identifiers", ownerOf{own: own})
	o.Close()
	b.places.own = append(b.places.own, o.Place("id"))
	b.registry.owns = append(b.registry.owns, own)
}

func (b *builder) connection(o *config.Object, managedBy string) {
	c := &Connection{ID: b.id(o, "acme-as2"), ManagedBy: managedBy}
	c.AllowPrivate = o.Bool("allow_private", false)
	kinds := 0
	for _, kind := range []string{"as2", "directory", "http"} {
		if o.Has(kind) {
			kinds++
		}
	}
	// All three are read, so that each is a known key and problems in each are reported.
	as2, directory, http := o.Object("as2"), o.Object("directory"), o.Object("http")
	if kinds != 1 {
		place := o.Place("")
		text := "the connection has none of as2, directory and http"
		if kinds > 1 {
			text = "the connection has more than one of as2, directory and http"
		}
		b.fail(place, text, "exactly one is expected; a partner can have several connections")
	}
	if o.Has("as2") {
		c.AS2 = b.as2(as2, c)
	}
	if o.Has("directory") {
		c.Directory = b.directory(directory, c)
	}
	if o.Has("http") {
		c.HTTP = b.http(http, c)
	}
	for _, k := range o.Objects("certificates") {
		if cert, ok := b.certificate(k, c); ok {
			c.Certificates = append(c.Certificates, cert)
		}
	}
	c.InFlight = int(o.Int("in_flight", 4, 1, 1000))
	retry := o.Object("retry")
	c.Retry = Retry{
		For:   retry.Duration("for", 72*time.Hour, 0, 60*day),
		First: retry.Duration("first", 30*time.Second, time.Millisecond, day),
		Max:   retry.Duration("max", 15*time.Minute, time.Millisecond, day),
	}
	if c.Retry.First > c.Retry.Max {
		retry.Fail("first", fmt.Sprintf("the first pause (%s) is longer than the longest (%s)", config.FormatDuration(c.Retry.First), config.FormatDuration(c.Retry.Max)), "lower first or raise max")
	}
	retry.Close()
	o.Close()
	b.places.connection = append(b.places.connection, o.Place("id"))
	b.registry.connections = append(b.registry.connections, c)
}

func (b *builder) as2(o *config.Object, c *Connection) *AS2 {
	a := &AS2{
		ID:         as2Name(o, `"ACME AS2"`),
		Own:        o.String("own", ""),
		URL:        b.url(o, c, false),
		Sign:       o.Choice("sign", "sha256", "none", "sha1", "sha256", "sha384", "sha512"),
		Encrypt:    o.Choice("encrypt", "aes256-cbc", "none", "3des", "aes128-cbc", "aes192-cbc", "aes256-cbc", "aes128-gcm", "aes256-gcm"),
		Compress:   o.Choice("compress", "none", "none", "before", "after"),
		Require:    o.Choices("require", []string{"signed", "encrypted"}, "signed", "encrypted"),
		MaxMessage: o.Size("max_message", 0, 0, 1<<40),
	}
	m := o.Object("mdn")
	a.MDN = MDN{
		Mode:    m.Choice("mode", "sync", "sync", "async", "none"),
		Signed:  m.Bool("signed", true),
		Timeout: m.Duration("timeout", 30*time.Minute, time.Second, 30*day),
		Resends: int(m.Int("resends", 5, 0, 1000)),
	}
	m.Close()
	b.places.as2[c] = o.Place("id")
	for _, key := range []string{"own", "url", "sign", "encrypt", "require"} {
		b.places.as2Key[as2Key{c, key}] = o.Place(key)
	}
	b.places.as2Key[as2Key{c, "mdn.signed"}] = m.Place("signed")
	if !m.Has("signed") {
		b.places.as2Key[as2Key{c, "mdn.signed"}] = o.Place("mdn")
	}
	o.Close()
	return a
}

// as2Name reads an AS2 name, unquoted: 1 to 128 printable ASCII characters (RFC 4130 §6.2).
func as2Name(o *config.Object, example string) string {
	name := o.Required("id", example)
	if len(name) > 128 {
		o.Fail("id", fmt.Sprintf("the AS2 name has %d characters", len(name)), "at most 128 are allowed")
	}
	for _, c := range []byte(name) {
		if c < 0x20 || c > 0x7e {
			o.Fail("id", fmt.Sprintf("the AS2 name %q holds a character that is not printable ASCII", name), "write the name as the header carries it, without the outer quotes")
			break
		}
	}
	return name
}

func (b *builder) directory(o *config.Object, c *Connection) *Directory {
	d := &Directory{
		Out:       absolute(o.File("out", "")),
		Name:      o.String("name", "{type}_{sender}_{control_ref}_{id}.edi"),
		In:        absolute(o.File("in", "")),
		StableFor: o.Duration("stable_for", 5*time.Second, 0, day),
	}
	if d.Out == "" && d.In == "" {
		b.fail(o.Place(""), "the directory connection names neither out nor in", "add out: for what we deliver, in: for what we poll, or both")
	}
	checkFileName(o, d.Name)
	for _, p := range []struct{ key, path string }{{"out", d.Out}, {"in", d.In}} {
		if p.path != "" {
			b.folders = append(b.folders, folder{path: p.path, what: fmt.Sprintf("%q of connection %s", p.key, c.ID), place: o.Place(p.key)})
		}
	}
	o.Close()
	return d
}

func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return filepath.Clean(path)
}

func (b *builder) http(o *config.Object, c *Connection) *HTTP {
	h := &HTTP{URL: b.url(o, c, true), HMACKey: o.Secret("hmac_key")}
	b.feed([]byte(h.HMACKey.Reveal()))
	o.Close()
	return h
}

func (b *builder) partner(o *config.Object, managedBy string) {
	p := &Partner{
		ID:          b.id(o, "acme"),
		Connections: o.Strings("connections", nil),
		Status:      Status(o.Choice("status", string(Live), string(Draft), string(Testing), string(Live), string(Suspended))),
		ManagedBy:   managedBy,
	}
	if len(p.Connections) == 0 && p.Status != Draft {
		o.Fail("connections", fmt.Sprintf("partner %q has no connection", p.ID), "add connections: [id], or status: draft")
	}
	p.Identifiers = b.identifiers(o, "identifiers", ownerOf{partner: p})
	o.Close()
	b.places.partner = append(b.places.partner, o.Place("id"))
	b.places.connections = append(b.places.connections, o.Place("connections"))
	b.registry.partners = append(b.registry.partners, p)
}

// identifiers reads name-spaced identifiers and remembers whose they are.
func (b *builder) identifiers(o *config.Object, key string, owner ownerOf) []edi.Identifier {
	var out []edi.Identifier
	for _, s := range o.Strings(key, nil) {
		id, err := ParseIdentifier(s)
		if err != nil {
			o.Fail(key, err.Error(), identifierRemedy)
			continue
		}
		if first, taken := b.identified[compareKey(id)]; taken {
			text := fmt.Sprintf("identifier %s belongs to %s already", id, first)
			if first == owner {
				text = fmt.Sprintf("identifier %s stands here twice", id)
			}
			o.Fail(key, text, "an identifier names one party")
			continue
		}
		if b.identified == nil {
			b.identified = make(map[string]ownerOf)
		}
		b.identified[compareKey(id)] = owner
		out = append(out, id)
	}
	return out
}
