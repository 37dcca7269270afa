package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one setting: where it goes, what it may be, what it is when nobody says.
type field struct {
	key       string
	def       string
	doc       string
	target    any // *string, *Profile, *bool, *int, *int64, *time.Duration, *Secret, *[]Secret, *[]string
	path      bool
	low, high int64 // of a number, a size in bytes or a duration
	allowed   []string
}

// Key describes a setting for documentation and for the flags of the command line.
type Key struct {
	Name    string // "as2.listen"
	Env     string // "EDIHUB_AS2_LISTEN"
	Flag    string // "as2-listen"
	Default string
	Usage   string
	Secret  bool // it may also be named as Name + "_file", Env + "_FILE", Flag + "-file"
}

// Keys lists all settings in the order of the documentation.
func Keys() []Key {
	fields := new(Config).fields()
	out := make([]Key, len(fields))
	for i, f := range fields {
		out[i] = Key{Name: f.key, Env: envName(f.key), Flag: flagName(f.key), Default: f.def, Usage: f.doc, Secret: f.secret()}
	}
	return out
}

func envName(key string) string {
	return "EDIHUB_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func flagName(key string) string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(key)
}

// fields binds every setting to its place in c.
func (c *Config) fields() []field {
	const second, hour = int64(time.Second), int64(time.Hour)
	fs := []field{
		{key: "profile", def: "embedded", doc: "engines: embedded (SQLite), postgres, full (PostgreSQL and RabbitMQ)", target: &c.Profile, allowed: []string{"embedded", "postgres", "full"}},
		{key: "data", def: "./edihub-data", doc: "data directory", target: &c.Data, path: true},

		{key: "as2.listen", def: ":8080", doc: "address of the AS2 listener; port 0 picks a free one", target: &c.AS2.Listen},
		{key: "as2.public_url", def: "", doc: "URL by which partners reach the AS2 listener; asynchronous MDNs come there", target: &c.AS2.PublicURL},
		{key: "as2.max_message", def: "2GiB", doc: "largest AS2 message on the wire", target: &c.AS2.MaxMessage, low: 1 << 10, high: 1 << 40},
		{key: "as2.tls.cert", def: "", doc: "PEM file with the certificate chain of the AS2 listener; empty: plain HTTP", target: &c.AS2.TLS.Cert, path: true},
		{key: "as2.tls.key", def: "", doc: "PEM file with the private key of the AS2 listener", target: &c.AS2.TLS.Key, path: true},
		{key: "as2.tls.client_ca", def: "", doc: "PEM file with the authorities of client certificates; empty: none are asked for", target: &c.AS2.TLS.ClientCA, path: true},

		{key: "admin.listen", def: "127.0.0.1:8081", doc: "address of the API and the console", target: &c.Admin.Listen},
		{key: "admin.tls.cert", def: "", doc: "PEM file with the certificate chain of the admin listener; empty: plain HTTP", target: &c.Admin.TLS.Cert, path: true},
		{key: "admin.tls.key", def: "", doc: "PEM file with the private key of the admin listener", target: &c.Admin.TLS.Key, path: true},
		{key: "admin.tls.client_ca", def: "", doc: "PEM file with the authorities of client certificates; empty: none are asked for", target: &c.Admin.TLS.ClientCA, path: true},
		{key: "admin.hosts", def: "", doc: "host names under which the admin listener may be called, beside its address", target: &c.Admin.Hosts},
		{key: "admin.insecure", def: "false", doc: "allows plain HTTP away from loopback", target: &c.Admin.Insecure},

		{key: "postgres.url", def: "", doc: "postgres:// URL of the store (profiles postgres and full)", target: &c.Postgres.URL},
		{key: "postgres.schema", def: "edihub", doc: "schema in the database", target: &c.Postgres.Schema},
		{key: "postgres.insecure", def: "false", doc: "allows a connection away from loopback that does not verify the server", target: &c.Postgres.Insecure},

		{key: "rabbitmq.url", def: "", doc: "amqp:// or amqps:// URL of the broker (profile full)", target: &c.RabbitMQ.URL},
		{key: "rabbitmq.more_urls", def: "", doc: "URLs of further nodes of the broker", target: &c.RabbitMQ.MoreURLs},
		{key: "rabbitmq.prefix", def: "edi.", doc: "first part of every queue name", target: &c.RabbitMQ.Prefix},
		{key: "rabbitmq.shards", def: "8", doc: "ordered queues of each stage", target: &c.RabbitMQ.Shards, low: 1, high: 100},
		{key: "rabbitmq.insecure", def: "false", doc: "allows amqp:// away from loopback", target: &c.RabbitMQ.Insecure},

		{key: "lease", def: "20s", doc: "silence after which other nodes take over a node's work", target: &c.Lease, low: 3 * second, high: hour},
	}
	fs = append(fs, stageFields("parser", &c.Stages.Parser, "8", "60s")...)
	fs = append(fs, stageFields("validator", &c.Stages.Validator, "8", "60s")...)
	fs = append(fs, stageFields("router", &c.Stages.Router, "2", "60s")...)
	fs = append(fs, stageFields("sender", &c.Stages.Sender, "16", "10m")...)
	return append(fs,
		field{key: "partners_file", def: "partners.yaml", doc: "YAML file with own identities, connections, partners, agreements and routes", target: &c.PartnersFile, path: true},

		field{key: "limits.in_flight_partner", def: "4GiB", doc: "bytes received from one partner at the same time", target: &c.Limits.InFlightPartner, low: 1 << 20, high: 1 << 50},
		field{key: "limits.in_flight_source", def: "4GiB", doc: "bytes received from one source address at the same time", target: &c.Limits.InFlightSource, low: 1 << 20, high: 1 << 50},
		field{key: "limits.in_flight_total", def: "16GiB", doc: "bytes received at the same time in all", target: &c.Limits.InFlightTotal, low: 1 << 20, high: 1 << 50},
		field{key: "limits.requests", def: "1024", doc: "requests at the same time on the AS2 listener", target: &c.Limits.Requests, low: 1, high: 1 << 20},
		field{key: "limits.max_header", def: "64KiB", doc: "largest HTTP header", target: &c.Limits.MaxHeader, low: 4 << 10, high: 16 << 20},
		field{key: "limits.header_timeout", def: "10s", doc: "time for the HTTP header", target: &c.Limits.HeaderTimeout, low: second, high: hour},
		field{key: "limits.body_timeout", def: "1h", doc: "time for the body of a request", target: &c.Limits.BodyTimeout, low: second, high: 24 * hour},
		field{key: "limits.idle_timeout", def: "2m", doc: "time that an unused connection is kept", target: &c.Limits.IdleTimeout, low: second, high: hour},
		field{key: "limits.min_body_rate", def: "1KiB", doc: "bytes a second below which a body is cut off; 0: never", target: &c.Limits.MinBodyRate, low: 0, high: 1 << 30},
		field{key: "limits.min_free_disk", def: "1GiB", doc: "free space of the data directory below which the hub answers 503", target: &c.Limits.MinFreeDisk, low: 0, high: 1 << 50},
		field{key: "limits.outbox", def: "100000", doc: "messages waiting for the broker above which the hub is not ready", target: &c.Limits.Outbox, low: 1, high: math.MaxInt32},

		field{key: "log.level", def: "info", doc: "what is logged: debug, info, warn or error", target: &c.Log.Level, allowed: []string{"debug", "info", "warn", "error"}},
		field{key: "log.format", def: "auto", doc: "auto (text on a terminal, else json), json or text", target: &c.Log.Format, allowed: []string{"auto", "json", "text"}},
	)
}

