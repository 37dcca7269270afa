package main

import (
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/config"
)

const defaultListLimit = 50

// filterFlags are flags that become query parameters.
type filterFlags struct {
	cmd   *cobra.Command
	texts map[string]*string // by parameter
	flags map[string]string  // flag of a parameter
	limit int
}

func newFilterFlags(cmd *cobra.Command) *filterFlags {
	return &filterFlags{cmd: cmd, texts: map[string]*string{}, flags: map[string]string{}}
}

func (f *filterFlags) add(flag, parameter, usage string) {
	v := new(string)
	f.texts[parameter], f.flags[parameter] = v, flag
	f.cmd.Flags().StringVar(v, flag, "", usage)
}

func (f *filterFlags) times() {
	f.add("since", "since", "not before: a time (2026-01-31T08:00:00Z), a date, or an age (90m, 24h, 7d)")
	f.add("until", "until", "before: a time, a date, or an age")
}

func (f *filterFlags) limits(n int) {
	f.cmd.Flags().IntVar(&f.limit, "limit", n, "at most so many")
}

// given reports whether any filter was named; the limit is none.
func (f *filterFlags) given() bool {
	for _, flag := range f.flags {
		if f.cmd.Flags().Changed(flag) {
			return true
		}
	}
	return false
}

// values returns the filters by parameter.
func (f *filterFlags) values(now time.Time) (url.Values, error) {
	if f.limit < 1 {
		return nil, fail(exitUsage, "--limit must be 1 or more")
	}
	q := url.Values{}
	for name, v := range f.texts {
		if !f.cmd.Flags().Changed(f.flags[name]) {
			continue
		}
		if *v == "" {
			return nil, fail(exitUsage, "--%s is empty; leave it away to see all", f.flags[name])
		}
		if name != "since" && name != "until" {
			q.Set(name, *v)
			continue
		}
		t, err := pointInTime(*v, now)
		if err != nil {
			return nil, fail(exitUsage, "--%s: %w", name, err)
		}
		q.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
	return q, nil
}

// pointInTime reads a time, a date (UTC), or an age.
func pointInTime(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	if d, err := config.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write 2026-01-31T08:00:00Z, 2026-01-31, or an age such as 24h", s)
}

// objectFilters are the filters of messages, interchanges, deliveries and transmissions.
func objectFilters(cmd *cobra.Command) *filterFlags {
	f := newFilterFlags(cmd)
	f.add("control-ref", "control_ref", "control reference of the interchange")
	f.add("message-id", "message_id", "AS2 Message-ID")
	f.add("document-no", "document_no", "number of the document")
	f.add("order-no", "order_no", "number of the purchase order")
	f.add("sender", "sender", "id of the partner who sent it")
	f.add("receiver", "receiver", "id of the partner who gets it")
	f.add("type", "type", "type, for example ORDERS, 850, Invoice")
	f.add("state", "state", "state, for example delivered, rejected, dead")
	f.add("test", "test", "true or false: test interchanges only, or none")
	f.times()
	f.limits(defaultListLimit)
	return f
}

// deadFilters are the filters of the dead letters, the same for every command.
func deadFilters(cmd *cobra.Command, limit int) *filterFlags {
	f := newFilterFlags(cmd)
	f.add("stage", "stage", "stage at which it died: parser, validator, router, sender")
	f.add("partner", "partner", "id of the partner")
	f.add("code", "code", "code, for example NO_ROUTE")
	f.times()
	f.limits(limit)
	return f
}
