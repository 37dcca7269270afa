package tables

import "slices"

// counters count, for each depth, how often the place or group on the way there has been there
// within what is around it.
type counters [maxDepth + 2]int32

// state is a place in the table of a message.
type state struct {
	pos    int
	counts counters
}

// take goes a step. The step is one that ways returned for this state.
func (m *Message) take(s *state, st step) {
	to := int(st.to)
	n := &m.nodes[to]
	s.pos = to
	if st.count != 0 {
		s.counts[st.count]++
		if int(st.count) < n.depth {
			s.counts[n.depth] = 1
		}
		return
	}
	s.counts[n.depth] = 1
	if m.begins(to) {
		s.counts[n.depth-1] = 1
	}
}

// strict goes on with a segment of kind k when nothing is wrong with that.
func (m *Message) strict(s *state, k int) bool {
	st := m.steps[s.pos*len(m.kinds)+k]
	if st.to == none {
		return false
	}
	if st.count != 0 && s.counts[st.count] >= m.maxAt(int(st.to), int(st.count)) {
		w := m.ways(s.pos, k, &s.counts, false, false)
		if len(w) == 0 {
			return false
		}
		st = w[0].step
	}
	m.take(s, st)
	return true
}

// maxAt is how often the place `to` may be there, or the group around it, by the depth of the
// counter.
func (m *Message) maxAt(to, depth int) int32 {
	for m.nodes[to].depth > depth {
		to = m.nodes[to].parent
	}
	return m.nodes[to].max
}

// fault is what is wrong with the place of a segment.
type fault struct {
	rule    faultRule
	kind    int // of the segment that is reported
	at      int // place or group that it is about; none where there is none
	segment int // where it stands: UNH or ST is 1
	offset  int64
}

type faultRule uint8

const (
	faultOrder faultRule = iota + 1
	faultUnexpected
	faultMissing
	faultRepeat
	faultLoopRepeat
)

// Bounds of the search for what was meant. A fault costs at most window segments for each of a
// handful of guesses.
const (
	window     = 4  // segments that a guess is tried on
	maxSkipped = 6  // mandatory places that a guess may leave out
	maxStarts  = 2  // groups that a guess may begin without their first segment
	memory     = 16 // segments back that a guess may take one for misplaced; a power of two
)

// guess is one explanation of a segment that has no place: where the walk goes on, and what was
// wrong then. The guess on which the following segments go on with the fewest faults is taken.
type guess struct {
	state  state
	cost   int
	faults []fault
	stray  bool // the segment itself is what was wrong
	last   bool // the segment tried last had its place
}

// mark is a segment as the walk remembers it.
type mark struct {
	kind    int
	segment int
	offset  int64
}

// memo is a segment and the state before it.
type memo struct {
	before state
	mark   mark
}

// walker walks through the segments of one message.
type walker struct {
	m       *Message
	now     state
	past    [memory]memo // the last segments that had their place, in a ring
	placed  int          // how many since the last fault
	guesses []guess
	tried   int
	stray   int // number of the segment that was found without a place last
	report  func(fault)
}

func (w *walker) reset(m *Message, report func(fault)) {
	clear(w.guesses[:cap(w.guesses)])
	w.m, w.report, w.guesses = m, report, w.guesses[:0]
	w.now, w.placed, w.tried, w.stray = state{}, 0, 0, 0
}

// next goes on with a segment of kind k.
func (w *walker) next(k, segment int, offset int64) {
	if len(w.guesses) > 0 {
		w.try(mark{kind: k, segment: segment, offset: offset})
		return
	}
	w.step(mark{kind: k, segment: segment, offset: offset})
}

