package partner

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
	"github.com/edihub/edihub/internal/guideline"
)

// agreement reads one agreement over the defaults.
func (b *builder) agreement(o *config.Object) {
	a := b.registry.fallback.clone()
	a.Position = len(b.registry.agreements) + 1
	a.Match = b.match(o)
	b.agreementKeys(o, a)
	o.Close()
	b.places.agreement = append(b.places.agreement, o.Place(""))
	b.registry.agreements = append(b.registry.agreements, a)
}

// clone copies an agreement so that the copy shares nothing that reading changes.
func (a *Agreement) clone() *Agreement {
	c := *a
	c.Validate.WarnOnly = slices.Clone(a.Validate.WarnOnly)
	c.Validate.Rules = slices.Clone(a.Validate.Rules)
	c.Validate.Severity = maps.Clone(a.Validate.Severity)
	return &c
}

// agreementKeys reads the keys that agreements and the block "defaults" have in common; a key
// that is not named keeps what a holds.
func (b *builder) agreementKeys(o *config.Object, a *Agreement) {
	a.Role = Role(o.Choice("role", string(a.Role), string(Endpoint), string(Transparent)))
	a.Split = o.Choice("split", a.Split, "messages", "preserve")
	a.OnReject = o.Choice("on_reject", a.OnReject, "message", "group", "interchange")
	a.OnInvalid = o.Choice("on_invalid", a.OnInvalid, "reject", "hold", "deliver")
	a.Usage = o.Choice("usage", a.Usage, "production", "test", "both")
	a.OnPoison = Poison(o.Choice("on_poison", string(a.OnPoison), string(Block), string(Skip), string(HoldKey)))
	a.MaxAge = o.Duration("max_age", a.MaxAge, time.Second, 400*day)

	ordering := o.Object("ordering")
	a.Ordering.By = OrderBy(ordering.Choice("by", string(a.Ordering.By), string(ByPartner), string(ByInterchange), string(ByDocument), string(ByCustomer), string(ByNone)))
	a.Ordering.Advance = ordering.Choice("advance", a.Ordering.Advance, "delivered", "accepted")
	ordering.Close()

	b.validateKeys(o.Object("validate"), &a.Validate)
	acksKeys(o.Object("acks"), &a.Acks)

	duplicates := o.Object("duplicates")
	windowKeys(duplicates.Object("interchange"), &a.Duplicates.Interchange, true)
	windowKeys(duplicates.Object("document"), &a.Duplicates.Document, true)
	windowKeys(duplicates.Object("content"), &a.Duplicates.Content, false)
	duplicates.Close()
}

func (b *builder) validateKeys(o *config.Object, v *Validate) {
	v.Level = o.Choice("level", v.Level, "off", "envelope", "tables", "guideline")
	v.WarnOnly = o.Choices("warn_only", v.WarnOnly, "code", "length", "unused")
	v.TrailerErrors = o.Choice("trailer_errors", v.TrailerErrors, "reject", "warn")
	if o.Has("guideline") {
		v.Guideline, v.Rulebook = o.String("guideline", ""), b.rulebook(o)
	}
	v.Rules = o.Choices("rules", v.Rules, "auto", "en16931", "peppol", "ubl")
	if v.Level == "guideline" && v.Guideline == "" {
		o.Fail("level", "level guideline needs a guideline", "add guideline: with its name, or use level: tables")
	}
	severity := o.Object("severity")
	if n := severity.Node(); n != nil {
		merged := maps.Clone(v.Severity)
		if merged == nil {
			merged = make(map[string]string)
		}
		for _, f := range n.Fields {
			merged[f.Key] = severity.Choice(f.Key, merged[f.Key], "fatal", "warning", "off")
		}
		v.Severity = merged
	}
	o.Close()
}

