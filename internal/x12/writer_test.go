package x12

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan/scantest"
)

var noon = time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC)

func options() EnvelopeOptions {
	return EnvelopeOptions{
		Sender: edi.Party{Qualifier: "ZZ", ID: "ALPHA"}, Receiver: edi.Party{Qualifier: "14", ID: "BETA"}, ControlRef: "42", Time: noon,
		Groups: []GroupOptions{{FunctionID: "PO", ControlRef: "7", Version: "004010", Sets: 2}},
	}
}

func TestWriteEnvelope(t *testing.T) {
	t.Parallel()
	bar := edi.Delimiters{Element: '|', Component: '^', Segment: '!', Repetition: '\\'}
	for _, c := range []struct {
		name   string
		change func(*EnvelopeOptions)
		want   string // header and first GS
	}{
		{"plain", func(*EnvelopeOptions) {}, "ISA*00*          *00*          *ZZ*ALPHA          *14*BETA           *260301*1205*U*00401*000000042*0*P*>~GS*PO*ALPHA*BETA*20260301*1205*7*X*004010~"},
		{"test, acknowledgement, line breaks", func(o *EnvelopeOptions) { o.Test, o.AckRequest, o.LineBreak = true, true, "\n" }, "ISA*00*          *00*          *ZZ*ALPHA          *14*BETA           *260301*1205*U*00401*000000042*1*T*>~\nGS*PO*ALPHA*BETA*20260301*1205*7*X*004010~\n"},
		{"delimiters of the original", func(o *EnvelopeOptions) { o.Original, o.Version = bar, "00501" }, "ISA|00|          |00|          |ZZ|ALPHA          |14|BETA           |260301|1205|\\|00501|000000042|0|P|^!GS|PO|ALPHA|BETA|20260301|1205|7|X|004010!"},
		{"line feed as terminator", func(o *EnvelopeOptions) { o.Original = edi.Delimiters{Element: '*', Component: '>', Segment: '\n'} }, "ISA*00*          *00*          *ZZ*ALPHA          *14*BETA           *260301*1205*U*00401*000000042*0*P*>\nGS*PO*ALPHA*BETA*20260301*1205*7*X*004010\n"},
		{"two groups of their own parties", func(o *EnvelopeOptions) {
			o.Groups = append(o.Groups, GroupOptions{FunctionID: "IN", Sender: "S1", Receiver: "R1", ControlRef: "8", Version: "003040", Sets: 1})
		}, "ISA*00*          *00*          *ZZ*ALPHA          *14*BETA           *260301*1205*U*00401*000000042*0*P*>~GS*PO*ALPHA*BETA*20260301*1205*7*X*004010~"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options()
			c.change(&o)
			env, err := WriteEnvelope(o)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(env.Header) + string(env.Groups[0].Open); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			reread(t, o, env)
		})
	}
}

// reread puts sets into the envelope and reads the whole with the splitter.
func reread(t *testing.T, o EnvelopeOptions, env Envelope) {
	t.Helper()
	d := o.Original
	if d == (edi.Delimiters{}) {
		d = edi.Delimiters{Element: '*', Component: '>', Segment: '~'}
	}
	sets := 0
	var out bytes.Buffer
	out.Write(env.Header)
	for i, g := range o.Groups {
		out.Write(env.Groups[i].Open)
		for range g.Sets {
			out.WriteString(strings.NewReplacer("*", string([]byte{d.Element}), "~", string([]byte{d.Segment})).Replace(fmt.Sprintf("ST*850*%04d~SE*2*%04[1]d~\r\n", sets)))
			sets++
		}
		out.Write(env.Groups[i].Close)
	}
	out.Write(env.Trailer)
	events, err := scantest.Collect(open(&out))
	if err != nil {
		t.Fatal(err)
	}
	if rules := scantest.Rules(events); len(rules) > 0 {
		t.Errorf("findings %v", rules)
	}
	ic := events[len(events)-1].Interchange
	if ic.Messages != sets || ic.Groups != len(o.Groups) || ic.Sender != o.Sender || ic.Receiver != o.Receiver || ic.ControlRef != "000000042" || ic.Test != o.Test || ic.AckRequest != o.AckRequest || ic.Delimiters != d {
		t.Errorf("read again: %+v", ic)
	}
	group := 0
	for _, ev := range events {
		if ev.Kind == edi.GroupBegin {
			if want := o.Groups[group]; ev.Group.FunctionID != want.FunctionID || ev.Group.Version != want.Version || ev.Group.ControlRef != want.ControlRef {
				t.Errorf("group %+v, want %+v", ev.Group, want)
			}
			group++
		}
	}
}

func TestWriteEnvelopeRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, field string
		change      func(*EnvelopeOptions)
	}{
		{"no qualifier", "ISA05 sender qualifier", func(o *EnvelopeOptions) { o.Sender.Qualifier = "" }},
		{"long receiver", "ISA08 receiver id", func(o *EnvelopeOptions) { o.Receiver.ID = strings.Repeat("X", 16) }},
		{"no receiver", "ISA08 receiver id", func(o *EnvelopeOptions) { o.Receiver.ID = "" }},
		{"delimiter in a value", "ISA06 sender id", func(o *EnvelopeOptions) { o.Sender.ID = "A*B" }},
		{"beyond ASCII", "ISA06 sender id", func(o *EnvelopeOptions) { o.Sender.ID = "M\xfcller" }},
		{"reference with letters", "ISA13 control reference", func(o *EnvelopeOptions) { o.ControlRef = "A1" }},
		{"long reference", "ISA13 control reference", func(o *EnvelopeOptions) { o.ControlRef = "1234567890" }},
		{"version", "ISA12 version", func(o *EnvelopeOptions) { o.Version = "4010" }},
		{"repetition in an old version", "ISA12 version", func(o *EnvelopeOptions) {
			o.Original = edi.Delimiters{Element: '*', Component: '>', Segment: '~', Repetition: '^'}
		}},
		{"release character", "release character", func(o *EnvelopeOptions) {
			o.Original = edi.Delimiters{Element: '*', Component: '>', Segment: '~', Release: '\\'}
		}},
		{"delimiter twice", "delimiter", func(o *EnvelopeOptions) { o.Original = edi.Delimiters{Element: '*', Component: '*', Segment: '~'} }},
		{"no groups", "number of groups", func(o *EnvelopeOptions) { o.Groups = nil }},
		{"no sets", "number of sets", func(o *EnvelopeOptions) { o.Groups[0].Sets = 0 }},
		{"functional identifier", "GS01 functional identifier", func(o *EnvelopeOptions) { o.Groups[0].FunctionID = "P" }},
		{"group reference", "GS06 control reference", func(o *EnvelopeOptions) { o.Groups[0].ControlRef = "" }},
		{"group version", "GS08 version", func(o *EnvelopeOptions) { o.Groups[0].Version = strings.Repeat("0", 13) }},
		{"group sender", "GS02 sender", func(o *EnvelopeOptions) { o.Groups[0].Sender = "X" }},
		{"no time", "time", func(o *EnvelopeOptions) { o.Time = time.Time{} }},
		{"strange line break", "line break", func(o *EnvelopeOptions) { o.LineBreak = "x" }},
	} {
		o := options()
		c.change(&o)
		_, err := WriteEnvelope(o)
		var bad *ValueError
		if !errors.As(err, &bad) || bad.Field != c.field {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	o := options()
	o.Delimiters.Segment = '\''
	_, err := WriteEnvelope(o)
	var bad *DelimiterError
	if !errors.As(err, &bad) || !errors.Is(err, ErrDelimiters) || bad.Delimiter != "segment" || bad.Original != '~' {
		t.Errorf("another delimiter: got %v", err)
	}
}
