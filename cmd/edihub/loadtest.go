package main

import (
	"os"
	"runtime/pprof"
	"time"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/app/loadtest"
	"github.com/edihub/edihub/internal/config"
)

func newLoadtestCommand(e *environment) *cobra.Command {
	var o loadtest.Options
	var format, size, profile, acks, cpu string
	cmd := &cobra.Command{
		Use:   "loadtest",
		Short: "Start a hub with partners and receivers, and prove the result message by message",
		Long: `Starts a hub of its own in a temporary folder, partners that send to it (over AS2, the operations API or a folder each)
and receivers behind one AS2 listener, all on loopback. It ends by itself and ends 1 when a message was lost, doubled,
altered, out of order, or ended otherwise than it must. This program carries the embedded profile.`,
		Example: "  edihub loadtest --messages 2000 --partners 10 --senders 8\n  edihub loadtest --messages 20000 --security signed+encrypted --duplicates 5 --poison 1 --format json",
		Args:    cobra.NoArgs,
	}
	f := cmd.Flags()
	f.IntVar(&o.Messages, "messages", 1000, "documents to send")
	f.IntVar(&o.Partners, "partners", 10, "partners that send, and as many that receive")
	f.IntVar(&o.Senders, "senders", 8, "posts at the same time")
	f.IntVar(&o.PerInterchange, "per-interchange", 1, "documents of an interchange")
	f.StringVar(&o.Mix, "mix", "invoic=34,850=33,ubl=33", "shares of the kinds of documents")
	f.StringVar(&o.Security, "security", "none", "none, signed or signed+encrypted")
	f.StringVar(&o.Ordering, "ordering", "partner", "none or partner")
	f.StringVar(&size, "size", "10KB", "bytes of a document, about")
	f.Float64Var(&o.Duplicates, "duplicates", 0, "percentage that comes again")
	f.Float64Var(&o.Poison, "poison", 0, "percentage that is broken")
	f.DurationVar(&o.SinkDelay, "sink-delay", 0, "time that each receiver takes")
	f.IntVar(&o.Hang, "hang", 0, "receivers that take messages and never answer")
	f.Float64Var(&o.Rate, "rate", 0, "posts a second; 0: as fast as they go")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "end after this time with the partial result")
	f.StringVar(&profile, "profile", "embedded", "engines; this program carries embedded")
	f.StringVar(&o.Intake, "intake", loadtest.IntakeAS2, "how messages come in: as2, http (the operations API) or directory")
	f.StringVar(&acks, "acks", "none", "acknowledgements; this program sends none")
	f.StringVar(&cpu, "cpuprofile", "", "write a CPU profile to this file")
	formatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		if profile != "embedded" || acks != "none" {
			return fail(exitUsage, "this program carries --profile embedded and --acks none")
		}
		n, err := config.ParseSize(size)
		if err != nil || n < 1 || n > 64<<20 {
			return fail(exitUsage, "--size %q: use a size up to 64MiB, for example 10KB", size)
		}
		o.Size = int(n)
		if err := o.Defaults(); err != nil {
			return fail(exitUsage, "%w", err)
		}
		o.Progress = func(done, all int) {
			if done%200 == 0 || done == all {
				e.progress("posted %d of about %d", done, all)
			}
		}
		if cpu != "" {
			out, err := os.Create(cpu)
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			defer out.Close() //nolint:errcheck // A profile.
			if err := pprof.StartCPUProfile(out); err != nil {
				return fail(exitBad, "%w", err)
			}
			defer pprof.StopCPUProfile()
		}
		res, err := loadtest.Run(cmd.Context(), o)
		if err != nil {
			return fail(exitBad, "%w", err)
		}
		if err := e.loadResult(res, format); err != nil {
			return err
		}
		if !res.Good() {
			return fail(exitBad, "the run found faults")
		}
		return nil
	}
	return cmd
}

func (e *environment) loadResult(r *loadtest.Result, format string) error {
	if format == formatJSON {
		return e.printJSON(r)
	}
	return e.printf("%d messages delivered, %d rejected, %d dead, %d duplicates recognised of %d accepted\n"+
		"lost %d, doubled %d, out of order %d, altered %d, unexpected end %d, overlaps %d\n"+
		"%.1f messages/s over %.1f s; latency p50 %.0f ms, p95 %.0f ms, p99 %.0f ms, max %.0f ms; cpu %.1f s; memory %d MB\n",
		r.Delivered, r.Rejected, r.Dead, r.DuplicatesRecognised, r.Accepted,
		r.Lost, r.Duplicated, r.OutOfOrder, r.Altered, r.UnexpectedEnd, r.Overlaps,
		r.MessagesPerS, r.ElapsedS, r.LatencyMS.P50, r.LatencyMS.P95, r.LatencyMS.P99, r.LatencyMS.Max, r.CPUS, r.RSSMB)
}
