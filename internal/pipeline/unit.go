package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/store"
)

// Numbers of DESIGN §3.
const (
	laneWindow  = 256 // unfinished rows of a lane that are in the broker's hands
	wakeWindow  = 64  // parked rows that are woken at once
	crashLimit  = 3   // a message that the process died with, or that panicked, so often is dead
	controlWrap = 999_999_999
)

// errWorkExists: a row was emitted twice. Ids are derived and rows are removed with their effect,
// so this is a fault of the hub; the transaction must not commit, because the lane would have a
// sequence number that never comes.
var errWorkExists = errors.New("work row exists already")

// unit is one transaction of the runner: it gathers what is to be written and writes it at the
// end, so that each kind of row costs one call.
type unit struct {
	tx   store.Tx
	now  time.Time
	boot int64
	runs func(store.Stage) bool // whether a fused hop of that stage is allowed

	lanes   map[int64]*store.Lane
	specs   map[string]*store.Lane
	touched map[int64]bool
	moved   map[int64]bool

	insert, save, remove []*store.Work
	newIC, oldIC         map[edi.ID]*store.Interchange
	newMsg, oldMsg       map[edi.ID]*store.Message
	orderIC, orderMsg    []edi.ID
	ends                 []End
	plans                []*DeliveryPlan
	decides              []Decide
	events               []store.Event
	freed                []freedKey

	publish []edi.Copy
	made    []*store.Delivery
	backlog map[int64]bool
	ended   []edi.ID // interchanges whose last message ended
}

type freedKey struct {
	lane int64
	key  string
}

func newUnit(tx store.Tx, now time.Time, boot int64) *unit {
	return &unit{
		tx: tx, now: now, boot: boot,
		runs:    func(store.Stage) bool { return false },
		lanes:   map[int64]*store.Lane{},
		specs:   map[string]*store.Lane{},
		touched: map[int64]bool{}, moved: map[int64]bool{}, backlog: map[int64]bool{},
		newIC: map[edi.ID]*store.Interchange{}, oldIC: map[edi.ID]*store.Interchange{},
		newMsg: map[edi.ID]*store.Message{}, oldMsg: map[edi.ID]*store.Message{},
	}
}

func specName(s store.LaneSpec) string { return string(rune('0'+s.Stage)) + s.Name }

// lock takes all lanes that the transaction will need, gates before tails, each sorted by
// (stage rank, lane id), so that two transactions never wait for each other in a circle.
func (u *unit) lock(rows []*store.Work, specs []store.LaneSpec) error {
	ids := make([]int64, 0, len(rows))
	for _, r := range rows {
		if r != nil {
			ids = append(ids, r.Lane)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	gates, err := u.tx.LanesByID(ids)
	if err != nil {
		return fmt.Errorf("lock gates: %w", err)
	}
	for _, l := range gates {
		if l != nil {
			u.lanes[l.ID] = l
		}
	}
	slices.SortStableFunc(specs, func(a, b store.LaneSpec) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Name, b.Name))
	})
	specs = slices.CompactFunc(specs, func(a, b store.LaneSpec) bool { return a.Stage == b.Stage && a.Name == b.Name })
	return u.tails(specs)
}

func (u *unit) tails(specs []store.LaneSpec) error {
	if len(specs) == 0 {
		return nil
	}
	ls, err := u.tx.Lanes(specs)
	if err != nil {
		return fmt.Errorf("lock tails: %w", err)
	}
	for i, l := range ls {
		if have := u.lanes[l.ID]; have != nil {
			l = have // one value per lane, whichever way it was found
		}
		u.lanes[l.ID] = l
		u.specs[specName(specs[i])] = l
	}
	return nil
}

func (u *unit) tail(s store.LaneSpec) (*store.Lane, error) {
	if l := u.specs[specName(s)]; l != nil {
		return l, nil
	}
	if err := u.tails([]store.LaneSpec{s}); err != nil {
		return nil, err
	}
	return u.specs[specName(s)], nil
}

