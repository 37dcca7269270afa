// Package inspect tells what a file is and what its envelopes say, without judging what the
// documents mean.
package inspect

import (
	"bufio"
	"errors"
	"io"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/charset"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/peppol/ubl"
	"github.com/edihub/edihub/internal/x12"
)

// The standards of a report. They are those of edi.Standard and two more.
const (
	StandardCII     = "cii"
	StandardUnknown = "unknown"
)

// Options bound what is taken from a file; zero fields are the readers' defaults.
type Options struct {
	EDIFACT edifact.Limits
	X12     x12.Limits
	UBL     ubl.Limits
}

// Report is what a file says. Its JSON is a promise (see the command line's documentation).
type Report struct {
	File          string        `json:"file"`
	Standard      string        `json:"standard"` // edifact, x12, ubl, cii or unknown
	ValidEnvelope bool          `json:"valid_envelope"`
	Interchanges  []Interchange `json:"interchanges"`
	Segments      int           `json:"segments"`
	Messages      int           `json:"messages"`
	Groups        int           `json:"groups"`
	Findings      []edi.Finding `json:"findings"` // those of no interchange
}

// Interchange is one envelope of a report. Offset and length are bytes of the file.
type Interchange struct {
	Sender            string        `json:"sender"`
	SenderQualifier   string        `json:"sender_qualifier"`
	Receiver          string        `json:"receiver"`
	ReceiverQualifier string        `json:"receiver_qualifier"`
	ControlRef        string        `json:"control_ref"`
	Version           string        `json:"version"`
	Charset           string        `json:"charset"`
	Test              bool          `json:"test"`
	Groups            int           `json:"groups"`
	Segments          int           `json:"segments"`
	Offset            int64         `json:"offset"`
	Length            int64         `json:"length"`
	Messages          []Message     `json:"messages"`
	GroupList         []Group       `json:"group_list,omitempty"`
	Findings          []edi.Finding `json:"findings"` // those of the envelope itself, groups included
}

// Group is a functional group.
type Group struct {
	FunctionID string `json:"function_id"`
	Sender     string `json:"sender"`
	Receiver   string `json:"receiver"`
	ControlRef string `json:"control_ref"`
	Version    string `json:"version"`
	Messages   int    `json:"messages"`
	Offset     int64  `json:"offset"`
	Length     int64  `json:"length"`
}

// Message is one message, transaction set or document.
type Message struct {
	Type     string        `json:"type"`
	Version  string        `json:"version"`
	Ref      string        `json:"ref"`
	Segments int           `json:"segments"`
	Offset   int64         `json:"offset"`
	Length   int64         `json:"length"`
	Group    int           `json:"group,omitempty"`    // position of its group, from 1
	Document *edi.Document `json:"document,omitempty"` // what the business calls it, where it says so
	Findings []edi.Finding `json:"findings,omitempty"`
}

// shownBytes is how much of an unknown file is shown.
const shownBytes = 16

// sniffBytes is how much of a file tells what it is. An interchange may stand behind a text of
// less than that.
const sniffBytes = 4096

// Read reads a whole file. Its error is that of a failed read; all that is wrong with the
// content is in the report.
func Read(name string, r io.Reader, o Options) (*Report, error) {
	rep := &Report{File: name, Standard: StandardUnknown, Interchanges: []Interchange{}, Findings: []edi.Finding{}}
	standard, br, err := open(r)
	if err != nil {
		return nil, err
	}
	rep.Standard = standard
	switch standard {
	case string(edi.EDIFACT):
		err = rep.split(edifact.NewSplitter(br, o.EDIFACT))
	case string(edi.X12):
		err = rep.split(x12.NewSplitter(br, o.X12))
	case string(edi.UBL):
		err = rep.ubl(br, o.UBL)
	case StandardCII:
		err = rep.cii(br, o.UBL)
	default:
		rep.unknown(br)
	}
	return rep, err
}

// open looks at the first bytes.
func open(r io.Reader) (string, *bufio.Reader, error) {
	br := bufio.NewReaderSize(r, sniffBytes)
	prefix, err := br.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, err
	}
	return sniff(prefix), br, nil
}

func sniff(prefix []byte) string {
	switch {
	case edifact.Sniff(prefix):
		return string(edi.EDIFACT)
	case x12.Sniff(prefix):
		return string(edi.X12)
	case ubl.Sniff(prefix):
		return string(edi.UBL)
	case sniffCII(prefix):
		return StandardCII
	case edifact.Find(prefix) >= 0:
		return string(edi.EDIFACT)
	case x12.Find(prefix) >= 0:
		return string(edi.X12)
	}
	return StandardUnknown
}

