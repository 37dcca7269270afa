package x12

import (
	"embed"

	"github.com/edihub/edihub/internal/edi/tables"
)

//go:generate go run ../tools/tablegen x12 tables

//go:embed tables/*.tbl
var files embed.FS

// library holds the directories that the program carries. It only caches what it reads from
// files that cannot change.
var library = tables.NewLibrary(files, map[string]string{
	"004010": "tables/004010.tbl", "005010": "tables/005010.tbl",
	"control.00401": "tables/control-00401.tbl", "control.00501": "tables/control-00501.tbl",
})

// Directories are the names of the directories of transaction sets that the program carries.
func Directories() []string { return []string{"004010", "005010"} }

// Library holds the tables of X12 that the program carries: the Directories, and control.00401
// and control.00501 with the segments of the envelope.
func Library() *tables.Library { return library }
