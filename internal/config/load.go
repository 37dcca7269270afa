package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// maxFile is the largest main file in bytes.
const maxFile = 4 << 20

// Load reads the settings: flag before environment before file before default. Relative paths
// in the file, and those of defaults where there is a file, are relative to the file; those of
// environment and flags to the working directory. An empty environment variable counts as not
// set. The error is Problems; a file that cannot be opened wraps the error of the file system.
func Load(o Options) (*Config, Origins, error) {
	l := &loader{config: new(Config), origins: make(Origins)}
	l.fields = l.config.fields()
	if o.File != "" {
		data, err := ReadFile(o.File, maxFile)
		if err != nil {
			return nil, nil, fmt.Errorf("read the configuration: %w", err)
		}
		l.file, l.base = o.File, filepath.Dir(o.File)
		root, err := ParseYAML(o.File, data)
		if err != nil {
			return nil, nil, err
		}
		l.tree(root)
	}
	l.environment(o.Env)
	l.flags(o.Flags)
	for i := range l.fields {
		l.resolve(&l.fields[i])
	}
	l.config.stretchStages(l.origins)
	l.config.stretchLimits(l.origins)
	l.config.origins = l.origins
	if len(l.problems) == 0 {
		l.validate()
	}
	if err := l.problems.Err(); err != nil {
		return nil, nil, err
	}
	l.config.warnings = append(l.config.warnings, l.config.insecureWarnings()...)
	return l.config, l.origins, nil
}

type loader struct {
	config     *Config
	fields     []field
	file, base string
	origins    Origins
	problems   Problems

	fromFile map[string]Field // by key, "_file" keys included
	fromEnv  map[string]string
	fromFlag map[string]string
}

// tree walks the main file along the keys of the settings.
func (l *loader) tree(root *Node) {
	l.fromFile = make(map[string]Field)
	l.block(root, "")
}

// block sorts the keys of one map into settings, further blocks, and unknown ones.
func (l *loader) block(n *Node, path string) {
	if n.Kind == Null {
		return
	}
	if n.Kind != Map {
		l.fail(Origin{Kind: FromFile, Name: l.file, Line: n.Line}, n.Column, strings.TrimSuffix(path, "."), "this is "+n.Kind.String(), "a block of keys is expected")
		return
	}
	names := l.names(path)
	for _, f := range n.Fields {
		key := path + f.Key
		switch {
		case !slices.Contains(names, f.Key):
			remedy := "known here: " + strings.Join(names, ", ")
			if near := Nearest(f.Key, names); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			l.fail(Origin{Kind: FromFile, Name: l.file, Line: f.Line}, f.Column, key, fmt.Sprintf("unknown key %q", f.Key), remedy)
		case l.find(strings.TrimSuffix(key, "_file")) != nil || l.find(key) != nil:
			l.fromFile[key] = f
		default:
			l.block(f.Value, key+".")
		}
	}
}

// names lists what may stand in a block.
func (l *loader) names(path string) []string {
	var out []string
	for i := range l.fields {
		f := &l.fields[i]
		rest, ok := strings.CutPrefix(f.key, path)
		if !ok {
			continue
		}
		name, _, nested := strings.Cut(rest, ".")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
		if !nested && f.secret() {
			out = append(out, name+"_file")
		}
	}
	return out
}

func (l *loader) find(key string) *field {
	for i := range l.fields {
		if l.fields[i].key == key {
			return &l.fields[i]
		}
	}
	return nil
}

