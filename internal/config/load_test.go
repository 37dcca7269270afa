package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	c, origins, err := Load(Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"profile": "embedded", "data": "./edihub-data",
		"as2.listen": ":8080", "as2.public_url": "", "as2.max_message": "2GiB",
		"as2.tls.cert": "", "as2.tls.key": "", "as2.tls.client_ca": "",
		"admin.listen": "127.0.0.1:8081", "admin.tls.cert": "", "admin.tls.key": "", "admin.tls.client_ca": "", "admin.hosts": "", "admin.insecure": "false",
		"postgres.url": "", "postgres.schema": "edihub", "postgres.insecure": "false",
		"rabbitmq.url": "", "rabbitmq.more_urls": "", "rabbitmq.prefix": "edi.", "rabbitmq.shards": "8", "rabbitmq.insecure": "false",
		"lease":                 "20s",
		"stages.parser.workers": "8", "stages.parser.min": "2", "stages.parser.max": "32", "stages.parser.timeout": "1m",
		"stages.validator.workers": "8", "stages.validator.min": "2", "stages.validator.max": "32", "stages.validator.timeout": "1m",
		"stages.router.workers": "2", "stages.router.min": "2", "stages.router.max": "32", "stages.router.timeout": "1m",
		"stages.sender.workers": "16", "stages.sender.min": "2", "stages.sender.max": "32", "stages.sender.timeout": "10m",
		"partners_file":            "partners.yaml",
		"limits.in_flight_partner": "4GiB",
		"limits.in_flight_source":  "4GiB",
		"limits.in_flight_total":   "16GiB",
		"limits.requests":          "1024",
		"limits.max_header":        "64KiB",
		"limits.header_timeout":    "10s",
		"limits.body_timeout":      "1h",
		"limits.idle_timeout":      "2m",
		"limits.min_body_rate":     "1KiB",
		"limits.min_free_disk":     "1GiB",
		"limits.outbox":            "100000",
		"log.level":                "info",
		"log.format":               "auto",
	}
	got := c.Effective()
	if len(got) != len(want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	for _, s := range got {
		w, ok := want[s.Key]
		if !ok || s.Value != w {
			t.Errorf("%s = %q, want %q", s.Key, s.Value, w)
		}
		if s.Origin != "default" || !origins.IsDefault(s.Key) {
			t.Errorf("%s has origin %q", s.Key, s.Origin)
		}
	}
}

