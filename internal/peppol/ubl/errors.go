package ubl

import (
	"errors"
	"fmt"

	"github.com/edihub/edihub/internal/edi"
)

// Limits bound what ReadHead and Parse take; zero fields are the defaults.
type Limits struct {
	MaxBytes      int64 // size of the document; default 256 MiB
	MaxDepth      int   // nesting of elements; default 100
	MaxAttributes int   // attributes of one element; default 100
	MaxText       int   // bytes of the text between two tags; default 64 MiB, because attachments are text
	MaxElements   int   // elements of the document; default 5,000,000
	MaxName       int   // bytes of one name; default 256
}

// ErrNotUBL is returned for XML whose root is no UBL 2.1 Invoice or CreditNote.
var ErrNotUBL = errors.New("not a UBL 2.1 Invoice or CreditNote")

// XMLError says where and why a document is not acceptable XML.
type XMLError struct {
	Rule   string // "UBL-XML-…"
	Line   int    // from 1
	Column int    // from 1, in bytes
	Offset int64  // bytes from the start of the file
	Reason string
	Remedy string
	Cause  error // *edi.LimitError where a limit is the reason
}

// Error implements error.
func (e *XMLError) Error() string {
	return fmt.Sprintf("%s: line %d, column %d: %s; %s", e.Rule, e.Line, e.Column, e.Reason, e.Remedy)
}

// Unwrap returns the cause.
func (e *XMLError) Unwrap() error { return e.Cause }

// Finding returns the error as a fatal finding.
func (e *XMLError) Finding() edi.Finding {
	return edi.Finding{
		Rule: e.Rule, Severity: edi.Fatal, Ruleset: "ubl", Position: edi.Position{Line: e.Line, Offset: e.Offset},
		Message: e.Reason + "; " + e.Remedy,
	}
}