// split fills the report from the events of a splitter.
func (rep *Report) split(sp edi.Splitter) error {
	var ic *Interchange
	fatal := false
	for {
		ev, err := sp.Next()
		var limit *edi.LimitError
		switch {
		case errors.Is(err, io.EOF):
			rep.ValidEnvelope = !fatal && len(rep.Interchanges) > 0
			return nil
		case errors.As(err, &limit):
			rep.Findings = append(rep.Findings, edi.Finding{
				Rule: "EDI-LIMIT", Severity: edi.Fatal, Position: edi.Position{Offset: limit.Offset},
				Message: err.Error() + "; the rest of the file was not read; send smaller interchanges, or check the delimiters",
			})
			rep.count()
			return nil
		case err != nil:
			return err
		}
		switch ev.Kind {
		case edi.InterchangeBegin:
			rep.Interchanges = append(rep.Interchanges, newInterchange(ev.Interchange))
			ic = &rep.Interchanges[len(rep.Interchanges)-1]
		case edi.GroupBegin:
		case edi.MessageEnd:
			m := ev.Message
			ic.Messages = append(ic.Messages, newMessage(m))
			fatal = fatal || edi.HasFatal(m.Findings)
		case edi.GroupEnd:
			g := ev.Group
			ic.GroupList = append(ic.GroupList, Group{
				FunctionID: g.FunctionID, Sender: g.Sender, Receiver: g.Receiver, ControlRef: g.ControlRef, Version: g.Version,
				Messages: g.Messages, Offset: g.Offset, Length: g.Length,
			})
			ic.Findings = append(ic.Findings, g.Findings...)
			fatal = fatal || edi.HasFatal(g.Findings)
		case edi.InterchangeEnd:
			end := ev.Interchange
			ic.Groups, ic.Segments, ic.Length = end.Groups, end.Segments, end.Length
			ic.Findings = append(ic.Findings, end.Findings...)
			fatal = fatal || edi.HasFatal(end.Findings)
			rep.Groups += end.Groups
			rep.Segments += end.Segments
			rep.Messages += len(ic.Messages)
		}
	}
}

// count sums up what was read before a limit ended it.
func (rep *Report) count() {
	rep.Messages = 0
	for i := range rep.Interchanges {
		rep.Messages += len(rep.Interchanges[i].Messages)
	}
}

func newInterchange(ic *edi.Interchange) Interchange {
	return Interchange{
		Sender: ic.Sender.ID, SenderQualifier: ic.Sender.Qualifier, Receiver: ic.Receiver.ID, ReceiverQualifier: ic.Receiver.Qualifier,
		ControlRef: ic.ControlRef, Version: ic.Version, Charset: ic.Charset, Test: ic.Test, Segments: ic.Segments, Offset: ic.Offset,
		Messages: []Message{}, Findings: []edi.Finding{},
	}
}

func newMessage(m *edi.Message) Message {
	out := Message{Type: m.Type, Version: m.Version, Ref: m.Ref, Segments: m.Segments, Offset: m.Offset, Length: m.Length, Group: m.Group, Findings: m.Findings}
	if m.Document != (edi.Document{}) {
		doc := m.Document
		out.Document = &doc
	}
	return out
}

// unknown says that no reader understands the file.
func (rep *Report) unknown(br *bufio.Reader) {
	f := edi.Finding{Rule: "EDI-UNKNOWN", Severity: edi.Fatal}
	prefix, _ := br.Peek(shownBytes) // an error was seen when the file was opened
	if f.Actual = visible(charset.Bytes.Lenient(prefix)); len(prefix) == 0 {
		f.Message = "the file is empty; send an interchange or an invoice"
	} else {
		f.Message = "the file begins with none of UNA, UNB, ISA, a UBL Invoice or CreditNote, or a CrossIndustryInvoice; check that it is not compressed, encrypted or cut off at its beginning"
	}
	rep.Findings = append(rep.Findings, f)
}

// ubl reads an invoice or credit note.
func (rep *Report) ubl(r io.Reader, l ubl.Limits) error {
	c := &counter{r: r}
	ic, m, err := ubl.ReadHead(c, l)
	var bad *ubl.XMLError
	switch {
	case err == nil:
	case errors.As(err, &bad):
		m.Findings = append(m.Findings, bad.Finding())
	case errors.Is(err, ubl.ErrNotUBL):
		rep.Standard = StandardUnknown
		rep.Findings = append(rep.Findings, edi.Finding{Rule: "UBL-ROOT", Severity: edi.Fatal, Message: err.Error() + "; send an Invoice or CreditNote of UBL 2.1"})
		return nil
	default:
		return err
	}
	ic.Version = ic.Custom
	m.Version = ic.Custom
	m.Ref = m.Document.Number
	rep.document(&ic, &m, c.n)
	return nil
}

// document makes the report of one XML document, which is its own interchange.
func (rep *Report) document(ic *edi.Interchange, m *edi.Message, size int64) {
	one := newInterchange(ic)
	one.Charset, one.Length, one.Offset = "UTF-8", size, 0
	m.Offset, m.Length = 0, size
	one.Messages = []Message{newMessage(m)}
	rep.Interchanges = append(rep.Interchanges, one)
	rep.Messages = 1
	rep.ValidEnvelope = !edi.HasFatal(m.Findings)
}

// counter counts the bytes of a document.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}
