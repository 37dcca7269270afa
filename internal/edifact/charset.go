package edifact

import (
	"github.com/edihub/edihub/internal/edi/charset"
	"github.com/edihub/edihub/internal/edi/tables"
)

// levels are the character sets of values by syntax identifier: those of package charset without
// line breaks and tabs, which files have between segments and not in values. They are never written
// to.
var levels = makeLevels()

func makeLevels() map[string]*tables.Charset {
	m := map[string]*tables.Charset{"UNOW": tables.NewUTF8("UNOW")}
	for _, id := range []string{"UNOA", "UNOB", "UNOC", "UNOD", "UNOE", "UNOF", "UNOG", "UNOH", "UNOI", "UNOJ", "UNOK", "UNOL"} {
		set, _ := charset.ByIdentifier(id)
		m[id] = tables.NewCharset(id, func(c byte) bool { return c >= ' ' && set.Has(c) })
	}
	return m
}

// levelCharset is that of a syntax identifier. UNOX and UNOY switch between sets or use several bytes
// for a character; their values are not looked at byte by byte.
func levelCharset(id string) *tables.Charset { return levels[id] }
