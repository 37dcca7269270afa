package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// stretchStages widens bounds that nobody set around a number of workers that somebody did.
func (c *Config) stretchStages(origins Origins) {
	for name, s := range c.stages() {
		if origins.IsDefault("stages." + name + ".min") {
			s.Min = min(s.Min, s.Workers)
			if !origins.IsDefault("stages." + name + ".max") {
				s.Min = min(s.Min, s.Max)
			}
		}
		if origins.IsDefault("stages." + name + ".max") {
			s.Max = max(s.Max, s.Workers, s.Min)
		}
		if origins.IsDefault("stages." + name + ".workers") {
			s.Workers = min(max(s.Workers, s.Min), s.Max)
		}
	}
}

// stretchLimits lets the largest message in where somebody raised it and left the limits alone.
func (c *Config) stretchLimits(origins Origins) {
	for key, v := range map[string]*int64{
		"limits.in_flight_partner": &c.Limits.InFlightPartner,
		"limits.in_flight_source":  &c.Limits.InFlightSource,
		"limits.in_flight_total":   &c.Limits.InFlightTotal,
	} {
		if origins.IsDefault(key) {
			*v = max(*v, c.AS2.MaxMessage)
		}
	}
}

func (c *Config) stages() map[string]*Stage {
	return map[string]*Stage{
		"parser": &c.Stages.Parser, "validator": &c.Stages.Validator,
		"router": &c.Stages.Router, "sender": &c.Stages.Sender,
	}
}

// bad notes a problem with the value of a key, where it came from.
func (l *loader) bad(key, text, remedy string) { l.fail(l.origins[key], 0, key, text, remedy) }

// validate checks what single values cannot tell.
func (l *loader) validate() {
	c := l.config
	if c.Data == "" {
		l.bad("data", "the data directory is empty", "name a directory, for example ./edihub-data")
	}
	l.address("as2.listen", c.AS2.Listen)
	l.address("admin.listen", c.Admin.Listen)
	l.publicURL()
	l.tlsFiles("as2.tls", c.AS2.TLS)
	l.tlsFiles("admin.tls", c.Admin.TLS)
	l.admin()
	l.postgres()
	l.rabbitmq()
	l.limits()
	for name, s := range c.stages() {
		if s.Min > s.Workers || s.Workers > s.Max {
			l.bad("stages."+name+".workers", fmt.Sprintf("%d workers are not between min %d and max %d", s.Workers, s.Min, s.Max), "change one of the three")
		}
	}
}

// address checks host:port; the port may be 0.
func (l *loader) address(key, value string) {
	host, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(host, " /@") {
		l.bad(key, fmt.Sprintf("%q is not an address to listen on", value), `host and port are expected, for example ":8080" or "127.0.0.1:8081"`)
	}
}

func (l *loader) publicURL() {
	raw := l.config.AS2.PublicURL
	if raw == "" {
		return
	}
	if err := CheckURL(raw, "https", "http"); err != nil {
		l.bad("as2.public_url", err.Error(), "write for example https://edi.example.com/as2")
	}
}

// CheckURL reports what keeps raw from being an absolute URL of one of the schemes without user
// information and fragment. The text never holds a password.
func CheckURL(raw string, schemes ...string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("this is not a URL") // the cause would repeat the text, password included
	}
	switch {
	case u.User != nil:
		return errors.New("a URL with a user or password is refused")
	case !slices.Contains(schemes, strings.ToLower(u.Scheme)):
		return fmt.Errorf("the URL's scheme %q is not allowed, only %s", u.Scheme, strings.Join(schemes, " and "))
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("the URL names no host")
	case u.Fragment != "":
		return errors.New("a URL with a fragment (#) is refused")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			// It is not shown: it may be the beginning of a password (see atBehindHost).
			return errors.New("the URL's port is not between 1 and 65535")
		}
	}
	if atBehindHost(raw) {
		return errors.New("the URL has an @ behind its host; write %40 if it belongs there, and no user or password")
	}
	return nil
}