// rulebook reads the guideline that a record names, once for all that name it.
func (b *builder) rulebook(o *config.Object) *tables.Guideline {
	file := o.File("guideline", "")
	if file == "" {
		return nil
	}
	if g, done := b.guidelines[file]; done {
		return g
	}
	if b.guidelines == nil {
		b.guidelines = make(map[string]*tables.Guideline)
	}
	b.guidelines[file] = nil
	g, err := guideline.Load(file)
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		b.problems = append(b.problems, problems...)
		return nil
	case err != nil:
		o.Fail("guideline", err.Error(), "name a guideline file that exists, relative to this file")
		return nil
	}
	for _, part := range g.Parts {
		b.feed(part)
	}
	b.guidelines[file] = g.Guideline
	return g.Guideline
}

func acksKeys(o *config.Object, a *Acks) {
	when := []string{"always", "on-request", "errors", "never"}
	contrl := o.Object("contrl")
	a.ContrlReceipt = contrl.Choice("receipt", a.ContrlReceipt, when...)
	a.ContrlAnswer = contrl.Choice("answer", a.ContrlAnswer, when...)
	contrl.Close()
	a.TA1 = o.Choice("ta1", a.TA1, when...)
	x12 := o.Object("x12")
	a.X12Type = x12.Choice("type", a.X12Type, "auto", "997", "999")
	a.X12Answer = x12.Choice("answer", a.X12Answer, when...)
	a.X12AcceptedLoops = x12.Bool("accepted_loops", a.X12AcceptedLoops)
	x12.Close()
	a.UBL = o.Choice("ubl", a.UBL, "none", "mlr", "mlr-errors")
	a.Wait = o.Duration("wait", a.Wait, time.Second, 400*day)
	o.Close()
}

// windowKeys reads one scope of the duplicate check. Content that is equal cannot also be other,
// so the scope content has no such key.
func windowKeys(o *config.Object, w *Window, other bool) {
	actions := []string{"repeat-answer", "skip", "reject", "hold", "off"}
	w.Window = o.Duration("window", w.Window, 0, 4000*day)
	w.Same = o.Choice("same", w.Same, actions...)
	if other {
		w.Other = o.Choice("other", w.Other, actions...)
	}
	o.Close()
}

// match reads the keys that say when an agreement or a route holds.
func (b *builder) match(o *config.Object) Match {
	if !o.Has("match") {
		o.Fail("match", "match is missing", "add it; match: {} matches all")
		return Match{}
	}
	m := o.Object("match")
	var out Match
	out.From = b.parties(m, "from")
	out.To = b.parties(m, "to")
	out.Sender = matchIdentifiers(m, "sender")
	out.Receiver = matchIdentifiers(m, "receiver")
	out.Document = words(m, "document")
	for _, d := range out.Document {
		checkDocument(m, d)
	}
	m.Close()
	return out
}

// words reads the values of a match key. An empty list would match nothing, which nobody means.
func words(m *config.Object, key string) []string {
	out := m.Strings(key, nil)
	if out != nil && len(out) == 0 {
		m.Fail(key, "an empty list matches nothing", "leave the key out to match all")
	}
	return out
}

func (b *builder) parties(m *config.Object, key string) []string {
	out := words(m, key)
	for _, id := range out {
		b.references = append(b.references, reference{id: id, place: m.Place(key)})
	}
	return out
}

func matchIdentifiers(m *config.Object, key string) []edi.Identifier {
	var out []edi.Identifier
	for _, s := range words(m, key) {
		id, err := ParseIdentifier(s)
		if err != nil {
			m.Fail(key, err.Error(), identifierRemedy)
			continue
		}
		out = append(out, id)
	}
	return out
}

// checkDocument refuses what no document type can match.
func checkDocument(m *config.Object, d string) {
	const remedy = `write for example "edifact:ORDERS", "x12:850", "ubl:Invoice", "edifact:*" or opaque`
	standard, typ, two := strings.Cut(d, ":")
	known := []string{string(edi.EDIFACT), string(edi.X12), string(edi.UBL), string(edi.Opaque)}
	star := strings.IndexByte(d, '*')
	switch {
	case d == string(edi.Opaque) || d == "*":
	case star >= 0 && star != len(d)-1:
		m.Fail("document", fmt.Sprintf("%q has a * that is not at its end", d), remedy)
	case !two || typ == "":
		text := fmt.Sprintf("%q is not a document type", d)
		if near := config.Nearest(d, known); near == string(edi.Opaque) {
			text += ", did you mean opaque?"
		}
		m.Fail("document", text, remedy)
	case !slices.Contains(known[:3], standard):
		text := fmt.Sprintf("%q begins with an unknown standard", d)
		if near := config.Nearest(standard, known[:3]); near != "" {
			text += fmt.Sprintf(", did you mean %q?", near+":"+typ)
		}
		m.Fail("document", text, remedy)
	}
}

