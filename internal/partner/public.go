package partner

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
)

// Public is a view of all records for the API: the keys of the partners file, without secrets
// and private keys.
type Public struct {
	Version     int64              `json:"version"`
	Own         []PublicOwn        `json:"own"`
	Connections []PublicConnection `json:"connections"`
	Partners    []PublicPartner    `json:"partners"`
	Defaults    PublicAgreement    `json:"defaults"`
	Agreements  []PublicAgreement  `json:"agreements"`
	Routes      []PublicRoute      `json:"routes"`
	Warnings    []Warning          `json:"warnings"`
}

// PublicOwn shows one of our identities.
type PublicOwn struct {
	ID           string              `json:"id"`
	AS2ID        string              `json:"as2_id,omitempty"`
	Certificates []PublicCertificate `json:"certificates"`
	Identifiers  []edi.Identifier    `json:"identifiers"`
}

// PublicCertificate shows a certificate and the time in which it is used.
type PublicCertificate struct {
	Subject     string    `json:"subject"`
	Issuer      string    `json:"issuer"`
	Serial      string    `json:"serial"`      // hex
	Fingerprint string    `json:"fingerprint"` // SHA-256, hex
	Bits        int       `json:"bits,omitempty"`
	NotBefore   time.Time `json:"not_before"`
	NotAfter    time.Time `json:"not_after"`
	From        time.Time `json:"from"`
	Until       time.Time `json:"until"`
	Use         []Use     `json:"use"` // empty: all
}

// PublicConnection shows a connection; exactly one of AS2, Directory and HTTP is set.
type PublicConnection struct {
	ID           string              `json:"id"`
	ManagedBy    string              `json:"managed_by"`
	AS2          *PublicAS2          `json:"as2,omitempty"`
	Directory    *PublicDirectory    `json:"directory,omitempty"`
	HTTP         *PublicHTTP         `json:"http,omitempty"`
	Certificates []PublicCertificate `json:"certificates"`
	InFlight     int                 `json:"in_flight"`
	Retry        PublicRetry         `json:"retry"`
	AllowPrivate bool                `json:"allow_private"`
}

// PublicAS2 shows the AS2 settings of a connection.
type PublicAS2 struct {
	ID         string    `json:"id"`
	Own        string    `json:"own"`
	URL        string    `json:"url,omitempty"`
	Sign       string    `json:"sign"`
	Encrypt    string    `json:"encrypt"`
	Compress   string    `json:"compress"`
	Require    []string  `json:"require"`
	MaxMessage int64     `json:"max_message,omitempty"` // bytes
	MDN        PublicMDN `json:"mdn"`
}

// PublicMDN shows the MDN settings of a connection.
type PublicMDN struct {
	Mode    string `json:"mode"`
	Signed  bool   `json:"signed"`
	Timeout string `json:"timeout"`
	Resends int    `json:"resends"`
}

// PublicDirectory shows the directory settings of a connection.
type PublicDirectory struct {
	Out       string `json:"out,omitempty"`
	Name      string `json:"name"`
	In        string `json:"in,omitempty"`
	StableFor string `json:"stable_for"`
}

// PublicHTTP shows the HTTP settings of a connection.
type PublicHTTP struct {
	URL     string `json:"url"`
	HMACKey string `json:"hmac_key,omitempty"` // the mask where there is one
}

// PublicRetry shows how a connection tries again.
type PublicRetry struct {
	For   string `json:"for"`
	First string `json:"first"`
	Max   string `json:"max"`
}

// PublicPartner shows a partner.
type PublicPartner struct {
	ID          string           `json:"id"`
	ManagedBy   string           `json:"managed_by"`
	Connections []string         `json:"connections"`
	Status      Status           `json:"status"`
	Identifiers []edi.Identifier `json:"identifiers"`
}

// PublicMatch shows the keys of a match; an absent one matches all.
type PublicMatch struct {
	From     []string         `json:"from,omitempty"`
	To       []string         `json:"to,omitempty"`
	Sender   []edi.Identifier `json:"sender,omitempty"`
	Receiver []edi.Identifier `json:"receiver,omitempty"`
	Document []string         `json:"document,omitempty"`
}

// PublicAgreement shows an agreement with all its values.
type PublicAgreement struct {
	Position   int              `json:"position,omitempty"`
	Match      *PublicMatch     `json:"match,omitempty"`
	Role       Role             `json:"role,omitempty"`
	Split      string           `json:"split"`
	OnReject   string           `json:"on_reject"`
	OnInvalid  string           `json:"on_invalid"`
	Validate   PublicValidate   `json:"validate"`
	Acks       PublicAcks       `json:"acks"`
	Duplicates PublicDuplicates `json:"duplicates"`
	Usage      string           `json:"usage"`
	Ordering   PublicOrdering   `json:"ordering"`
	OnPoison   Poison           `json:"on_poison"`
	MaxAge     string           `json:"max_age"`
}

