// Package sbdh reads and writes the envelope of the Peppol network: a UBL document in a Standard
// Business Document with a header that names sender, receiver, document type and process. It
// also says where the header and the document in it disagree.
package sbdh

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/beevik/etree"

	"github.com/edihub/edihub/internal/edi"
)

// Namespace of the Standard Business Document.
const Namespace = "http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"

// The identifier schemes of the Peppol network (Peppol Policy for use of identifiers).
const (
	ParticipantScheme = "iso6523-actorid-upis"
	DocumentScheme    = "busdox-docid-qns"
	ProcessScheme     = "cenbii-procid-ubl"
)

// maxHeader is the longest header that is read. Real ones have two kilobytes.
const maxHeader = 64 << 10

// Header is what a Standard Business Document Header says.
type Header struct {
	Sender, Receiver edi.Party // scheme and identifier, as "0088" and "7300010000001"
	Standard         string    // namespace of the document
	TypeVersion      string    // of the document's standard: "2.1"
	Type             string    // name of the document element
	Instance         string    // identifier of the envelope
	Created          string    // as it stands; RFC 3339
	DocumentID       string    // without its scheme
	ProcessID        string    // without its scheme
	Country          string    // of the sender's end user, "" where it is not told
}

// ErrNone is returned for what is no Standard Business Document.
var ErrNone = errors.New("not a Standard Business Document")

// Error says why an envelope cannot be read.
type Error struct {
	Offset int64 // bytes from the start
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("SBDH at byte %d: %s", e.Offset, e.Reason) }

// Finding returns the error as a fatal finding.
func (e *Error) Finding() edi.Finding {
	return edi.Finding{Rule: "SBDH-FORM", Severity: edi.Fatal, Ruleset: "sbdh", Position: edi.Position{Offset: e.Offset}, Message: e.Reason}
}

// element is a part of the header with what rules and writers need of it.
type element struct {
	name xml.Name
	text strings.Builder
	attr string // Authority
}

// Unwrap reads the header and returns the document in the envelope: payload is doc[from:to],
// byte for byte as it arrived. It returns ErrNone or an *Error. What the payload is, and whether
// it is well-formed, is not looked at.
func Unwrap(doc []byte) (h *Header, from, to int, err error) {
	d := xml.NewDecoder(bytes.NewReader(doc))
	h = &Header{}
	var path []*element
	scope := map[string]string{}
	seen := false
	for {
		at := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			if len(path) == 0 || errors.Is(err, io.EOF) && !seen {
				return nil, 0, 0, ErrNone
			}
			return nil, 0, 0, &Error{at, "the envelope is no XML or ends too early; send it whole"}
		}
		if len(path) > 0 && at > maxHeader && !seen {
			return nil, 0, 0, &Error{at, fmt.Sprintf("the header is longer than %d bytes", maxHeader)}
		}
		switch token := token.(type) {
		case xml.Directive:
			if len(path) == 0 {
				return nil, 0, 0, ErrNone
			}
		case xml.StartElement:
			if len(path) == 0 && (token.Name.Space != Namespace || token.Name.Local != "StandardBusinessDocument") {
				return nil, 0, 0, ErrNone
			}
			if len(path) == 1 && seen {
				to, err := payloadEnd(doc, int(at))
				return h, int(at), to, err
			}
			e := &element{name: token.Name}
			for _, a := range token.Attr {
				if a.Name.Local == "Authority" {
					e.attr = a.Value
				}
			}
			if len(path) == 1 && (token.Name.Space != Namespace || token.Name.Local != "StandardBusinessDocumentHeader") {
				return nil, 0, 0, &Error{at, "the envelope begins with something else than its header"}
			}
			if token.Name.Local == "Scope" {
				clear(scope)
			}
			path = append(path, e)
		case xml.CharData:
			if len(path) > 0 {
				path[len(path)-1].text.Write(token)
			}
		case xml.EndElement:
			e := path[len(path)-1]
			path = path[:len(path)-1]
			if len(path) == 0 {
				return nil, 0, 0, &Error{at, "the envelope is empty; put the document behind the header"}
			}
			if len(path) == 1 {
				seen = true
				continue
			}
			h.take(path, e, scope)
		}
	}
}

// payloadEnd returns the place behind the document that begins at from: the end tag of the
// envelope must be the last thing.
func payloadEnd(doc []byte, from int) (int, error) {
	end := len(bytes.TrimRight(doc, " \t\r\n"))
	at := bytes.LastIndex(doc[from:end], []byte("</"))
	if at < 0 {
		return 0, &Error{int64(end), "the envelope ends too early; send it whole"}
	}
	name := strings.TrimRight(string(doc[from+at+2:end]), ">")
	if name = strings.TrimSpace(name); name != "StandardBusinessDocument" && !strings.HasSuffix(name, ":StandardBusinessDocument") {
		return 0, &Error{int64(from + at), "something stands behind the envelope, or its end is missing"}
	}
	to := len(bytes.TrimRight(doc[:from+at], " \t\r\n"))
	if to <= from {
		return 0, &Error{int64(from), "the envelope is empty; put the document behind the header"}
	}
	return to, nil
}

