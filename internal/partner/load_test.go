package partner

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
)

// contract is the partners file as the documentation shows it, every key named.
const contract = `
own:                         # who we are; at least one
  - id: hub
    as2: {id: "OURCO", keys: [{cert: hub.pem, key: hub.key, from: 2026-01-01, until: 2027-12-31, use: [sign, decrypt]}]}
    identifiers: ["edifact:14:5412345000020", "x12:ZZ:OURCO", "gs:OURCO", "peppol:0088:5412345000020"]
connections:                 # how bytes travel; several partners may share one
  - id: acme-as2
    as2: {id: "ACME AS2", own: hub, url: "https://acme.example/as2", sign: sha256, encrypt: aes256-cbc, compress: none, require: [signed, encrypted],
          mdn: {mode: sync, signed: true, timeout: 30m, resends: 5}}     # sign/encrypt: none is possible; mode: sync | async | none
    certificates: [{file: acme.pem, from: 2026-01-01, until: 2027-01-31, use: [sign, encrypt, tls]}]
    in_flight: 4
    retry: {for: 72h, first: 30s, max: 15m}
  - id: erp-files
    directory: {out: ./erp/in, name: "{type}_{sender}_{control_ref}_{id}.edi", in: ./erp/out, stable_for: 5s}
  - id: erp-http
    http: {url: "https://erp.local/edi", hmac_key_file: hmac.key}
partners:
  - id: acme
    connections: [acme-as2]            # the first one is used for sending
    status: live                       # draft | testing | live | suspended
    identifiers: ["edifact:14:5412345000013", "x12:ZZ:ACME", "peppol:0088:5412345000013"]
  - {id: erp, connections: [erp-files]}
agreements:
  - match: {from: acme, to: hub, document: ["edifact:ORDERS", "x12:850", "ubl:Invoice"]}
    role: endpoint
    split: messages
    on_reject: message
    on_invalid: reject
    validate: {level: tables, warn_only: [code, length, unused], trailer_errors: reject, guideline: "", rules: [en16931, peppol], severity: {CUSTOMIZATION_UNKNOWN: warning}}
    acks: {contrl: {receipt: never, answer: always}, ta1: on-request, x12: {type: auto, answer: always, accepted_loops: true}, ubl: mlr-errors, wait: 1h}
    duplicates: {interchange: {window: 90d, same: repeat-answer, other: reject}, document: {window: 400d, same: skip, other: hold}, content: {window: 30d, same: skip}}
    usage: production
    ordering: {by: partner, advance: delivered}
    on_poison: block
    max_age: 24h
routes:
  - {match: {to: hub, document: ["edifact:*", "x12:*"]}, to: erp, envelope: keep}
  - {match: {from: erp, receiver: "edifact:14:5412345000013"}, to: acme, envelope: new,
     edifact: {syntax: "UNOC:3", una: true, line_break: none}, x12: {version: "00401", element: "*", component: ">", segment: "~"}, control: {start: 1}}
  - {match: {document: opaque, from: acme}, to: erp, envelope: none}
`

