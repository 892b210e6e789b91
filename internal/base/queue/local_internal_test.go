package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// runLocal runs a queue with one handler until the test ends.
func runLocal(t *testing.T, o Options, do func(ctx context.Context, w Work) error) (Queue, *sqldb.DB) {
	t.Helper()
	db := dbtest.Open(t, dbtest.URL(t, "sqlite"))
	o.Now, o.Drain = time.Now, time.Millisecond
	q, err := Open(db, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	returned := make(chan error)
	go func() { returned <- q.Run(ctx, []Handler{{Kind: "note", Timeout: time.Minute, Do: do}}) }()
	t.Cleanup(func() {
		stop()
		<-returned
	})
	return q, db
}

func TestLocalLeaseTaken(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 10), make(chan error, 10)
	q, db := runLocal(t, Options{Lease: 3 * time.Second}, func(ctx context.Context, w Work) error {
		began <- w.ID
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	write(t, db, func(tx *sqldb.Tx) error {
		_, err := q.Add(t.Context(), tx, Job{Kind: "note"})
		return err
	})
	id := <-began
	write(t, db, func(tx *sqldb.Tx) error { // what another worker would have done
		_, err := tx.Exec(t.Context(), `UPDATE job SET attempt = 2, lease_until = $1 WHERE id = $2`,
			sqldb.At(tx.Now.Add(time.Hour)), id)
		return err
	})
	if err := <-ended; !errors.Is(err, errLost) {
		t.Errorf("the context ended with %v, want %v", err, errLost)
	}
}

func TestLocalDeletesOldJobs(t *testing.T) {
	t.Parallel()
	q, db := runLocal(t, Options{Keep: 100 * time.Millisecond}, func(context.Context, Work) error { return nil })
	write(t, db, func(tx *sqldb.Tx) error {
		for range 1500 { // more than one batch
			if _, err := q.Add(t.Context(), tx, Job{Kind: "note"}); err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `UPDATE job SET state = 'done', finished = $1`, sqldb.At(tx.Now.Add(-time.Second)))
		return err
	})
	var kept string
	write(t, db, func(tx *sqldb.Tx) (err error) {
		kept, err = q.Add(t.Context(), tx, Job{Kind: "memo"})
		return err
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var n int
		var id string
		if err := db.QueryRow(t.Context(), `SELECT count(*), max(id) FROM job`).Scan(&n, &id); err != nil {
			t.Fatal(err)
		}
		if n == 1 && id == kept {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs are left, want 1", n)
		}
	}
}