// take keeps what a closed element of the header says.
func (h *Header) take(path []*element, e *element, scope map[string]string) {
	text := strings.TrimSpace(e.text.String())
	up := path[len(path)-1].name.Local
	switch up + "/" + e.name.Local {
	case "Sender/Identifier":
		h.Sender = participant(text)
	case "Receiver/Identifier":
		h.Receiver = participant(text)
	case "DocumentIdentification/Standard":
		h.Standard = text
	case "DocumentIdentification/TypeVersion":
		h.TypeVersion = text
	case "DocumentIdentification/InstanceIdentifier":
		h.Instance = text
	case "DocumentIdentification/Type":
		h.Type = text
	case "DocumentIdentification/CreationDateAndTime":
		h.Created = text
	case "Scope/Type", "Scope/InstanceIdentifier":
		scope[e.name.Local] = text
	case "BusinessScope/Scope":
		switch scope["Type"] {
		case "DOCUMENTID":
			h.DocumentID = scope["InstanceIdentifier"]
		case "PROCESSID":
			h.ProcessID = scope["InstanceIdentifier"]
		case "COUNTRY_C1":
			h.Country = scope["InstanceIdentifier"]
		}
	}
}

// participant takes an identifier of the network apart: "0088:7300010000001".
func participant(s string) edi.Party {
	scheme, id, ok := strings.Cut(s, ":")
	if !ok {
		return edi.Party{ID: s}
	}
	return edi.Party{Qualifier: scheme, ID: id}
}

// ErrIncomplete is returned by Wrap for a header that lacks what the network asks for.
var ErrIncomplete = errors.New("the header lacks sender, receiver, document type, process or instance")

// Wrap writes the envelope around a document, whose bytes are kept but for an XML declaration and
// byte order mark at its beginning: those can only stand at the beginning of a file.
func (h *Header) Wrap(payload []byte) ([]byte, error) {
	if h.Sender.ID == "" || h.Receiver.ID == "" || h.DocumentID == "" || h.ProcessID == "" || h.Instance == "" || h.Standard == "" || h.Type == "" {
		return nil, ErrIncomplete
	}
	if _, err := time.Parse(time.RFC3339, h.Created); err != nil {
		return nil, fmt.Errorf("time of creation: %w", err)
	}
	doc := etree.NewDocument()
	doc.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	root := doc.CreateElement("StandardBusinessDocument")
	root.CreateAttr("xmlns", Namespace)
	head := root.CreateElement("StandardBusinessDocumentHeader")
	head.CreateElement("HeaderVersion").SetText("1.0")
	for _, p := range []struct {
		role string
		edi.Party
	}{{"Sender", h.Sender}, {"Receiver", h.Receiver}} {
		id := head.CreateElement(p.role).CreateElement("Identifier")
		id.CreateAttr("Authority", ParticipantScheme)
		id.SetText(p.Qualifier + ":" + p.ID)
	}
	ident := head.CreateElement("DocumentIdentification")
	for _, x := range [][2]string{{"Standard", h.Standard}, {"TypeVersion", h.TypeVersion}, {"InstanceIdentifier", h.Instance}, {"Type", h.Type}, {"CreationDateAndTime", h.Created}} {
		ident.CreateElement(x[0]).SetText(x[1])
	}
	business := head.CreateElement("BusinessScope")
	for _, x := range [][3]string{{"DOCUMENTID", h.DocumentID, DocumentScheme}, {"PROCESSID", h.ProcessID, ProcessScheme}, {"COUNTRY_C1", h.Country, ""}} {
		if x[1] == "" {
			continue
		}
		scope := business.CreateElement("Scope")
		scope.CreateElement("Type").SetText(x[0])
		scope.CreateElement("InstanceIdentifier").SetText(x[1])
		if x[2] != "" {
			scope.CreateElement("Identifier").SetText(x[2])
		}
	}
	doc.Indent(2)
	around, err := doc.WriteToBytes()
	if err != nil {
		return nil, fmt.Errorf("write header: %w", err)
	}
	end := bytes.LastIndex(around, []byte("</"))
	out := make([]byte, 0, len(around)+len(payload)+1)
	out = append(out, around[:end]...)
	out = append(out, bare(payload)...)
	out = append(out, '\n')
	return append(out, around[end:]...), nil
}

// bare cuts byte order mark, XML declaration and white space around a document.
func bare(doc []byte) []byte {
	doc = bytes.TrimSpace(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")))
	if bytes.HasPrefix(doc, []byte("<?xml ")) {
		if _, after, ok := bytes.Cut(doc, []byte("?>")); ok {
			doc = bytes.TrimSpace(after)
		}
	}
	return doc
}
