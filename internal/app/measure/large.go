package measure

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/edihub/edihub/internal/store"
)

// Fault of a large interchange.
type Fault string

// The faults of Large.
const (
	Good     Fault = "good"
	WrongUNZ Fault = "wrong UNZ count"
	WrongIEA Fault = "wrong IEA count"
)

// LargeOptions are one large interchange.
type LargeOptions struct {
	Binary   string
	Messages int
	Size     int // bytes of a message, about
	Fault    Fault
	Split    string // with Good: messages (a delivery each) or preserve (one delivery)
}

// LargeResult is what became of it.
type LargeResult struct {
	Bytes      int            // of the file
	States     map[string]int // messages by their state at the end
	Deliveries int            // deliveries of whatever state
	Arrived    int            // messages at the receiver, each counted once
	Strange    int            // arrivals that nobody sent, or that came again
	Peak       int64          // resident bytes of the hub
	Took       time.Duration  // from the post to the last end
}

// Large posts one interchange of many messages, signed and encrypted, to the real program, and
// tells what became of it.
func Large(ctx context.Context, o LargeOptions) (*LargeResult, error) {
	split, envelope := "messages", "new"
	if o.Split == "preserve" {
		split, envelope = "preserve", "keep"
	}
	r, err := newRig(ctx, rigOptions{secured: true, split: split, envelope: envelope})
	if err != nil {
		return nil, err
	}
	defer r.close()
	c, err := startChild(ctx, o.Binary, filepath.Join(r.dir, "data"), nil, "--partners-file", r.records())
	if err != nil {
		return nil, err
	}
	res, err := r.large(ctx, c, &o)
	if err != nil {
		_ = c.kill() // the first error says why
		return nil, err
	}
	return res, c.stop()
}

func (r *rig) large(ctx context.Context, c *child, o *LargeOptions) (*LargeResult, error) {
	media, payload := "application/EDIFACT", edifactFile(1, o.Messages, o.Size, o.Fault)
	if o.Fault == WrongIEA {
		media, payload = "application/EDI-X12", x12File(1, o.Messages, o.Size, o.Fault)
	}
	res := &LargeResult{Bytes: len(payload)}
	began := time.Now()
	if err := r.post(ctx, c.as2, media, payload); err != nil {
		return nil, err
	}
	seen := make([]bool, o.Messages+1)
	if o.Fault == Good {
		for res.Arrived < o.Messages {
			select {
			case m := <-r.receiver.arrived:
				for _, n := range numbersIn(m.Payload) {
					if n < 1 || n > o.Messages || seen[n] {
						res.Strange++
						continue
					}
					seen[n] = true
					res.Arrived++
				}
			case <-ctx.Done():
				return nil, fmt.Errorf("%d of %d messages arrived: %w", res.Arrived, o.Messages, context.Cause(ctx))
			}
		}
	}
	if err := r.ended(ctx, c); err != nil {
		return nil, err
	}
	res.Took = time.Since(began)
	var err error
	if res.Peak, err = c.peak(); err != nil { // before the lists below are asked for
		return nil, err
	}
	if res.States, err = c.states(ctx, r.client, "/v1/messages"); err != nil {
		return nil, err
	}
	deliveries, err := c.states(ctx, r.client, "/v1/deliveries")
	if err != nil {
		return nil, err
	}
	for _, n := range deliveries {
		res.Deliveries += n
	}
	for len(r.receiver.arrived) > 0 {
		<-r.receiver.arrived
		res.Strange++
	}
	return res, nil
}

