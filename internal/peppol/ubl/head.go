package ubl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edihub/edihub/internal/edi"
)

// The namespaces of UBL 2.1.
const (
	invoiceNamespace    = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
	creditNoteNamespace = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2"
	aggregateNamespace  = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
	basicNamespace      = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"
)

// Sniff reports whether a file that begins with prefix looks like a UBL Invoice or CreditNote: the
// first element has one of these names, and the prefix holds its namespace or ends inside the tag.
func Sniff(prefix []byte) bool {
	b := bytes.TrimLeft(bytes.TrimPrefix(prefix, []byte("\xef\xbb\xbf")), " \t\r\n")
	for {
		var end []byte
		switch {
		case bytes.HasPrefix(b, []byte("<!--")):
			end = []byte("-->")
		case bytes.HasPrefix(b, []byte("<?")):
			end = []byte("?>")
		case bytes.HasPrefix(b, []byte("<!DOCTYPE")): // ReadHead says what is wrong with it
			end = []byte(">")
		}
		if end == nil {
			break
		}
		_, after, ok := bytes.Cut(b, end)
		if !ok {
			return false
		}
		b = bytes.TrimLeft(after, " \t\r\n")
	}
	if len(b) < 2 || b[0] != '<' {
		return false
	}
	_, local := split(b[1 : 1+nameLength(b[1:])])
	var namespace string
	switch string(local) {
	case "Invoice":
		namespace = invoiceNamespace
	case "CreditNote":
		namespace = creditNoteNamespace
	default:
		return false
	}
	tag, _, whole := bytes.Cut(b, []byte{'>'})
	return !whole || bytes.Contains(tag, []byte(namespace))
}

// headNode is an element that the head is read from.
type headNode uint8

const (
	otherNode headNode = iota
	rootNode
	orderNode
	supplierNode
	customerNode
	partyNode
	identificationNode
	numberNode
	dateNode
	customNode
	profileNode
	typeNode
	endpointNode
)

// children says which elements are followed under which.
var children = map[headNode]map[string]headNode{
	rootNode: {
		basicNamespace + " ID": numberNode, basicNamespace + " IssueDate": dateNode, basicNamespace + " CustomizationID": customNode,
		basicNamespace + " ProfileID": profileNode, basicNamespace + " InvoiceTypeCode": typeNode, basicNamespace + " CreditNoteTypeCode": typeNode,
		aggregateNamespace + " OrderReference": orderNode, aggregateNamespace + " AccountingSupplierParty": supplierNode,
		aggregateNamespace + " AccountingCustomerParty": customerNode,
	},
	orderNode:          {basicNamespace + " ID": numberNode},
	supplierNode:       {aggregateNamespace + " Party": partyNode},
	customerNode:       {aggregateNamespace + " Party": partyNode},
	partyNode:          {basicNamespace + " EndpointID": endpointNode, aggregateNamespace + " PartyIdentification": identificationNode},
	identificationNode: {basicNamespace + " ID": numberNode},
}

// headReader keeps what was found.
type headReader struct {
	x        *xmlReader
	path     []headNode
	key      []byte
	ic       edi.Interchange
	msg      edi.Message
	supplier edi.Party
	customer edi.Party
	buyerID  string
	scheme   string
}

// ReadHead reads a whole document and returns what its envelope would say: the parties by their
// endpoints, CustomizationID, ProfileID, number, date, type and order. The document is checked to
// its end for well-formedness. It returns ErrNotUBL for another root, *XMLError for XML that is
// not acceptable (with an *edi.LimitError inside where a limit is the reason), and else the error
// of a failed read. With an *XMLError behind a root of UBL the values carry what was read before
// it. What the content lacks is left empty: rules judge that. The sender is the
// supplier; in self-billing (types 389 and 261) it is the customer.
func ReadHead(r io.Reader, l Limits) (edi.Interchange, edi.Message, error) {
	h := &headReader{x: newXMLReader(r, l)}
	for {
		kind, err := h.x.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			if kind == startToken {
				err = h.start()
			} else {
				h.finish()
			}
		}
		if err != nil {
			err = fmt.Errorf("reading UBL: %w", err)
			var bad *XMLError
			if h.msg.Type == "" || !errors.As(err, &bad) {
				return edi.Interchange{}, edi.Message{}, err
			}
			// The root says whose rules apply: what was read until here tells who is to be told.
			ic, msg, rerr := h.result()
			return ic, msg, errors.Join(err, rerr)
		}
	}
	return h.result()
}

// start follows a start tag.
func (h *headReader) start() error {
	x := h.x
	at := otherNode
	if len(h.path) == 0 {
		switch {
		case string(x.local) == "Invoice" && string(x.space) == invoiceNamespace:
		case string(x.local) == "CreditNote" && string(x.space) == creditNoteNamespace:
		default:
			return fmt.Errorf("root element %q in namespace %q: %w", x.local, x.space, ErrNotUBL)
		}
		h.msg.Type = string(x.local)
		at = rootNode
	} else if next, ok := children[h.path[len(h.path)-1]]; ok {
		h.key = append(append(append(h.key[:0], x.space...), ' '), x.local...)
		at = next[string(h.key)]
	}
	h.path = append(h.path, at)
	// An element of text ends the text of the one around it.
	x.collect = at >= numberNode
	x.text = x.text[:0]
	if at == endpointNode {
		h.scheme = ""
		for _, a := range x.attrs {
			if len(a.space) == 0 && string(a.local) == "schemeID" {
				h.scheme = strings.TrimSpace(string(a.value))
			}
		}
	}
	return nil
}

// finish takes the text of an element that ends. The first of several counts.
func (h *headReader) finish() {
	n := len(h.path)
	at := h.path[n-1]
	h.path = h.path[:n-1]
	h.x.collect = false
	if at < numberNode {
		return
	}
	text := strings.TrimSpace(string(h.x.text))
	set := func(field *string) {
		if *field == "" {
			*field = text
		}
	}
	switch parent := h.path[n-2]; at {
	case numberNode:
		switch parent {
		case rootNode:
			set(&h.msg.Document.Number)
		case orderNode:
			set(&h.msg.Document.OrderNo)
		case identificationNode:
			if h.path[1] == customerNode {
				set(&h.buyerID)
			}
		default: // a number of something else
		}
	case dateNode:
		set(&h.msg.Document.Date)
	case customNode:
		set(&h.ic.Custom)
	case profileNode:
		set(&h.ic.Profile)
	case typeNode:
		set(&h.msg.Document.Function)
	case endpointNode:
		party := &h.supplier
		if h.path[1] == customerNode {
			party = &h.customer
		}
		if party.ID == "" {
			*party = edi.Party{Qualifier: h.scheme, ID: text}
		}
	default: // text that nobody asked for
	}
}

// result puts the findings into the shared form.
func (h *headReader) result() (edi.Interchange, edi.Message, error) {
	size := h.x.base + int64(h.x.end)
	h.ic.Standard, h.ic.Version, h.ic.Charset = edi.UBL, "2.1", "UTF-8"
	h.ic.Length, h.ic.Messages, h.ic.TrailerSeen = size, 1, true
	h.ic.Sender, h.ic.Receiver = h.supplier, h.customer
	if f := h.msg.Document.Function; f == "389" || f == "261" {
		h.ic.Sender, h.ic.Receiver = h.customer, h.supplier
	}
	h.msg.Position, h.msg.Version, h.msg.Length = 1, h.ic.Custom, size
	if h.msg.Document.Buyer = h.buyerID; h.buyerID == "" {
		h.msg.Document.Buyer = h.customer.ID
	}
	return h.ic, h.msg, nil
}