// pass is the gate's answer.
type pass uint8

const (
	passGo    pass = iota + 1 // its turn, or its recorded gap
	passStale                 // no row of this generation that is ready: the copy is forgotten
	passWait                  // parked, or held for its key
)

// gate decides under the lane's lock whether the row runs now (DESIGN §3, Gate).
func (u *unit) gate(row *store.Work, gen int64) (pass, error) {
	if row == nil || row.Gen != gen || row.State != store.Ready {
		return passStale, nil
	}
	l := u.lanes[row.Lane]
	switch {
	case l.Paused:
		u.park(row, l)
		return passWait, nil
	case row.Gap:
		return passGo, nil // the lane went on without it; it claims its gap, not the gate
	case !l.Ordered:
		return passGo, nil
	case row.Seq > l.Next:
		u.park(row, l)
		return passWait, nil
	case row.Seq < l.Next:
		return passStale, nil
	}
	if l.Policy == string(partner.HoldKey) && row.Key != "" {
		if err := u.flushWork(); err != nil {
			return 0, err
		}
		busy, err := u.tx.KeyBusy(l.ID, row.Key, row.Seq)
		if err != nil {
			return 0, fmt.Errorf("look at key: %w", err)
		}
		if busy {
			row.State, row.Gap = store.KeyHeld, true
			row.Code = "KEY_HELD"
			u.save = append(u.save, row)
			u.advance(l)
			return passWait, nil
		}
	}
	return passGo, nil
}

func (u *unit) park(row *store.Work, l *store.Lane) {
	row.State = store.Parked
	l.Waiting++
	u.touch(l)
	u.save = append(u.save, row)
}

func (u *unit) touch(l *store.Lane) { u.touched[l.ID] = true }

// advance moves the lane on by one.
func (u *unit) advance(l *store.Lane) {
	l.Next++
	u.touch(l)
	u.moved[l.ID] = true
}

// through ends a row whose effect is in this transaction.
func (u *unit) through(row *store.Work) {
	l := u.lanes[row.Lane]
	u.remove = append(u.remove, row)
	if !row.Gap {
		u.advance(l)
		return
	}
	if row.Key != "" {
		u.freed = append(u.freed, freedKey{l.ID, row.Key})
	}
}

// again makes the row ready in a new generation, so that every older copy is stale.
func (u *unit) again(row *store.Work) {
	row.Gen++
	row.State = store.Ready
	row.Handed = u.boot
	row.Owner, row.Lease = "", time.Time{}
	u.save = append(u.save, row)
	u.publish = append(u.publish, u.copyOf(row))
}

func (u *unit) copyOf(row *store.Work) edi.Copy {
	l := u.lanes[row.Lane]
	return edi.Copy{
		Stage: row.Stage, ID: row.ID, Kind: row.Kind, Lane: row.Lane, Seq: row.Seq, Gen: row.Gen,
		Topic: row.Topic, Crashes: row.Crashes, Free: l == nil || !l.Ordered || row.Gap,
	}
}

// later sets the row aside until its time.
func (u *unit) later(row *store.Work, due time.Time, code, detail string) {
	row.State, row.Due, row.Code, row.Detail = store.Retry, due, code, detail
	row.Owner, row.Lease = "", time.Time{}
	u.save = append(u.save, row)
}

// die makes the row a dead letter and lets the lane's policy act.
func (u *unit) die(row *store.Work, code, detail, who string) {
	l := u.lanes[row.Lane]
	row.State, row.Code, row.Detail, row.Partner, row.Died = store.Dead, code, detail, who, u.now
	row.Owner, row.Lease = "", time.Time{}
	if !row.Gap {
		goesOn := !l.Ordered || l.Policy == string(partner.Skip) || (l.Policy == string(partner.HoldKey) && row.Key != "")
		if goesOn {
			row.Gap = true
			u.advance(l)
		}
	}
	u.save = append(u.save, row)
	u.events = append(u.events, store.Event{Object: row.ID, At: u.now, Name: "dead", Detail: row.Stage.String() + " " + code})
}