func TestWholePartnersFileOfTheContractLoads(t *testing.T) {
	t.Parallel()
	dir := keyFolder(t)
	file := filepath.Join(dir, "partners.yaml")
	if err := os.WriteFile(file, []byte(contract), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Load(file, LoadOptions{Now: today()})
	if err != nil {
		t.Fatal(err)
	}
	own := r.Own("hub")
	if own == nil || own.AS2ID != "OURCO" || len(own.Keys) != 1 || len(own.Identifiers) != 4 {
		t.Fatalf("own: %+v", own)
	}
	// A date means its whole day.
	if k := own.Keys[0]; !k.From.Equal(date("2026-01-01")) || !k.Until.Equal(date("2028-01-01")) || k.Private == nil {
		t.Errorf("key from %v until %v", k.From, k.Until)
	}
	c := r.Connection("acme-as2")
	want := &AS2{ID: "ACME AS2", Own: "hub", URL: "https://acme.example/as2", Sign: "sha256", Encrypt: "aes256-cbc", Compress: "none", Require: []string{"signed", "encrypted"}, MDN: MDN{Mode: "sync", Signed: true, Timeout: 30 * time.Minute, Resends: 5}}
	if d := cmp.Diff(want, c.AS2); d != "" {
		t.Error(d)
	}
	if c.InFlight != 4 || c.Retry != (Retry{For: 72 * time.Hour, First: 30 * time.Second, Max: 15 * time.Minute}) || c.ManagedBy != ManagedByFile {
		t.Errorf("%+v", c)
	}
	d := r.Connection("erp-files").Directory
	if d.Out != filepath.Join(dir, "erp/in") || d.In != filepath.Join(dir, "erp/out") || d.StableFor != 5*time.Second {
		t.Errorf("%+v", d)
	}
	if h := r.Connection("erp-http").HTTP; h.HMACKey.Reveal() != "C4N4RY" || h.URL != "https://erp.local/edi" {
		t.Errorf("%+v", h)
	}
	if a := r.Agreements()[0]; a.Position != 1 || a.Role != Endpoint {
		t.Errorf("%+v", a)
	}
	una := true
	if d := cmp.Diff([]*Route{
		{Position: 1, Match: Match{To: []string{"hub"}, Document: []string{"edifact:*", "x12:*"}}, To: "erp", Envelope: "keep", Control: Control{Start: 1}},
		{Position: 2, Match: Match{From: []string{"erp"}, Receiver: []edi.Identifier{"edifact:14:5412345000013"}}, To: "acme", Envelope: "new", EDIFACT: EDIFACTWriting{Syntax: "UNOC:3", UNA: &una, LineBreak: "none"}, X12: X12Writing{Version: "00401", Element: "*", Component: ">", Segment: "~"}, Control: Control{Start: 1}},
		{Position: 3, Match: Match{From: []string{"acme"}, Document: []string{"opaque"}}, To: "erp", Envelope: "none", Control: Control{Start: 1}},
	}, r.Routes()); d != "" {
		t.Error(d)
	}
}

// flatten turns a view into dotted keys.
func flatten(t *testing.T, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]any)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if m, ok := v.(map[string]any); ok {
			for k, x := range m {
				walk(strings.TrimPrefix(path+"."+k, "."), x)
			}
			return
		}
		if l, ok := v.([]any); ok {
			words := make([]string, len(l))
			for i, x := range l {
				words[i], _ = x.(string)
			}
			v = strings.Join(words, ",")
		}
		out[path] = v
	}
	walk("", tree)
	return out
}

func agreementDefaults() map[string]any {
	return map[string]any{
		"split": "messages", "on_reject": "message", "on_invalid": "reject",
		"validate.level": "tables", "validate.warn_only": "code,length,unused", "validate.trailer_errors": "reject", "validate.guideline": "", "validate.rules": "en16931,peppol", "validate.severity.CUSTOMIZATION_UNKNOWN": "warning",
		"acks.contrl.receipt": "never", "acks.contrl.answer": "always", "acks.ta1": "on-request", "acks.x12.type": "auto", "acks.x12.answer": "always", "acks.x12.accepted_loops": true, "acks.ubl": "mlr-errors", "acks.wait": "1h",
		"duplicates.interchange.window": "90d", "duplicates.interchange.same": "repeat-answer", "duplicates.interchange.other": "reject",
		"duplicates.document.window": "400d", "duplicates.document.same": "skip", "duplicates.document.other": "hold",
		"duplicates.content.window": "30d", "duplicates.content.same": "skip",
		"usage": "production", "ordering.by": "partner", "ordering.advance": "delivered", "on_poison": "block", "max_age": "1d",
	}
}

func TestEveryDefaultIsTheValueShown(t *testing.T) {
	t.Parallel()
	r := parse(t, secured+"agreements: [{match: {}}]\n")
	want := agreementDefaults()
	// No role: it follows the recipient.
	got := flatten(t, r.Agreements()[0].Public())
	if d := cmp.Diff(want, without(got, "position", "match")); d != "" {
		t.Errorf("agreement: %s", d)
	}
	if d := cmp.Diff(want, flatten(t, r.Public().Defaults)); d != "" {
		t.Errorf("defaults: %s", d)
	}
	if d := cmp.Diff(want, without(flatten(t, Empty().Agreement("a", "b", "x12:850", "", "").Public()), "match")); d != "" {
		t.Errorf("no agreement at all: %s", d)
	}
	connection := flatten(t, r.Connection("acme-as2").Public())
	for key, w := range map[string]any{
		"as2.own": "hub", "as2.sign": "sha256", "as2.encrypt": "aes256-cbc", "as2.compress": "none", "as2.require": "signed,encrypted",
		"as2.mdn.mode": "sync", "as2.mdn.signed": true, "as2.mdn.timeout": "30m", "as2.mdn.resends": 5.0,
		"in_flight": 4.0, "retry.for": "3d", "retry.first": "30s", "retry.max": "15m", "allow_private": false,
	} {
		if connection[key] != w {
			t.Errorf("%s = %v, want %v", key, connection[key], w)
		}
	}
	directory := flatten(t, r.Connection("erp-files").Public())
	if directory["directory.name"] != "{type}_{sender}_{control_ref}_{id}.edi" || directory["directory.stable_for"] != "5s" {
		t.Errorf("%v", directory)
	}
	if p := r.Partner("acme"); p.Status != Live {
		t.Errorf("status %s", p.Status)
	}
	route := flatten(t, r.Routes()[1].Public())
	if route["envelope"] != "new" || route["control.start"] != 1.0 {
		t.Errorf("%v", route)
	}
}