// ended waits until the one interchange has its end, and then until no message is on its way.
func (r *rig) ended(ctx context.Context, c *child) error {
	const pause = 200 * time.Millisecond
	err := waitUntil(ctx, pause, func() (bool, error) {
		var page objects
		if err := c.get(ctx, r.client, "/v1/interchanges", nil, &page); err != nil || len(page.Items) == 0 {
			return false, err
		}
		return !slices.ContainsFunc(page.Items, func(o object) bool {
			return o.State != store.StateRejected && o.State != store.StateDone && o.State != store.StateDead
		}), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the end of the interchange: %w", err)
	}
	for _, state := range []string{store.StateParsed, store.StateValidated, store.StateRouted, store.StateSending} {
		err := waitUntil(ctx, pause, func() (bool, error) {
			some, err := c.has(ctx, r.client, "/v1/messages", state)
			return !some, err
		})
		if err != nil {
			return fmt.Errorf("wait for messages that are %s: %w", state, err)
		}
	}
	return nil
}

const issued = "20261130"

func edifactFile(ref, messages, size int, f Fault) []byte {
	var b bytes.Buffer
	b.Grow(messages * (size + 64))
	fmt.Fprintf(&b, "UNB+UNOC:3+%s:ZZ+%s:ZZ+261130:1200+%d'", senderName, receiverName, ref)
	for i := 1; i <= messages; i++ {
		from := b.Len()
		fmt.Fprintf(&b, "UNH+%d+ORDERS:D:96A:UN'BGM+220+MS-%d-%d+9'DTM+137:%s:102'NAD+BY+5412345000013::9'", i, ref, i, issued)
		lines := 0
		for b.Len()-from < size-60 || lines == 0 {
			lines++
			fmt.Fprintf(&b, "LIN+%d++4000862141404:EN'QTY+21:5'", lines)
		}
		fmt.Fprintf(&b, "UNS+S'UNT+%d+%d'", 6+2*lines, i)
	}
	if f == WrongUNZ {
		messages++
	}
	fmt.Fprintf(&b, "UNZ+%d+%d'", messages, ref)
	return b.Bytes()
}

func x12File(ref, messages, size int, f Fault) []byte {
	var b bytes.Buffer
	b.Grow(messages * (size + 64))
	fmt.Fprintf(&b, "ISA*00*          *00*          *ZZ*%-15s*ZZ*%-15s*261130*1200*U*00401*%09d*0*P*>~", senderName, receiverName, ref)
	fmt.Fprintf(&b, "GS*PO*%s*%s*20261130*1200*%d*X*004010~", senderName, receiverName, ref)
	for i := 1; i <= messages; i++ {
		from := b.Len()
		fmt.Fprintf(&b, "ST*850*%04d~BEG*00*SA*MS-%d-%d**%s~", i, ref, i, issued)
		lines := 0
		for b.Len()-from < size-40 || lines == 0 {
			lines++
			fmt.Fprintf(&b, "PO1*%d*5*EA*9.25**VN*W-%d~", lines, lines)
		}
		fmt.Fprintf(&b, "CTT*%d~SE*%d*%04d~", lines, 4+lines, i)
	}
	fmt.Fprintf(&b, "GE*%d*%d~", messages, ref)
	groups := 1
	if f == WrongIEA {
		groups++
	}
	fmt.Fprintf(&b, "IEA*%d*%09d~", groups, ref)
	return b.Bytes()
}

// numbersIn finds the document numbers of edifactFile.
func numbersIn(b []byte) []int {
	var out []int
	for {
		_, rest, ok := bytes.Cut(b, []byte("BGM+220+MS-"))
		if !ok {
			return out
		}
		number, rest, _ := bytes.Cut(rest, []byte("+"))
		_, serial, _ := bytes.Cut(number, []byte("-"))
		n, err := strconv.Atoi(string(serial))
		if err != nil {
			n = 0 // a number that nobody gave
		}
		out = append(out, n)
		b = rest
	}
}

// MemoryLimit is what the hub may take for one large interchange, in bytes (DESIGN §8).
const MemoryLimit = 128 << 20

// LargeTable posts large interchanges of each kind and judges what became of them.
func LargeTable(ctx context.Context, binary string, messages, size int) (*Table, error) {
	t := &Table{
		Title: fmt.Sprintf("one interchange of many messages, AS2 signed and encrypted, the real program; peak: VmHWM, limit %d MB", MemoryLimit>>20),
		Head:  []string{"interchange", "messages", "file", "deliveries", "messages at the receiver", "messages by state", "peak", "took"},
	}
	type row struct {
		fault    Fault
		split    string
		messages int
	}
	rows := []row{
		{WrongUNZ, "", messages / 10},
		{WrongUNZ, "", messages},
		{WrongIEA, "", messages},
		{Good, "preserve", messages},
		{Good, "messages", messages},
	}
	for _, w := range rows {
		res, err := Large(ctx, LargeOptions{Binary: binary, Messages: w.messages, Size: size, Fault: w.fault, Split: w.split})
		if err != nil {
			return t, fmt.Errorf("%s, %d messages: %w", w.fault, w.messages, err)
		}
		name := string(w.fault)
		if w.split != "" {
			name += ", split: " + w.split
		}
		t.add(name, w.messages, fmt.Sprintf("%.1f MB", float64(res.Bytes)/1e6), res.Deliveries, res.Arrived, fmt.Sprint(res.States), fmt.Sprintf("%d MB", res.Peak>>20), res.Took.Round(10*time.Millisecond))
		if why := res.Judge(w.fault, w.messages); why != "" {
			t.broken("%s, %d messages: %s", name, w.messages, why)
		}
		if res.Peak > MemoryLimit {
			t.broken("%s, %d messages: the hub took %d MB", name, w.messages, res.Peak>>20)
		}
	}
	return t, nil
}

// Judge says what is not as it must be; nothing when all is well.
func (r *LargeResult) Judge(f Fault, messages int) string {
	state, arrived := store.StateRejected, 0
	if f == Good {
		state, arrived = store.StateDelivered, messages
	}
	switch {
	case r.States[state] != messages || len(r.States) != 1:
		return fmt.Sprintf("the states are %v, all must be %s", r.States, state)
	case r.Arrived != arrived || r.Strange > 0:
		return fmt.Sprintf("%d messages arrived, %d strange ones; want %d", r.Arrived, r.Strange, arrived)
	case f != Good && r.Deliveries > 0:
		return fmt.Sprintf("%d deliveries were made of what must not be released", r.Deliveries)
	}
	return ""
}