// emit adds a work row at the tail of its lane, or runs the hop at once where that keeps every
// rule: the stage runs here, its lane's turn has come, and the outcome is there.
func (u *unit) emit(e *Emission) error {
	l, err := u.tail(e.Lane)
	if err != nil {
		return err
	}
	seq := l.Tail
	l.Tail++
	u.touch(l)
	if e.Fused != nil && e.Fused.Verdict == Done && e.Fused.More == nil && len(e.Fused.Claims) == 0 &&
		u.runs(e.Stage) && !l.Paused && (l.Next == seq || !l.Ordered) && e.Key == "" && e.Fused.Profile >= l.Profile {
		l.Profile = max(l.Profile, e.Fused.Profile)
		u.advance(l)
		return u.effects(e.Fused)
	}
	row := &store.Work{
		WorkKey: store.WorkKey{Stage: e.Stage, ID: e.ID}, Kind: e.Kind, Lane: l.ID, Seq: seq,
		State: store.Ready, Key: e.Key, Topic: e.Topic, Since: u.now,
	}
	if seq < l.Next+laneWindow {
		row.Handed = u.boot
		u.publish = append(u.publish, u.copyOf(row))
	} else {
		u.backlog[l.ID] = true
	}
	u.insert = append(u.insert, row)
	return nil
}

// born adds a dead letter beside the row at hand: a part of a file that nobody can process. No
// agreement is known for it, so the policy is skip: it stands outside the lane's order.
func (u *unit) born(w *store.Work, lane *store.Lane) {
	w.State, w.Gap, w.Died, w.Since, w.Lane, w.Seq = store.Dead, true, u.now, u.now, lane.ID, lane.Next
	u.insert = append(u.insert, w)
	u.events = append(u.events, store.Event{Object: w.ID, At: u.now, Name: "dead", Detail: w.Stage.String() + " " + w.Code})
}

// effects gathers what an outcome writes and emits.
func (u *unit) effects(o *Outcome) error {
	w := &o.Write
	for _, ic := range w.Interchanges {
		if u.newIC[ic.ID] == nil {
			u.orderIC = append(u.orderIC, ic.ID)
		}
		u.newIC[ic.ID] = ic
	}
	for _, ic := range w.SaveInterchanges {
		if u.newIC[ic.ID] != nil {
			u.newIC[ic.ID] = ic
			continue
		}
		u.oldIC[ic.ID] = ic
	}
	for _, m := range w.Messages {
		if u.newMsg[m.ID] == nil {
			u.orderMsg = append(u.orderMsg, m.ID)
		}
		u.newMsg[m.ID] = m
	}
	for _, m := range w.SaveMessages {
		if u.newMsg[m.ID] != nil {
			u.newMsg[m.ID] = m
			continue
		}
		u.oldMsg[m.ID] = m
	}
	u.ends = append(u.ends, w.End...)
	u.plans = append(u.plans, w.Deliveries...)
	u.decides = append(u.decides, w.Decide...)
	for i := range w.Events {
		if w.Events[i].At.IsZero() {
			w.Events[i].At = u.now
		}
	}
	u.events = append(u.events, w.Events...)
	for i := range o.Emit {
		if err := u.emit(&o.Emit[i]); err != nil {
			return err
		}
	}
	return nil
}

// finish writes everything in an order in which each statement finds what it needs, wakes what
// waits, and saves the lanes.
func (u *unit) finish() error {
	if err := u.flushObjects(); err != nil {
		return err
	}
	if err := u.flushDecides(); err != nil {
		return err
	}
	if err := u.seal(); err != nil {
		return err
	}
	if err := u.flushWork(); err != nil {
		return err
	}
	if err := u.freeKeys(); err != nil {
		return err
	}
	if err := u.wake(); err != nil {
		return err
	}
	if err := u.flushWork(); err != nil {
		return err
	}
	if len(u.events) > 0 {
		if err := u.tx.AddEvents(u.events); err != nil {
			return fmt.Errorf("add events: %w", err)
		}
	}
	return u.saveLanes()
}

