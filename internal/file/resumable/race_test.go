package resumable_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob"
	"atelier/internal/file/resumable"
	"atelier/internal/testkit/watch"
)

// pausedStore is a store that calls a function before it opens a file.
type pausedStore struct {
	blob.Store
	beforeOpen func(n int) // n counts from 1
	opened     atomic.Int64
}

func (s *pausedStore) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error) {
	s.beforeOpen(int(s.opened.Add(1)))
	return s.Store.Open(ctx, key, offset, length)
}

// with returns the service of another node, which has another store in front of
// the same files.
func (w fixture) with(store blob.Store) *resumable.Service {
	pipeline := *w.Intake
	pipeline.Blobs = store
	other := *w.Service
	other.Intake = &pipeline
	return &other
}

// noise returns a PNG file that cannot be compressed much.
func noise(side int) []byte {
	picture := image.NewNRGBA(image.Rect(0, 0, side, side))
	rand.NewChaCha8([32]byte{3}).Read(picture.Pix)
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// TestSlowLastBytes sends the last bytes of a file to two nodes. Before the
// slower one has read the file, the upload ends through the other. The slower one
// must say what has become of the upload, and change nothing.
func TestSlowLastBytes(t *testing.T) {
	data := noise(50)
	half := len(data) / 2
	broken := append(data[:half:half], make([]byte, len(data)-half)...)
	for _, c := range []struct {
		name    string
		pauseAt int // the first part, or the one that the slower node brought
		last    []byte
		deletes bool // the other request deletes the upload instead of finishing it
		want    fault.Code
	}{
		{"the same bytes", 1, data[half:], false, fault.UploadOffsetConflict},
		{"damaged bytes", 2, broken[half:], false, fault.UploadOffsetConflict},
		{"a deletion", 1, data[half:], true, fault.NotFound},
		{"a deletion, and damaged bytes", 2, broken[half:], true, fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachDatabase(t, func(w fixture) {
				anna := w.person()
				u := w.create(anna, len(data))
				_, err := w.add(anna, u.ID, 0, data[:half])
				w.OK(err)

				var done resumable.Upload
				slow := w.with(&pausedStore{Store: w.Intake.Blobs, beforeOpen: func(n int) {
					if n != c.pauseAt {
						return
					}
					if c.deletes {
						w.OK(w.Delete(w.Context(), anna, u.ID))
						return
					}
					done, err = w.add(anna, u.ID, half, data[half:])
					w.OK(err)
				}})
				got, err := slow.Append(w.Context(), anna, u.ID, resumable.Chunk{Offset: int64(half), Length: int64(len(c.last)), Body: bytes.NewReader(c.last)})
				w.refused(err, c.want)
				if keys := w.partKeys(); len(keys) != 0 {
					w.Errorf("parts = %v, want none", keys)
				}
				if c.deletes {
					w.used(anna, 0)
					return
				}
				if later := w.state(anna, u.ID, len(data)); later != done || got != done {
					w.Errorf("the slower request = %+v, the upload %+v, want %+v", got, later, done)
				}
			})
		})
	}
}

// TestLostPartIsAnError finishes an upload of which a part is missing, although
// no request has taken it.
func TestLostPartIsAnError(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		data := sound(1000)
		u := w.create(anna, len(data))
		_, err := w.add(anna, u.ID, 0, data[:500])
		w.OK(err)
		w.OK(w.Intake.Blobs.Delete(w.Context(), w.partKeys()[0]))
		if _, err := w.add(anna, u.ID, 500, data[500:]); err == nil || fault.Is(err, fault.UploadOffsetConflict) || fault.Is(err, fault.NotFound) {
			w.Errorf("error = %v, want that of the store", err)
		}
		w.state(anna, u.ID, 500)
	})
}

// TestReplaysNeverDeadlock repeats the creation of an upload while its last
// bytes arrive. Both lock the person and the upload.
func TestReplaysNeverDeadlock(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		db := w.Fixture.DB
		if db.Pool() == nil {
			w.Skip("SQLite has one writer at a time")
		}
		anna := w.person()
		data := sound(100)
		const rounds = 150
		for round := range rounds {
			draft := resumable.Draft{Length: int64(len(data)), Key: fmt.Sprint(round)}
			u, _, err := w.Create(w.Context(), anna, draft)
			w.OK(err)
			dbtest.Together(5, func(i int) {
				var err error
				if i == 0 {
					_, err = w.add(anna, u.ID, 0, data)
				} else {
					_, _, err = w.Create(w.Context(), anna, draft)
				}
				if err != nil {
					w.Error(err)
				}
			})
		}

		count := func(query string) int {
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (n int, err error) {
				err = tx.QueryRow(w.Context(), query).Scan(&n)
				return n, err
			})
		}
		// The server counts what a connection saw when that connection has ended.
		db.Pool().Reset()
		watch.Until(w.T, "the end of all other connections", func() bool {
			return count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`) == 0
		})
		if n := count(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
			w.Errorf("%d deadlocks in %d uploads, want none", n, rounds)
		}
	})
}
