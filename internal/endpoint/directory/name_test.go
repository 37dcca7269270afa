package directory

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
)

var (
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	id  = edi.ID{0x01, 0x95, 0x50, 0x7c, 0x3c, 0x00, 0x70, 0x01, 0x80, 0x02, 3, 4, 5, 6, 7, 8}
)

const idText = "0195507c-3c00-7001-8002-030405060708"

func TestFileName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, pattern string
		d             send.Delivery
		want          string
	}{
		{"the default", "", send.Delivery{Type: "ORDERS", Sender: "ALPHA", ControlRef: "R1"}, "ORDERS_ALPHA_R1_" + idText + ".edi"},
		{"every value", "{type}-{sender}-{receiver}-{control_ref}-{id}", send.Delivery{Type: "850", Sender: "A", Receiver: "B", ControlRef: "000000001"}, "850-A-B-000000001-" + idText},
		{"a resend as new", "{id}.edi", send.Delivery{Generation: 3}, idText + "-g3.edi"},
		{"nothing known", "", send.Delivery{}, "___" + idText + ".edi"},
		{"path in a value", "{sender}.edi", send.Delivery{Sender: "../../etc/passwd"}, "_._.._etc_passwd.edi"},
		{"backslash, colon, blank", "{sender}.edi", send.Delivery{Sender: `C:\x y`}, "C__x_y.edi"},
		{"controls and zero", "{sender}.edi", send.Delivery{Sender: "a\x00b\nc\x7f"}, "a_b_c_.edi"},
		{"not ASCII", "{sender}.edi", send.Delivery{Sender: "Müller\xff"}, "M_ller_.edi"},
		{"trailing blanks do not count", "{sender}.edi", send.Delivery{Sender: "OURCO          "}, "OURCO.edi"},
		{"leading dot", "{sender}.edi", send.Delivery{Sender: ".hidden"}, "_hidden.edi"},
		{"only dots", "{sender}", send.Delivery{Sender: ".."}, "__"},
		{"trailing dot", "{sender}", send.Delivery{Sender: "a."}, "a_"},
		{"empty", "{sender}", send.Delivery{}, "_"},
		{"device", "{sender}.edi", send.Delivery{Sender: "con"}, "_con.edi"},
		{"device with two extensions", "{sender}.a.edi", send.Delivery{Sender: "LPT1"}, "_LPT1.a.edi"},
		{"no device", "{sender}.edi", send.Delivery{Sender: "COMA"}, "COMA.edi"},
		{"braces in a value", "{sender}.edi", send.Delivery{Sender: "{id}"}, "_id_.edi"},
		{"text of the operator", "in:{type}?.edi", send.Delivery{Type: "X"}, "in_X_.edi"},
	} {
		d := tc.d
		d.ID = id
		got, err := FileName(tc.pattern, &d)
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, got, err, tc.want)
		}
	}
}

func TestLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	pattern := "{sender}{receiver}{type}{control_ref}_{id}.edi"
	a, errA := FileName(pattern, &send.Delivery{ID: id, Type: long, Sender: long, Receiver: long, ControlRef: long})
	b, errB := FileName(pattern, &send.Delivery{ID: id, Generation: 1, Type: long, Sender: long, Receiver: long, ControlRef: long})
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if len(a) > maxName || len(b) > maxName || a == b || filepath.Ext(a) != ".edi" {
		t.Errorf("%q (%d bytes) and %q (%d bytes)", a, len(a), b, len(b))
	}
}

// TestPatternsOfRecords: what the partner records take as a pattern makes a file name, and what
// makes none is refused when the records are read, with the line and a remedy.
func TestPatternsOfRecords(t *testing.T) {
	t.Parallel()
	for pattern, good := range map[string]bool{
		DefaultPattern: true, "fixed.edi": true, "{id}": true, "{type}{id}": true, "{sender}.{receiver}": true,
		"": false, "{nope}": false, "{id": false, "id}": false, "{}": false, "a/{id}": false, `a\{id}`: false,
		"{ID}": false, "{{id}}": false, "../{id}": false, ".{id}": false,
	} {
		records := fmt.Sprintf("own:\n  - {id: hub}\nconnections:\n  - {id: files, directory: {out: out, name: '%s'}}\n", pattern)
		_, refused := partner.Parse([]byte(records), t.TempDir(), partner.LoadOptions{})
		if (refused == nil) != good {
			t.Errorf("records with the pattern %q: %v", pattern, refused)
		}
		if refused != nil && (!strings.Contains(refused.Error(), ":4:") || !strings.Contains(refused.Error(), "{control_ref}")) {
			t.Errorf("pattern %q: the error names no line or no remedy: %v", pattern, refused)
		}
		name, err := FileName(pattern, &send.Delivery{ID: id, Type: "ORDERS", Sender: "A", Receiver: "B", ControlRef: "1"})
		if good && (err != nil || name == "") {
			t.Errorf("pattern %q is taken by the records and gives %q, %v", pattern, name, err)
		}
	}
}

// FuzzFileName demands of every name that it is one plain element of a path.
func FuzzFileName(f *testing.F) {
	for _, s := range []string{"ORDERS", "../..", "a\x00b", ".", "NUL", "ÿ", strings.Repeat("ä", 300), "{id}"} {
		f.Add("{sender}_{control_ref}.edi", s, s)
		f.Add(s, "A", "1")
	}
	f.Fuzz(func(t *testing.T, pattern, sender, ref string) {
		d := &send.Delivery{ID: id, Sender: sender, ControlRef: ref, Type: sender, Receiver: ref}
		name, err := FileName(pattern, d)
		if err != nil {
			if !errors.Is(err, ErrPattern) {
				t.Fatalf("error %v", err)
			}
			return
		}
		switch {
		case name == "" || len(name) > maxName+1,
			name != filepath.Base(name), !filepath.IsLocal(name),
			strings.ContainsAny(name, "/\\\x00\r\n"), strings.HasPrefix(name, "."),
			strings.HasSuffix(name, "."), !utf8.ValidString(name):
			t.Fatalf("name %q of pattern %q", name, pattern)
		}
		if again, _ := FileName(pattern, d); again != name {
			t.Fatalf("%q, then %q", name, again)
		}
	})
}
