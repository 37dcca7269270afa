// Package migrations embeds the SQL that makes and changes the schemas of the hub's databases.
// The files are numbered, each has a way up and a way down, and goose applies them.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql
var sqliteFiles embed.FS

// SQLite returns the migrations of the embedded database, without a leading folder.
func SQLite() (fs.FS, error) { return fs.Sub(sqliteFiles, "sqlite") }
