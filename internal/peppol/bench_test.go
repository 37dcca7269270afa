package peppol

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"
)

// BenchmarkValidate judges whole documents, XML included, by both rule sets on one core.
// Reference is encoding/xml only taking the same bytes apart.
func BenchmarkValidate(b *testing.B) {
	o := Options{Sets: Sets(), Exactly: true}
	for _, size := range []struct {
		name string
		doc  []byte
	}{{"base", base(b).bytes()}, {"1000lines", manyLines(b, 1000).bytes()}, {"10000lines", manyLines(b, 10_000).bytes()}} {
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(size.doc)))
			b.ReportAllocs()
			for b.Loop() {
				v, err := Validate(size.doc, o)
				if err != nil || len(v.Findings) > 0 {
					b.Fatal(err, v.Findings)
				}
			}
		})
	}
	for _, size := range []struct {
		name string
		doc  []byte
	}{{"reference/base", base(b).bytes()}, {"reference/1000lines", manyLines(b, 1000).bytes()}} {
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(size.doc)))
			b.ReportAllocs()
			for b.Loop() {
				d := xml.NewDecoder(bytes.NewReader(size.doc))
				for {
					if _, err := d.Token(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
