package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/ack"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/x12"
)

// acker makes the acknowledgements of one file.
type acker struct {
	e          *environment
	typ        string
	onReject   string
	loops      bool
	controlRef int64
	groupRef   int64
	lineBreak  string
	file       string
}

func newAckCommand(e *environment) *cobra.Command {
	a := &acker{e: e}
	cmd := &cobra.Command{
		Use:   "ack [--type auto|contrl|997|999|ta1] FILE",
		Short: "Print the acknowledgement that the hub would send for a file",
		Long: `Reads an EDIFACT or X12 file (- is standard input), splits it, checks every message against its tables and
prints the acknowledgement of each interchange, as the hub does with the default agreement. Nothing is
sent or stored; a hub takes its own control numbers instead of those given here.

With --type auto an EDIFACT interchange is answered with CONTRL, and the groups of an X12 interchange with
999 where their version names an implementation guide, else with 997. A TA1 is added when ISA14 asks for it,
and alone when the envelope is refused. CONTRL, TA1, 997 and 999 are never acknowledged.

Exit code 0: everything is accepted, or there is nothing to acknowledge; 1: something is refused, or the file
cannot be acknowledged; 2: wrong use, or the file cannot be opened.`,
		Example: `  edihub ack order.edi
  edihub ack --type 999 --line-break lf claims.x12
  edihub ack --on-reject interchange invoices.edi > contrl.edi
  edihub ack --type ta1 - < order.x12`,
		Args: cobra.ExactArgs(1),
	}
	fl := cmd.Flags()
	fl.StringVar(&a.typ, "type", ack.TypeAuto, "auto, contrl, 997, 999 or ta1")
	fl.StringVar(&a.onReject, "on-reject", string(ack.OnRejectMessage), "what a rejected message takes with it: message, group or interchange")
	fl.BoolVar(&a.loops, "accepted-loops", true, "list accepted sets in a 997 or 999 too")
	fl.Int64Var(&a.controlRef, "control-ref", 1, "own interchange reference of the first answer; the others follow it")
	fl.Int64Var(&a.groupRef, "group-ref", 1, "own group reference of the first 997 or 999; the others follow it")
	fl.StringVar(&a.lineBreak, "line-break", "none", "after each segment: none, lf or crlf")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.checkFlags(); err != nil {
			return err
		}
		a.file = args[0]
		return a.run(cmd.Context())
	}
	return cmd
}

func (a *acker) checkFlags() error {
	choice := func(flag, v string, allowed ...string) error {
		if slices.Contains(allowed, v) {
			return nil
		}
		return fail(exitUsage, "--%s %q is not known; allowed: %v", flag, v, allowed)
	}
	if err := choice("type", a.typ, ack.TypeAuto, ack.KindContrl, ack.Kind997, ack.Kind999, ack.KindTA1); err != nil {
		return err
	}
	if err := choice("on-reject", a.onReject, string(ack.OnRejectMessage), string(ack.OnRejectGroup), string(ack.OnRejectInterchange)); err != nil {
		return err
	}
	if err := choice("line-break", a.lineBreak, "none", "lf", "crlf"); err != nil {
		return err
	}
	a.lineBreak = map[string]string{"none": "", "lf": "\n", "crlf": "\r\n"}[a.lineBreak]
	const most = 999_999_999 // X12.5 ISA13, GS06
	if a.controlRef < 1 || a.controlRef > most || a.groupRef < 1 || a.groupRef > most {
		return fail(exitUsage, "--control-ref and --group-ref are numbers from 1 to %d", most)
	}
	return nil
}

// source opens the file. The returned function closes it.
func (a *acker) source() (io.ReaderAt, int64, func(), error) {
	if a.file == "-" {
		b, err := io.ReadAll(a.e.stdin)
		if err != nil {
			return nil, 0, nil, fail(exitUsage, "read standard input: %w", err)
		}
		return bytes.NewReader(b), int64(len(b)), func() {}, nil
	}
	f, err := os.Open(a.file)
	if err != nil {
		return nil, 0, nil, fail(exitUsage, "%w", err)
	}
	closing := func() { _ = f.Close() } // it was only read
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", a.file)
	}
	if err != nil {
		closing()
		return nil, 0, nil, fail(exitUsage, "%w", err)
	}
	return f, st.Size(), closing, nil
}

