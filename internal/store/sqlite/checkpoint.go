package sqlite

import (
	"context"
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

// Sizes of the write-ahead log in bytes.
const (
	checkpointLog = 16 << 20  // from here on it is copied into the database
	alarmLog      = 256 << 20 // from here on a reader must be in the way
	keptLog       = 4 << 20   // what stays of the file after a checkpoint
	logStep       = 4 << 20   // how much it must grow before a checkpoint is tried again
)

// watchLog looks at the log after a commit and calls for a checkpoint when it has grown.
func (w *writer) watchLog() {
	st, err := os.Stat(filepath.Join(w.s.dir, fileName+"-wal"))
	if err != nil || st.Size() < checkpointLog {
		w.logTried = 0
		return
	}
	if st.Size() < w.logTried+logStep {
		return
	}
	w.logTried = st.Size()
	select {
	case w.s.logSize <- st.Size():
	default: // one is under way
	}
}

// checkpoints copies the log into the database when it has grown. Most of it is copied beside
// the writer, who goes on; then the writer copies what was added meanwhile, so that its next
// transaction finds the log done and begins it anew.
func (s *Store) checkpoints() {
	for {
		select {
		case <-s.dead:
			return
		case size := <-s.logSize:
			if size > alarmLog {
				s.log.Warn("write_ahead_log_large", zap.Int64("bytes", size))
			}
			if err := s.checkpoint(size); err != nil {
				s.log.Warn("checkpoint_failed", zap.Error(err))
			}
		}
	}
}

func (s *Store) checkpoint(size int64) error {
	ctx := context.Background()
	if _, err := s.lists.ExecContext(ctx, "pragma wal_checkpoint(passive)"); err != nil {
		return classify(err)
	}
	text := "pragma wal_checkpoint(passive)"
	if size > alarmLog {
		text = "pragma wal_checkpoint(restart)" // waits for readers, up to the busy timeout
	}
	return s.submit(ctx, &request{job: func(w *wconn) error { return w.control(text) }})
}