func without(m map[string]any, prefixes ...string) map[string]any {
	for k := range m {
		for _, p := range prefixes {
			if k == p || strings.HasPrefix(k, p+".") {
				delete(m, k)
			}
		}
	}
	return m
}

func TestDefaultsBlockIsInheritedKeyByKey(t *testing.T) {
	t.Parallel()
	r := parse(t, secured+`
agreements:
  - {match: {from: acme}, validate: {level: envelope, severity: {BR-01: off}}, ordering: {by: none}, acks: {contrl: {answer: errors}}}
  - {match: {from: erp}}
defaults:
  role: transparent
  validate: {level: off, rules: [ubl], severity: {BR-02: fatal}}
  ordering: {advance: accepted}
  acks: {contrl: {receipt: always}, wait: 2h}
  duplicates: {document: {window: 10d}}
  on_poison: skip
`)
	want := agreementDefaults()
	maps.Copy(want, map[string]any{
		"role": "transparent", "validate.level": "off", "validate.rules": "ubl", "validate.severity.BR-02": "fatal", "ordering.advance": "accepted",
		"acks.contrl.receipt": "always", "acks.wait": "2h", "duplicates.document.window": "10d", "on_poison": "skip",
	})
	if d := cmp.Diff(want, without(flatten(t, r.Agreements()[1].Public()), "position", "match")); d != "" {
		t.Errorf("second agreement: %s", d)
	}
	if d := cmp.Diff(want, without(flatten(t, r.Agreement("nobody", "hub", "x12:850", "", "").Public()), "match")); d != "" {
		t.Errorf("no match: %s", d)
	}
	want["validate.level"], want["validate.severity.BR-01"], want["ordering.by"], want["acks.contrl.answer"] = "envelope", "off", "none", "errors"
	if d := cmp.Diff(want, without(flatten(t, r.Agreements()[0].Public()), "position", "match")); d != "" {
		t.Errorf("first agreement: %s", d)
	}
}

func TestShortestWorkingFile(t *testing.T) {
	t.Parallel()
	r := parse(t, `
own: [{id: hub, identifiers: "x12:ZZ:OURCO"}]
connections: [{id: files, directory: {in: in, out: out}}]
partners: [{id: erp, connections: [files]}]
routes: [{match: {}, to: erp}]
`)
	if rt, ok := r.Route(RouteQuery{From: "erp", To: "hub", Document: "x12:850", Standard: edi.X12}); !ok || rt.To != "erp" {
		t.Errorf("%+v %v", rt, ok)
	}
	if ws := r.Warnings(); len(ws) != 0 {
		t.Errorf("warnings: %v", ws)
	}
}

func TestPlainAS2NeedsNoKeys(t *testing.T) {
	t.Parallel()
	r := parse(t, `{"own":[{"id":"hub","as2":{"id":"US"}}],
 "connections":[{"id":"c","as2":{"id":"THEM","url":"http://127.0.0.1:9/as2","sign":"none","encrypt":"none","require":[],"mdn":{"signed":false}}}],
 "partners":[{"id":"p","connections":["c"],"identifiers":["x12:ZZ:P"]}],"routes":[{"match":{},"to":"p"}]}`)
	c, own, ok := r.ConnectionByAS2("THEM", "US")
	if !ok || c.ID != "c" || own.ID != "hub" || c.AS2.Requires("signed") || c.AS2.Requires("encrypted") {
		t.Errorf("%+v %+v %v", c, own, ok)
	}
}