// PublicValidate shows how deep documents are checked.
type PublicValidate struct {
	Level         string            `json:"level"`
	WarnOnly      []string          `json:"warn_only"`
	TrailerErrors string            `json:"trailer_errors"`
	Guideline     string            `json:"guideline"`
	Rules         []string          `json:"rules"`
	Severity      map[string]string `json:"severity"`
}

// PublicAcks shows which acknowledgements we send.
type PublicAcks struct {
	Contrl struct {
		Receipt string `json:"receipt"`
		Answer  string `json:"answer"`
	} `json:"contrl"`
	TA1 string `json:"ta1"`
	X12 struct {
		Type          string `json:"type"`
		Answer        string `json:"answer"`
		AcceptedLoops bool   `json:"accepted_loops"`
	} `json:"x12"`
	UBL  string `json:"ubl"`
	Wait string `json:"wait"`
}

// PublicDuplicates shows the scopes of the duplicate check.
type PublicDuplicates struct {
	Interchange PublicWindow `json:"interchange"`
	Document    PublicWindow `json:"document"`
	Content     PublicWindow `json:"content"`
}

// PublicWindow shows one scope.
type PublicWindow struct {
	Window string `json:"window"`
	Same   string `json:"same"`
	Other  string `json:"other,omitempty"`
}

// PublicOrdering shows what a lane is and when it moves.
type PublicOrdering struct {
	By      OrderBy `json:"by"`
	Advance string  `json:"advance"`
}

// PublicRoute shows a route.
type PublicRoute struct {
	Position int            `json:"position"`
	Match    PublicMatch    `json:"match"`
	To       string         `json:"to"`
	Envelope string         `json:"envelope"`
	EDIFACT  *PublicEDIFACT `json:"edifact,omitempty"`
	X12      *PublicX12     `json:"x12,omitempty"`
	Control  PublicControl  `json:"control"`
}

// PublicControl shows where control numbers begin.
type PublicControl struct {
	Start int64 `json:"start"`
}

// PublicEDIFACT shows how a new EDIFACT envelope is written.
type PublicEDIFACT struct {
	Syntax    string `json:"syntax,omitempty"`
	UNA       *bool  `json:"una,omitempty"`
	LineBreak string `json:"line_break,omitempty"`
}

// PublicX12 shows how a new X12 envelope is written.
type PublicX12 struct {
	Version   string `json:"version,omitempty"`
	Element   string `json:"element,omitempty"`
	Component string `json:"component,omitempty"`
	Segment   string `json:"segment,omitempty"`
}

// Public returns the view.
func (r *Registry) Public() Public {
	p := Public{
		Version: r.version, Own: []PublicOwn{}, Connections: []PublicConnection{}, Partners: []PublicPartner{},
		Agreements: []PublicAgreement{}, Routes: []PublicRoute{}, Warnings: append([]Warning{}, r.warnings...),
		Defaults: r.fallback.Public(),
	}
	p.Defaults.Match = nil
	for _, o := range r.owns {
		p.Own = append(p.Own, o.Public())
	}
	for _, c := range r.connections {
		p.Connections = append(p.Connections, c.Public())
	}
	for _, x := range r.partners {
		p.Partners = append(p.Partners, x.Public())
	}
	for _, a := range r.agreements {
		p.Agreements = append(p.Agreements, a.Public())
	}
	for _, x := range r.routes {
		p.Routes = append(p.Routes, x.Public())
	}
	return p
}

// Public returns the view of one of our identities.
func (o *Own) Public() PublicOwn {
	out := PublicOwn{ID: o.ID, AS2ID: o.AS2ID, Certificates: []PublicCertificate{}, Identifiers: append([]edi.Identifier{}, o.Identifiers...)}
	for _, k := range o.Keys {
		out.Certificates = append(out.Certificates, publicCertificate(k.Certificate, k.From, k.Until, k.Use))
	}
	return out
}

func publicCertificate(c *x509.Certificate, from, until time.Time, use []Use) PublicCertificate {
	sum := sha256.Sum256(c.Raw)
	out := PublicCertificate{
		Subject: c.Subject.String(), Issuer: c.Issuer.String(), Serial: c.SerialNumber.Text(16),
		Fingerprint: hex.EncodeToString(sum[:]), NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC(),
		From: from.UTC(), Until: until.UTC(), Use: append([]Use{}, use...),
	}
	if key, ok := c.PublicKey.(*rsa.PublicKey); ok {
		out.Bits = key.N.BitLen()
	}
	return out
}

