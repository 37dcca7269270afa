package config

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The limits of a YAML document. They are far beyond any sensible file and keep a broken one
// from taking the process with it.
const (
	maxDocument = 64 << 20  // bytes
	maxNesting  = 200       // levels of flow or compact nesting
	maxNodes    = 5_000_000 // values after aliases are followed
)

// Kind of a Node.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Scalar
	List
	Map
)

// String names the kind for a person.
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Scalar:
		return "a single value"
	case List:
		return "a list"
	case Map:
		return "a block of keys"
	}
	return "unknown"
}

// Node is a value of a YAML or JSON document and where it stands.
type Node struct {
	Kind         Kind
	Text         string // of a Scalar, as written and unquoted; of a Null, "~", "null" or ""
	Items        []*Node
	Fields       []Field
	Line, Column int // from 1
	size         int // values below and with this one, aliases followed
}

// Field is one key of a Map with its value.
type Field struct {
	Key          string
	Line, Column int // of the key
	Value        *Node
}

// ParseYAML reads one YAML 1.2 document (JSON is one, too). Scalars keep their text, so that
// the reader of a value decides what it means: "00401" stays what it is without quotes. The
// error is Problems; its texts never hold values of the document.
func ParseYAML(file string, data []byte) (root *Node, err error) {
	if len(data) > maxDocument {
		return nil, Problems{{File: file, Text: fmt.Sprintf("the document has %d bytes", len(data)), Remedy: fmt.Sprintf("at most %s are read", FormatSize(maxDocument))}}
	}
	if line := tooDeep(data); line > 0 {
		return nil, Problems{{File: file, Line: line, Text: fmt.Sprintf("values are nested more than %d levels deep", maxNesting)}}
	}
	// The parser is a library that meets whatever an operator's editor left behind: a panic in
	// it must not end a running hub at a reload.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, Problems{{File: file, Text: "this is not YAML", Remedy: "check quotes, brackets and indentation"}}
		}
	}()
	// A byte order mark is allowed before a document (YAML 1.2.2 §5.2).
	parsed, perr := parser.ParseBytes(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), 0)
	if perr != nil {
		return nil, syntaxProblem(file, perr)
	}
	c := converter{file: file, anchors: make(map[string]*Node)}
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			c.fail(doc.Body.GetToken(), "a second document begins here", "a file holds one document")
			break
		}
		root = c.node(doc.Body, 0)
	}
	if root == nil {
		root = &Node{Kind: Null, Line: 1, Column: 1, size: 1}
	}
	if len(c.problems) == 0 && root.size > maxNodes {
		c.problems = Problems{{File: file, Text: fmt.Sprintf("the document has more than %d values once its aliases are followed", maxNodes)}}
	}
	return root, c.problems.Err()
}

// tooDeep returns the line on which nesting goes beyond the limit, 0 when it never does. It
// counts brackets without regard to quotes, which no sensible file can bring to the limit.
func tooDeep(data []byte) int {
	line, depth, dashes, start := 1, 0, 0, true
	for _, b := range data {
		switch b {
		case '\n':
			line, dashes, start = line+1, 0, true
		case '[', '{':
			depth, start = depth+1, false
		case ']', '}':
			depth, start = max(depth-1, 0), false
		case '-', '?', ':':
			if start {
				dashes++
			}
		case ' ', '\t':
		default:
			start = false
		}
		if depth > maxNesting || dashes > maxNesting {
			return line
		}
	}
	return 0
}

func syntaxProblem(file string, err error) error {
	p := Problem{File: file, Text: "this is not YAML", Remedy: "check quotes, brackets and indentation"}
	var ye yaml.Error
	if errors.As(err, &ye) {
		p.Text = ye.GetMessage()
		if tk := ye.GetToken(); tk != nil && tk.Position != nil {
			p.Line, p.Column = tk.Position.Line, tk.Position.Column
		}
		var dup *yaml.DuplicateKeyError
		if errors.As(err, &dup) {
			p.Remedy = "name each key once"
		}
	}
	return Problems{p}
}

// converter turns the parser's tree into Nodes.
type converter struct {
	file     string
	anchors  map[string]*Node
	problems Problems
}

func (c *converter) fail(tk *token.Token, text, remedy string) {
	p := Problem{File: c.file, Text: text, Remedy: remedy}
	if tk != nil && tk.Position != nil {
		p.Line, p.Column = tk.Position.Line, tk.Position.Column
	}
	c.problems = append(c.problems, p)
}

func (c *converter) node(n ast.Node, depth int) *Node {
	out := &Node{Kind: Null, size: 1}
	if n == nil {
		return out
	}
	out.Line, out.Column = place(n.GetToken())
	if depth > maxNesting {
		c.fail(n.GetToken(), fmt.Sprintf("values are nested more than %d levels deep", maxNesting), "")
		return out
	}
	switch v := n.(type) {
	case *ast.NullNode:
		out.Text = tokenText(v.Token)
	case *ast.StringNode:
		out.Kind, out.Text = Scalar, v.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = Scalar, v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.Kind, out.Text = Scalar, tokenText(n.GetToken())
	case *ast.MappingNode:
		out.Kind = Map
		c.fields(out, v.Values, depth)
	case *ast.MappingValueNode:
		out.Kind = Map
		c.fields(out, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		out.Kind = List
		for _, item := range v.Values {
			child := c.node(item, depth+1)
			out.Items = append(out.Items, child)
			out.grow(child)
		}
	case *ast.AnchorNode:
		value := c.node(v.Value, depth+1)
		if v.Name != nil {
			c.anchors[tokenText(v.Name.GetToken())] = value
		}
		return value
	case *ast.AliasNode:
		if v.Value != nil {
			if target, ok := c.anchors[tokenText(v.Value.GetToken())]; ok {
				return target
			}
		}
		c.fail(n.GetToken(), "this alias names no anchor before it", "")
	default:
		c.fail(n.GetToken(), fmt.Sprintf("%s is not used in settings", n.Type()), "write the value plainly")
	}
	return out
}

func (c *converter) fields(out *Node, values []*ast.MappingValueNode, depth int) {
	seen := make(map[string]int, len(values))
	for i, v := range values {
		tk := v.Key.GetToken()
		f := Field{}
		f.Line, f.Column = place(tk)
		if i == 0 {
			out.Line, out.Column = f.Line, f.Column
		}
		switch k := v.Key.(type) {
		case *ast.StringNode:
			f.Key = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
			f.Key = tokenText(tk)
		default:
			c.fail(tk, fmt.Sprintf("%s is not used as a key in settings", v.Key.Type()), "write the key plainly")
			continue
		}
		if first, dup := seen[f.Key]; dup {
			c.fail(tk, fmt.Sprintf("key %q stands on line %d already", f.Key, first), "name each key once")
			continue
		}
		seen[f.Key] = f.Line
		f.Value = c.node(v.Value, depth+1)
		if f.Value.Line == 0 {
			f.Value.Line, f.Value.Column = f.Line, f.Column
		}
		out.Fields = append(out.Fields, f)
		out.grow(f.Value)
	}
}

// grow adds a child to the size, which stops growing once it is beyond the limit.
func (n *Node) grow(child *Node) { n.size = min(n.size+child.size, maxNodes+1) }

func place(tk *token.Token) (line, column int) {
	if tk == nil || tk.Position == nil {
		return 0, 0
	}
	return tk.Position.Line, tk.Position.Column
}

func tokenText(tk *token.Token) string {
	if tk == nil {
		return ""
	}
	return tk.Value
}
