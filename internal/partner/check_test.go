package partner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// change replaces one part of the good file.
func change(t *testing.T, old, new string) string {
	t.Helper()
	if !strings.Contains(secured, old) {
		t.Fatalf("the fixture has no %q", old)
	}
	return strings.Replace(secured, old, new, 1)
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	const beta = `connections:
  - {id: beta-as2, as2: {id: BETA, url: "https://beta.example"}, certificates: [{file: beta.pem}]}`
	for name, tc := range map[string]struct {
		yaml string
		line int
		want []string
	}{
		"nobody":                     {"", 0, []string{"own:", "add at least one record"}},
		"unknown key":                {change(t, "in: erp/out", "inn: erp/out"), 6, []string{`unknown key "inn"`, `did you mean "in"?`}},
		"unknown top key":            {secured + "rotues: []\n", 13, []string{`did you mean "routes"?`}},
		"unknown key in as2":         {change(t, `url: "https`, `sing: sha256, url: "https`), 5, []string{"connections[0].as2.sing", `did you mean "sign"?`}},
		"other in content":           {secured + "defaults: {duplicates: {content: {other: skip}}}\n", 13, []string{"defaults.duplicates.content.other"}},
		"list for a record":          {secured + "agreements: [[]]\n", 13, []string{"this is a list"}},
		"no id":                      {change(t, "{id: erp, ", "{"), 9, []string{`"id" is missing`}},
		"bad id":                     {change(t, "id: acme,", "id: a/b,"), 8, []string{`"a/b" is not an id`}},
		"own id twice":               {change(t, "connections:\n", "  - {id: hub}\nconnections:\n"), 4, []string{`own id "hub" is used twice`}},
		"connection id twice":        {change(t, "id: erp-files", "id: acme-as2"), 6, []string{`connection id "acme-as2" is used twice`}},
		"partner id twice":           {change(t, "id: erp,", "id: acme,"), 9, []string{`partner id "acme" is used twice`}},
		"partner with our id":        {change(t, "id: erp,", "id: hub,"), 9, []string{"one of our own identities already"}},
		"identifier of two partners": {change(t, "connections: [erp-files]}", `connections: [erp-files], identifiers: ["x12:ZZ:ACME   "]}`), 9, []string{`x12:ZZ:ACME belongs to partner "acme" already`}},
		"identifier is ours":         {change(t, `"x12:ZZ:ACME"`, `"x12:ZZ:OURCO"`), 8, []string{`belongs to our own identity "hub" already`}},
		"identifier twice":           {change(t, `"x12:ZZ:ACME"`, `"x12:ZZ:ACME", "x12:ZZ:ACME"`), 8, []string{"stands here twice"}},
		"identifier without space":   {change(t, `"x12:ZZ:ACME"`, `"ACME"`), 8, []string{`"ACME" is not an identifier`, "edifact:QUALIFIER:ID"}},
		"identifier unknown space":   {change(t, `"x12:ZZ:ACME"`, `"edifat:ZZ:ACME"`), 8, []string{`did you mean "edifact"?`}},
		"x12 without qualifier":      {change(t, `"x12:ZZ:ACME"`, `"x12:ACME"`), 8, []string{"has no qualifier"}},
		"empty identifier":           {change(t, `"x12:ZZ:ACME"`, `"gs: "`), 8, []string{"is empty"}},
		"unknown connection":         {change(t, "connections: [erp-files]", "connections: [erp-file]"), 9, []string{`connection "erp-file" does not exist`, `did you mean "erp-files"?`}},
		"connection twice":           {change(t, "connections: [erp-files]", "connections: [erp-files, erp-files]"), 9, []string{"twice"}},
		"no connection":              {change(t, ", connections: [erp-files]", ""), 9, []string{`partner "erp" has no connection`, "status: draft"}},
		"bad status":                 {change(t, "connections: [erp-files]}", "connections: [erp-files], status: on}"), 9, []string{"draft, testing, live, suspended"}},
		"two kinds":                  {change(t, "{id: erp-files,", "{id: erp-files, http: {url: 'https://x.example'},"), 6, []string{"more than one of as2, directory and http"}},
		"no kind":                    {change(t, "directory: {out: erp/in, in: erp/out}", "in_flight: 1"), 6, []string{"none of as2, directory and http"}},
		"in_flight":                  {change(t, "{id: erp-files,", "{id: erp-files, in_flight: 0,"), 6, []string{"1 to 1000"}},
		"retry order":                {change(t, "{id: erp-files,", "{id: erp-files, retry: {first: 1h},"), 6, []string{"first pause (1h) is longer"}},
		"sign value":                 {change(t, `url: "https`, `sign: md5, url: "https`), 5, []string{`"md5" is not allowed`, "none, sha1, sha256, sha384, sha512"}},
		"encrypt value":              {change(t, `url: "https`, `encrypt: aes256cbc, url: "https`), 5, []string{`did you mean "aes256-cbc"?`, "aes128-gcm, aes256-gcm"}},
		"compress value":             {change(t, `url: "https`, `compress: zlib, url: "https`), 5, []string{"none, before, after"}},
		"require value":              {change(t, `url: "https`, `require: [sign], url: "https`), 5, []string{`did you mean "signed"?`}},
		"mdn mode":                   {change(t, `url: "https`, `mdn: {mode: asynch}, url: "https`), 5, []string{`did you mean "async"?`}},
		"url scheme":                 {change(t, "https://acme.example/as2", "ftp://acme.example"), 5, []string{"https and http"}},
		"url with user":              {change(t, "https://acme.example/as2", "https://u:p@acme.example"), 5, []string{"user or password is refused"}},
		"url without host":           {change(t, "https://acme.example/as2", "https:///as2"), 5, []string{"names no host"}},
		"as2 name missing":           {change(t, `id: "ACME AS2", `, ""), 5, []string{`"id" is missing`}},
		"as2 name not ascii":         {change(t, `"ACME AS2"`, `"ACMÉ"`), 5, []string{"printable ASCII"}},
		"as2 name too long":          {change(t, `"ACME AS2"`, strings.Repeat("a", 129)), 5, []string{"at most 128"}},
		"as2 name is ours":           {change(t, `"ACME AS2"`, "OURCO"), 5, []string{`that of our own identity "hub"`}},
		"as2 name twice":             {strings.Replace(change(t, "connections:\n", beta+"\n"), "id: BETA", `id: "ACME AS2"`, 1), 6, []string{`in connection "beta-as2" with the same own identity`}},
		"own as2 name twice":         {change(t, "connections:\n", "  - {id: two, as2: {id: OURCO}}\nconnections:\n"), 4, []string{`that of our own identity "hub" already`}},
		"own missing":                {change(t, "connections:\n", "  - {id: two, as2: {id: TWO}}\nconnections:\n"), 6, []string{"more than one own identity"}},
		"own unknown":                {change(t, `url: "https`, `own: hubb, url: "https`), 5, []string{`own identity "hubb" does not exist`, `did you mean "hub"?`}},
		"own without as2":            {change(t, "as2: {id: OURCO, keys: [{cert: hub.pem, key: hub.key}]}, ", ""), 5, []string{"no own identity has an AS2 name"}},
		"no own key":                 {change(t, ", keys: [{cert: hub.pem, key: hub.key}]", ""), 5, []string{`own "hub" has no key to sign with`, "edihub keygen", "sign: none"}},
		"no own key to decrypt":      {change(t, "key: hub.key", "key: hub.key, use: [sign]"), 5, []string{`no key to decrypt with`, "take encrypted out of require"}},
		"no certificate":             {change(t, ", certificates: [{file: acme.pem}]", ""), 5, []string{"no certificate to encrypt for", "encrypt: none"}},
		"no certificate to verify":   {change(t, "file: acme.pem", "file: acme.pem, use: [encrypt]"), 5, []string{"no certificate to prove signatures", "a signed MDN is asked for"}},
		"certificate in two records": {change(t, "connections:\n", strings.Replace(beta, "beta.pem", "acme.pem", 1)+"\n"), 6, []string{`(or its key) is in connection "beta-as2" too`}},
		"same key, new certificate":  {change(t, "connections:\n", strings.Replace(beta, "beta.pem", "acme-next.pem", 1)+"\n"), 6, []string{"(or its key)"}},
		"our certificate":            {change(t, "file: acme.pem", "file: hub.pem"), 5, []string{`a certificate of our own identity "hub"`}},
		"key of another certificate": {change(t, "key: hub.key", "key: hub2.key"), 3, []string{"does not belong to the certificate"}},
		"locked key":                 {change(t, "key: hub.key", "key: locked.key"), 3, []string{"private key is encrypted"}},
		"broken key":                 {change(t, "key: hub.key", "key: broken.key"), 3, []string{"does not parse"}},
		"key is a certificate":       {change(t, "key: hub.key", "key: hub.pem"), 3, []string{"no private key"}},
		"key file absent":            {change(t, "key: hub.key", "key: none.key"), 3, []string{"none.key", "no such file"}},
		"no certificate in file":     {change(t, "file: acme.pem", "file: text.txt"), 5, []string{"no certificate is in it"}},
		"partner gave a key":         {change(t, "file: acme.pem", "file: acme.key"), 5, []string{"a private key is in it"}},
		"two certificates":           {change(t, "file: acme.pem", "file: two.pem"), 5, []string{"2 certificates are in it"}},
		"encrypt for a curve":        {change(t, "file: acme.pem", "file: curve.pem, use: [encrypt]"), 5, []string{"RSA certificate"}},
		"curve for all":              {change(t, "file: acme.pem", "file: curve.pem"), 5, []string{"no certificate to encrypt for"}},
		"decrypt with a curve":       {change(t, "cert: hub.pem, key: hub.key", "cert: curve.pem, key: curve.key, use: [sign, decrypt]"), 3, []string{"only an RSA key can decrypt"}},
		"certificate use":            {change(t, "file: acme.pem", "file: acme.pem, use: [decrypt]"), 5, []string{`"decrypt" is not allowed`}},
		"date":                       {change(t, "file: acme.pem", "file: acme.pem, from: 1.2.2026"), 5, []string{"a date such as"}},
		"until before from":          {change(t, "file: acme.pem", "file: acme.pem, from: 2026-05-01, until: 2026-04-01"), 5, []string{"before it begins"}},
		"directory without paths":    {change(t, "out: erp/in, in: erp/out", "stable_for: 1s"), 6, []string{"neither out nor in"}},
		"directories equal":          {change(t, "in: erp/out", "in: ./erp/../erp/in"), 6, []string{"is \"", "side by side"}},
		"directories nest":           {change(t, "in: erp/out", "in: erp"), 6, []string{"lies in"}},
		"name with folder":           {change(t, "in: erp/out", "in: erp/out, name: '../{id}'"), 6, []string{"no folders"}},
		"name placeholder":           {change(t, "in: erp/out", "in: erp/out, name: '{sendr}{id}'"), 6, []string{"did you mean {sender}?"}},
		"name brace":                 {change(t, "in: erp/out", "in: erp/out, name: '{id'"), 6, []string{"brace"}},
		"http without url":           {change(t, "directory: {out: erp/in, in: erp/out}", "http: {}"), 6, []string{"the URL is missing"}},
		"hmac twice":                 {change(t, "directory: {out: erp/in, in: erp/out}", "http: {url: 'https://x.example', hmac_key: a, hmac_key_file: hmac.key}"), 6, []string{"both set"}},
		"hmac file absent":           {change(t, "directory: {out: erp/in, in: erp/out}", "http: {url: 'https://x.example', hmac_key_file: none}"), 6, []string{"http.hmac_key_file"}},
		"route to nobody":            {change(t, "to: erp, envelope", "to: erpp, envelope"), 11, []string{`partner "erpp" does not exist`, `did you mean "erp"?`}},
		"route to ourselves":         {change(t, "to: erp, envelope", "to: hub, envelope"), 11, []string{`partner "hub" does not exist`}},
		"route without target":       {change(t, "to: erp, envelope", "envelope"), 11, []string{`"to" is missing`}},
		"route to no url":            {change(t, `, url: "https://acme.example/as2"`, ""), 12, []string{"has no URL"}},
		"route to no out":            {change(t, "out: erp/in, ", ""), 11, []string{"has no out directory"}},
		"route from nobody":          {change(t, "from: erp", "from: eerp"), 12, []string{"neither a partner nor one of our own", `did you mean "erp"?`}},
		"route without match":        {change(t, "match: {to: hub}, ", ""), 11, []string{"match is missing", "match: {}"}},
		"match of nothing":           {change(t, "match: {to: hub}", "match: {to: []}"), 11, []string{"an empty list matches nothing"}},
		"match identifier":           {change(t, "match: {to: hub}", "match: {receiver: x}"), 11, []string{`"x" is not an identifier`}},
		"document":                   {change(t, "match: {to: hub}", "match: {document: INVOIC}"), 11, []string{`"INVOIC" is not a document type`}},
		"document standard":          {change(t, "match: {to: hub}", "match: {document: 'edifct:INVOIC'}"), 11, []string{`did you mean "edifact:INVOIC"?`}},
		"document star":              {change(t, "match: {to: hub}", "match: {document: 'x12:*50'}"), 11, []string{"not at its end"}},
		"document opaq":              {change(t, "match: {to: hub}", "match: {document: opaq}"), 11, []string{"did you mean opaque?"}},
		"envelope":                   {change(t, "envelope: keep", "envelope: fresh"), 11, []string{"keep, new, none"}},
		"envelope for opaque":        {change(t, "match: {to: hub}, to: erp, envelope: keep", "match: {document: opaque}, to: erp, envelope: new"), 11, []string{"use envelope: none"}},
		"edifact syntax":             {change(t, "envelope: keep", "edifact: {syntax: UNOC}"), 11, []string{`"UNOC" is not a syntax identifier`}},
		"edifact line break":         {change(t, "envelope: keep", "edifact: {line_break: cr}"), 11, []string{"none, lf, crlf"}},
		"x12 version":                {change(t, "envelope: keep", "x12: {version: 4010}"), 11, []string{`"4010" is not an interchange version`, "00401"}},
		"x12 delimiter":              {change(t, "envelope: keep", "x12: {element: A}"), 11, []string{"cannot be a delimiter"}},
		"x12 long delimiter":         {change(t, "envelope: keep", "x12: {segment: '~~'}"), 11, []string{"cannot be a delimiter"}},
		"x12 delimiters equal":       {change(t, "envelope: keep", "x12: {element: '*', segment: '*'}"), 11, []string{"separates something else already"}},
		"control start":              {change(t, "envelope: keep", "control: {start: 1000000000}"), 11, []string{"1 to 999999999"}},
		"agreement value":            {secured + "agreements: [{match: {}, on_poison: ignore}]\n", 13, []string{"block, skip, hold-key"}},
		"ordering":                   {secured + "agreements: [{match: {}, ordering: {by: partners}}]\n", 13, []string{`did you mean "partner"?`}},
		"severity":                   {secured + "agreements: [{match: {}, validate: {severity: {BR-1: error}}}]\n", 13, []string{"agreements[0].validate.severity.BR-1", "fatal, warning, off"}},
		"guideline":                  {secured + "agreements: [{match: {}, validate: {level: guideline}}]\n", 13, []string{"needs a guideline"}},
		"guideline file":             {secured + "agreements: [{match: {}, validate: {level: guideline, guideline: none.yaml}}]\n", 13, []string{"none.yaml", "validate.guideline", "relative to this file"}},
		"window":                     {secured + "agreements: [{match: {}, duplicates: {document: {window: forever}}}]\n", 13, []string{`"forever" is not allowed`}},
		"max age":                    {secured + "agreements: [{match: {}, max_age: 0}]\n", 13, []string{"1s to 400d"}},
		"defaults with a match":      {secured + "defaults: {match: {}}\n", 13, []string{`unknown key "match"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ps := refuse(t, tc.yaml, LoadOptions{})
			mustContain(t, ps.Error(), tc.want...)
			found := false
			for _, p := range ps {
				found = found || p.Line == tc.line
				if p.Remedy == "" {
					t.Errorf("no remedy: %v", p)
				}
			}
			if !found {
				t.Errorf("nothing is reported on line %d:\n%v", tc.line, ps)
			}
		})
	}
}

func TestAllProblemsComeAtOnceInOrder(t *testing.T) {
	t.Parallel()
	yaml := strings.NewReplacer("cert: hub.pem", "cert: none.pem", "erp/out", "erp", "x12:ZZ:ACME", "acme", "to: acme", "to: nobody").Replace(secured) + "bogus: 1\n"
	var lines []int
	for _, p := range refuse(t, yaml, LoadOptions{}) {
		lines = append(lines, p.Line)
	}
	want := []int{3, 5, 5, 6, 8, 12, 13}
	if len(lines) != len(want) {
		t.Fatalf("lines %v, want %v", lines, want)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Fatalf("lines %v, want %v", lines, want)
		}
	}
}

func TestDirectoriesAndTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := keyFolder(t)
	for name, tc := range map[string]struct {
		data string
		bad  bool
	}{
		"beside": {"data", false}, "like-named": {"erp/i", false}, "above": {".", true}, "same": {"erp/in", true}, "below": {"erp/in/data", true}, "linked": {"link/in", true},
	} {
		if name == "linked" {
			if err := os.MkdirAll(filepath.Join(dir, "erp"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(dir, "erp"), filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Parse([]byte(secured), dir, LoadOptions{DataDir: filepath.Join(dir, tc.data)})
		if (err != nil) != tc.bad {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			mustContain(t, err.Error(), "partners:6:", "side by side")
		}
	}
}

func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	dir := keyFolder(t)
	for _, tc := range []struct {
		url, managedBy string
		allow, bad     bool
		rule           DialRule
	}{
		{url: "http://127.0.0.1:9/as2", rule: DialRule{PrivateLiteral: true}},
		{url: "http://10.0.0.1/as2", allow: true, rule: DialRule{PrivateLiteral: true, PrivateByName: true}},
		{url: "https://acme.example/as2", managedBy: ManagedByAPI},
		{url: "https://192.0.2.1/as2", managedBy: ManagedByAPI},
		{url: "http://127.0.0.1/as2", managedBy: ManagedByAPI, bad: true},
		{url: "http://[::1]/as2", managedBy: ManagedByAPI, bad: true},
		{url: "http://[::ffff:10.0.0.1]/as2", managedBy: ManagedByAPI, bad: true},
		{url: "http://localhost./as2", managedBy: ManagedByAPI, bad: true},
		{url: "http://169.254.169.254/latest", managedBy: ManagedByAPI, bad: true},
		{url: "http://0.0.0.0/as2", managedBy: ManagedByAPI, bad: true},
		{url: "http://10.0.0.1/as2", managedBy: ManagedByAPI, allow: true, rule: DialRule{PrivateLiteral: true, PrivateByName: true}},
	} {
		yaml := change(t, "https://acme.example/as2", tc.url)
		if tc.allow {
			yaml = strings.Replace(yaml, "{id: acme-as2,", "{id: acme-as2, allow_private: true,", 1)
		}
		r, err := Parse([]byte(yaml), dir, LoadOptions{ManagedBy: tc.managedBy})
		if tc.bad {
			if err == nil {
				t.Errorf("%s through the API was taken", tc.url)
			} else {
				mustContain(t, err.Error(), "allow_private: true")
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		tc.rule.URL = tc.url
		if got := r.Connection("acme-as2").DialRule(); got != tc.rule {
			t.Errorf("%s: rule %+v, want %+v", tc.url, got, tc.rule)
		}
	}
}