// environment takes what begins with EDIHUB_.
func (l *loader) environment(env []string) {
	l.fromEnv = make(map[string]string)
	known := make([]string, 0, len(l.fields))
	for i := range l.fields {
		known = append(known, envName(l.fields[i].key))
		if l.fields[i].secret() {
			known = append(known, envName(l.fields[i].key)+"_FILE")
		}
	}
	var unknown []string
	for _, e := range env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || !strings.HasPrefix(name, "EDIHUB_") || value == "" {
			continue
		}
		if slices.Contains(known, name) {
			l.fromEnv[name] = value
		} else if !otherEnv(name) {
			unknown = append(unknown, name)
		}
	}
	sort.Strings(unknown)
	for _, name := range unknown {
		w := Warning{Code: "ENV_UNKNOWN", Object: name, Text: "no setting has this name"}
		if near := Nearest(name, known); near != "" {
			w.Remedy = fmt.Sprintf("did you mean %s?", near)
		}
		l.config.warnings = append(l.config.warnings, w)
	}
}

// otherEnv names what other commands of the program read from the environment.
func otherEnv(name string) bool {
	switch name {
	case "EDIHUB_CONFIG", "EDIHUB_ADMIN_URL", "EDIHUB_TOKEN", "EDIHUB_TOKEN_FILE":
		return true
	}
	return strings.HasPrefix(name, "EDIHUB_TEST_")
}

// flags takes settings by key or by flag name.
func (l *loader) flags(given map[string]string) {
	l.fromFlag = make(map[string]string)
	byName := make(map[string]string)
	for i := range l.fields {
		f := &l.fields[i]
		byName[f.key], byName[flagName(f.key)] = f.key, f.key
		if f.secret() {
			byName[f.key+"_file"], byName[flagName(f.key)+"-file"] = f.key+"_file", f.key+"_file"
		}
	}
	for name, value := range given {
		key, ok := byName[strings.TrimLeft(name, "-")]
		if !ok {
			names := make([]string, 0, len(byName))
			for n := range byName {
				names = append(names, n)
			}
			sort.Strings(names)
			remedy := ""
			if near := Nearest(name, names); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			l.fail(Origin{Kind: FromFlag, Name: name}, 0, name, "no setting has this name", remedy)
			continue
		}
		l.fromFlag[key] = value
	}
}

// resolve gives a setting its value from the strongest origin that has one.
func (l *loader) resolve(f *field) {
	fileText, hasFile := "", false
	origin := Origin{Kind: FromFlag, Name: "--" + flagName(f.key)}
	text, hasText := l.fromFlag[f.key]
	if !hasText || f.secret() {
		fileText, hasFile = l.fromFlag[f.key+"_file"]
	}
	if !hasText && !hasFile {
		origin = Origin{Kind: FromEnv, Name: envName(f.key)}
		text, hasText = l.fromEnv[envName(f.key)]
		fileText, hasFile = l.fromEnv[envName(f.key)+"_FILE"]
	}
	if !hasText && !hasFile {
		if l.resolveFile(f) {
			return
		}
		origin = Origin{Kind: FromDefault}
		l.store(f, f.def, l.base, origin, 0)
		return
	}
	if hasFile {
		origin.Name += map[OriginKind]string{FromFlag: "-file", FromEnv: "_FILE"}[origin.Kind]
		if hasText {
			l.fail(origin, 0, f.key, "the value and a file with it are both given", "keep one of them")
			return
		}
		l.storeSecretFile(f, fileText, origin, 0)
		return
	}
	l.store(f, text, "", origin, 0)
}

// resolveFile takes the value of the main file and reports whether it has one.
func (l *loader) resolveFile(f *field) bool {
	at, ok := l.fromFile[f.key]
	ok = ok && at.Value.Kind != Null
	named, hasFile := l.fromFile[f.key+"_file"]
	hasFile = hasFile && named.Value.Kind != Null && named.Value.Text != ""
	origin := Origin{Kind: FromFile, Name: l.file, Line: at.Line}
	switch {
	case hasFile && ok && (at.Value.Text != "" || at.Value.Kind != Scalar):
		l.fail(Origin{Kind: FromFile, Name: l.file, Line: named.Line}, named.Column, f.key+"_file", "the value and a file with it are both given", "keep one of them")
	case hasFile:
		origin.Line = named.Line
		if named.Value.Kind != Scalar {
			l.fail(origin, named.Value.Column, f.key+"_file", "this is "+named.Value.Kind.String(), "a single value is expected")
			return true
		}
		l.storeSecretFile(f, resolve(l.base, named.Value.Text), origin, named.Value.Column)
	case !ok:
		return false
	case at.Value.Kind == Scalar:
		l.store(f, at.Value.Text, l.base, origin, at.Value.Column)
	case at.Value.Kind == List && f.list():
		l.storeList(f, at, origin)
	default:
		l.fail(origin, at.Value.Column, f.key, "this is "+at.Value.Kind.String(), "a single value is expected")
	}
	return true
}