// route reads one route.
func (b *builder) route(o *config.Object) {
	r := &Route{Position: len(b.registry.routes) + 1, Match: b.match(o), To: o.Required("to", "erp")}
	def := "new"
	if enveloped := r.Match.mayBeEnveloped(); !enveloped {
		def = "none"
	}
	r.Envelope = o.Choice("envelope", def, "keep", "new", "none")
	if r.Envelope == "new" && def == "none" {
		o.Fail("envelope", "no envelope can be made for the documents of this route", "use envelope: none")
	}
	edifactKeys(o.Object("edifact"), &r.EDIFACT)
	x12Keys(o.Object("x12"), &r.X12)
	control := o.Object("control")
	// X12.5 ISA13 has nine digits.
	r.Control.Start = control.Int("start", 1, 1, 999_999_999)
	control.Close()
	o.Close()
	b.places.route = append(b.places.route, o.Place(""))
	b.places.routeTo = append(b.places.routeTo, o.Place("to"))
	b.registry.routes = append(b.registry.routes, r)
}

// mayBeEnveloped reports whether the match lets EDIFACT or X12 through.
func (m *Match) mayBeEnveloped() bool {
	if len(m.Document) == 0 {
		return true
	}
	return slices.ContainsFunc(m.Document, func(d string) bool {
		return d == "*" || strings.HasPrefix(d, string(edi.EDIFACT)+":") || strings.HasPrefix(d, string(edi.X12)+":")
	})
}

func edifactKeys(o *config.Object, w *EDIFACTWriting) {
	w.Syntax = o.String("syntax", "")
	// ISO 9735-1 S001: 0001 is UNO and a letter, 0002 the version.
	if w.Syntax != "" && !regexp.MustCompile(`^UNO[A-KWXY]:[1-4]$`).MatchString(w.Syntax) {
		o.Fail("syntax", fmt.Sprintf("%q is not a syntax identifier", w.Syntax), `write for example "UNOC:3"`)
	}
	if o.Has("una") {
		una := o.Bool("una", false)
		w.UNA = &una
	}
	w.LineBreak = o.Choice("line_break", "", "none", "lf", "crlf")
	o.Close()
}

func x12Keys(o *config.Object, w *X12Writing) {
	w.Version = o.String("version", "")
	// X12.5 ISA12: five characters, 00200 and later.
	if w.Version != "" && !regexp.MustCompile(`^00[2-9][0-9]{2}$`).MatchString(w.Version) {
		o.Fail("version", fmt.Sprintf("%q is not an interchange version", w.Version), `write five digits, for example "00401"`)
	}
	w.Element = delimiter(o, "element")
	w.Component = delimiter(o, "component")
	w.Segment = delimiter(o, "segment")
	for _, p := range [][3]string{{"component", w.Component, w.Element}, {"segment", w.Segment, w.Element}, {"segment", w.Segment, w.Component}} {
		if p[1] != "" && p[1] == p[2] {
			o.Fail(p[0], fmt.Sprintf("%q separates something else already", p[1]), "use three different characters")
		}
	}
	o.Close()
}

// delimiter reads one character that X12.5 §3.5 allows to separate: no letter, digit or blank.
func delimiter(o *config.Object, key string) string {
	n := o.Raw(key)
	if n == nil {
		return ""
	}
	s := n.Text
	if n.Kind == config.Null && s != "~" { // a bare ~ is YAML's null, and here it is meant as itself
		return ""
	}
	if len(s) != 1 || s[0] > 0x7e || s[0] == ' ' || s[0] == 0 || strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") {
		o.Fail(key, fmt.Sprintf("%q cannot be a delimiter", s), `write one character that is no letter, digit or blank, for example "*", ">" or "~"`)
		return ""
	}
	return s
}
