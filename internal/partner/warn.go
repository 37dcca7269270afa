package partner

import (
	"crypto/rsa"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/config"
)

// The codes of warnings.
const (
	WarnRequireNothing    = "REQUIRE_NOTHING"             // require: [] takes anything
	WarnRequireWeak       = "REQUIRE_WEAK"                // require names less than the default
	WarnSignNone          = "SIGN_NONE"                   // what we send is not signed
	WarnEncryptNone       = "ENCRYPT_NONE"                // what we send is not encrypted
	WarnSignWeak          = "SIGN_WEAK"                   // SHA-1
	WarnEncryptWeak       = "ENCRYPT_WEAK"                // triple DES
	WarnMDNNone           = "MDN_NONE"                    // the 2xx is the proof
	WarnMDNUnsigned       = "MDN_UNSIGNED"                // anybody on the way could write it
	WarnURLPlain          = "URL_PLAIN"                   // http:// away from loopback
	WarnNoHMAC            = "HMAC_NONE"                   // an HTTP connection that proves nothing
	WarnKeyShort          = "KEY_SHORT"                   // RSA below 2,048 bits
	WarnKeyLarge          = "KEY_LARGE"                   // RSA of 4,096 bits and more signs slowly
	WarnKeyReadable       = "KEY_READABLE"                // others may read the key file
	WarnCertExpires       = "CERT_EXPIRES"                // within 30 days, and nothing follows
	WarnCertInactive      = "CERT_INACTIVE"               // none is in use now
	WarnCertOverdue       = "CERT_OVERDUE"                // the record uses it beyond its own end
	WarnNoRoute           = "PARTNER_WITHOUT_ROUTE"       // nothing leads to it or from it
	WarnNoIdentifiers     = "PARTNER_WITHOUT_IDENTIFIERS" // it can send opaque files only
	WarnRouteUnreachable  = "ROUTE_UNREACHABLE"           // an earlier one takes all that it matches
	WarnAgreementShadowed = "AGREEMENT_UNREACHABLE"       // likewise
	WarnLaneForced        = "LANE_FORCED"                 // one ordered agreement orders the connection
	WarnFileNameRepeats   = "FILE_NAME_REPEATS"           // a pattern without {id}
	WarnConnectionUnbound = "CONNECTION_UNUSED"           // no partner is bound to it
)

const (
	expiryNotice           = 30 * day
	shortKey, slowKey      = 2048, 4096 // bits
	remedyCertFromPartner  = "ask the partner for the next certificate and add it beside this one"
	remedyKeyFromOurselves = "make the next key with edihub keygen, add it beside this one, and send its certificate to the partners"
)

// warnAll collects what works but should be known. The registry's indexes must be built.
func (b *builder) warnAll() {
	for i, c := range b.registry.connections {
		b.warnConnection(b.places.connection[i], c)
	}
	for _, c := range b.places.certificates {
		b.warnKey(c)
	}
	targets := make(map[string]bool)
	for _, r := range b.registry.routes {
		targets[r.To] = true
	}
	for i, p := range b.registry.partners {
		b.warnPartner(b.places.partner[i], p, targets[p.ID])
	}
	b.warnShadowed()
	if !b.options.Now.IsZero() {
		b.registry.warnings = append(b.registry.warnings, expiries(b.places.certificates, b.options.Now)...)
	}
	b.registry.certPlaces = b.places.certificates
	sortWarnings(b.registry.warnings)
}

func sortWarnings(ws []Warning) {
	sort.SliceStable(ws, func(i, j int) bool {
		if ws[i].File != ws[j].File {
			return ws[i].File < ws[j].File
		}
		return ws[i].Line < ws[j].Line
	})
}

func (b *builder) warn(p config.Place, code, object, text, remedy string) {
	b.registry.warnings = append(b.registry.warnings, Warning{Code: code, File: p.File, Line: p.Line, Object: object, Text: text, Remedy: remedy})
}

func (b *builder) warnConnection(p config.Place, c *Connection) {
	object := "connection " + c.ID
	if len(b.registry.ofConn[c.ID]) == 0 {
		b.warn(p, WarnConnectionUnbound, object, "no partner is bound to the connection", "name it in the connections: of a partner")
	}
	if u, err := url.Parse(c.URL()); err == nil && strings.EqualFold(u.Scheme, "http") && !privateLiteral(c.URL()) {
		b.warn(p, WarnURLPlain, object, "the URL is not encrypted on the way", "use https://")
	}
	if c.HTTP != nil && c.HTTP.HMACKey.Empty() {
		b.warn(p, WarnNoHMAC, object, "the receiver cannot tell our requests from those of others", "add hmac_key_file:")
	}
	if c.Directory != nil && c.Directory.Out != "" && !strings.Contains(c.Directory.Name, "{id}") {
		b.warn(p, WarnFileNameRepeats, object, fmt.Sprintf("two deliveries can have the same file name %q", c.Directory.Name), "put {id} into name:")
	}
	if c.AS2 != nil {
		b.warnAS2(c)
	}
	b.warnLane(p, c)
}