func TestCertificateForms(t *testing.T) {
	t.Parallel()
	files, err := keyFiles()
	if err != nil {
		t.Fatal(err)
	}
	inline, err := json.Marshal(string(files["acme.pem"]))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"acme.der", "chain.pem", string(inline)} {
		r := parse(t, strings.Replace(secured, "file: acme.pem", "file: "+file, 1))
		if certs := r.Connection("acme-as2").VerifyCerts(today()); len(certs) != 1 || certs[0].Subject.CommonName != "acme" {
			t.Errorf("%.20s: %d certificates", file, len(certs))
		}
	}
}

func TestMissingFileKeepsItsCause(t *testing.T) {
	t.Parallel()
	if _, err := Load(filepath.Join(t.TempDir(), "none"), LoadOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestVersionFollowsTheContent(t *testing.T) {
	t.Parallel()
	dir := keyFolder(t)
	build := func(yaml string, o LoadOptions) *Registry {
		r, err := Parse([]byte(yaml), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b, c := build(secured, LoadOptions{}), build(secured, LoadOptions{}), build(secured+"# changed\n", LoadOptions{})
	if a.Version() <= 0 || a.Version() != b.Version() || a.Hash() != b.Hash() || a.Version() == c.Version() {
		t.Errorf("versions %d %d %d", a.Version(), b.Version(), c.Version())
	}
	if v := build(secured, LoadOptions{Version: 7}).Version(); v != 7 {
		t.Errorf("version %d", v)
	}
	if w := a.WithVersion(9); w.Version() != 9 || a.Version() == 9 || w.Hash() != a.Hash() || w.Partner("acme") != a.Partner("acme") {
		t.Error("WithVersion changed more than the version")
	}
	// A renewed certificate under the same file name is a change, too.
	next, err := os.ReadFile(filepath.Join(dir, "acme-next.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "acme.pem"), next, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := build(secured, LoadOptions{}); d.Hash() == a.Hash() {
		t.Error("the hash does not see the certificate")
	}
}

func TestSeveralDocumentsAreOneSet(t *testing.T) {
	t.Parallel()
	dir := keyFolder(t)
	more := `{"connections":[{"id":"beta-as2","as2":{"id":"BETA","url":"https://beta.example"},"certificates":[{"file":"beta.pem"}]}],
"partners":[{"id":"beta","connections":["beta-as2"],"identifiers":["x12:ZZ:BETA"]}],"agreements":[{"match":{"from":"beta"}}],"routes":[{"match":{"from":"beta"},"to":"erp"}]}`
	sources := []Source{
		{Name: "partners.yaml", BaseDir: dir, Data: []byte(secured + "agreements: [{match: {from: acme}}]\ndefaults: {usage: both}\n")},
		{Name: "store", BaseDir: dir, Data: []byte(more), ManagedBy: ManagedByAPI},
	}
	r, err := Build(sources, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Routes()) != 3 || r.Routes()[2].Position != 3 || r.Agreements()[1].Usage != "both" {
		t.Errorf("routes %d, usage %s", len(r.Routes()), r.Agreements()[1].Usage)
	}
	if r.Partner("acme").ManagedBy != ManagedByFile || r.Partner("beta").ManagedBy != ManagedByAPI || r.Connection("beta-as2").AS2.Own != "hub" {
		t.Error("records do not know who manages them")
	}
	sources[1].Data = []byte(strings.ReplaceAll(more, "BETA", "ACME AS2"))
	_, err = Build(sources, LoadOptions{})
	var ps config.Problems
	if !errors.As(err, &ps) || ps[0].File != "store" {
		t.Errorf("a clash over documents gave %v", err)
	}
}

func FuzzParse(f *testing.F) {
	dir := keyFolder(f)
	for _, s := range []string{contract, secured, "", "own: 1", "own: [1]", "own: [{id: a, as2: {keys: [{cert: hub.pem, key: hub.key}]}}]", "connections: [{certificates: [{file: .}]}]", "routes: [{match: {document: '*'}}]", "defaults: {validate: {severity: {a: b}}}", "partners: [{id: a, identifiers: ['x12:']}]", "agreements: [~]", "connections: [{directory: {out: /, in: /}}]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		r, err := Parse(data, dir, LoadOptions{Now: today()})
		if err != nil {
			var ps config.Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("the error is %T: %v", err, err)
			}
			return
		}
		if _, err := json.Marshal(r.Public()); err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Connections() {
			r.ParserLane(c.ID)
		}
	})
}
