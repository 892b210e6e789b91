package replicate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/operate/replicate"
	"atelier/internal/testkit/watch"
)

// writePause is the time between two writes of a writer. The first and the last
// copy read the write-ahead log to its end, which the writers move. The race
// detector slows down the reader, but not SQLite: without a pause the reader
// does not always arrive.
const writePause = 4 * time.Millisecond

// TestStopsUnderLoad stops the copying at random moments while others write so
// much that the write-ahead log starts again and again from its beginning, and
// starts it again. Every copy is whole.
func TestStopsUnderLoad(t *testing.T) {
	w := newFixture(t)
	var done atomic.Bool
	var group sync.WaitGroup
	defer group.Wait()
	defer done.Store(true)
	for writer := range 2 {
		group.Go(func() {
			for i := 0; !done.Load(); i++ {
				err := w.db.Write(w.Context(), func(tx *sqldb.Tx) error {
					id := fmt.Sprintf("w%d-%d", writer, rand.IntN(2000))
					if _, err := tx.Exec(w.Context(), `DELETE FROM person WHERE id = $1`, id); err != nil {
						return err
					}
					_, err := tx.Exec(w.Context(), `INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, $2, 1)`, id, strings.Repeat("x", rand.IntN(3000)))
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(writePause)
			}
		})
	}
	for round := range 5 {
		w.start()
		if round == 0 {
			watch.Until(t, "the first copy", func() bool { _, err := w.restore(time.Time{}); return err == nil })
		}
		time.Sleep(time.Second + time.Duration(rand.Int64N(int64(2*time.Second))))
		w.stop()
		path := fmt.Sprintf("%s/%d.db", t.TempDir(), round)
		if _, err := replicate.Restore(t.Context(), w.r.Store, path, time.Time{}, w.r.Log); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if problems, err := dbtest.Open(t, "sqlite://"+path).CheckIntegrity(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("round %d: integrity = %v, %v", round, problems, err)
		}
	}
}