// atBehindHost reports whether an @ stands behind the authority of a URL. A password with a /, ?
// or # that is not escaped ends the authority early (RFC 3986 §3.2): what is taken for host and
// port are then user and password, and nothing of such a URL may be shown.
func atBehindHost(raw string) bool {
	if _, rest, ok := strings.Cut(raw, "//"); ok {
		raw = rest
	}
	end := strings.IndexAny(raw, "/?#")
	return end >= 0 && strings.Contains(raw[end:], "@")
}

// The problem of a URL with an @ behind its host.
const (
	badEscape       = "an @ stands behind the host: the user or the password holds a character that must be escaped"
	badEscapeRemedy = "write %2F for /, %3F for ?, %23 for # and %40 for @"
)

func (l *loader) tlsFiles(key string, t TLS) {
	if t.Cert == "" && t.Key == "" {
		if t.ClientCA != "" {
			l.bad(key+".client_ca", "client certificates need TLS", "set "+key+".cert and "+key+".key too")
		}
		return
	}
	if t.Cert == "" || t.Key == "" {
		missing, present := key+".cert", key+".key"
		if t.Key == "" {
			missing, present = present, missing
		}
		l.bad(present, missing+" is missing", "set both, or none for plain HTTP")
		return
	}
	if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
		l.bad(key+".cert", "certificate and key do not load: "+err.Error(), "name the PEM files of one pair")
	}
	if t.ClientCA == "" {
		return
	}
	data, err := os.ReadFile(t.ClientCA)
	switch {
	case err != nil:
		l.bad(key+".client_ca", err.Error(), "name a readable PEM file")
	case !x509.NewCertPool().AppendCertsFromPEM(data):
		l.bad(key+".client_ca", "file "+t.ClientCA+" holds no certificate", "name a PEM file with the authorities' certificates")
	}
}

// admin keeps tokens off the wire: away from loopback the listener speaks TLS.
func (l *loader) admin() {
	a := l.config.Admin
	if !a.TLS.Enabled() && !a.Insecure && !loopbackAddress(a.Listen) {
		l.bad("admin.listen", fmt.Sprintf("%q can be reached from other machines without TLS", a.Listen),
			"listen on 127.0.0.1, set admin.tls.cert and admin.tls.key, or say admin.insecure: true")
	}
	for _, h := range a.Hosts {
		if h == "" || strings.ContainsAny(h, "/@ ") {
			l.bad("admin.hosts", fmt.Sprintf("%q is not a host name", h), "write names such as edihub.example.com, without scheme and path")
		}
	}
}

// loopbackAddress reports whether host:port is reachable from this machine only.
func loopbackAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopbackHost(host)
}

// loopbackHost counts only literal addresses and the name that RFC 6761 §6.3 reserves.
func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (l *loader) postgres() {
	c := l.config
	if !schemaName().MatchString(c.Postgres.Schema) {
		l.bad("postgres.schema", fmt.Sprintf("%q is not a schema name", c.Postgres.Schema), "use small letters, digits and _, at most 63, for example edihub")
	}
	if c.Postgres.URL.Empty() {
		if c.Profile != Embedded {
			l.bad("postgres.url", fmt.Sprintf("profile %s needs a database", c.Profile), "set postgres.url, postgres.url_file or EDIHUB_POSTGRES_URL")
		}
		return
	}
	u, err := url.Parse(c.Postgres.URL.Reveal())
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		l.bad("postgres.url", "the value is not a postgres:// URL", "write postgres://user:password@host:5432/database?sslmode=verify-full")
		return
	}
	if atBehindHost(c.Postgres.URL.Reveal()) {
		l.bad("postgres.url", badEscape, badEscapeRemedy)
		return
	}
	if c.Postgres.Insecure || postgresIsLocal(u) {
		return
	}
	// Below verify-ca anybody on the way can answer as the server.
	if mode := u.Query().Get("sslmode"); mode != "verify-full" && mode != "verify-ca" {
		l.bad("postgres.url", fmt.Sprintf("the server %s is not on loopback and the connection does not verify it", u.Host),
			"add sslmode=verify-full to the URL, or say postgres.insecure: true")
	}
}