func (b *builder) warnAS2(c *Connection) {
	a, object := c.AS2, "connection "+c.ID
	at := func(key string) config.Place { return b.places.as2Key[as2Key{c, key}] }
	var missing []string
	for _, r := range []string{"signed", "encrypted"} {
		if !a.Requires(r) {
			missing = append(missing, r)
		}
	}
	switch len(missing) {
	case 2:
		b.warn(at("require"), WarnRequireNothing, object, "messages that are neither signed nor encrypted are taken: whoever knows the names can send", "use require: [signed, encrypted]")
	case 1:
		b.warn(at("require"), WarnRequireWeak, object, fmt.Sprintf("messages that are not %s are taken", missing[0]), "use require: [signed, encrypted]")
	}
	switch a.Sign {
	case "none":
		b.warn(at("sign"), WarnSignNone, object, "what we send is not signed", "use sign: sha256")
	case "sha1":
		b.warn(at("sign"), WarnSignWeak, object, "SHA-1 is broken for signatures", "use sign: sha256 as soon as the partner can")
	}
	switch a.Encrypt {
	case "none":
		b.warn(at("encrypt"), WarnEncryptNone, object, "what we send is not encrypted", "use encrypt: aes256-cbc")
	case "3des":
		b.warn(at("encrypt"), WarnEncryptWeak, object, "triple DES is weak and slow", "use encrypt: aes256-cbc as soon as the partner can")
	}
	switch {
	case a.MDN.Mode == "none":
		b.warn(at("mdn.signed"), WarnMDNNone, object, "no MDN is asked for: a 2xx is the only proof of delivery", "use mdn: {mode: sync, signed: true}")
	case !a.MDN.Signed:
		b.warn(at("mdn.signed"), WarnMDNUnsigned, object, "an unsigned MDN proves nothing in a dispute", "use mdn: {signed: true}")
	}
}

// warnLane names what keeps a connection in one lane though some of it asks for no order.
func (b *builder) warnLane(p config.Place, c *Connection) {
	l := b.registry.lanes[c.ID]
	if l.ordered == nil || l.free == nil {
		return
	}
	which := fmt.Sprintf("agreement %d", l.ordered.Position)
	if l.ordered.Position == 0 {
		which = "the defaults, which hold where no agreement matches,"
	}
	b.warn(p, WarnLaneForced, "connection "+c.ID, which+" keeps an order, so the parser takes everything of this connection one after another",
		"set ordering: {by: none} there and under defaults: too, or put the ordered documents on a connection of their own")
}

func (b *builder) warnKey(c certPlace) {
	ours := strings.HasPrefix(c.object, "own ")
	if key, ok := c.certificate.PublicKey.(*rsa.PublicKey); ok {
		bits := key.N.BitLen()
		switch {
		case bits < shortKey:
			b.warn(c.place, WarnKeyShort, c.object, fmt.Sprintf("the RSA key has only %d bits", bits), "use at least 2048 bits")
		case ours && bits >= slowKey:
			b.warn(c.place, WarnKeyLarge, c.object, fmt.Sprintf("an RSA key of %d bits signs and decrypts about six times slower than one of 2048, in each message", bits), "use 2048 or 3072 bits unless a partner demands more")
		}
	}
	if c.until.After(c.certificate.NotAfter) {
		b.warn(c.place, WarnCertOverdue, c.object, fmt.Sprintf("the record uses the certificate until %s, its own validity ends on %s", c.until.Format(time.DateOnly), c.certificate.NotAfter.Format(time.DateOnly)), "replace it in time, or leave until: out")
	}
	if readableByOthers(c.keyFile) {
		b.warn(c.place, WarnKeyReadable, c.object, "others may read the key file "+c.keyFile, "chmod 600 "+c.keyFile)
	}
}

// warnPartner takes whether a route leads to the partner.
func (b *builder) warnPartner(p config.Place, partner *Partner, target bool) {
	object := "partner " + partner.ID
	r := b.registry
	source := func(e entry) bool { return anyString(e.From, partner.ID) && canSend(partner, &e) }
	if !target && !slices.ContainsFunc(r.routeIndex.entries, source) {
		b.warn(p, WarnNoRoute, object, "no route leads to this partner, and none takes what it sends", "add a route")
	}
	if len(partner.Identifiers) > 0 || len(partner.Connections) == 0 {
		return
	}
	if c := r.Connection(partner.Connections[0]); c != nil && c.AS2 != nil {
		b.warn(p, WarnNoIdentifiers, object, "without identifiers no envelope can name this partner: it exchanges opaque files only", "add identifiers:")
	}
}

