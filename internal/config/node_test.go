package config

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestScalarsKeepTheirText(t *testing.T) {
	t.Parallel()
	root, err := ParseYAML("f", []byte("a: 00401\nb: 0088\nc: true\nd: 1.10\ne: \"~\"\nf: ~\ng:\nh: |\n  x\n  y\ni: 2026-01-31\nj: 'it''s'\nk: 0x10\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "00401", "b": "0088", "c": "true", "d": "1.10", "e": "~", "f": "~", "h": "x\ny\n", "i": "2026-01-31", "j": "it's", "k": "0x10"}
	for i, f := range root.Fields {
		if f.Key != "g" && f.Value.Text != want[f.Key] {
			t.Errorf("%s: %q, want %q", f.Key, f.Value.Text, want[f.Key])
		}
		if wantKind := f.Key == "f" || f.Key == "g"; (f.Value.Kind == Null) != wantKind {
			t.Errorf("%s is %v", f.Key, f.Value.Kind)
		}
		if i < 7 && f.Line != i+1 {
			t.Errorf("%s stands on line %d", f.Key, f.Line)
		}
	}
}

func TestRefusedDocuments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ yaml, want string }{
		"flow depth":      {strings.Repeat("[", 300), "nested"},
		"list depth":      {strings.Repeat("- ", 300) + "x", "nested"},
		"block depth":     {deepBlock(250), "nested"},
		"tag":             {"a: !!binary aGVsbG8=", "not used in settings"},
		"merge key":       {"a: &x {b: 1}\nc: {<<: *x}", "not used as a key"},
		"unknown alias":   {"a: *nobody", "anchor"},
		"alias to itself": {"a: &x [*x]", "anchor"},
		"alias bomb":      {aliasBomb(), "aliases"},
		"tab":             {"a:\n\tb: 1", "f:"},
		"duplicate":       {"a: 1\na: 2", "a"},
		"second document": {"a: 1\n---\nb: 2", "second document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseYAML("f", []byte(tc.yaml))
			var ps Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("want Problems, got %v", err)
			}
			mustContain(t, err.Error(), tc.want)
		})
	}
}

func deepBlock(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		p := "*a" + string(rune('0'+i-1))
		b.WriteString("a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.TrimSuffix(strings.Repeat(p+", ", 10), ", ") + "]\n")
	}
	return b.String()
}

func TestObjectReadsAndReports(t *testing.T) {
	t.Parallel()
	read := func(yaml string, f func(o *Object)) Problems {
		root, err := ParseYAML("f", []byte(yaml))
		if err != nil {
			t.Fatal(err)
		}
		r := &Reader{File: "f", BaseDir: "/base"}
		o := r.Object(root, "")
		f(o)
		o.Close()
		return r.Problems
	}
	if ps := read("a: x\nb: 5\nc: [p, q]\nd: one\ne: 2026-01-31\nf: 2026-01-31T10:00:00+02:00\ng: sub/file\nh: {i: true}\n", func(o *Object) {
		if o.String("a", "") != "x" || o.Int("b", 0, 1, 9) != 5 || strings.Join(o.Strings("c", nil), "") != "pq" || strings.Join(o.Strings("d", nil), "") != "one" ||
			!o.Object("h").Bool("i", false) || o.File("g", "") != "/base/sub/file" || o.Line("c") != 3 {
			t.Error("values did not come through")
		}
		if got := o.Day("e", false); !got.Equal(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("start: %v", got)
		}
		if got := o.Day("e", true); !got.Equal(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("end: %v", got)
		}
		if got := o.Day("f", true); !got.Equal(time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)) {
			t.Errorf("time: %v", got)
		}
	}); len(ps) != 0 {
		t.Errorf("%v", ps)
	}
	ps := read("a: {x: 1}\nb: 50\nc: {}\nd: 31.1.2026\ne: [u, u]\nf: 1\n", func(o *Object) {
		o.String("a", "")
		o.Int("b", 0, 1, 9)
		o.Strings("c", nil)
		o.Day("d", false)
		o.Choices("e", nil, "u", "v")
		o.Required("name", "acme")
	})
	var lines []int
	for _, p := range ps.Sorted() {
		lines = append(lines, p.Line)
	}
	if len(ps) != 7 || lines[len(lines)-1] != 6 {
		t.Errorf("%v", ps)
	}
	mustContain(t, ps.Error(), `"name" is missing`, "name: acme", "1 to 9", "a list is expected", "2026-01-31", "twice", `unknown key "f"`)
}

func FuzzParseYAML(f *testing.F) {
	for _, s := range []string{"", "a: 1", "a: [1, {b: c}]", "- &x a\n- *x", "a: |\n  b\n", "{\"a\":\"\\u00e9\"}", "? a\n: b", "%YAML 1.2\n---\na: b", "a: 'x", strings.Repeat("[", 20), "a:\n\t- b", "*", "&", "!", "|", ">", "a: !x", "---\n...\n---", "\"\\x\"", "<<: *a", "- - - -", ": :"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		root, err := ParseYAML("f", data)
		if root == nil && err == nil {
			t.Fatal("neither a document nor an error")
		}
		var ps Problems
		if err != nil && !errors.As(err, &ps) {
			t.Fatalf("the error is %T", err)
		}
	})
}
