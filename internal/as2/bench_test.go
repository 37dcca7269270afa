package as2

import (
	"testing"
)

// BenchmarkOpen opens a signed and encrypted message of 10 KiB and signs the MDN for it, which is
// the whole work of AS2 on one received message.
func BenchmarkOpen(b *testing.B) {
	o := buildOptions()
	o.Sign, o.Encrypt = acme().signer(), hub().certs()
	out, err := Build(pattern{10 << 10}, o)
	check(b, err)
	in := received(b, out)
	b.ReportAllocs()
	for b.Loop() {
		opened, err := Open(in, demand(true, true))
		check(b, err)
		_, _, err = BuildMDN(MDNParams{
			Answers: in.Headers, MIC: opened.MIC, MICAlg: opened.MICAlg,
			Signer: hub().signer(), MessageID: "m@ourco", At: testTime,
		})
		check(b, err)
		check(b, opened.Close())
	}
}
