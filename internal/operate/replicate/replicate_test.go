package replicate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/operate/replicate"
	"atelier/internal/testkit/watch"
)

// fixture is a database whose changes are copied to a bucket.
type fixture struct {
	*testing.T
	db   *sqldb.DB
	r    replicate.Replication
	stop func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	b := blobtest.S3(t)
	store, err := blob.Open(t.Context(), b.Address(), b.Options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	address := dbtest.URL(t, "sqlite")
	return &fixture{
		T:  t,
		db: dbtest.Open(t, address),
		r: replicate.Replication{
			Path:  strings.TrimPrefix(address, "sqlite://"),
			Store: store,
			Owner: "this installation",
			Keep:  24 * time.Hour,
			Log:   slog.New(slog.DiscardHandler),
		},
	}
}

// start copies changes until stop is called, which returns after the last ones
// were copied.
func (w *fixture) start() {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.r.Run(ctx) }()
	w.stop = func() {
		w.Helper()
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	}
}

// write adds people with the given numbers, each in a transaction of its own.
func (w *fixture) write(from, to int) {
	w.Helper()
	for i := from; i < to; i++ {
		err := w.db.Write(w.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(w.Context(), `INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 1)`, fmt.Sprintf("p%04d", i))
			return err
		})
		if err != nil {
			w.Fatal(err)
		}
	}
}

// restore returns the number of people as of a moment.
func (w *fixture) restore(at time.Time) (people int64, err error) {
	w.Helper()
	path := filepath.Join(w.TempDir(), "restored.db")
	newest, err := replicate.Restore(w.Context(), w.r.Store, path, at, w.r.Log)
	if err != nil {
		return 0, err
	}
	if !at.IsZero() && newest.After(at) {
		w.Errorf("restored a change of %v, asked for %v", newest, at)
	}
	db := dbtest.Open(w, "sqlite://"+path)
	if problems, err := db.CheckIntegrity(w.Context()); err != nil || len(problems) > 0 {
		w.Errorf("integrity = %v, %v", problems, err)
	}
	people, err = sqldb.One[int64](w.Context(), db, `SELECT count(*) FROM person`)
	if err != nil {
		w.Fatal(err)
	}
	return people, nil
}

// waitFor waits until the newest copy has the given number of people.
func (w *fixture) waitFor(people int64) {
	w.Helper()
	watch.Until(w, "the changes are copied", func() bool {
		got, err := w.restore(time.Time{})
		return err == nil && got == people
	})
}

// TestRestoreToMoment writes, notes the time, writes more, and restores the
// database as of that time: it has exactly the first writes.
func TestRestoreToMoment(t *testing.T) {
	w := newFixture(t)
	before := time.Now()
	w.start()
	var moments []time.Time
	for i := range 3 {
		w.write(i*20, i*20+20)
		w.waitFor(int64(i*20 + 20))
		moments = append(moments, time.Now())
	}
	w.stop()
	for i, at := range moments {
		if got, err := w.restore(at); err != nil || got != int64(i*20+20) {
			t.Errorf("as of moment %d: %d people, %v, want %d", i, got, err, i*20+20)
		}
	}
	if _, err := w.restore(before); !errors.Is(err, replicate.ErrEmpty) {
		t.Errorf("before the first copy: %v", err)
	}
}

// TestCopyingContinues stops the copying, writes meanwhile, and starts it again.
// The last commits before a stop are copied, and those in between later.
func TestCopyingContinues(t *testing.T) {
	w := newFixture(t)
	w.start()
	w.write(0, 10)
	w.waitFor(10)
	w.write(10, 15)
	w.stop()
	if got, err := w.restore(time.Time{}); err != nil || got != 15 {
		t.Errorf("after the stop: %d people, %v, want 15", got, err)
	}
	w.write(15, 40)
	if err := w.db.MaintainFiles(t.Context()); err != nil { // moves the log into the database
		t.Fatal(err)
	}
	w.start()
	w.waitFor(40)
	w.stop()

	other := w.r
	other.Owner = "another installation"
	if err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another installation") {
		t.Errorf("another installation: %v", err)
	}
}

func TestPlaceMustBeEmpty(t *testing.T) {
	w := newFixture(t)
	if _, err := w.r.Store.Put(t.Context(), "media/one.png", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("error = %v", err)
	}
}
