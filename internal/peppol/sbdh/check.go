package sbdh

import (
	"fmt"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl"
)

// Facts are what a UBL document says that its header has to agree with.
type Facts struct {
	Namespace, Name    string // of the document element
	Customization      string
	Profile            string
	TypeCode           string // BT-3
	Supplier, Customer edi.Party
}

// Version of UBL that document type identifiers end with.
const Version = "2.1"

// The namespaces of UBL 2.1 documents, by the kind of their document element.
var namespaces = map[ubl.Kind]string{
	ubl.Invoice:    "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2",
	ubl.CreditNote: "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2",
}

// Read returns the facts of a UBL invoice or credit note. The error is that of ubl.Parser.
func Read(doc []byte, l ubl.Limits) (*Facts, error) {
	var p ubl.Parser
	t, err := p.Parse(doc, l)
	if err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	kind := t.Kind(ubl.Root)
	f := &Facts{Namespace: namespaces[kind], Name: strings.TrimPrefix(namespaces[kind], "urn:oasis:names:specification:ubl:schema:xsd:")}
	f.Name = strings.TrimSuffix(f.Name, "-2")
	text := func(n ubl.Node) string { return strings.Clone(strings.TrimSpace(t.Text(n))) }
	for c := t.First(ubl.Root); c != ubl.None; c = t.Next(c) {
		switch t.Kind(c) {
		case ubl.CbcCustomizationID:
			f.Customization = text(c)
		case ubl.CbcProfileID:
			f.Profile = text(c)
		case ubl.CbcInvoiceTypeCode, ubl.CbcCreditNoteTypeCode:
			f.TypeCode = text(c)
		case ubl.CacAccountingSupplierParty:
			f.Supplier = endpoint(t, c)
		case ubl.CacAccountingCustomerParty:
			f.Customer = endpoint(t, c)
		}
	}
	return f, nil
}

func endpoint(t *ubl.Tree, n ubl.Node) edi.Party {
	party := t.Child(n, ubl.CacParty)
	if party == ubl.None {
		return edi.Party{}
	}
	id := t.Child(party, ubl.CbcEndpointID)
	if id == ubl.None {
		return edi.Party{}
	}
	scheme, _ := t.Attr(id, ubl.SchemeID)
	return edi.Party{Qualifier: strings.Clone(strings.TrimSpace(scheme)), ID: strings.Clone(strings.TrimSpace(t.Text(id)))}
}

// DocumentID returns the identifier of the document's type: namespace, name, customization and
// version (Peppol Policy for use of identifiers, POLICY 20).
func (f *Facts) DocumentID() string {
	return f.Namespace + "::" + f.Name + "##" + f.Customization + "::" + Version
}

// Parties returns who sends the document and who receives it: supplier to customer, and the other
// way round where the customer writes the invoice (389) or credit note (261).
func (f *Facts) Parties() (sender, receiver edi.Party) {
	if f.TypeCode == "389" || f.TypeCode == "261" {
		return f.Customer, f.Supplier
	}
	return f.Supplier, f.Customer
}

// Header returns the header that belongs to the document.
func (f *Facts) Header(instance, created, country string) *Header {
	h := &Header{
		Standard: f.Namespace, TypeVersion: Version, Type: f.Name, Instance: instance, Created: created, Country: country,
		DocumentID: f.DocumentID(), ProcessID: f.Profile,
	}
	h.Sender, h.Receiver = f.Parties()
	return h
}

// Check returns a finding for each thing that the header says and the document does not.
func (h *Header) Check(f *Facts) []edi.Finding {
	var out []edi.Finding
	differ := func(rule, message, is, want string, equal bool) {
		if !equal {
			out = append(out, edi.Finding{Rule: rule, Severity: edi.Fatal, Ruleset: "sbdh", Message: message, Actual: is, Expected: want})
		}
	}
	party := func(p edi.Party) string { return p.Qualifier + ":" + p.ID }
	same := func(a, b edi.Party) bool { // identifiers of the network do not know capitals
		return a.Qualifier == b.Qualifier && strings.EqualFold(a.ID, b.ID)
	}
	sender, receiver := f.Parties()
	differ("SBDH-SENDER", "The sender of the envelope is not the electronic address of him who sends the document.", party(h.Sender), party(sender), same(h.Sender, sender))
	differ("SBDH-RECEIVER", "The receiver of the envelope is not the electronic address of him who gets the document.", party(h.Receiver), party(receiver), same(h.Receiver, receiver))
	differ("SBDH-DOCUMENT", "The document type of the envelope is not that of the document.", h.DocumentID, f.DocumentID(), h.DocumentID == f.DocumentID())
	differ("SBDH-PROCESS", "The process of the envelope is not the ProfileID of the document.", h.ProcessID, f.Profile, h.ProcessID == f.Profile)
	differ("SBDH-STANDARD", "The standard of the envelope is not the namespace of the document.", h.Standard, f.Namespace, h.Standard == f.Namespace)
	differ("SBDH-TYPE", "The type of the envelope is not the name of the document element.", h.Type, f.Name, h.Type == f.Name)
	return out
}