func (u *unit) flushObjects() error {
	for _, id := range u.orderIC {
		if err := u.tx.InsertInterchange(u.newIC[id]); err != nil {
			return fmt.Errorf("insert interchange: %w", err)
		}
	}
	for _, ic := range u.oldIC {
		if err := u.tx.SaveInterchange(ic); err != nil {
			return fmt.Errorf("save interchange: %w", err)
		}
	}
	if len(u.orderMsg) > 0 {
		ms := make([]*store.Message, len(u.orderMsg))
		for i, id := range u.orderMsg {
			ms[i] = u.newMsg[id]
		}
		if err := u.tx.InsertMessages(ms); err != nil {
			return fmt.Errorf("insert messages: %w", err)
		}
	}
	if len(u.oldMsg) > 0 {
		ms := make([]*store.Message, 0, len(u.oldMsg))
		for _, m := range u.oldMsg {
			ms = append(ms, m)
		}
		if err := u.tx.SaveMessages(ms); err != nil {
			return fmt.Errorf("save messages: %w", err)
		}
	}
	for _, e := range u.ends {
		ended, err := u.tx.EndMessages(e.Messages, e.State, e.Code, u.now)
		if err != nil {
			return fmt.Errorf("end messages: %w", err)
		}
		u.ended = append(u.ended, ended...)
		if err := u.fall(&e); err != nil {
			return err
		}
	}
	clear(u.newIC)
	clear(u.oldIC)
	clear(u.newMsg)
	clear(u.oldMsg)
	u.orderIC, u.orderMsg, u.ends = nil, nil, nil
	return nil
}

// fall ends an interchange as a whole.
func (u *unit) fall(e *End) error {
	if e.Interchange.IsZero() {
		return nil
	}
	ic, err := u.tx.Interchange(e.Interchange)
	if err != nil {
		return fmt.Errorf("end interchange: %w", err)
	}
	ic.State, ic.Code = e.State, e.Code
	if err := u.tx.SaveInterchange(ic); err != nil {
		return fmt.Errorf("end interchange: %w", err)
	}
	return nil
}

// flushDecides counts routing decisions down; the one that leaves none open emits the row that
// builds the deliveries of the interchange.
func (u *unit) flushDecides() error {
	for i := range u.decides {
		d := &u.decides[i]
		ic, err := u.tx.Interchange(d.Interchange)
		if err != nil {
			return fmt.Errorf("count decisions: %w", err)
		}
		if ic.Unrouted == 0 {
			continue
		}
		ic.Unrouted = max(0, ic.Unrouted-d.Count)
		if err := u.tx.SaveInterchange(ic); err != nil {
			return fmt.Errorf("count decisions: %w", err)
		}
		if ic.Unrouted == 0 {
			if err := u.emit(&d.Emit); err != nil {
				return err
			}
		}
	}
	u.decides = nil
	return nil
}

