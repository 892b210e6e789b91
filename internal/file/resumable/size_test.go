package resumable_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/file/resumable"
	"atelier/internal/people/principal"
)

// zeros reads any number of bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// forgetfulStore is a store that keeps nothing of what is put into it.
type forgetfulStore struct{ blob.Store }

func (forgetfulStore) Put(_ context.Context, _ string, r io.Reader) (int64, error) {
	return io.Copy(io.Discard, r)
}

// addParts gives an upload n stored parts of one byte.
func (w fixture) addParts(u resumable.Upload, n int) {
	w.Helper()
	w.Exec(`
		INSERT INTO resumable_part (resumable_id, start_bytes, size_bytes, sha256, blob)
		WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < `+fmt.Sprint(n)+`)
		SELECT CAST($1 AS TEXT), i, 1, '', 'resumable/00/' || CAST($1 AS TEXT) || '-' || i FROM n`, u.ID)
	w.Exec(`UPDATE resumable_upload SET offset_bytes = $2, part_count = $2 WHERE id = $1`, u.ID, int64(n))
}

// TestAppendToManyParts compares requests for an upload with 200,000 parts with
// requests for one that has few: the size of a file must not make them slower.
func TestAppendToManyParts(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		const size, before = 1 << 41, 200_000
		w.Settings.MaxBytes = size
		anna := w.person()
		uploads := []resumable.Upload{w.create(anna, size), w.create(anna, size)}
		w.addParts(uploads[1], before)
		w.Exec(`ANALYZE`)

		service := w.with(forgetfulStore{w.Intake.Blobs})
		took := [2][]time.Duration{}
		for i := range 60 {
			for which, u := range uploads {
				start := time.Now()
				_, err := service.Append(w.Context(), anna, u.ID, resumable.Chunk{Offset: int64(i + which*before), Length: 1, Body: bytes.NewReader([]byte{1})})
				took[which] = append(took[which], time.Since(start))
				w.OK(err)
			}
		}
		slices.Sort(took[0])
		slices.Sort(took[1])
		few, many := took[0][30], took[1][30]
		w.Logf("a request for an upload with few parts takes %v, for one with %d parts %v", few, before, many)
		if many > 2*few {
			w.Errorf("a request takes %v with %d parts, and %v with few", many, before, few)
		}
	})
}

// TestTooManySmallParts refuses further requests for an upload that came in
// very small ones, but not for a file that is large enough for as many parts.
func TestTooManySmallParts(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.Settings.MaxBytes = 1 << 40
		anna := w.person()
		small, large := w.create(anna, 8<<20-1), w.create(anna, 1<<30)
		w.addParts(small, 4096)
		w.addParts(large, 4096)
		_, err := w.add(anna, small.ID, 4096, []byte{1})
		w.refused(err, fault.Invalid)
		w.state(anna, small.ID, 4096)
		_, err = w.add(anna, large.ID, 4096, []byte{1})
		w.OK(err)
		w.state(anna, large.ID, 4097)
		w.OK(w.Delete(w.Context(), anna, small.ID))
	})
}

// TestLargeBodyWithChecksum refuses bodies whose parts would wait for their rows
// for too long, with and without a Content-Length.
func TestLargeBodyWithChecksum(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.Settings.MaxBytes = 1 << 30
		anna := w.person()
		u := w.create(anna, 1<<30)
		for _, length := range []int64{resumable.MaxCheckedBytes + 1, -1} {
			_, err := w.Append(w.Context(), anna, u.ID, resumable.Chunk{
				Length:   length,
				Body:     io.LimitReader(zeros{}, resumable.MaxCheckedBytes+1),
				Checksum: &resumable.Checksum{Hash: sha256.New(), Sum: make([]byte, sha256.Size)},
			})
			w.refused(err, fault.PayloadTooLarge)
			w.state(anna, u.ID, 0)
			if keys := w.partKeys(); len(keys) != 0 {
				w.Errorf("parts = %v, want none", keys)
			}
		}
	})
}

