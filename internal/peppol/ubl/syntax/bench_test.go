package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

func BenchmarkCheck(b *testing.B) {
	for _, lines := range []int{5, 1000} {
		doc := []byte(document("Invoice", strings.Repeat(goodLine, lines)))
		var p ubl.Parser
		tree, err := p.Parse(doc, ubl.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%dlines", lines), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				Check(tree, func(r *Rule, _ ubl.Node, _ string) { b.Fatal(r.ID) })
			}
		})
	}
}