// seal gives control numbers in the transaction that creates the delivery, in the order of the
// outcomes, one call for each sequence.
func (u *unit) seal() error {
	if len(u.plans) == 0 {
		return nil
	}
	need := map[string]*Sequence{}
	var names []string
	for _, p := range u.plans {
		for i := range p.Numbers {
			s := &p.Numbers[i]
			have := need[s.Name]
			if have == nil {
				c := *s
				c.Count = 0
				have = &c
				need[s.Name] = have
				names = append(names, s.Name)
			}
			have.Count += s.Count
		}
	}
	slices.Sort(names)
	next := map[string]int64{}
	for _, n := range names {
		s := need[n]
		first, err := u.tx.Number(s.Name, s.Start, s.Limit, s.Count)
		if err != nil {
			return fmt.Errorf("take control numbers: %w", err)
		}
		next[n] = first
	}
	for _, p := range u.plans {
		numbers := make([]int64, len(p.Numbers))
		for i := range p.Numbers {
			s := &p.Numbers[i]
			n := next[s.Name]
			if n > s.Limit {
				n -= s.Limit // the sequence begins at 1 again
			}
			numbers[i] = n
			next[s.Name] += s.Count
		}
		if err := p.Seal(p.Delivery, numbers); err != nil {
			return fmt.Errorf("seal delivery: %w", err)
		}
		if err := u.tx.InsertDelivery(p.Delivery); err != nil {
			return fmt.Errorf("insert delivery: %w", err)
		}
		u.made = append(u.made, p.Delivery)
	}
	u.plans = nil
	return nil
}

func (u *unit) flushWork() error {
	if len(u.remove) > 0 {
		if err := u.tx.DeleteWork(u.remove); err != nil {
			return fmt.Errorf("remove work: %w", err)
		}
		u.remove = nil
	}
	if len(u.insert) > 0 {
		fresh, err := u.tx.InsertWork(u.insert)
		if err != nil {
			return fmt.Errorf("insert work: %w", err)
		}
		if slices.Contains(fresh, false) {
			return errWorkExists
		}
		u.insert = nil
	}
	if len(u.save) > 0 {
		if err := u.tx.SaveWork(u.save); err != nil {
			return fmt.Errorf("save work: %w", err)
		}
		u.save = nil
	}
	return nil
}

// freeKeys lets the next row of a key run, once nothing before it is open.
func (u *unit) freeKeys() error {
	for _, f := range u.freed {
		row, err := u.tx.NextKeyHeld(f.lane, f.key)
		if err != nil {
			return fmt.Errorf("free key: %w", err)
		}
		if row == nil {
			continue
		}
		busy, err := u.tx.KeyBusy(f.lane, f.key, row.Seq)
		if err != nil {
			return fmt.Errorf("free key: %w", err)
		}
		if !busy {
			u.again(row)
		}
	}
	u.freed = nil
	return nil
}

// wake makes contiguous parked rows ready whose turn has come. It looks after the lanes were
// locked and the batch's own parked rows are written, so it misses none.
func (u *unit) wake() error {
	ids := make([]int64, 0, len(u.moved))
	for id := range u.moved {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		l := u.lanes[id]
		if l.Waiting <= 0 || l.Paused || !l.Ordered {
			continue
		}
		rows, err := u.tx.Parked(id, l.Next, wakeWindow)
		if err != nil {
			return fmt.Errorf("wake: %w", err)
		}
		for i, r := range rows {
			if r.Seq != l.Next+int64(i) {
				break
			}
			l.Waiting--
			u.again(r)
		}
	}
	return nil
}

func (u *unit) saveLanes() error {
	ls := make([]*store.Lane, 0, len(u.touched))
	for id := range u.touched {
		ls = append(ls, u.lanes[id])
	}
	slices.SortFunc(ls, func(a, b *store.Lane) int { return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.ID, b.ID)) })
	if len(ls) == 0 {
		return nil
	}
	if err := u.tx.SaveLanes(ls); err != nil {
		return fmt.Errorf("save lanes: %w", err)
	}
	return nil
}

// rowsOf loads the rows that deliveries name.
func (u *unit) rowsOf(ds []broker.Delivery) ([]*store.Work, error) {
	keys := make([]store.WorkKey, len(ds))
	for i := range ds {
		keys[i] = store.WorkKey{Stage: ds[i].Stage, ID: ds[i].ID}
	}
	rows, err := u.tx.Work(keys)
	if err != nil {
		return nil, fmt.Errorf("load work: %w", err)
	}
	return rows, nil
}
