package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	driversqlite "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/edihub/edihub/internal/store"
)

// wconn is the writer's connection below database/sql: the same driver, without the locks, the
// copies and the context bookkeeping of a pool that this one goroutine does not need.
type wconn struct {
	dc    driver.ConnPrepareContext
	stmts map[string]driver.Stmt
	multi map[multiKey]driver.Stmt
	args  []driver.NamedValue
	dest  []driver.Value
	// broken is the first error that makes the whole transaction worthless: after it SQLite may
	// have rolled back on its own what earlier requests of the group wrote.
	broken error
	// before runs ahead of each statement that writes.
	before func() error
	// count is the number of statements that ran.
	count int64
}

type multiKey struct {
	t    *table
	n    int
	mode insertMode
}

// prepared returns the statement of a text, made once.
func (w *wconn) prepared(text string) (driver.Stmt, error) {
	if s := w.stmts[text]; s != nil {
		return s, nil
	}
	s, err := w.dc.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, w.fail(text, err)
	}
	w.stmts[text] = s
	return s, nil
}

// bind fills the argument buffer. It is reused: one statement runs at a time.
func (w *wconn) bind(vals []driver.Value) []driver.NamedValue {
	for len(w.args) < len(vals) {
		w.args = append(w.args, driver.NamedValue{Ordinal: len(w.args) + 1})
	}
	for i, v := range vals {
		w.args[i].Value = v
	}
	return w.args[:len(vals)]
}

// exec runs a statement that writes.
func (w *wconn) exec(text string, vals ...driver.Value) error {
	s, err := w.prepared(text)
	if err != nil {
		return err
	}
	if w.before != nil {
		if err := w.before(); err != nil {
			return err
		}
	}
	_, err = w.run(s, text, vals)
	return err
}

// control runs begin, commit, savepoint and their kind.
func (w *wconn) control(text string) error {
	s, err := w.prepared(text)
	if err != nil {
		return err
	}
	_, err = w.run(s, text, nil)
	return err
}

func (w *wconn) run(s driver.Stmt, text string, vals []driver.Value) (int64, error) {
	w.count++
	// A context with a Done channel would cost a goroutine per statement.
	res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), w.bind(vals)) //nolint:forcetypeassert // The driver has it; see open.
	if err != nil {
		return 0, w.fail(text, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, w.fail(text, err)
	}
	return n, nil
}

// query runs a statement and hands each row to each. The row's values belong to the caller.
func (w *wconn) query(text string, each func(row []driver.Value) error, vals ...driver.Value) error {
	s, err := w.prepared(text)
	if err != nil {
		return err
	}
	w.count++
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), w.bind(vals)) //nolint:forcetypeassert // The driver has it; see open.
	if err != nil {
		return w.fail(text, err)
	}
	n := len(rows.Columns())
	for len(w.dest) < n {
		w.dest = append(w.dest, nil)
	}
	dest := w.dest[:n]
	var out error
	for out == nil {
		err := rows.Next(dest)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			out = w.fail(text, err)
			break
		}
		out = each(dest)
	}
	if err := rows.Close(); err != nil && out == nil {
		out = w.fail(text, err)
	}
	return out
}

// write is query for a statement that changes rows and returns some.
func (w *wconn) write(text string, each func(row []driver.Value) error, vals ...driver.Value) error {
	if w.before != nil {
		if err := w.before(); err != nil {
			return err
		}
	}
	return w.query(text, each, vals...)
}

func (w *wconn) close() {
	for _, s := range w.stmts {
		_ = s.Close() // the connection goes next, and what was committed is safe
	}
	for _, s := range w.multi {
		_ = s.Close()
	}
}

// fail gives an error of the driver its meaning, and remembers those that end the transaction.
func (w *wconn) fail(text string, err error) error {
	err = classify(err)
	if errors.Is(err, store.ErrUnavailable) && w.broken == nil {
		w.broken = err
	}
	verb, _, _ := strings.Cut(text, "(")
	return fmt.Errorf("sqlite %s: %w", strings.TrimSpace(verb), err)
}

// classify marks the errors of a database that cannot be written now.
func classify(err error) error {
	var e *driversqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_FULL, lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_IOERR, lib.SQLITE_READONLY,
		lib.SQLITE_CANTOPEN, lib.SQLITE_NOMEM, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_PROTOCOL, lib.SQLITE_INTERRUPT:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// insertMode says what an insert does with a row that is there.
type insertMode uint8

const (
	keepOld insertMode = iota // the row that is there stays
	putNew                    // the new one takes its place
)

// table knows the texts of its multi-row inserts.
type table struct {
	name string
	cols []string
	key  string // columns of the unique key
}

// chunks of the multi-row inserts, so that few statements have to be prepared.
var chunks = [...]int{32, 8, 2, 1}

// insertText builds from constant fragments only.
func (t *table) insertText(n int, mode insertMode) string {
	var b strings.Builder
	b.WriteString("insert into ")
	b.WriteString(t.name)
	b.WriteString(" (")
	b.WriteString(strings.Join(t.cols, ", "))
	b.WriteString(") values ")
	b.WriteString(tuples(n, len(t.cols)))
	b.WriteString(" on conflict (")
	b.WriteString(t.key)
	if mode == keepOld {
		b.WriteString(") do nothing")
		return b.String()
	}
	b.WriteString(") do update set ")
	sep := ""
	for _, c := range t.cols {
		if strings.Contains(", "+t.key+",", ", "+c+",") {
			continue
		}
		b.WriteString(sep)
		b.WriteString(c)
		b.WriteString(" = excluded.")
		b.WriteString(c)
		sep = ", "
	}
	return b.String()
}

// tuples returns n groups of width placeholders: (?,?),(?,?).
func tuples(n, width int) string {
	one := "(" + marks(width) + ")"
	return strings.TrimSuffix(strings.Repeat(one+",", n), ",")
}

// marks returns n placeholders.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// insert writes rows, whose values stand one after another, and returns how many it changed.
func (w *wconn) insert(t *table, mode insertMode, vals []driver.Value) (int64, error) {
	if len(vals) == 0 {
		return 0, nil
	}
	if w.before != nil {
		if err := w.before(); err != nil {
			return 0, err
		}
	}
	var changed int64
	width := len(t.cols)
	for _, n := range chunks {
		for len(vals) >= n*width {
			k := multiKey{t, n, mode}
			s := w.multi[k]
			if s == nil {
				var err error
				text := t.insertText(n, mode)
				if s, err = w.dc.PrepareContext(context.Background(), text); err != nil {
					return changed, w.fail(text, err)
				}
				w.multi[k] = s
			}
			c, err := w.run(s, "insert into "+t.name, vals[:n*width])
			if err != nil {
				return changed, err
			}
			changed += c
			vals = vals[n*width:]
		}
	}
	return changed, nil
}

// inList runs a statement whose text ends in a list of groups of placeholders, in pieces of a
// few fixed sizes; the last group is repeated to fill a piece, which changes no result because
// the list is a set.
func inList(vals []driver.Value, width int, each func(n int, vals []driver.Value) error) error {
	for len(vals) > 0 {
		have := len(vals) / width
		n := 1
		for n < have && n < 64 {
			n *= 4
		}
		part := vals[:min(have, n)*width]
		rest := vals[len(part):]
		if missing := n - len(part)/width; missing > 0 {
			full := make([]driver.Value, 0, n*width)
			full = append(full, part...)
			for range missing {
				full = append(full, part[len(part)-width:]...)
			}
			part = full
		}
		if err := each(n, part); err != nil {
			return err
		}
		vals = rest
	}
	return nil
}
