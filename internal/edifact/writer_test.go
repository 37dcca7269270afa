package edifact

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan/scantest"
)

var noon = time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC)

func options() EnvelopeOptions {
	return EnvelopeOptions{
		Sender: edi.Party{Qualifier: "14", ID: "4012345000009"}, Receiver: edi.Party{ID: "BETA"}, ControlRef: "77", Time: noon, Messages: 2,
	}
}

func TestWriteEnvelope(t *testing.T) {
	t.Parallel()
	star := edi.Delimiters{Component: ';', Element: '*', Decimal: ',', Release: '!', Segment: '~'}
	four := defaults()
	four.Repetition = '*'
	for _, c := range []struct {
		name            string
		change          func(*EnvelopeOptions)
		header, trailer string
	}{
		{"plain", func(*EnvelopeOptions) {}, "UNB+UNOC:3+4012345000009:14+BETA+260301:1205+77'", "UNZ+2+77'"},
		{"test and acknowledgement", func(o *EnvelopeOptions) { o.Test, o.AckRequest = true, true }, "UNB+UNOC:3+4012345000009:14+BETA+260301:1205+77++++1++1'", "UNZ+2+77'"},
		{"UNA and line breaks", func(o *EnvelopeOptions) { o.UNA, o.LineBreak = true, "\r\n" }, "UNA:+.? '\r\nUNB+UNOC:3+4012345000009:14+BETA+260301:1205+77'\r\n", "UNZ+2+77'\r\n"},
		{"delimiters of the original", func(o *EnvelopeOptions) { o.Original, o.ControlRef = star, "A*!" }, "UNA;*,! ~UNB*UNOC;3*4012345000009;14*BETA*260301;1205*A!*!!~", "UNZ*2*A!*!!~"},
		{"released values", func(o *EnvelopeOptions) { o.Receiver = edi.Party{Qualifier: "ZZ", ID: "B'+:?  "} }, "UNB+UNOC:3+4012345000009:14+B?'?+?:??:ZZ+260301:1205+77'", "UNZ+2+77'"},
		{"syntax 4", func(o *EnvelopeOptions) { o.Syntax, o.Original = "UNOW:4", four }, "UNB+UNOW:4+4012345000009:14+BETA+20260301:1205+77'", "UNZ+2+77'"},
		{"messages of syntax 3 in syntax 4", func(o *EnvelopeOptions) { o.Syntax, o.Original = "UNOC:4", defaults() }, "UNA:+.? 'UNB+UNOC:4+4012345000009:14+BETA+20260301:1205+77'", "UNZ+2+77'"},
		{"level B", func(o *EnvelopeOptions) { o.Syntax, o.Original, o.Sender.ID = "UNOB:1", levelB(), "It's me" }, "UNA\x1f\x1d.  \x1cUNB\x1dUNOB\x1f1\x1dIt's me\x1f14\x1dBETA\x1d260301\x1f1205\x1d77\x1c", "UNZ\x1d2\x1d77\x1c"},
		{"the same delimiters named", func(o *EnvelopeOptions) { o.Original, o.Delimiters = defaults(), defaults() }, "UNB+UNOC:3+4012345000009:14+BETA+260301:1205+77'", "UNZ+2+77'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options()
			c.change(&o)
			header, trailer, err := WriteEnvelope(o)
			if err != nil {
				t.Fatal(err)
			}
			if string(header) != c.header || string(trailer) != c.trailer {
				t.Errorf("got %q and %q, want %q and %q", header, trailer, c.header, c.trailer)
			}
			reread(t, o, header, trailer)
		})
	}
}

