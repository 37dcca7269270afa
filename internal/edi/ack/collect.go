package ack

import (
	"errors"
	"io"

	"github.com/edihub/edihub/internal/edi"
)

// Collect walks through a file and returns each interchange with its groups, messages and
// verdicts. check gives the findings of the tables about a message; nil is none. It holds every
// message's envelope in memory, so it is for files that a person looks at; the pipeline keeps the
// parts in the store. An error is that of the splitter or of check.
func Collect(sp edi.Splitter, check func(*edi.Interchange, *edi.Message, *edi.Group) ([]edi.Finding, error)) ([]*Received, error) {
	var all []*Received
	var open *Received
	for {
		ev, err := sp.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		switch ev.Kind {
		case edi.InterchangeBegin:
			open = &Received{Interchange: *ev.Interchange}
			all = append(all, open)
		case edi.GroupBegin:
		case edi.GroupEnd:
			open.Groups = append(open.Groups, *ev.Group)
		case edi.MessageEnd:
			m := Message{Message: *ev.Message}
			if check != nil {
				found, err := check(ev.Interchange, ev.Message, ev.Group)
				if err != nil {
					return all, err
				}
				m.Findings = append(m.Findings[:len(m.Findings):len(m.Findings)], found...)
			}
			m.Verdict = VerdictOf(m.Findings)
			open.Messages = append(open.Messages, m)
		case edi.InterchangeEnd:
			open.Interchange = *ev.Interchange
		}
	}
}
