package edifact

import (
	"embed"

	"github.com/edihub/edihub/internal/edi/tables"
)

//go:generate go run ../tools/tablegen edifact tables

//go:embed tables/*.tbl
var files embed.FS

// library holds the directories that the program carries. It only caches what it reads from
// files that cannot change.
var library = tables.NewLibrary(files, map[string]string{
	"D.96A": "tables/d96a.tbl", "D.01B": "tables/d01b.tbl", "D.20B": "tables/d20b.tbl",
	"service.1": "tables/service-v1.tbl", "service.2": "tables/service-v2.tbl", "service.3": "tables/service-v3.tbl", "service.4": "tables/service-v4.tbl",
})

// Directories are the names of the message directories that the program carries.
func Directories() []string { return []string{"D.96A", "D.01B", "D.20B"} }

// Library holds the tables of ISO 9735 and UN/EDIFACT that the program carries: the Directories,
// and service.1 to service.4 with the service segments and messages of each syntax version.
func Library() *tables.Library { return library }
