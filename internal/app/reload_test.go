package app

import (
	"testing"

	"github.com/edihub/edihub/internal/partner"
)

// TestLargestMessage: the spool must hold what the most generous connection takes.
func TestLargestMessage(t *testing.T) {
	t.Parallel()
	for connection, want := range map[string]int64{
		`{id: a, as2: {id: A, own: hub, url: "https://a.example", sign: none, encrypt: none, require: [], mdn: {mode: none}, max_message: 3MiB}}`: 3 << 20,
		`{id: a, as2: {id: A, own: hub, url: "https://a.example", sign: none, encrypt: none, require: [], mdn: {mode: none}, max_message: 1KiB}}`: 1 << 20,
		`{id: a, as2: {id: A, own: hub, url: "https://a.example", sign: none, encrypt: none, require: [], mdn: {mode: none}}}`:                    1 << 20,
		`{id: a, http: {url: "https://a.example"}}`: 1 << 20,
	} {
		reg, err := partner.Parse([]byte("own:\n  - {id: hub, as2: {id: HUB}}\nconnections:\n  - "+connection+"\n"), t.TempDir(), partner.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := largestMessage(1<<20, reg); got != want {
			t.Errorf("%s: %d, want %d", connection, got, want)
		}
	}
}
