package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader collects the problems of one document while its values are read.
type Reader struct {
	File     string
	BaseDir  string // what relative paths in the document are relative to
	Problems Problems
}

// Fail notes a problem at a node; n may be nil.
func (r *Reader) Fail(n *Node, key, text, remedy string) {
	p := Problem{File: r.File, Key: key, Text: text, Remedy: remedy}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	r.Problems = append(r.Problems, p)
}

// Object reads the keys of one Map. Each key that is asked for becomes known; Close reports the
// others. A value of the wrong form is a problem, and the default is returned.
type Object struct {
	r      *Reader
	node   *Node
	path   string
	fields map[string]*Field
	known  []string
}

// Object starts reading n as a Map. A Null is an empty Map.
func (r *Reader) Object(n *Node, path string) *Object {
	o := &Object{r: r, node: n, path: path, fields: make(map[string]*Field)}
	switch {
	case n == nil || n.Kind == Null:
	case n.Kind != Map:
		r.Fail(n, path, "this is "+n.Kind.String(), "a block of keys is expected")
	default:
		for i := range n.Fields {
			o.fields[n.Fields[i].Key] = &n.Fields[i]
		}
	}
	return o
}

// Node returns what the object was made of, nil when it was absent.
func (o *Object) Node() *Node { return o.node }

// Path returns the dotted path of a key of the object.
func (o *Object) Path(key string) string {
	if o.path == "" {
		return key
	}
	return o.path + "." + key
}

// Get returns the value of a key, nil when it is absent or Null.
func (o *Object) Get(key string) *Node {
	n := o.Raw(key)
	if n == nil || n.Kind == Null {
		return nil
	}
	return n
}

// Raw is Get that tells a Null (a "~" that was meant as text) from an absent key.
func (o *Object) Raw(key string) *Node {
	if !slices.Contains(o.known, key) {
		o.known = append(o.known, key)
	}
	if f := o.fields[key]; f != nil {
		return f.Value
	}
	return nil
}

// Has reports whether the key has a value.
func (o *Object) Has(key string) bool { return o.Get(key) != nil }

// Line is where a key stands; where the object begins when the key is absent.
func (o *Object) Line(key string) int {
	if f := o.fields[key]; f != nil {
		return f.Line
	}
	if o.node != nil {
		return o.node.Line
	}
	return 0
}

// Place is where a value stands, for problems that show only once everything is read.
type Place struct {
	File         string
	Line, Column int
	Key          string
}

// Problem makes a problem of a place.
func (p Place) Problem(text, remedy string) Problem {
	return Problem{File: p.File, Line: p.Line, Column: p.Column, Key: p.Key, Text: text, Remedy: remedy}
}

// Place returns where the value of a key stands, or its object when the key is absent or "".
func (o *Object) Place(key string) Place {
	p := Place{File: o.r.File, Key: o.path}
	if key != "" {
		p.Key = o.Path(key)
	}
	switch f := o.fields[key]; {
	case f != nil && f.Value != nil && f.Value.Line > 0:
		p.Line, p.Column = f.Value.Line, f.Value.Column
	case o.node != nil:
		p.Line, p.Column = o.node.Line, o.node.Column
	}
	return p
}

// Fail notes a problem with a key.
func (o *Object) Fail(key, text, remedy string) {
	o.r.Problems = append(o.r.Problems, o.Place(key).Problem(text, remedy))
}

// Close reports every key that nobody asked for, with the nearest name.
func (o *Object) Close() {
	if o.node == nil || o.node.Kind != Map {
		return
	}
	for _, f := range o.node.Fields {
		if slices.Contains(o.known, f.Key) {
			continue
		}
		p := Problem{File: o.r.File, Line: f.Line, Column: f.Column, Key: o.Path(f.Key), Text: fmt.Sprintf("unknown key %q", f.Key)}
		if near := Nearest(f.Key, o.known); near != "" {
			p.Remedy = fmt.Sprintf("did you mean %q?", near)
		} else {
			p.Remedy = "known here: " + strings.Join(o.known, ", ")
		}
		o.r.Problems = append(o.r.Problems, p)
	}
}