// warnShadowed names entries that an earlier one makes pointless.
func (b *builder) warnShadowed() {
	r := b.registry
	find := func(x *matchIndex, found func(i, earlier int)) {
		for i := range x.entries {
			e := &x.entries[i]
			// What covers this entry stands in the index under any one of its own keys.
			from, receiver := "", ""
			if len(e.From) > 0 {
				from = e.From[0]
			}
			if len(e.receivers) > 0 {
				receiver = e.receivers[0]
			}
			if j := x.first(from, receiver, func(f *entry, j int) bool { return j >= i || f.covers(e) }); j >= 0 && j < i {
				found(i, j)
			}
		}
	}
	const remedy = "put the special one before the general one"
	find(&r.agreementIndex, func(i, j int) {
		b.warn(b.places.agreement[i], WarnAgreementShadowed, fmt.Sprintf("agreement %d", i+1), fmt.Sprintf("agreement %d matches all that this one could", j+1), remedy)
	})
	find(&r.routeIndex, func(i, j int) {
		b.warn(b.places.route[i], WarnRouteUnreachable, fmt.Sprintf("route %d", i+1), fmt.Sprintf("route %d matches all that this one could", j+1), remedy)
	})
}

// covers reports whether e matches all that f matches.
func (e *entry) covers(f *entry) bool {
	within := func(a, b []string) bool {
		return len(a) == 0 || (len(b) > 0 && !slices.ContainsFunc(b, func(v string) bool { return !slices.Contains(a, v) }))
	}
	documents := len(e.Document) == 0 || slices.Contains(e.Document, "*") ||
		(len(f.Document) > 0 && !slices.ContainsFunc(f.Document, func(v string) bool { return !anyDocument(e.Document, v) }))
	return documents && within(e.From, f.From) && within(e.To, f.To) && within(e.senders, f.senders) && within(e.receivers, f.receivers)
}

// ExpiryWarnings lists the uses of certificates and keys that end within 30 days of now without
// a successor, and those of which none is in use.
func (r *Registry) ExpiryWarnings(now time.Time) []Warning {
	ws := expiries(r.certPlaces, now)
	sortWarnings(ws)
	return ws
}

func expiries(all []certPlace, now time.Time) []Warning {
	var objects []string
	byObject := make(map[string][]certPlace)
	for _, c := range all {
		if byObject[c.object] == nil {
			objects = append(objects, c.object)
		}
		byObject[c.object] = append(byObject[c.object], c)
	}
	var out []Warning
	for _, object := range objects {
		out = append(out, objectExpiries(object, byObject[object], now)...)
	}
	return out
}

// objectExpiries gives one warning for the uses that are in the same state.
func objectExpiries(object string, certs []certPlace, now time.Time) []Warning {
	var out []Warning
	for _, use := range []Use{UseSign, UseEncrypt, UseDecrypt, UseTLS} {
		var forUse []certPlace
		for _, c := range certs {
			ours := strings.HasPrefix(object, "own ")
			named := slices.Contains(c.use, use)
			implied := len(c.use) == 0 && use != UseTLS && (use != UseEncrypt || !ours) && (use != UseDecrypt || ours)
			if named || implied {
				forUse = append(forUse, c)
			}
		}
		if len(forUse) == 0 {
			continue
		}
		w, ok := useExpiry(object, forUse, now)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(out, func(o Warning) bool { return o.Code == w.Code && o.Line == w.Line && o.File == w.File }); i >= 0 {
			head, tail, _ := strings.Cut(out[i].Text, ": ")
			out[i].Text = head + ", " + string(use) + ": " + tail
			continue
		}
		w.Text = "for " + string(use) + ": " + w.Text
		out = append(out, w)
	}
	return out
}

// useExpiry follows the certificates of one use from now to the end of the last that follows
// without a gap.
func useExpiry(object string, certs []certPlace, now time.Time) (Warning, bool) {
	remedy := remedyCertFromPartner
	if strings.HasPrefix(object, "own ") {
		remedy = remedyKeyFromOurselves
	}
	sorted := slices.Clone(certs)
	slices.SortStableFunc(sorted, func(a, b certPlace) int { return a.from.Compare(b.from) })
	var last *certPlace
	end := now
	for i := range sorted {
		if c := &sorted[i]; !c.from.After(end) && c.until.After(end) {
			last, end = c, c.until
		}
	}
	if last == nil {
		c := sorted[len(sorted)-1]
		text := "the last one ended on " + c.until.Format(time.DateOnly)
		if c.from.After(now) {
			text = "none is in use before " + c.from.Format(time.DateOnly)
		}
		return Warning{Code: WarnCertInactive, File: c.place.File, Line: c.place.Line, Object: object, Text: text, Remedy: remedy}, true
	}
	left := end.Sub(now)
	if left > expiryNotice {
		return Warning{}, false
	}
	return Warning{
		Code: WarnCertExpires, File: last.place.File, Line: last.place.Line, Object: object,
		Text:   fmt.Sprintf("it ends on %s, in %d days, and nothing follows", end.Format(time.DateOnly), int(left/day)),
		Remedy: remedy,
	}, true
}