func (l *loader) storeList(f *field, at Field, origin Origin) {
	var items []string
	for _, item := range at.Value.Items {
		if item.Kind != Scalar {
			l.fail(Origin{Kind: FromFile, Name: l.file, Line: item.Line}, item.Column, f.key, "this is "+item.Kind.String(), "a single value is expected")
			return
		}
		items = append(items, item.Text)
	}
	if err := f.setList(items); err != nil {
		l.failValue(f, err, origin, at.Value.Column)
		return
	}
	l.origins[f.key] = origin
}

func (l *loader) storeSecretFile(f *field, file string, origin Origin, column int) {
	value, err := readSecret(file)
	if err != nil {
		l.fail(origin, column, f.key+"_file", err.Error(), "name a readable file that holds nothing but the secret")
		return
	}
	l.store(f, value, "", origin, column)
}

func (l *loader) store(f *field, text, base string, origin Origin, column int) {
	if err := f.set(text, base); err != nil {
		l.failValue(f, err, origin, column)
		return
	}
	l.origins[f.key] = origin
}

func (l *loader) failValue(f *field, err error, origin Origin, column int) {
	var ve *valueError
	if errors.As(err, &ve) {
		l.fail(origin, column, f.key, ve.text, ve.remedy)
		return
	}
	l.fail(origin, column, f.key, err.Error(), "")
}

func (l *loader) fail(o Origin, column int, key, text, remedy string) {
	p := Problem{Line: o.Line, Column: column, Key: key, Text: text, Remedy: remedy}
	switch o.Kind {
	case FromFile:
		p.File = o.Name
	case FromEnv:
		p.File = "environment " + o.Name
	case FromFlag:
		p.File = "flag " + o.Name
	case FromDefault:
	}
	l.problems = append(l.problems, p)
}

// OriginKind says where a value came from.
type OriginKind string

// The origins, the weakest first.
const (
	FromDefault OriginKind = "default"
	FromFile    OriginKind = "file"
	FromEnv     OriginKind = "env"
	FromFlag    OriginKind = "flag"
)

// Origin of one value.
type Origin struct {
	Kind OriginKind
	Name string // file, environment variable or flag
	Line int    // in the file
}

// String is "default", "edihub.yaml:12", "env EDIHUB_AS2_LISTEN" or "flag --as2-listen".
func (o Origin) String() string {
	switch o.Kind {
	case FromFile:
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	case FromEnv, FromFlag:
		return string(o.Kind) + " " + o.Name
	case FromDefault:
	}
	return string(FromDefault)
}

// Origins of all settings by key, for example "as2.listen".
type Origins map[string]Origin

// IsDefault reports whether nobody set the key.
func (o Origins) IsDefault(key string) bool { return o[key].Kind == FromDefault || o[key].Kind == "" }

// Setting is one line of Effective.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"` // secrets are masked
	Origin string `json:"origin"`
}

// Effective lists every key with its value and origin, in the order of the documentation.
func (c *Config) Effective() []Setting {
	fields := c.fields()
	out := make([]Setting, len(fields))
	for i := range fields {
		out[i] = Setting{Key: fields[i].key, Value: fields[i].text(), Origin: c.origins[fields[i].key].String()}
	}
	return out
}

// Origins says where each value came from.
func (c *Config) Origins() Origins { return c.origins }

// Warnings lists what works but should be known.
func (c *Config) Warnings() []Warning { return slices.Clone(c.warnings) }