// scalar returns the text of a key.
func (o *Object) scalar(key string) (string, bool) {
	n := o.Get(key)
	if n == nil {
		return "", false
	}
	if n.Kind != Scalar {
		o.Fail(key, "this is "+n.Kind.String(), "a single value is expected")
		return "", false
	}
	return n.Text, true
}

// String reads text.
func (o *Object) String(key, def string) string {
	if s, ok := o.scalar(key); ok {
		return s
	}
	return def
}

// Required reads text that may not be absent or empty; example shows what is expected.
func (o *Object) Required(key, example string) string {
	s, ok := o.scalar(key)
	if (!ok && o.Get(key) == nil) || (ok && s == "") {
		o.Fail(key, fmt.Sprintf("%q is missing", key), fmt.Sprintf("add it, for example %s: %s", key, example))
	}
	return s
}

// Choice reads one of the allowed words.
func (o *Object) Choice(key, def string, allowed ...string) string {
	s, ok := o.scalar(key)
	if !ok {
		return def
	}
	if !slices.Contains(allowed, s) {
		o.Fail(key, notAllowed(s), choiceRemedy(s, allowed))
		return def
	}
	return s
}

func notAllowed(s string) string { return fmt.Sprintf("%q is not allowed here", s) }

func choiceRemedy(s string, allowed []string) string {
	remedy := "allowed: " + strings.Join(allowed, ", ")
	if near := Nearest(s, allowed); near != "" {
		remedy = fmt.Sprintf("did you mean %q? %s", near, remedy)
	}
	return remedy
}

// Bool reads true or false.
func (o *Object) Bool(key string, def bool) bool {
	s, ok := o.scalar(key)
	if !ok {
		return def
	}
	b, err := parseBool(s)
	if err != nil {
		o.Fail(key, notAllowed(s), "allowed: true, false")
		return def
	}
	return b
}