func (a *acker) run(ctx context.Context) error {
	src, size, closing, err := a.source()
	if err != nil {
		return err
	}
	defer closing()
	all, err := receive(ctx, src, size)
	if err != nil {
		return fail(exitBad, "%s: %w", a.file, err)
	}
	refused := false
	for i, r := range all {
		bad, err := a.answer(r)
		if err != nil {
			return fail(exitBad, "%s: interchange %d (%s): %w", a.file, i+1, printable(r.Interchange.ControlRef), err)
		}
		refused = refused || bad
	}
	if refused {
		return &exitError{code: exitBad}
	}
	return nil
}

// errUnread says that no reader understands a file.
var errUnread = errors.New("this is neither EDIFACT nor X12: an EDIFACT file begins with UNA or UNB, an X12 file with ISA")

// receive reads, splits and checks a file as the hub does.
func receive(ctx context.Context, src io.ReaderAt, size int64) ([]*ack.Received, error) {
	const sniffed = 512
	head := make([]byte, min(size, sniffed))
	if _, err := src.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	body := io.NewSectionReader(src, 0, size)
	content := func(m *edi.Message) io.Reader { return io.NewSectionReader(src, m.Offset, m.Length) }
	switch {
	case edifact.Sniff(head):
		return ack.Collect(edifact.NewSplitter(body, edifact.Limits{}), func(ic *edi.Interchange, m *edi.Message, _ *edi.Group) ([]edi.Finding, error) {
			return edifact.Check(ctx, content(m), ic.Delimiters, &edifact.CheckOptions{Version: ic.Version, ServiceUNA: ic.ServiceUNA, Base: m.Offset})
		})
	case x12.Sniff(head):
		return ack.Collect(x12.NewSplitter(body, x12.Limits{}), func(ic *edi.Interchange, m *edi.Message, _ *edi.Group) ([]edi.Finding, error) {
			return x12.Check(ctx, content(m), ic.Delimiters, &x12.CheckOptions{Version: m.Version, Base: m.Offset})
		})
	}
	return nil, errUnread
}

// answer prints the acknowledgement of one interchange. It reports whether something is refused.
func (a *acker) answer(r *ack.Received) (refused bool, err error) {
	ic := &r.Interchange
	if len(ic.Header) == 0 {
		return true, errors.New("it has no UNB or ISA, so nobody can be answered")
	}
	if !r.Answerable() {
		a.e.note("interchange %s carries acknowledgements only: those are never acknowledged", printable(ic.ControlRef))
		return false, nil
	}
	on := ack.OnReject(a.onReject)
	j, err := r.Judge(on)
	if err != nil {
		return false, err
	}
	var out []byte
	switch {
	case (ic.Standard == edi.EDIFACT) != (a.typ == ack.TypeAuto && ic.Standard == edi.EDIFACT || a.typ == ack.KindContrl):
		return false, fmt.Errorf("--type %s does not answer an interchange of this standard; leave --type away", a.typ)
	case ic.Standard == edi.EDIFACT:
		out, err = edifact.Contrl(r, &edifact.ContrlOptions{
			ControlRef: strconv.FormatInt(a.controlRef, 10), Time: a.e.now(), OnReject: on, LineBreak: a.lineBreak,
		})
	default:
		out, err = a.x12(r, on)
	}
	if err != nil {
		return false, err
	}
	a.controlRef++
	if !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	s := j.Status()
	return s == ack.Refused || s == ack.Partly, a.e.write(out)
}

func (a *acker) x12(r *ack.Received, on ack.OnReject) ([]byte, error) {
	o := &x12.AckOptions{
		ControlRef: strconv.FormatInt(a.controlRef, 10), GroupRef: a.groupRef, Time: a.e.now(), Type: a.typ,
		TA1: a.typ == ack.KindTA1, Functional: a.typ != ack.KindTA1, AcceptedLoops: a.loops, OnReject: on, LineBreak: a.lineBreak,
	}
	if a.typ == ack.TypeAuto {
		p := &ack.Policy{TA1: ack.OnRequest, X12: ack.Always, OnReject: on}
		due, err := r.DueVerdict(p)
		if err != nil {
			return nil, err
		}
		o.TA1, o.Functional = r.DueEnvelope(p).TA1, due.Functional
		if !o.TA1 && !o.Functional { // An interchange without groups that asks for nothing.
			o.TA1 = true
		}
	}
	out, err := x12.Acknowledge(r, o)
	if errors.Is(err, x12.ErrNotAnswerable) {
		return nil, fmt.Errorf("%w: it has no functional group; use --type ta1", err)
	}
	a.groupRef += int64(x12.AckGroups(r, o))
	return out, err
}
