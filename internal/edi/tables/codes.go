package tables

// codeSet is a set of code values that is asked with bytes. Codes of up to eight bytes are
// numbers in an open hash table; longer ones, which are rare, stand in a map.
type codeSet struct {
	slots []uint64 // 0 is empty
	shift uint
	long  map[string]struct{}
}

const hashFactor = 0x9E3779B97F4A7C15 // 2^64 / golden ratio

func newCodeSet(codes []string) *codeSet {
	bits := uint(3)
	for 1<<bits < 2*len(codes) {
		bits++
	}
	s := &codeSet{slots: make([]uint64, 1<<bits), shift: 64 - bits}
	for _, c := range codes {
		if len(c) > 8 {
			if s.long == nil {
				s.long = make(map[string]struct{})
			}
			s.long[c] = struct{}{}
			continue
		}
		k := pack([]byte(c))
		i := k * hashFactor >> s.shift
		for s.slots[i] != 0 && s.slots[i] != k {
			i = (i + 1) & uint64(len(s.slots)-1)
		}
		s.slots[i] = k
	}
	return s
}

// pack makes a number of up to eight bytes. It is not 0 unless they all are.
func pack(b []byte) uint64 {
	var k uint64
	for _, c := range b {
		k = k<<8 | uint64(c)
	}
	return k
}

func (s *codeSet) has(b []byte) bool {
	if len(b) > 8 {
		_, ok := s.long[string(b)]
		return ok
	}
	k := pack(b)
	if k == 0 {
		return false
	}
	for i := k * hashFactor >> s.shift; ; i = (i + 1) & uint64(len(s.slots)-1) {
		switch s.slots[i] {
		case k:
			return true
		case 0:
			return false
		}
	}
}