// Public returns the view of a connection.
func (c *Connection) Public() PublicConnection {
	out := PublicConnection{
		ID: c.ID, ManagedBy: c.ManagedBy, Certificates: []PublicCertificate{}, InFlight: c.InFlight,
		Retry:        PublicRetry{For: config.FormatDuration(c.Retry.For), First: config.FormatDuration(c.Retry.First), Max: config.FormatDuration(c.Retry.Max)},
		AllowPrivate: c.AllowPrivate,
	}
	for _, k := range c.Certificates {
		out.Certificates = append(out.Certificates, publicCertificate(k.Certificate, k.From, k.Until, k.Use))
	}
	if a := c.AS2; a != nil {
		out.AS2 = &PublicAS2{
			ID: a.ID, Own: a.Own, URL: a.URL, Sign: a.Sign, Encrypt: a.Encrypt, Compress: a.Compress,
			Require: append([]string{}, a.Require...), MaxMessage: a.MaxMessage,
			MDN: PublicMDN{Mode: a.MDN.Mode, Signed: a.MDN.Signed, Timeout: config.FormatDuration(a.MDN.Timeout), Resends: a.MDN.Resends},
		}
	}
	if d := c.Directory; d != nil {
		out.Directory = &PublicDirectory{Out: d.Out, Name: d.Name, In: d.In, StableFor: config.FormatDuration(d.StableFor)}
	}
	if h := c.HTTP; h != nil {
		out.HTTP = &PublicHTTP{URL: h.URL}
		if !h.HMACKey.Empty() {
			out.HTTP.HMACKey = config.Mask
		}
	}
	return out
}

// Public returns the view of a partner.
func (p *Partner) Public() PublicPartner {
	return PublicPartner{
		ID: p.ID, ManagedBy: p.ManagedBy, Status: p.Status,
		Connections: append([]string{}, p.Connections...), Identifiers: append([]edi.Identifier{}, p.Identifiers...),
	}
}

func (m *Match) public() PublicMatch {
	return PublicMatch{From: m.From, To: m.To, Sender: m.Sender, Receiver: m.Receiver, Document: m.Document}
}

// Public returns the view of an agreement.
func (a *Agreement) Public() PublicAgreement {
	match := a.Match.public()
	out := PublicAgreement{
		Position: a.Position, Match: &match, Role: a.Role, Split: a.Split, OnReject: a.OnReject, OnInvalid: a.OnInvalid,
		Validate: PublicValidate{
			Level: a.Validate.Level, WarnOnly: append([]string{}, a.Validate.WarnOnly...), TrailerErrors: a.Validate.TrailerErrors,
			Guideline: a.Validate.Guideline, Rules: append([]string{}, a.Validate.Rules...), Severity: a.Validate.Severity,
		},
		Duplicates: PublicDuplicates{
			Interchange: a.Duplicates.Interchange.public(), Document: a.Duplicates.Document.public(), Content: a.Duplicates.Content.public(),
		},
		Usage: a.Usage, Ordering: PublicOrdering{By: a.Ordering.By, Advance: a.Ordering.Advance},
		OnPoison: a.OnPoison, MaxAge: config.FormatDuration(a.MaxAge),
	}
	out.Acks.Contrl.Receipt, out.Acks.Contrl.Answer = a.Acks.ContrlReceipt, a.Acks.ContrlAnswer
	out.Acks.TA1 = a.Acks.TA1
	out.Acks.X12.Type, out.Acks.X12.Answer, out.Acks.X12.AcceptedLoops = a.Acks.X12Type, a.Acks.X12Answer, a.Acks.X12AcceptedLoops
	out.Acks.UBL, out.Acks.Wait = a.Acks.UBL, config.FormatDuration(a.Acks.Wait)
	return out
}

func (w Window) public() PublicWindow {
	return PublicWindow{Window: config.FormatDuration(w.Window), Same: w.Same, Other: w.Other}
}

// Public returns the view of a route.
func (r *Route) Public() PublicRoute {
	out := PublicRoute{Position: r.Position, Match: r.Match.public(), To: r.To, Envelope: r.Envelope, Control: PublicControl{Start: r.Control.Start}}
	if r.EDIFACT != (EDIFACTWriting{}) {
		out.EDIFACT = &PublicEDIFACT{Syntax: r.EDIFACT.Syntax, UNA: r.EDIFACT.UNA, LineBreak: r.EDIFACT.LineBreak}
	}
	if r.X12 != (X12Writing{}) {
		out.X12 = &PublicX12{Version: r.X12.Version, Element: r.X12.Element, Component: r.X12.Component, Segment: r.X12.Segment}
	}
	return out
}