func schemaName() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`) }

func postgresIsLocal(u *url.URL) bool {
	hosts := u.Query()["host"]
	if u.Host != "" {
		for h := range strings.SplitSeq(u.Host, ",") {
			hosts = append(hosts, hostOf(h))
		}
	}
	for _, h := range hosts {
		if !strings.HasPrefix(h, "/") && !loopbackHost(h) {
			return false
		}
	}
	return true
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func (l *loader) rabbitmq() {
	c := l.config
	if !queuePrefix().MatchString(c.RabbitMQ.Prefix) {
		l.bad("rabbitmq.prefix", fmt.Sprintf("%q cannot begin a queue name", c.RabbitMQ.Prefix), "use letters, digits, '.', '-' and '_', at most 64, for example \"edi.\"")
	}
	if c.RabbitMQ.URL.Empty() {
		if c.Profile == Full {
			l.bad("rabbitmq.url", "profile full needs a broker", "set rabbitmq.url, rabbitmq.url_file or EDIHUB_RABBITMQ_URL")
		}
		return
	}
	l.amqpURL("rabbitmq.url", c.RabbitMQ.URL)
	for _, u := range c.RabbitMQ.MoreURLs {
		l.amqpURL("rabbitmq.more_urls", u)
	}
}

func queuePrefix() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`) }

func (l *loader) amqpURL(key string, s Secret) {
	u, err := url.Parse(s.Reveal())
	if err != nil || (u.Scheme != "amqp" && u.Scheme != "amqps") || u.Hostname() == "" {
		l.bad(key, "the value is not an amqp:// or amqps:// URL", "write amqps://user:password@host:5671/vhost")
		return
	}
	if atBehindHost(s.Reveal()) {
		l.bad(key, badEscape, badEscapeRemedy)
		return
	}
	if u.Scheme == "amqp" && !l.config.RabbitMQ.Insecure && !loopbackHost(u.Hostname()) {
		l.bad(key, fmt.Sprintf("the broker %s is not on loopback and the connection is not encrypted", u.Host), "use amqps://, or say rabbitmq.insecure: true")
	}
}

func (l *loader) limits() {
	c := l.config
	for _, b := range []struct {
		key   string
		value int64
	}{
		{"limits.in_flight_partner", c.Limits.InFlightPartner},
		{"limits.in_flight_source", c.Limits.InFlightSource},
		{"limits.in_flight_total", c.Limits.InFlightTotal},
	} {
		if b.value < c.AS2.MaxMessage {
			l.bad(b.key, fmt.Sprintf("%s is less than as2.max_message (%s): the largest message could never come in", FormatSize(b.value), FormatSize(c.AS2.MaxMessage)),
				"raise it, or lower as2.max_message")
		}
	}
}

// insecureWarnings names what the operator allowed, so that it is not forgotten.
func (c *Config) insecureWarnings() []Warning {
	var out []Warning
	add := func(key, text, remedy string) {
		w := Warning{Code: "INSECURE", Object: key, Text: text, Remedy: remedy}
		if o := c.origins[key]; o.Kind == FromFile {
			w.File, w.Line = o.Name, o.Line
		}
		out = append(out, w)
	}
	if c.Admin.Insecure && !c.Admin.TLS.Enabled() && !loopbackAddress(c.Admin.Listen) {
		add("admin.insecure", "tokens of the API travel unencrypted", "set admin.tls.cert and admin.tls.key")
	}
	if c.Postgres.Insecure && c.Profile != Embedded {
		add("postgres.insecure", "the database server is not verified", "use sslmode=verify-full")
	}
	if c.RabbitMQ.Insecure && c.Profile == Full {
		add("rabbitmq.insecure", "the broker connection may be unencrypted", "use amqps://")
	}
	return out
}