// parseBool follows the core schema of YAML 1.2 §10.3.2: yes and no are text.
func parseBool(s string) (bool, error) {
	switch s {
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

// Int reads a whole number in [low, high].
func (o *Object) Int(key string, def, low, high int64) int64 {
	s, ok := o.scalar(key)
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high {
		o.Fail(key, notAllowed(s), fmt.Sprintf("a whole number from %d to %d is expected", low, high))
		return def
	}
	return n
}

// Duration reads "30d", "72h" or "20s" in [low, high].
func (o *Object) Duration(key string, def, low, high time.Duration) time.Duration {
	s, ok := o.scalar(key)
	if !ok {
		return def
	}
	d, err := ParseDuration(s)
	if err != nil || d < low || d > high {
		o.Fail(key, notAllowed(s), fmt.Sprintf("a duration from %s to %s is expected, such as 30s, 15m, 72h or 30d", FormatDuration(low), FormatDuration(high)))
		return def
	}
	return d
}

// Size reads "2GiB" or "10KB" in [low, high] bytes.
func (o *Object) Size(key string, def, low, high int64) int64 {
	s, ok := o.scalar(key)
	if !ok {
		return def
	}
	n, err := ParseSize(s)
	if err != nil || n < low || n > high {
		o.Fail(key, notAllowed(s), fmt.Sprintf("a size from %s to %s is expected, such as 64KiB, 10MB or 2GiB", FormatSize(low), FormatSize(high)))
		return def
	}
	return n
}

// Day reads a date (2026-01-31) or a time in RFC 3339. A date is its first moment in UTC, with
// end set the first moment after it. The zero time stands for an absent key.
func (o *Object) Day(key string, end bool) time.Time {
	s, ok := o.scalar(key)
	if !ok {
		return time.Time{}
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		if end {
			t = t.AddDate(0, 0, 1)
		}
		return t
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		o.Fail(key, notAllowed(s), "a date such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z is expected")
		return time.Time{}
	}
	return t.UTC()
}

// Strings reads a list of texts; a single value is a list of one. An absent key gives def, an
// empty list gives an empty list that is not nil.
func (o *Object) Strings(key string, def []string) []string {
	n := o.Get(key)
	if n == nil {
		return slices.Clone(def)
	}
	if n.Kind == Scalar {
		return []string{n.Text}
	}
	out := []string{}
	for i, item := range o.list(key, n) {
		if item.Kind != Scalar {
			o.r.Fail(item, fmt.Sprintf("%s[%d]", o.Path(key), i), "this is "+item.Kind.String(), "a single value is expected")
			continue
		}
		out = append(out, item.Text)
	}
	return out
}

// Choices reads a list of allowed words; none may come twice.
func (o *Object) Choices(key string, def []string, allowed ...string) []string {
	words := o.Strings(key, def)
	out := make([]string, 0, len(words))
	for _, s := range words {
		switch {
		case !slices.Contains(allowed, s):
			o.Fail(key, notAllowed(s), choiceRemedy(s, allowed))
		case slices.Contains(out, s):
			o.Fail(key, fmt.Sprintf("%q stands here twice", s), "name it once")
		default:
			out = append(out, s)
		}
	}
	return out
}

func (o *Object) list(key string, n *Node) []*Node {
	if n.Kind != List {
		o.Fail(key, "this is "+n.Kind.String(), "a list is expected")
		return nil
	}
	return n.Items
}

// Object reads a nested block; an absent one is empty.
func (o *Object) Object(key string) *Object { return o.r.Object(o.Get(key), o.Path(key)) }

// Objects reads a list of blocks.
func (o *Object) Objects(key string) []*Object {
	n := o.Get(key)
	if n == nil {
		return nil
	}
	var out []*Object
	for i, item := range o.list(key, n) {
		out = append(out, o.r.Object(item, fmt.Sprintf("%s[%d]", o.Path(key), i)))
	}
	return out
}

// File reads a path, relative to the document that names it.
func (o *Object) File(key, def string) string {
	s, ok := o.scalar(key)
	if !ok || s == "" {
		return def
	}
	return resolve(o.r.BaseDir, s)
}

func resolve(base, path string) string {
	if base == "" || path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// Secret reads KEY, or the file that KEY_file names. Its texts never hold the value.
func (o *Object) Secret(key string) Secret {
	fileKey := key + "_file"
	value, inline := o.scalar(key)
	file := o.File(fileKey, "")
	if inline && file != "" {
		o.Fail(fileKey, fmt.Sprintf("%s and %s are both set", key, fileKey), "keep one of them")
		return Secret{}
	}
	if file != "" {
		var err error
		if value, err = readSecret(file); err != nil {
			o.Fail(fileKey, err.Error(), "name a readable file that holds nothing but the secret")
			return Secret{}
		}
	}
	if value == Mask {
		o.Fail(key, "the value is the mask that stands for a secret in a print-out", "write the secret itself, or name a file with "+fileKey)
		return Secret{}
	}
	return NewSecret(value)
}

// maxSecret is the largest secret in bytes.
const maxSecret = 64 << 10

// readSecret reads a file without the line end that editors leave behind.
func readSecret(file string) (string, error) {
	data, err := ReadFile(file, maxSecret)
	if err != nil {
		return "", err
	}
	s := strings.TrimRight(string(data), "\r\n")
	if s == "" {
		return "", fmt.Errorf("file %s is empty", file)
	}
	return s, nil
}

// ReadFile reads a file of at most limit bytes. A pipe is fine, a folder is not.
func ReadFile(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("file %s is larger than %s", file, FormatSize(limit))
	}
	return data, nil
}
