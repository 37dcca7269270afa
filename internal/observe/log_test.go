package observe

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

func TestLoggerJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l, err := NewLogger("info", "auto", &b) // a buffer is no terminal
	if err != nil {
		t.Fatal(err)
	}
	l.Debug("not_shown")
	l.Info("accepted", zap.String("partner", "acme"), zap.Duration("took", 1500*time.Millisecond))
	var line map[string]any
	if err := json.Unmarshal(b.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, b.String())
	}
	if line["event"] != "accepted" || line["level"] != "info" || line["partner"] != "acme" || line["took"] != "1.5s" {
		t.Errorf("line %v", line)
	}
	at, ok := line["at"].(string)
	if _, err := time.Parse(time.RFC3339, at); !ok || err != nil || !strings.HasSuffix(at, "Z") {
		t.Errorf("time %q is not RFC 3339 in UTC", at)
	}
}

func TestLoggerText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l, err := NewLogger("error", "text", &b)
	if err != nil {
		t.Fatal(err)
	}
	l.Warn("not_shown")
	l.Error("store_gone")
	if got := b.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "ERROR  store_gone") {
		t.Errorf("text %q", got)
	}
}

func TestLoggerRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"loud", "json"}, {"info", "xml"}} {
		if _, err := NewLogger(c[0], c[1], &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // Nothing was written.
	if IsTerminal(&bytes.Buffer{}) || IsTerminal(null) || IsTerminal(nil) {
		t.Error("what is no terminal was taken for one")
	}
}
