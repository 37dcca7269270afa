package edifact

import (
	"strings"

	"github.com/edihub/edihub/internal/edi/tables"
)

// levels are the character sets by syntax identifier (ISO 9735 annex A, ISO/IEC 8859 parts). They
// are never written to.
var levels = makeLevels()

func makeLevels() map[string]*tables.Charset {
	const levelA = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,-()/='+:?!\"%&*;<>"
	in := func(set string) func(byte) bool { return func(c byte) bool { return strings.IndexByte(set, c) >= 0 } }
	m := map[string]*tables.Charset{
		"UNOA": tables.NewCharset("UNOA", in(levelA)),
		"UNOB": tables.NewCharset("UNOB", in(levelA+"abcdefghijklmnopqrstuvwxyz")),
		"UNOW": tables.NewUTF8("UNOW"),
	}
	// What the parts of ISO/IEC 8859 leave unassigned above 0xA0.
	holes := map[string]string{
		"UNOC": "", "UNOD": "", "UNOE": "",
		"UNOF": "\xae\xd2\xff", // -7; later editions assigned A4, A5 and AA
		"UNOG": "\xa5\xae\xbe\xc3\xd0\xe3\xf0",
		"UNOH": "",
		"UNOI": span(0xa1, 0xa3) + span(0xa5, 0xab) + span(0xae, 0xba) + span(0xbc, 0xbe) + "\xc0" + span(0xdb, 0xdf) + span(0xf3, 0xff),
		"UNOJ": "\xa1" + span(0xbf, 0xde) + "\xfb\xfc\xff",
		"UNOK": "", "UNOL": "",
	}
	for id, unassigned := range holes {
		m[id] = tables.NewCharset(id, func(c byte) bool {
			return c >= ' ' && c < 0x7f || c >= 0xa0 && strings.IndexByte(unassigned, c) < 0
		})
	}
	return m
}

func span(from, to byte) string {
	b := make([]byte, 0, 256)
	for c := int(from); c <= int(to); c++ {
		b = append(b, byte(c)) //nolint:gosec // G115: below 256.
	}
	return string(b)
}

// levelCharset is that of a syntax identifier. UNOX and UNOY switch between sets or use several bytes
// for a character; their values are not looked at byte by byte.
func levelCharset(id string) *tables.Charset { return levels[id] }