// reread puts messages between header and trailer and reads the whole with the splitter.
func reread(t *testing.T, o EnvelopeOptions, header, trailer []byte) {
	t.Helper()
	d := o.Original
	if d == (edi.Delimiters{}) {
		d = defaults()
	}
	messages := strings.NewReplacer("+", string([]byte{d.Element}), ":", string([]byte{d.Component}), "'", string([]byte{d.Segment})).
		Replace("UNH+1+ORDERS:D:96A:UN'UNT+2+1'\r\nUNH+2+ORDERS:D:96A:UN'UNT+2+2'")
	events, err := scantest.Collect(open(strings.NewReader(string(header) + messages + string(trailer))))
	if err != nil {
		t.Fatal(err)
	}
	if rules := scantest.Rules(events); len(rules) > 0 {
		t.Errorf("findings %v", rules)
	}
	ic := events[len(events)-1].Interchange
	if ic.Messages != 2 || ic.Sender != o.Sender || ic.Receiver.ID != strings.TrimRight(o.Receiver.ID, " ") || ic.ControlRef != o.ControlRef || ic.Test != o.Test || ic.AckRequest != o.AckRequest {
		t.Errorf("read again: %+v", ic)
	}
	if got := ic.Delimiters; got.Element != d.Element || got.Segment != d.Segment || got.Release != d.Release || got.Repetition != d.Repetition {
		t.Errorf("delimiters %+v, want %+v", got, d)
	}
}

func TestWriteEnvelopeRefuses(t *testing.T) {
	t.Parallel()
	four := defaults()
	four.Repetition = '*'
	for _, c := range []struct {
		name, field string
		change      func(*EnvelopeOptions)
	}{
		{"no sender", "sender id", func(o *EnvelopeOptions) { o.Sender.ID = " " }},
		{"long sender", "sender id", func(o *EnvelopeOptions) { o.Sender.ID = strings.Repeat("X", 36) }},
		{"long qualifier", "receiver qualifier", func(o *EnvelopeOptions) { o.Receiver.Qualifier = "12345" }},
		{"long reference", "control reference", func(o *EnvelopeOptions) { o.ControlRef = strings.Repeat("1", 15) }},
		{"no reference", "control reference", func(o *EnvelopeOptions) { o.ControlRef = "" }},
		{"beyond ASCII", "sender id", func(o *EnvelopeOptions) { o.Sender.ID = "M\xfcller" }},
		{"line break", "sender id", func(o *EnvelopeOptions) { o.Sender.ID = "A\nB" }},
		{"small letters in UNOA", "receiver id", func(o *EnvelopeOptions) { o.Syntax, o.Receiver.ID = "UNOA:3", "Beta" }},
		{"at sign in UNOB", "receiver id", func(o *EnvelopeOptions) { o.Syntax, o.Receiver.ID = "UNOB:3", "b@c" }},
		{"no release character", "receiver id", func(o *EnvelopeOptions) { o.Original, o.Receiver.ID = defaults(), "A+B"; o.Original.Release = 0 }},
		{"unknown syntax", "syntax", func(o *EnvelopeOptions) { o.Syntax = "UNOC" }},
		{"unknown version", "syntax", func(o *EnvelopeOptions) { o.Syntax = "UNOC:5" }},
		{"wide characters", "syntax", func(o *EnvelopeOptions) { o.Syntax = "UNOY:3" }},
		{"repetition below syntax 4", "syntax", func(o *EnvelopeOptions) { o.Original = four }},
		{"no messages", "number of messages", func(o *EnvelopeOptions) { o.Messages = 0 }},
		{"too many messages", "number of messages", func(o *EnvelopeOptions) { o.Messages = 1_000_000 }},
		{"no time", "time", func(o *EnvelopeOptions) { o.Time = time.Time{} }},
		{"strange line break", "line break", func(o *EnvelopeOptions) { o.LineBreak = "x" }},
		{"delimiter twice", "delimiter", func(o *EnvelopeOptions) { o.Original = defaults(); o.Original.Component = '+' }},
	} {
		o := options()
		c.change(&o)
		_, _, err := WriteEnvelope(o)
		var bad *ValueError
		if !errors.As(err, &bad) || bad.Field != c.field {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	o := options()
	o.Delimiters.Element = '*'
	_, _, err := WriteEnvelope(o)
	var bad *DelimiterError
	if !errors.As(err, &bad) || !errors.Is(err, ErrDelimiters) || bad.Delimiter != "element" || bad.Wanted != '*' || bad.Original != '+' {
		t.Errorf("another delimiter: got %v", err)
	}
}
