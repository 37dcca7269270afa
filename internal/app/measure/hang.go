package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edihub/edihub/internal/app/loadtest"
)

var errProof = errors.New("the load test found faults")

// HangTable measures ten partners, then the same ten of whom two take messages and never answer:
// the other eight must keep nine tenths of their rate. Once the receivers answer at once and the
// machine is the limit, once they take 20 ms and the lanes are the limit.
func HangTable(ctx context.Context, messages int) (*Table, error) {
	t := &Table{
		Title: "ten partners, two of them hang: the other eight",
		Head:  []string{"receivers take", "hanging", "delivered to the eight", "within", "rate of the eight", "of that without hangers"},
	}
	for _, delay := range []time.Duration{0, 20 * time.Millisecond} {
		free := 0.0
		for _, hang := range []int{0, 2} {
			n, within, err := eight(ctx, messages, delay, hang)
			if err != nil {
				return t, err
			}
			rate := float64(n) / within.Seconds()
			share := "100 %"
			if hang == 0 {
				free = rate
			} else {
				share = fmt.Sprintf("%.0f %%", 100*rate/free)
				if rate < 0.9*free {
					t.broken("with receivers that take %s the eight have %s of their rate", delay, share)
				}
			}
			t.add(delay, hang, n, within.Round(time.Millisecond), fmt.Sprintf("%.0f/s", rate), share)
		}
	}
	return t, nil
}

// eight runs a load and looks at the last eight of its ten lanes.
func eight(ctx context.Context, messages int, delay time.Duration, hang int) (int, time.Duration, error) {
	res, err := loadtest.Run(ctx, loadtest.Options{
		Messages: messages, Partners: 10, Senders: 10, Mix: "invoic=50,850=50", Size: 2 << 10, SinkDelay: delay, Hang: hang, Timeout: 5 * time.Minute,
	})
	if err != nil {
		return 0, 0, fmt.Errorf("load with %d hanging receivers: %w", hang, err)
	}
	if !res.Good() {
		return 0, 0, fmt.Errorf("load with %d hanging receivers: %w: %v", hang, errProof, res.Problems)
	}
	n, within := 0, time.Duration(0)
	for _, l := range res.Lanes[2:] {
		n += l.Delivered
		within = max(within, l.Last)
	}
	return n, within, nil
}
