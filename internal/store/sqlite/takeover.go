package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// takeOverRows is how many work rows one step of a take-over looks at.
const takeOverRows = 5_000

// handedNow is what the column says today: rows that an earlier process handed to its broker were
// lost with it.
func (s *Store) handedNow(handed int64) int64 {
	if handed != s.boot {
		return 0
	}
	return handed
}

// takeOver marks the rows that a dead process had handed over as handed to nobody, so that the
// sweeper finds them. The first step is done when Open returns; after a crash with a long backlog
// the others follow in the background, between the transactions of the writer.
func (s *Store) takeOver(ctx context.Context) error {
	c := takeOver{boot: s.boot, rows: takeOverRows}
	if err := s.submit(ctx, &request{job: c.step}); err != nil || c.done {
		return err
	}
	s.background.Go(func() {
		for !c.done {
			err := s.submit(context.Background(), &request{job: c.step})
			if err == nil {
				continue
			}
			if !errors.Is(err, errClosed) {
				s.log.Error("take_over_of_handed_rows_failed", zap.Error(err))
			}
			return
		}
	})
	return nil
}

// takeOver walks through the work rows by their key.
type takeOver struct {
	boot  int64
	rows  int64 // in one step
	stage int64
	id    edi.ID
	done  bool
}

func (c *takeOver) step(w *wconn) error {
	toStage, to, last := int64(len(store.Stages())+1), edi.ID{}, true
	err := w.query("select stage, id from work where (stage, id) > (?, ?) order by stage, id limit 1 offset ?", func(row []driver.Value) error {
		toStage, to, last = integer(row[0]), idOf(row[1]), false
		return nil
	}, c.stage, c.id[:], c.rows-1)
	if err != nil {
		return err
	}
	err = w.exec("update work set handed = 0 where (stage, id) > (?, ?) and (stage, id) <= (?, ?) and state = 1 and handed <> 0 and handed <> ?",
		c.stage, c.id[:], toStage, to[:], c.boot)
	if err != nil {
		return err
	}
	c.stage, c.id, c.done = toStage, to, last
	return nil
}