// TestDatabaseTimeOfLongBodies sends a body whose earlier parts have used up the
// database time of its request.
func TestDatabaseTimeOfLongBodies(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		data := sound(9 << 20)
		u := w.create(anna, len(data))
		ctx, _ := sqldb.WithBudget(w.Context(), time.Second)
		spend := readerFunc(func([]byte) (int, error) {
			err := w.Fixture.DB.Read(ctx, func(*sqldb.Tx) error { w.Pass(2 * time.Second); return nil })
			if err != nil {
				return 0, err
			}
			return 0, io.EOF
		})
		done, err := w.Append(ctx, anna, u.ID, resumable.Chunk{Length: int64(len(data)), Body: io.MultiReader(spend, bytes.NewReader(data))})
		if err != nil || !done.Finished() {
			w.Errorf("finished = %+v, %v", done, err)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestMemoryOfLongBodies sends a sound of 64 MiB in one request. The test does
// not run in parallel with others, because it looks at the memory of the whole
// process.
func TestMemoryOfLongBodies(t *testing.T) {
	ctx := t.Context()
	db := dbtest.OpenAt(t, dbtest.URL(t, "sqlite"), time.Now)
	store, err := blob.Open(ctx, "file://"+t.TempDir(), blob.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const samples = 64 << 20
	s := &resumable.Service{
		DB:       db,
		Library:  &library.Library{DB: db, Blobs: store},
		Intake:   &ingest.Pipeline{Blobs: store, Analyzer: media.NewAnalyzer(media.Limits{Pixels: 1e6, Frames: 100, Duration: time.Hour})},
		Settings: resumable.Settings{Lifetime: time.Hour, MaxUnfinished: 1, MaxBytes: 1 << 30, DecodeWait: time.Second},
	}
	anna := principal.Principal{PersonID: "abcdefghij0123456789", AccountID: "abcdefghij0123456789"}
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, 'a@example.com', 'a@example.com', TRUE, '', 1)`, anna.PersonID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	header := soundHeader(samples)
	length := int64(len(header) + samples)
	u, _, err := s.Create(ctx, anna, resumable.Draft{Length: length})
	if err != nil {
		t.Fatal(err)
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done, err := s.Append(ctx, anna, u.ID, resumable.Chunk{Length: length, Body: io.MultiReader(bytes.NewReader(header), io.LimitReader(zeros{}, samples))})
	runtime.ReadMemStats(&after)
	if err != nil || !done.Finished() {
		t.Fatalf("finished = %+v, %v", done, err)
	}
	used := (after.TotalAlloc - before.TotalAlloc) >> 10
	t.Logf("a body of %d MiB took %d KiB of memory", length>>20, used)
	if used > 8<<10 {
		t.Errorf("a body of %d MiB took %d KiB of memory, want at most 8 MiB", length>>20, used)
	}
}

// TestSweepGoesOn sweeps parts of which one cannot be deleted.
func TestSweepGoesOn(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.OK(os.MkdirAll(filepath.Join(w.folder, "data", resumable.Folder), 0o700))
		for _, key := range []string{"aa/1", "bb/2", "cc/3"} {
			_, err := w.Intake.Blobs.Put(w.Context(), resumable.Folder+"/"+key, bytes.NewReader([]byte{1}))
			w.OK(err)
		}
		w.touch()
		w.Pass(2 * time.Hour)
		stuck := w.with(stuckStore{Store: w.Intake.Blobs, key: resumable.Folder + "/bb/2"})
		if err := stuck.SweepExpired(w.Context()); err == nil {
			w.Error("the sweep hid the error of a part")
		}
		if keys := w.partKeys(); len(keys) != 1 {
			w.Errorf("parts = %v, want the one that cannot be deleted", keys)
		}
	})
}

// stuckStore is a store that cannot delete one of its keys.
type stuckStore struct {
	blob.Store
	key string
}

func (s stuckStore) Delete(ctx context.Context, key string) error {
	if key == s.key {
		return fmt.Errorf("delete %s: read-only file", key)
	}
	return s.Store.Delete(ctx, key)
}
