package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver

	"github.com/edihub/edihub/migrations"
)

// SchemaVersion is the version of the schema that this program writes.
const SchemaVersion = 3

// latest asks for SchemaVersion, and refuses a database that is beyond it.
const latest = -1

// VersionError says that a database was written by a newer program.
type VersionError struct {
	Database int64
	Program  int64
}

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the database has schema version %d, this program knows up to %d: run a newer edihub, or migrate down with it first", e.Database, e.Program)
}

// errTarget: there is no such version.
var errTarget = errors.New("no such schema version")

// Migrate brings the schema of a data folder to a version, up or down; down removes what the
// versions above have stored. The folder must not be in use.
func Migrate(ctx context.Context, dir string, target int64) (err error) {
	if target < 0 || target > SchemaVersion {
		return fmt.Errorf("version %d of 0 to %d: %w", target, SchemaVersion, errTarget)
	}
	s := newStore(Options{Dir: dir})
	if err := s.folders(); err != nil {
		return err
	}
	if s.lock, err = lockFolder(s.dir); err != nil {
		return err
	}
	err = migrate(ctx, s.dir, target)
	return errors.Join(err, s.release())
}

// Version returns the version of the schema in a data folder; 0 when there is no database.
func Version(ctx context.Context, dir string) (version int64, err error) {
	if _, err := os.Stat(filepath.Join(dir, fileName)); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	p, done, err := provider(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	return p.GetDBVersion(ctx)
}

func provider(dir string) (*goose.Provider, func() error, error) {
	files, err := migrations.SQLite()
	if err != nil {
		return nil, nil, fmt.Errorf("migrations: %w", err)
	}
	// The database is made with the mode of its folder's content, which SQLite gives its log too.
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	db, err := openDB(dir, 1, readerPages, false)
	if err != nil {
		return nil, nil, err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("migrations: %w", err), db.Close())
	}
	return p, db.Close, nil
}

func migrate(ctx context.Context, dir string, target int64) (err error) {
	p, done, err := provider(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("schema version: %w", classify(err))
	}
	switch {
	case have > SchemaVersion:
		return &VersionError{Database: have, Program: SchemaVersion}
	case target == latest && have == SchemaVersion:
		return nil
	case target == latest:
		_, err = p.Up(ctx)
	case target >= have:
		_, err = p.UpTo(ctx, target)
	default:
		_, err = p.DownTo(ctx, target)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", classify(err))
	}
	return nil
}
