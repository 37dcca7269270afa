// Package guideline reads an operator's guidelines: files that narrow the tables of message types
// or bring tables of their own.
package guideline

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/x12"
)

// maxFile is the largest guideline or table file in bytes.
const maxFile = 16 << 20

// maxPlace is the largest number of an element, component or repetition.
const maxPlace = 1_000_000

// File is a guideline as it was read.
type File struct {
	*tables.Guideline
	Standard edi.Standard
	// Parts are the bytes that it was read from: two guidelines with the same parts are the same.
	Parts [][]byte

	baseDir string
}

// Load reads a guideline and the tables that it names; paths in it are relative to its folder.
// Every place that it speaks of must exist in the tables. The error is config.Problems with every
// problem found, or that of the file system.
func Load(file string) (*File, error) {
	data, err := config.ReadFile(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("read the guideline: %w", err)
	}
	return Parse(file, filepath.Dir(file), data)
}

// Parse is Load for a document at hand. name is what problems call it.
func Parse(name, baseDir string, data []byte) (*File, error) {
	root, err := config.ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	r := &config.Reader{File: name, BaseDir: baseDir}
	f := &File{Guideline: &tables.Guideline{Messages: map[string][]tables.SegmentRule{}}, Parts: [][]byte{data}, baseDir: baseDir}
	f.read(r, r.Object(root, ""))
	if err := r.Problems.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// library is what the program has for a standard.
func (f *File) library() *tables.Library {
	if f.Standard == edi.X12 {
		return x12.Library()
	}
	return edifact.Library()
}

// carried are the directories that the program has for a standard.
func (f *File) carried() []string {
	if f.Standard == edi.X12 {
		return x12.Directories()
	}
	return edifact.Directories()
}

// services are the directories whose segments all others may use.
func (f *File) services() []string {
	if f.Standard == edi.X12 {
		return []string{"004010"}
	}
	return []string{"service.4"}
}

func (f *File) read(r *config.Reader, top *config.Object) {
	f.Name = top.Required("guideline", "acme-orders")
	f.Standard = edi.Standard(top.Choice("standard", "", string(edi.EDIFACT), string(edi.X12)))
	if f.Standard == "" {
		top.Fail("standard", "the standard is missing", "add standard: edifact or standard: x12")
		return
	}
	f.Seal(f.library().Directory)
	f.tables(top)
	f.Directories = top.Strings("directories", nil)
	for _, name := range f.Directories {
		if !f.has(name) {
			top.Fail("directories", fmt.Sprintf("there are no tables of directory %q", name), fmt.Sprintf("name one of %v, or a table file under tables:", f.carried()))
		}
	}
	for _, o := range top.Objects("messages") {
		f.message(o)
	}
	top.Close()
	if len(f.Messages) == 0 && len(f.Tables) == 0 && len(r.Problems) == 0 {
		top.Fail("messages", "the guideline says nothing", "add messages: with a type and its segments")
	}
}

// tables reads the table files.
func (f *File) tables(top *config.Object) {
	for _, name := range top.Strings("tables", nil) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(f.baseDir, name)
		}
		data, err := config.ReadFile(path, maxFile)
		if err != nil {
			top.Fail("tables", fmt.Sprintf("%s cannot be read: %v", name, err), "name a file that exists")
			continue
		}
		f.Parts = append(f.Parts, data)
		d, err := tables.Read(string(data))
		switch {
		case err != nil:
			top.Fail("tables", name+": "+err.Error(), "correct the line")
			continue
		case d.Standard != f.Standard:
			top.Fail("tables", fmt.Sprintf("%s holds tables of %s", name, d.Standard), "keep a guideline for each standard")
			continue
		}
		f.Tables = append(f.Tables, d)
		for _, typ := range d.Messages() {
			if _, err := d.Compile(typ, f.others()...); err != nil {
				top.Fail("tables", name+": "+err.Error(), "define the segment in the file")
			}
		}
	}
}

// others are the services as directories.
func (f *File) others() []*tables.Directory {
	var out []*tables.Directory
	for _, s := range f.services() {
		if d, err := f.library().Directory(s); err == nil {
			out = append(out, d)
		}
	}
	return out
}

// has reports whether there are tables of a directory.
func (f *File) has(name string) bool {
	for _, d := range f.Tables {
		if d.Name == name {
			return true
		}
	}
	_, err := f.library().Directory(name)
	return err == nil
}

// message reads the rules of one message type.
func (f *File) message(o *config.Object) {
	typ := o.Required("type", "ORDERS")
	segments := o.Objects("segments")
	rules := make([]tables.SegmentRule, 0, len(segments))
	where := make([]places, 0, len(segments))
	for _, s := range segments {
		rule, at := segmentRule(s)
		rules, where = append(rules, rule), append(where, at)
	}
	o.Close()
	if _, twice := f.Messages[typ]; twice {
		o.Fail("type", fmt.Sprintf("%s stands twice", typ), "put all its segments into one")
		return
	}
	f.Messages[typ] = rules
	f.fit(o, typ, rules, where)
}

// places are where a rule and its element rules stand.
type places struct {
	segment  *config.Object
	elements []*config.Object
}

func segmentRule(o *config.Object) (tables.SegmentRule, places) {
	rule := tables.SegmentRule{
		Path: o.Required("path", "SG2/NAD"), Forbid: o.Bool("forbid", false), Require: o.Bool("require", false), Max: int(o.Int("max", 0, 0, maxPlace)),
	}
	if rule.Forbid && (rule.Require || rule.Max > 0) {
		o.Fail("forbid", "what is forbidden cannot be required or counted", "leave out one of them")
	}
	at := places{segment: o}
	for _, e := range o.Objects("elements") {
		at.elements = append(at.elements, e)
		x := tables.ElementRule{
			Element: int(e.Int("element", 0, 1, maxPlace)), Component: int(e.Int("component", 0, 1, maxPlace)),
			Forbid: e.Bool("forbid", false), Require: e.Bool("require", false), Codes: e.Strings("codes", nil),
			Min: int(e.Int("min", 0, 0, maxPlace)), Max: int(e.Int("max", 0, 0, maxPlace)),
		}
		if x.Forbid && x.Require {
			e.Fail("forbid", "what is forbidden cannot be required", "leave out one of them")
		}
		rule.Elements = append(rule.Elements, x)
		e.Close()
	}
	o.Close()
	return rule, at
}

// fit compares rules with the tables that they are for.
func (f *File) fit(o *config.Object, typ string, rules []tables.SegmentRule, at []places) {
	names := f.Directories
	if len(names) == 0 {
		for _, d := range f.Tables {
			names = append(names, d.Name)
		}
		names = append(append(names, f.carried()...), f.services()...)
	}
	found := false
	for _, name := range names {
		m := f.Table(name, typ, f.services()...)
		if m == nil {
			var err error
			if m, err = f.library().Message(name, typ, f.services()...); err != nil {
				continue
			}
		}
		found = true
		_, err := m.Narrow(f.Name, rules)
		var bad *tables.RuleError
		if !errors.As(err, &bad) {
			continue
		}
		const remedy = "correct it, or name the directories that the guideline is for under directories:"
		if bad.Element < 0 {
			at[bad.Rule].segment.Fail("path", "in directory "+name+": "+bad.Text, remedy)
		} else {
			at[bad.Rule].elements[bad.Element].Fail("element", "in directory "+name+": "+bad.Text, remedy)
		}
		return
	}
	if !found {
		o.Fail("type", fmt.Sprintf("no table of message type %q is in the directories of this guideline", typ), "correct the type, or bring its table under tables:")
	}
}