func (w *walker) step(s mark) {
	at := &w.past[w.placed&(memory-1)]
	at.before = w.now
	if w.m.strict(&w.now, s.kind) {
		at.mark = s
		w.placed++
		return
	}
	beyond := w.now
	f, over := w.m.overflow(&beyond, s)
	if over && (f.rule == 0 || len(w.m.ways(w.now.pos, s.kind, &w.now.counts, true, false)) == 0) {
		w.now, w.placed = beyond, 0
		if f.rule != 0 {
			w.report(f)
		}
		return
	}
	w.guesses = w.guesses[:0]
	if over { // one too many, or something before it is missing
		w.guesses = append(w.guesses, guess{state: beyond, cost: 1, last: true, faults: []fault{f}})
	}
	w.guess(s)
}

// overflow takes a segment that has been there as often as it may, or begins a group that has.
// The fault is told with the first one too many.
func (m *Message) overflow(s *state, at mark) (fault, bool) {
	ws := m.ways(s.pos, at.kind, &s.counts, false, true)
	i := slices.IndexFunc(ws, func(w way) bool { return w.count != 0 })
	if i < 0 {
		return fault{}, false
	}
	st := ws[i].step
	n := int(st.to)
	f := fault{rule: faultRepeat, kind: at.kind, at: n, segment: at.segment, offset: at.offset}
	if int(st.count) < m.nodes[n].depth {
		f.rule, f.at = faultLoopRepeat, m.nodes[n].parent
	}
	most := m.nodes[f.at].max
	if s.counts[st.count] > most {
		s.counts[st.count] = most // it stays one too many
		f.rule = 0
	}
	m.take(s, st)
	return f, true
}

// guess adds the explanations of a segment that has no place.
func (w *walker) guess(s mark) {
	m := w.m
	w.tried = 0
	ahead := len(w.guesses) + 2
	for _, way := range m.ways(w.now.pos, s.kind, &w.now.counts, true, false) {
		if len(way.missing) > maxSkipped && s.kind != m.trailer {
			break
		}
		g := guess{state: w.now, cost: len(way.missing), last: true}
		for _, miss := range way.missing {
			g.faults = append(g.faults, fault{rule: faultMissing, kind: m.nodes[miss].kind, at: miss, segment: s.segment, offset: s.offset})
		}
		m.take(&g.state, way.step)
		w.guesses = append(w.guesses, g)
		if s.kind == m.trailer { // nothing comes behind it that could tell
			w.settle(len(w.guesses) - 1)
			return
		}
		if len(w.guesses) == ahead {
			break
		}
	}
	w.guesses = append(w.guesses, guess{state: w.now, cost: 1, stray: true, faults: []fault{m.misplaced(&w.now, s)}})
	w.earlier(s)
	w.placed = 0 // a later guess does not go back behind this one
	w.starts(s)
	if len(w.guesses) == 1 { // nothing else explains it
		w.settle(0)
	}
}

// earlier guesses that a segment before s was misplaced, and all behind it have their place
// without it.
func (w *walker) earlier(s mark) {
	for back := 1; back <= min(w.placed, memory); back++ {
		wrong := &w.past[(w.placed-back)&(memory-1)]
		g := guess{state: wrong.before, cost: 1, last: true}
		fits := true
		for i := w.placed - back + 1; i < w.placed && fits; i++ {
			fits = w.m.strict(&g.state, w.past[i&(memory-1)].mark.kind)
		}
		if fits && w.m.strict(&g.state, s.kind) {
			g.faults = []fault{w.m.misplaced(&wrong.before, wrong.mark)}
			w.guesses = append(w.guesses, g)
			return
		}
	}
}

// starts guesses that the first segment of a group is missing and s belongs into that group.
func (w *walker) starts(s mark) {
	m := w.m
	found := 0
	for n := range m.nodes {
		if found == maxStarts {
			return
		}
		g := m.nodes[n].parent
		if m.nodes[n].kind != s.kind || m.nodes[n].first != none || n == root || g == root || m.begins(n) || m.nodes[g].kind == s.kind {
			continue
		}
		ws := m.ways(w.now.pos, m.nodes[g].kind, &w.now.counts, false, false)
		i := slices.IndexFunc(ws, func(x way) bool { return int(x.to) == m.nodes[g].first })
		if i < 0 {
			continue
		}
		x := guess{state: w.now, cost: 1, last: true}
		m.take(&x.state, ws[i].step)
		if !m.strict(&x.state, s.kind) || x.state.pos != n {
			continue
		}
		x.faults = []fault{{rule: faultMissing, kind: m.nodes[g].kind, at: m.nodes[g].first, segment: s.segment, offset: s.offset}}
		w.guesses = append(w.guesses, x)
		found++
	}
}

