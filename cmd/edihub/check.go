package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/store/sqlite"
)

// The verdicts of a check.
const (
	statusOK      = "ok"
	statusWarning = "warning"
	statusProblem = "problem"
)

// checkLine is one result of edihub check.
type checkLine struct {
	Kind   string `json:"kind"` // check
	Status string `json:"status"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// settingLine is one effective setting.
type settingLine struct {
	Kind string `json:"kind"` // setting
	config.Setting
}

type checker struct {
	e     *environment
	c     *config.Config
	lines []checkLine
}

func newCheckCommand(e *environment) *cobra.Command {
	var format string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, certificates and store: what is wrong and how to mend it",
		Long: `Reads the configuration and the partner records as edihub serve would, prints every setting with its
value and where the value comes from (secrets are masked), and looks at the data folder, the store,
the listeners and the certificates. It changes nothing.

Every setting is also a flag and an environment variable: as2.listen is --as2-listen and
EDIHUB_AS2_LISTEN. Exit code 0: nothing is wrong; 1: something is; 2: a file cannot be read or does
not say what it should.`,
		Example: `  edihub check --config edihub.yaml
  edihub check --config edihub.yaml --quiet
  edihub check --format json`,
		Args: cobra.NoArgs,
	}
	f := addConfigFlags(cmd, e)
	formatFlag(cmd, &format)
	cmd.Flags().BoolVar(&quiet, "quiet", false, "results only, without the settings")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		c, err := f.load()
		if err != nil {
			return err
		}
		k := &checker{e: e, c: c}
		perr := k.all(cmd.Context())
		if err := k.print(format, quiet); err != nil {
			return err
		}
		if perr != nil {
			return perr
		}
		for _, l := range k.lines {
			if l.Status == statusProblem {
				return &exitError{code: exitBad}
			}
		}
		return nil
	}
	return cmd
}

func (k *checker) add(status, name, text, remedy string) {
	k.lines = append(k.lines, checkLine{Kind: "check", Status: status, Name: name, Text: text, Remedy: remedy})
}

// all runs every check. Its error is that of partner records that cannot be read.
func (k *checker) all(ctx context.Context) error {
	k.add(statusOK, "configuration", "read", "")
	k.warnings(k.c.Warnings())
	err := k.partners()
	if k.c.Profile == config.Embedded {
		k.dataFolder()
		k.embeddedStore(ctx)
	} else {
		k.add(statusProblem, "profile", "this program carries the embedded profile only, not "+string(k.c.Profile), "set profile: embedded")
		k.service(ctx, "postgres", k.c.Postgres.URL.Reveal(), "5432")
		if k.c.Profile == config.Full {
			k.service(ctx, "rabbitmq", k.c.RabbitMQ.URL.Reveal(), "5672")
		}
	}
	k.listener("as2.listen", k.c.AS2.Listen)
	k.listener("admin.listen", k.c.Admin.Listen)
	k.listenerCertificate("as2.tls", k.c.AS2.TLS)
	k.listenerCertificate("admin.tls", k.c.Admin.TLS)
	if k.c.AS2.PublicURL == "" {
		k.add(statusWarning, "as2.public_url", "not set: partners cannot send asynchronous MDNs", "set the URL by which partners reach the AS2 listener")
	}
	return err
}

func (k *checker) warnings(ws []config.Warning) {
	for _, w := range ws {
		name := w.Code
		if w.Object != "" {
			name += " " + w.Object
		}
		text := w.Text
		if w.File != "" {
			text = fmt.Sprintf("%s (%s:%d)", text, w.File, w.Line)
		}
		k.add(statusWarning, name, text, w.Remedy)
	}
}

func (k *checker) partners() error {
	if k.c.PartnersFile == "" {
		k.add(statusWarning, "partners", "no partners file is set: the hub knows nobody", "set partners_file")
		return nil
	}
	reg, err := partner.Load(k.c.PartnersFile, partner.LoadOptions{Now: k.e.now(), DataDir: k.c.Data})
	if errors.Is(err, fs.ErrNotExist) && k.c.Origins().IsDefault("partners_file") {
		k.add(statusWarning, "partners", k.c.PartnersFile+" is not there: the hub knows nobody", "write it, or name another with partners_file")
		return nil
	}
	if err != nil {
		k.add(statusProblem, "partners", "the partner records cannot be used", "mend the lines named below")
		return &exitError{code: exitUsage, err: err}
	}
	k.add(statusOK, "partners", fmt.Sprintf("%d own, %d connections, %d partners, %d agreements, %d routes",
		len(reg.Owns()), len(reg.Connections()), len(reg.Partners()), len(reg.Agreements()), len(reg.Routes())), "")
	k.warnings(reg.Warnings())
	return nil
}

// dataFolder looks at the folder without making it.
func (k *checker) dataFolder() {
	st, err := os.Stat(k.c.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := filepath.Dir(filepath.Clean(k.c.Data))
		if unix.Access(parent, unix.W_OK) != nil {
			k.add(statusProblem, "data", k.c.Data+" is not there, and "+parent+" may not be written by this user", "make the folder with mode 0700 for the user of the hub")
			return
		}
		k.add(statusOK, "data", k.c.Data+" is not there yet; the hub makes it at its first start", "")
	case err != nil:
		k.add(statusProblem, "data", err.Error(), "let the user of the hub reach the folder")
	case !st.IsDir():
		k.add(statusProblem, "data", k.c.Data+" is not a folder", "name a folder with data")
	case unix.Access(k.c.Data, unix.W_OK|unix.X_OK) != nil:
		k.add(statusProblem, "data", k.c.Data+" may not be written by this user", "give the folder to the user of the hub")
	case st.Mode().Perm()&0o077 != 0:
		k.add(statusWarning, "data", fmt.Sprintf("others may reach %s (mode %04o); the hub takes that away when it starts", k.c.Data, st.Mode().Perm()), "chmod 0700 "+k.c.Data)
	default:
		k.add(statusOK, "data", k.c.Data+" is there and may be written", "")
	}
	k.space()
}

func (k *checker) space() {
	dir := k.c.Data
	if _, err := os.Stat(dir); err != nil {
		dir = filepath.Dir(filepath.Clean(dir))
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return // the folder was looked at above
	}
	free := int64(st.Bavail) * int64(st.Bsize) //nolint:gosec,unconvert // G115: no file system has 8 EiB free; the types differ by system.
	switch {
	case free < k.c.Limits.MinFreeDisk:
		k.add(statusProblem, "disk", fmt.Sprintf("%s free, the hub takes nothing below %s", config.FormatSize(free), config.FormatSize(k.c.Limits.MinFreeDisk)), "make room, or lower limits.min_free_disk")
	default:
		k.add(statusOK, "disk", fmt.Sprintf("%d GiB free", free>>30), "")
	}
}

func (k *checker) embeddedStore(ctx context.Context) {
	if _, err := os.Stat(k.c.Data); err != nil {
		return
	}
	v, err := sqlite.Version(ctx, k.c.Data)
	switch {
	case err != nil:
		k.add(statusProblem, "store", err.Error(), "restore the data folder from a copy, or let the user of the hub read it")
	case v == 0:
		k.add(statusOK, "store", "no database yet; the hub makes it at its first start", "")
	case v > sqlite.SchemaVersion:
		k.add(statusProblem, "store", fmt.Sprintf("schema version %d is newer than this program knows (%d)", v, sqlite.SchemaVersion), "run the newer edihub")
	case v < sqlite.SchemaVersion:
		k.add(statusOK, "store", fmt.Sprintf("schema version %d becomes %d at the next start", v, sqlite.SchemaVersion), "")
	default:
		k.add(statusOK, "store", fmt.Sprintf("schema version %d", v), "")
	}
}

// service looks whether something listens at the host of a URL. It does not log in.
func (k *checker) service(ctx context.Context, name, raw, port string) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		k.add(statusProblem, name, "the URL names no host", "set "+name+".url")
		return
	}
	if u.Port() != "" {
		port = u.Port()
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	d := net.Dialer{Timeout: 3 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		k.add(statusProblem, name, addr+" cannot be reached: "+err.Error(), "start it, or mend "+name+".url")
		return
	}
	_ = conn.Close() // nothing was sent
	k.add(statusOK, name, addr+" answers; the login was not tried", "")
}

func (k *checker) listener(name, addr string) {
	if _, port, err := net.SplitHostPort(addr); err == nil && port == "0" {
		k.add(statusOK, name, "the system chooses the port", "")
		return
	}
	ln, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		k.add(statusWarning, name, addr+" is in use, perhaps by the hub that runs already", "stop what listens there, or choose another address")
	case err != nil:
		k.add(statusProblem, name, err.Error(), "choose an address of this machine and a port that this user may open")
	default:
		_ = ln.Close() // nobody was connected
		k.add(statusOK, name, addr+" is free", "")
	}
}

func (k *checker) listenerCertificate(name string, t config.TLS) {
	if !t.Enabled() {
		return
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		k.add(statusProblem, name, err.Error(), "name the PEM files of one pair")
		return
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		k.add(statusProblem, name, err.Error(), "name a certificate that can be read")
		return
	}
	left := leaf.NotAfter.Sub(k.e.now())
	day := leaf.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case left < 0:
		k.add(statusProblem, name, "the certificate ended on "+day, "renew it")
	case left < 30*24*time.Hour:
		k.add(statusWarning, name, fmt.Sprintf("the certificate ends on %s, in %d days", day, int(left.Hours()/24)), "renew it")
	default:
		k.add(statusOK, name, "the certificate is good until "+day, "")
	}
}

func (k *checker) print(format string, quiet bool) error {
	settings := k.c.Effective()
	if quiet {
		settings = nil
	}
	if format == formatJSON {
		for _, s := range settings {
			if err := k.e.printJSON(settingLine{Kind: "setting", Setting: s}); err != nil {
				return err
			}
		}
		for _, l := range k.lines {
			if err := k.e.printJSON(l); err != nil {
				return err
			}
		}
		return nil
	}
	if len(settings) > 0 {
		t := newTable("SETTING", "VALUE", "ORIGIN")
		for _, s := range settings {
			t.row(s.Key, s.Value, s.Origin)
		}
		if err := t.print(k.e); err != nil {
			return err
		}
		if err := k.e.printf("\n"); err != nil {
			return err
		}
	}
	t := newTable("RESULT", "WHAT", "DETAIL")
	counts := map[string]int{}
	for _, l := range k.lines {
		counts[l.Status]++
		text := l.Text
		if l.Remedy != "" {
			text += "; " + l.Remedy
		}
		t.row(strings.ToUpper(l.Status), l.Name, text)
	}
	if err := t.print(k.e); err != nil {
		return err
	}
	k.e.note("%d good, %d warnings, %d problems", counts[statusOK], counts[statusWarning], counts[statusProblem])
	return nil
}