func TestWholeMainFileOfTheContractLoads(t *testing.T) {
	t.Parallel()
	file := write(t, "edihub.yaml", `
profile: full
data: ./edihub-data
as2:   {listen: ":8080", public_url: "https://edi.example.com/as2", max_message: 2GiB, tls: {cert: "", key: "", client_ca: ""}}
admin: {listen: "127.0.0.1:8081"}
postgres: {url: "postgres://u:p@127.0.0.1/d", schema: edihub, insecure: false}
rabbitmq: {url: "amqp://u:p@localhost", more_urls: [], prefix: "edi.", shards: 8, insecure: false}
lease: 20s
stages:                      # workers, min, max are per node
  parser:    {workers: 8, min: 2, max: 32, timeout: 60s}
  validator: {workers: 8}
  router:    {workers: 2}
  sender:    {workers: 16, timeout: 10m}
partners_file: partners.yaml
`)
	c, origins, err := Load(Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	if c.Profile != Full || c.Data != filepath.Join(dir, "edihub-data") || c.PartnersFile != filepath.Join(dir, "partners.yaml") {
		t.Errorf("profile %s, data %s, partners %s", c.Profile, c.Data, c.PartnersFile)
	}
	if c.AS2.MaxMessage != 2<<30 || c.Lease != 20*time.Second || c.Stages.Sender.Timeout != 10*time.Minute || c.RabbitMQ.Shards != 8 {
		t.Errorf("unexpected values: %+v", c)
	}
	if c.Postgres.URL.Reveal() != "postgres://u:p@127.0.0.1/d" {
		t.Error("the database URL did not come through")
	}
	if o := origins["as2.max_message"]; o != (Origin{Kind: FromFile, Name: file, Line: 4}) {
		t.Errorf("origin of as2.max_message: %+v", o)
	}
	if len(c.Warnings()) != 0 {
		t.Errorf("warnings: %v", c.Warnings())
	}
}

func TestJSONIsFineToo(t *testing.T) {
	t.Parallel()
	c := load(t, `{"profile":"embedded","as2":{"listen":"127.0.0.1:0","max_message":"64KiB"},"admin":{"hosts":["a.example","b.example"]}}`)
	if c.AS2.Listen != "127.0.0.1:0" || c.AS2.MaxMessage != 64<<10 || strings.Join(c.Admin.Hosts, "+") != "a.example+b.example" {
		t.Errorf("%+v", c)
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	yaml := "as2: {listen: ':1'}\nlease: 1m\nlog: {level: warn}\ndata: d\n"
	file := write(t, "edihub.yaml", yaml)
	c, _, err := Load(Options{
		File:  file,
		Env:   []string{"EDIHUB_AS2_LISTEN=:2", "EDIHUB_LEASE=2m", "EDIHUB_DATA=", "PATH=/bin"},
		Flags: map[string]string{"as2-listen": ":3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]string{
		"as2.listen":   {":3", "flag --as2-listen"},
		"lease":        {"2m", "env EDIHUB_LEASE"},
		"log.level":    {"warn", file + ":3"},
		"log.format":   {"auto", "default"},
		"admin.listen": {"127.0.0.1:8081", "default"},
		"data":         {filepath.Join(filepath.Dir(file), "d"), file + ":4"}, // an empty variable is not set
	} {
		if s := setting(t, c, key); s.Value != want[0] || s.Origin != want[1] {
			t.Errorf("%s = %q from %q, want %q from %q", key, s.Value, s.Origin, want[0], want[1])
		}
	}
	// Flags may be named by key as well; paths of flags are relative to the working directory.
	c, _, err = Load(Options{File: file, Flags: map[string]string{"log.level": "debug", "data": "here"}})
	if err != nil || c.Log.Level != "debug" || c.Data != "here" {
		t.Errorf("%v %+v", err, c)
	}
}

func TestEveryScalarHasAnEnvironmentNameAndAFlag(t *testing.T) {
	t.Parallel()
	envs, flags := map[string]bool{}, map[string]bool{}
	for _, k := range Keys() {
		if envs[k.Env] || flags[k.Flag] {
			t.Errorf("%s: the names %s and %s are not its own", k.Name, k.Env, k.Flag)
		}
		envs[k.Env], flags[k.Flag] = true, true
		if k.Usage == "" {
			t.Errorf("%s has no description", k.Name)
		}
		value := k.Default
		if value == "" || strings.HasPrefix(k.Name, "as2.tls") {
			continue
		}
		c, origins, err := Load(Options{Env: []string{k.Env + "=" + value}})
		if err != nil {
			t.Errorf("%s: %v", k.Env, err)
			continue
		}
		if origins[k.Name] != (Origin{Kind: FromEnv, Name: k.Env}) {
			t.Errorf("%s: origin %+v of %+v", k.Env, origins[k.Name], setting(t, c, k.Name))
		}
		if _, origins, err = Load(Options{Flags: map[string]string{k.Flag: value}}); err != nil || origins[k.Name].Kind != FromFlag {
			t.Errorf("--%s: %v, origin %+v", k.Flag, err, origins[k.Name])
		}
	}
	for _, name := range []string{"EDIHUB_AS2_LISTEN", "EDIHUB_STAGES_PARSER_WORKERS", "EDIHUB_POSTGRES_URL", "EDIHUB_RABBITMQ_URL", "EDIHUB_PARTNERS_FILE"} {
		if !envs[name] {
			t.Errorf("no key has the environment name %s", name)
		}
	}
}

func TestUnknownKeysNameLineAndNearest(t *testing.T) {
	t.Parallel()
	file := write(t, "edihub.yaml", "profile: embedded\nas2:\n  listen: ':0'\n  lissten: ':1'\n  tls: {certt: x}\nwidgets: 1\n")
	_, _, err := Load(Options{File: file})
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != 3 {
		t.Fatalf("want three problems, got %v", err)
	}
	if ps[0].Line != 4 || ps[0].Column != 3 || ps[0].Key != "as2.lissten" || ps[0].Remedy != `did you mean "listen"?` {
		t.Errorf("%+v", ps[0])
	}
	if ps[1].Line != 5 || ps[1].Remedy != `did you mean "cert"?` {
		t.Errorf("%+v", ps[1])
	}
	if ps[2].Line != 6 || !strings.HasPrefix(ps[2].Remedy, "known here: profile, data, as2") {
		t.Errorf("%+v", ps[2])
	}
	mustContain(t, err.Error(), file+":4:3: as2.lissten: unknown key")
}

func TestUnknownEnvironmentNamesAreWarnings(t *testing.T) {
	t.Parallel()
	c := load(t, "", "EDIHUB_AS2_LISTN=:1", "EDIHUB_TEST_POSTGRES_URL=x", "EDIHUB_ADMIN_URL=x", "EDIHUB_TOKEN=x")
	ws := c.Warnings()
	if len(ws) != 1 || ws[0].Code != "ENV_UNKNOWN" || ws[0].Object != "EDIHUB_AS2_LISTN" || ws[0].Remedy != "did you mean EDIHUB_AS2_LISTEN?" {
		t.Errorf("%+v", ws)
	}
}

func TestInvalidValues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		yaml  string
		env   []string
		flags map[string]string
		want  []string // all in the text of the error
	}{
		"profile":               {yaml: "profile: postgress", want: []string{":1:10: profile:", `"postgress" is not allowed`, `did you mean "postgres"?`, "embedded, postgres, full"}},
		"profile from env":      {env: []string{"EDIHUB_PROFILE=x"}, want: []string{"environment EDIHUB_PROFILE: profile:", "embedded, postgres, full"}},
		"profile from flag":     {flags: map[string]string{"profile": "x"}, want: []string{"flag --profile: profile:"}},
		"flag without setting":  {flags: map[string]string{"as2-lsten": "x"}, want: []string{`did you mean "as2-listen"?`}},
		"duration":              {yaml: "lease: 20", want: []string{"lease:", `"20" is not allowed`, "3s to 1h"}},
		"duration too short":    {yaml: "lease: 1s", want: []string{"lease:", "3s to 1h"}},
		"size":                  {yaml: "as2: {max_message: 2GIB}", want: []string{"as2.max_message:", "64KiB"}},
		"number":                {yaml: "rabbitmq: {shards: 0}", want: []string{"rabbitmq.shards:", "1 to 100"}},
		"boolean":               {yaml: "admin: {insecure: yes}", want: []string{"admin.insecure:", "true, false"}},
		"list for a value":      {yaml: "lease: [1s]", want: []string{"lease: this is a list", "single value"}},
		"value for a block":     {yaml: "as2: ':8080'", want: []string{"as2: this is a single value", "block of keys"}},
		"top is a list":         {yaml: "- a", want: []string{"this is a list"}},
		"block in a list":       {yaml: "admin: {hosts: [{a: b}]}", want: []string{"admin.hosts: this is a block"}},
		"duplicate key":         {yaml: "lease: 20s\nlease: 30s", want: []string{":2:", "lease"}},
		"no yaml":               {yaml: "a: [", want: []string{"edihub.yaml:1"}},
		"two documents":         {yaml: "lease: 20s\n---\nlease: 30s\n", want: []string{"second document"}},
		"listen":                {yaml: "as2: {listen: '8080'}", want: []string{"as2.listen:", "host and port"}},
		"listen port":           {yaml: "as2: {listen: ':80800'}", want: []string{"as2.listen:", "host and port"}},
		"admin in the open":     {yaml: "admin: {listen: ':8081'}", want: []string{"admin.listen:", "without TLS", "admin.insecure: true"}},
		"admin name":            {yaml: "admin: {listen: 'edi.example.com:8081'}", want: []string{"without TLS"}},
		"admin hosts":           {yaml: "admin: {hosts: ['https://x']}", want: []string{"admin.hosts:", "host name"}},
		"public url scheme":     {yaml: "as2: {public_url: 'ftp://x'}", want: []string{"as2.public_url:", "https and http"}},
		"tls key missing":       {yaml: "as2: {tls: {cert: a.pem}}", want: []string{"as2.tls.cert:", "as2.tls.key is missing"}},
		"tls cert missing":      {yaml: "as2: {tls: {key: a.pem}}", want: []string{"as2.tls.key:", "as2.tls.cert is missing"}},
		"tls files absent":      {yaml: "as2: {tls: {cert: a.pem, key: b.pem}}", want: []string{"as2.tls.cert:", "do not load"}},
		"client ca without tls": {yaml: "as2: {tls: {client_ca: a.pem}}", want: []string{"need TLS"}},
		"postgres without url":  {yaml: "profile: postgres", want: []string{"postgres.url:", "EDIHUB_POSTGRES_URL"}},
		"full without broker":   {yaml: "profile: full\npostgres: {url: 'postgres://localhost/x'}", want: []string{"rabbitmq.url:", "EDIHUB_RABBITMQ_URL"}},
		"postgres scheme":       {yaml: "postgres: {url: 'mysql://x'}", want: []string{"not a postgres:// URL"}},
		"postgres in the open":  {yaml: "postgres: {url: 'postgres://u:p@db.example/x?sslmode=require'}", want: []string{"db.example", "sslmode=verify-full"}},
		"postgres host param":   {yaml: "postgres: {url: 'postgres:///x?host=db.example'}", want: []string{"sslmode=verify-full"}},
		"postgres schema":       {yaml: "postgres: {schema: 'A-B'}", want: []string{"postgres.schema:"}},
		"amqp in the open":      {yaml: "rabbitmq: {url: 'amqp://u:p@mq.example'}", want: []string{"mq.example", "amqps://"}},
		"amqp more in the open": {yaml: "rabbitmq: {url: 'amqp://localhost', more_urls: ['amqp://u:p@mq.example']}", want: []string{"rabbitmq.more_urls:", "amqps://"}},
		"amqp scheme":           {yaml: "rabbitmq: {url: 'http://x'}", want: []string{"amqp:// or amqps://"}},
		"queue prefix":          {yaml: "rabbitmq: {prefix: 'a b'}", want: []string{"rabbitmq.prefix:"}},
		"workers above max":     {yaml: "stages: {parser: {workers: 9, max: 8}}", want: []string{"stages.parser.workers:", "min 2 and max 8"}},
		"workers below min":     {yaml: "stages: {router: {workers: 1, min: 2}}", want: []string{"stages.router.workers:"}},
		"in flight too small":   {yaml: "limits: {in_flight_partner: 1GiB}", want: []string{"limits.in_flight_partner:", "as2.max_message (2GiB)"}},
		"empty data":            {flags: map[string]string{"data": ""}, want: []string{"data:", "empty"}},
		"log level":             {yaml: "log: {level: verbose}", want: []string{"debug, info, warn, error"}},
		"mask as secret":        {yaml: "postgres: {url: '***'}", want: []string{"mask"}},
		"mask in a list":        {yaml: "rabbitmq: {more_urls: ['***']}", want: []string{"mask"}},
		"secret twice":          {yaml: "postgres: {url: 'postgres://localhost/x', url_file: x}", want: []string{"postgres.url_file:", "both given"}},
		"secret twice in env":   {env: []string{"EDIHUB_POSTGRES_URL=postgres://localhost/x", "EDIHUB_POSTGRES_URL_FILE=x"}, want: []string{"EDIHUB_POSTGRES_URL_FILE", "both given"}},
		"secret file absent":    {yaml: "postgres: {url_file: nowhere}", want: []string{"postgres.url_file:", "nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, "edihub.yaml", tc.yaml)
			_, _, err := Load(Options{File: file, Env: tc.env, Flags: tc.flags})
			var ps Problems
			if !errors.As(err, &ps) {
				t.Fatalf("want Problems, got %v", err)
			}
			mustContain(t, err.Error(), tc.want...)
			for _, p := range ps {
				if p.Text == "" || (p.File == "" && p.Key == "") {
					t.Errorf("a problem without text or place: %+v", p)
				}
			}
		})
	}
}

func TestAllProblemsAreReportedInOrderOfLines(t *testing.T) {
	t.Parallel()
	_, _, err := Load(Options{File: write(t, "edihub.yaml", "lease: x\nprofile: y\nbogus: 1\nas2: {max_message: z}\n")})
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != 4 {
		t.Fatalf("%v", err)
	}
	for i, p := range ps {
		if p.Line != i+1 {
			t.Errorf("problem %d is of line %d", i, p.Line)
		}
	}
}

func TestMissingFileKeepsItsCause(t *testing.T) {
	t.Parallel()
	_, _, err := Load(Options{File: filepath.Join(t.TempDir(), "none.yaml")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for name, yaml := range map[string]string{
		"admin v6 loopback":        "admin: {listen: '[::1]:0'}",
		"admin localhost":          "admin: {listen: 'localhost:8081'}",
		"admin insecure":           "admin: {listen: ':8081', insecure: true}",
		"postgres socket":          "profile: postgres\npostgres: {url: 'postgres:///x?host=/run/postgresql'}",
		"postgres verify":          "profile: postgres\npostgres: {url: 'postgres://u@db.example/x?sslmode=verify-full'}",
		"postgres insecure":        "profile: postgres\npostgres: {url: 'postgres://u@db.example/x', insecure: true}",
		"broker tls":               "rabbitmq: {url: 'amqps://u:p@mq.example'}",
		"broker insecure":          "rabbitmq: {url: 'amqp://u:p@mq.example', insecure: true}",
		"empty file":               "",
		"comments only":            "# nothing\n",
		"null block":               "as2:\nadmin: ~\nlease:\n",
		"large message":            "as2: {max_message: 100GiB}",
		"many workers":             "stages: {parser: {workers: 100}}",
		"one worker":               "stages: {parser: {workers: 1}}",
		"low max":                  "stages: {parser: {max: 1}}",
		"high min":                 "stages: {router: {min: 50}}",
		"anchors":                  "stages: {parser: &p {workers: 4}, validator: *p}",
		"byte order mark and crlf": "\xef\xbb\xbflease: 20s\r\nprofile: embedded\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, yaml)
			for stage, s := range c.stages() {
				if s.Min > s.Workers || s.Workers > s.Max {
					t.Errorf("%s: min %d, workers %d, max %d", stage, s.Min, s.Workers, s.Max)
				}
			}
			if c.Limits.InFlightTotal < c.AS2.MaxMessage {
				t.Error("the largest message could not come in")
			}
		})
	}
}

func TestInsecureIsVisible(t *testing.T) {
	t.Parallel()
	c := load(t, "profile: full\nadmin: {listen: ':8081', insecure: true}\npostgres: {url: 'postgres://u@db.example/x', insecure: true}\nrabbitmq: {url: 'amqp://mq.example', insecure: true}\n")
	var objects []string
	for _, w := range c.Warnings() {
		if w.Code != "INSECURE" || w.Remedy == "" || w.Line == 0 {
			t.Errorf("%+v", w)
		}
		objects = append(objects, w.Object)
	}
	if got := strings.Join(objects, " "); got != "admin.insecure postgres.insecure rabbitmq.insecure" {
		t.Errorf("got %s", got)
	}
}

func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"pg":          "postgres://u:s1@localhost/x\n",
		"mq":          "amqp://u:s2@localhost\r\n",
		"more":        "amqp://u:s3@localhost\namqp://u:s4@localhost\n",
		"edihub.yaml": "postgres: {url_file: pg}\nrabbitmq: {url_file: ./mq, more_urls_file: more}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "edihub.yaml")
	c, origins, err := Load(Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if c.Postgres.URL.Reveal() != "postgres://u:s1@localhost/x" || c.RabbitMQ.URL.Reveal() != "amqp://u:s2@localhost" ||
		len(c.RabbitMQ.MoreURLs) != 2 || c.RabbitMQ.MoreURLs[1].Reveal() != "amqp://u:s4@localhost" {
		t.Errorf("the secrets did not come through")
	}
	if origins["postgres.url"].Line != 1 || origins["rabbitmq.url"].Line != 2 {
		t.Errorf("origins: %+v", origins)
	}
	c, origins, err = Load(Options{File: file, Env: []string{"EDIHUB_POSTGRES_URL_FILE=" + filepath.Join(dir, "pg")}, Flags: map[string]string{"rabbitmq-url-file": filepath.Join(dir, "mq")}})
	if err != nil || origins["postgres.url"].String() != "env EDIHUB_POSTGRES_URL_FILE" || origins["rabbitmq.url"].String() != "flag --rabbitmq-url-file" {
		t.Errorf("%v %+v", err, origins)
	}
	if c.RabbitMQ.URL.Reveal() != "amqp://u:s2@localhost" {
		t.Error("the secret of the flag's file did not come through")
	}
}
