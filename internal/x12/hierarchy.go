package x12

import (
	"strconv"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
)

// maxHL is how many HL segments of a set are remembered. Later ones are not checked; no table
// allows more in one loop.
const maxHL = 200_000

// maxLS is how deep LS may be nested.
const maxLS = 64

// hierarchy checks what HL segments say about each other (X12.6 HL), and that LS and LE pair. It
// serves one set.
type hierarchy struct {
	levels []level
	named  map[string]int32 // ids that are not the running number of their HL
	ls     []loop           // open ones
}

// loop is an LS that has no LE yet.
type loop struct {
	id      string
	segment int
}

// level is one HL segment.
type level struct {
	segment  int32
	leaf     bool // HL04 is 0
	expects  bool // HL04 is 1
	children bool
	odd      bool // its id is not its running number
}

var _ tables.Watcher = (*hierarchy)(nil)

// Segment implements tables.Watcher.
func (h *hierarchy) Segment(tag string, segment int, value func(int) []byte, add tables.Adder) {
	switch tag {
	case "HL":
		h.hl(segment, value, add)
	case "LS":
		if len(h.ls) < maxLS {
			h.ls = append(h.ls, loop{id: string(value(1)), segment: segment})
		}
	case "LE":
		h.le(value, add)
	}
}

func (h *hierarchy) le(value func(int) []byte, add tables.Adder) {
	id := string(value(1))
	if len(h.ls) == 0 {
		add(edi.Finding{Rule: edi.RuleLoopID, Position: edi.Position{Element: 1}, Actual: id, Message: "LE ends no loop: no LS stands before it; send the LS or remove the LE"})
		return
	}
	open := h.ls[len(h.ls)-1].id
	h.ls = h.ls[:len(h.ls)-1]
	if open != id {
		add(edi.Finding{Rule: edi.RuleLoopID, Position: edi.Position{Element: 1}, Actual: id, Expected: open, Message: "LE01 is not the identifier of its LS; repeat LS01 there"})
	}
}

// find returns the place of an id, or -1.
func (h *hierarchy) find(id []byte) int {
	if i, ok := h.named[string(id)]; ok {
		return int(i)
	}
	n := 0
	for _, c := range id {
		if c < '0' || c > '9' || n > maxHL {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	// Ids that are the running number of their HL need no place in the map.
	if n < 1 || n > len(h.levels) || id[0] == '0' || h.levels[n-1].odd {
		return -1
	}
	return n - 1
}

func (h *hierarchy) hl(segment int, value func(int) []byte, add tables.Adder) {
	if len(h.levels) >= maxHL {
		return
	}
	id := value(1)
	if len(id) > 0 && h.find(id) >= 0 {
		add(edi.Finding{Rule: edi.RuleHLID, Position: edi.Position{Element: 1}, Actual: string(id), Message: "HL01 was used before in this set; number HL segments from 1"})
	}
	if parent := value(2); len(parent) > 0 {
		switch p := h.find(parent); {
		case p < 0:
			add(edi.Finding{Rule: edi.RuleHLParent, Position: edi.Position{Element: 2}, Actual: string(parent), Message: "HL02 names no HL01 before it; name the parent's HL01 and send the parent first"})
		case h.levels[p].leaf:
			h.levels[p].leaf = false // told once
			add(edi.Finding{Rule: edi.RuleHLChild, Segment: "HL", Position: edi.Position{Segment: int(h.levels[p].segment), Element: 4}, Actual: "0", Expected: "1", Message: "HL04 says that nothing is below, but a later HL names it as its parent; write 1"})
		default:
			h.levels[p].children = true
		}
	}
	l := level{segment: int32(segment)} //nolint:gosec // G115: a set has at most 5,000,000 segments.
	switch string(value(4)) {
	case "0":
		l.leaf = true
	case "1":
		l.expects = true
	}
	n := len(h.levels)
	h.levels = append(h.levels, l)
	if string(id) != strconv.Itoa(n+1) && len(id) > 0 {
		if h.named == nil {
			h.named = make(map[string]int32)
		}
		if _, twice := h.named[string(id)]; !twice {
			h.named[string(id)] = int32(n) //nolint:gosec // G115: at most maxHL.
		}
		h.levels[n].odd = true
	}
}

// End implements tables.Watcher.
func (h *hierarchy) End(add tables.Adder) {
	for i := range h.levels {
		if l := &h.levels[i]; l.expects && !l.children {
			add(edi.Finding{Rule: edi.RuleHLChild, Segment: "HL", Position: edi.Position{Segment: int(l.segment), Element: 4}, Actual: "1", Expected: "0", Message: "HL04 says that more is below, but no HL names it as its parent; write 0 or send what is below"})
		}
	}
	for _, l := range h.ls {
		add(edi.Finding{Rule: edi.RuleLoopID, Segment: "LS", Position: edi.Position{Segment: l.segment, Element: 1}, Actual: l.id, Message: "the LS has no LE; send the LE with the same identifier"})
	}
}