// misplaced says why a segment cannot stand at a place: the message has it in what is open here,
// before or behind, or only in a group that has not begun.
func (m *Message) misplaced(s *state, at mark) fault {
	f := fault{rule: faultUnexpected, kind: at.kind, at: s.pos, segment: at.segment, offset: at.offset}
	if s.pos == root {
		f.at = none
	}
	for n := range m.nodes {
		if n == root || m.nodes[n].kind != at.kind || m.nodes[n].first != none {
			continue
		}
		around := m.nodes[n].parent
		if m.begins(n) {
			around = m.nodes[around].parent
		}
		for p := s.pos; p != none; p = m.nodes[p].parent {
			if p == around {
				f.rule = faultOrder
				return f
			}
		}
	}
	return f
}

// try goes on with a segment on all guesses and settles when one has proved itself.
func (w *walker) try(s mark) {
	m := w.m
	w.tried++
	placed := false
	best := w.best()
	trial := make([]guess, len(w.guesses))
	copy(trial, w.guesses)
	for i := range trial {
		g := &trial[i]
		g.last = m.strict(&g.state, s.kind) || g.late(s)
		placed = placed || g.last
	}
	if !placed { // something else is wrong here
		w.settle(best)
		w.step(s)
		return
	}
	for i := range trial {
		g := &trial[i]
		if !g.last {
			g.cost++
			g.faults = append(slices.Clip(g.faults), m.misplaced(&g.state, s))
		}
	}
	w.guesses = trial
	best = w.best()
	if w.tried >= window || w.ahead(best) || s.kind == m.trailer {
		w.settle(best)
	}
}

// late takes a mandatory segment that was found missing and comes now: it was only moved.
func (g *guess) late(s mark) bool {
	for i := range g.faults {
		if f := &g.faults[i]; f.rule == faultMissing && f.kind == s.kind {
			g.faults = slices.Clone(g.faults)
			g.faults[i] = fault{rule: faultOrder, kind: s.kind, at: f.at, segment: s.segment, offset: s.offset}
			return true
		}
	}
	return false
}

// best is the guess with the least cost, the first of equals.
func (w *walker) best() int {
	best := 0
	for i := range w.guesses {
		if w.guesses[i].cost < w.guesses[best].cost {
			best = i
		}
	}
	return best
}

// ahead reports whether a guess is better than all others by two segments.
func (w *walker) ahead(best int) bool {
	for i := range w.guesses {
		if i != best && w.guesses[i].cost < w.guesses[best].cost+2 {
			return false
		}
	}
	return true
}

// settle takes a guess and reports its faults. Segments without a place right behind one that
// was reported are part of the same fault.
func (w *walker) settle(i int) {
	g := &w.guesses[i]
	w.now = g.state
	for _, f := range g.faults {
		if f.rule == faultOrder || f.rule == faultUnexpected {
			again := f.segment == w.stray+1
			w.stray = f.segment
			if again {
				continue
			}
		}
		w.report(f)
	}
	w.guesses = w.guesses[:0]
}

// end settles what is open when the input is over. What is missing behind it is not reported:
// the missing trailer says so.
func (w *walker) end() {
	if len(w.guesses) > 0 {
		w.settle(w.best())
	}
}

// where is the place of the segment that was walked last, as far as it is known.
func (w *walker) where() int {
	if len(w.guesses) > 0 {
		return w.guesses[0].state.pos
	}
	return w.now.pos
}
