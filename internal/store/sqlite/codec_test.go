package sqlite

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// fill sets every field of a value to something that is not zero, and to something else each
// time, so that a field that the codec forgets or swaps shows.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(t0.Add(time.Duration(*n))))
			return
		}
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.String:
		v.SetString("s" + string(rune('0'+*n%70)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(-*n * 1000))
	case reflect.Uint8:
		v.SetUint(uint64(*n%255 + 1))
	default:
		t.Fatalf("a field of kind %s: teach the codec and this test", v.Kind())
	}
}

func roundTrip[T any](t *testing.T, d describe[T]) {
	t.Helper()
	var want, zero T
	n := 0
	fill(t, reflect.ValueOf(&want).Elem(), &n)
	for _, v := range []T{want, zero} {
		b := encode(&v, d)
		got := want // what is read must not be mixed with what was there
		if err := decode(b, &got, d); err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", v, diff)
		}
	}
	// What an older program wrote ends earlier, and what is torn is noticed or reads as less, but
	// never as a crash.
	b := encode(&want, d)
	for i := range b {
		var got T
		if err := decode(b[:i], &got, d); err != nil && !errors.Is(err, errCodec) {
			t.Fatalf("%T cut at %d: %v", want, i, err)
		}
	}
}

func TestCodecKeepsEveryField(t *testing.T) {
	t.Parallel()
	roundTrip(t, codeTransmission)
	roundTrip(t, codeInterchange)
	roundTrip(t, codeMessage)
	roundTrip(t, codeDelivery)
	roundTrip(t, codeWork)
}

// onlyReads writes the same object twice at once: the race detector sees any assignment to it.
func onlyReads[T any](t *testing.T, d describe[T]) {
	t.Helper()
	var v T
	n := 0
	fill(t, reflect.ValueOf(&v).Elem(), &n)
	other := make(chan []byte)
	go func() { other <- encode(&v, d) }()
	if mine := encode(&v, d); !bytes.Equal(mine, <-other) {
		t.Errorf("%T was written in two ways", v)
	}
}

func TestWritingAnObjectLeavesItAlone(t *testing.T) {
	t.Parallel()
	onlyReads(t, codeTransmission)
	onlyReads(t, codeInterchange)
	onlyReads(t, codeMessage)
	onlyReads(t, codeDelivery)
	onlyReads(t, codeWork)
}

func TestCodecReadsWhatEndsEarlierAsZero(t *testing.T) {
	t.Parallel()
	w := store.Work{WorkKey: store.WorkKey{Stage: store.Router, ID: edi.NewID(t0)}, Seq: 7, Forced: true}
	b := encode(&w, codeWork)
	var got store.Work
	if err := decode(b[:len(b)-1], &got, codeWork); err != nil { // the last field is not there
		t.Fatal(err)
	}
	w.Forced = false
	if diff := cmp.Diff(w, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzDecode(f *testing.F) {
	w := store.Work{Key: "k", Since: t0}
	f.Add(encode(&w, codeWork))
	m := store.Message{Findings: []edi.Finding{{Rule: "r", Terms: []string{"BT-1"}}}}
	f.Add(encode(&m, codeMessage))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		stable(t, b, codeTransmission)
		stable(t, b, codeInterchange)
		stable(t, b, codeMessage)
		stable(t, b, codeDelivery)
		stable(t, b, codeWork)
	})
}

// stable: what can be read is the same after it was written and read again.
func stable[T any](t *testing.T, b []byte, d describe[T]) {
	t.Helper()
	var v, again T
	if decode(b, &v, d) != nil {
		return
	}
	if err := decode(encode(&v, d), &again, d); err != nil {
		t.Fatalf("%T: what was read cannot be written: %v", v, err)
	}
	if diff := cmp.Diff(v, again); diff != "" {
		t.Fatalf("%T (-first +second):\n%s", v, diff)
	}
}

// TestFindingsOfAnOlderProgram: fields of findings that came later read as empty from objects
// that were written without them, and nothing else moves.
func TestFindingsOfAnOlderProgram(t *testing.T) {
	t.Parallel()
	m := store.Message{ControlRef: "7", Test: true, Findings: []edi.Finding{{Rule: "a", Loop: "SG1", DataElement: "3035"}, {Rule: "b", Loop: "N1"}}}
	m.Envelope.Findings = []edi.Finding{{Rule: "c", DataElement: "98"}}
	b := encode(&m, codeMessage)
	places := encode(&m, func(c *coder, m *store.Message) {
		c.findingPlaces(m.Envelope.Findings)
		c.findingPlaces(m.Findings)
	})
	var got store.Message
	if err := decode(b[:len(b)-len(places)], &got, codeMessage); err != nil {
		t.Fatal(err)
	}
	m.Findings = []edi.Finding{{Rule: "a"}, {Rule: "b"}}
	m.Envelope.Findings = []edi.Finding{{Rule: "c"}}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