func stageFields(name string, s *Stage, workers, timeout string) []field {
	const most = 4096
	key := "stages." + name + "."
	return []field{
		{key: key + "workers", def: workers, doc: "workers of the " + name + " on each node", target: &s.Workers, low: 0, high: most},
		{key: key + "min", def: "2", doc: "fewest workers that the scaler leaves", target: &s.Min, low: 0, high: most},
		{key: key + "max", def: "32", doc: "most workers that the scaler starts", target: &s.Max, low: 1, high: most},
		{key: key + "timeout", def: timeout, doc: "time for one message in the " + name, target: &s.Timeout, low: int64(time.Second), high: int64(24 * time.Hour)},
	}
}

func (f *field) secret() bool {
	switch f.target.(type) {
	case *Secret, *[]Secret:
		return true
	}
	return false
}

func (f *field) list() bool {
	switch f.target.(type) {
	case *[]string, *[]Secret:
		return true
	}
	return false
}

// valueError says why a text is no value of a field.
type valueError struct{ text, remedy string }

func (e *valueError) Error() string { return e.text + "; " + e.remedy }

// set stores a text; base is what a path is relative to. A list is given with commas.
func (f *field) set(text, base string) error {
	switch t := f.target.(type) {
	case *string:
		if f.allowed != nil && !slices.Contains(f.allowed, text) {
			return &valueError{notAllowed(text), choiceRemedy(text, f.allowed)}
		}
		if f.path {
			text = resolve(base, text)
		}
		*t = text
	case *Profile:
		if !slices.Contains(f.allowed, text) {
			return &valueError{notAllowed(text), choiceRemedy(text, f.allowed)}
		}
		*t = Profile(text)
	case *bool:
		b, err := parseBool(text)
		if err != nil {
			return &valueError{notAllowed(text), "allowed: true, false"}
		}
		*t = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil || int64(n) < f.low || int64(n) > f.high {
			return &valueError{notAllowed(text), fmt.Sprintf("a whole number from %d to %d is expected", f.low, f.high)}
		}
		*t = n
	case *int64:
		n, err := ParseSize(text)
		if err != nil || n < f.low || n > f.high {
			return &valueError{notAllowed(text), fmt.Sprintf("a size from %s to %s is expected, such as 64KiB, 10MB or 2GiB", FormatSize(f.low), FormatSize(f.high))}
		}
		*t = n
	case *time.Duration:
		d, err := ParseDuration(text)
		if err != nil || int64(d) < f.low || int64(d) > f.high {
			return &valueError{notAllowed(text), fmt.Sprintf("a duration from %s to %s is expected, such as 20s, 15m or 72h", FormatDuration(time.Duration(f.low)), FormatDuration(time.Duration(f.high)))}
		}
		*t = d
	case *Secret:
		if text == Mask {
			return &valueError{"the value is the mask that stands for a secret in a print-out", "give the secret itself, or a file with " + f.key + "_file"}
		}
		*t = NewSecret(text)
	case *[]string, *[]Secret:
		return f.setList(splitList(text))
	default:
		return errors.New("config: a field of unknown type")
	}
	return nil
}

func (f *field) setList(items []string) error {
	switch t := f.target.(type) {
	case *[]string:
		*t = items
	case *[]Secret:
		out := make([]Secret, 0, len(items))
		for _, s := range items {
			if s == Mask {
				return &valueError{"a value is the mask that stands for a secret in a print-out", "give the secrets themselves, or a file with " + f.key + "_file"}
			}
			out = append(out, NewSecret(s))
		}
		*t = out
	}
	return nil
}

// splitList takes commas and, as in a file of secrets, line ends.
func splitList(text string) []string {
	var out []string
	for _, s := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// text is the value for print-outs.
func (f *field) text() string {
	switch t := f.target.(type) {
	case *string:
		return *t
	case *Profile:
		return string(*t)
	case *bool:
		return strconv.FormatBool(*t)
	case *int:
		return strconv.Itoa(*t)
	case *int64:
		return FormatSize(*t)
	case *time.Duration:
		return FormatDuration(*t)
	case *Secret:
		if t.Empty() {
			return ""
		}
		return Mask
	case *[]string:
		return strings.Join(*t, ",")
	case *[]Secret:
		masks := make([]string, len(*t))
		for i := range masks {
			masks[i] = Mask
		}
		return strings.Join(masks, ",")
	}
	return ""
}
