package resumable_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/file/resumable"
	"atelier/internal/people/principal"
)

func TestUploadInParts(t *testing.T) {
	eachStore(t, func(w fixture) {
		anna := w.person()
		data := sound(9 << 20) // one part more than a request may store at once
		u := w.create(anna, len(data))
		w.used(anna, int64(len(data)))
		offset := 0
		for _, end := range []int{1, 1, 70_000, len(data) - 10} {
			w.Pass(time.Minute)
			u, err := w.add(anna, u.ID, offset, data[offset:end])
			w.OK(err)
			if u.Offset != int64(end) || u.Finished() {
				w.Errorf("after %d bytes = %+v", end, u)
			}
			if got := w.state(anna, u.ID, end); end > offset && !got.Expires.Equal(w.Now().Add(24*time.Hour)) {
				w.Errorf("expires = %v", got.Expires)
			}
			offset = end
		}
		if n := len(w.partKeys()); n != 4 {
			w.Errorf("%d parts are stored, want 4", n)
		}
		w.OK(resumable.VerifyParts(w.Context(), w.Fixture.DB, w.Intake.Blobs, func(problem string) { w.Error(problem) }))

		done, err := w.add(anna, u.ID, offset, data[offset:])
		w.OK(err)
		if later := w.state(anna, u.ID, len(data)); !done.Finished() || later != done {
			w.Errorf("finished = %+v, later %+v", done, later)
		}
		if !bytes.Equal(w.content(anna, done), data) {
			w.Error("the content differs")
		}
		w.used(anna, int64(len(data)))
		if keys := w.partKeys(); len(keys) != 0 {
			w.Errorf("parts = %v, want none", keys)
		}

		again, err := w.add(anna, u.ID, len(data), nil) // nothing more is fine
		if err != nil || again.UploadID != done.UploadID {
			w.Errorf("nothing more = %+v, %v", again, err)
		}
		_, err = w.add(anna, u.ID, len(data), []byte("x"))
		w.refused(err, fault.UploadTooLarge)
		w.OK(w.Library.DeleteUpload(w.Context(), anna, anna.AccountID, done.UploadID))
		if got := w.state(anna, u.ID, len(data)); got.UploadID != done.UploadID {
			w.Errorf("after the deletion of the file = %+v", got)
		}
	})
}

func TestOffsets(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		data := sound(1000)
		u := w.create(anna, len(data))
		_, err := w.add(anna, u.ID, 0, data[:100])
		w.OK(err)
		for _, offset := range []int{0, 99, 101, len(data)} {
			got, err := w.add(anna, u.ID, offset, data[:1])
			w.refused(err, fault.UploadOffsetConflict)
			if f, _ := errors.AsType[*fault.Error](err); got.Offset != 100 || f.Details["offset"] != int64(100) {
				w.Errorf("a conflict = %+v, %v", got, err)
			}
		}
		_, err = w.add(anna, u.ID, 100, append(data[100:], 0))
		w.refused(err, fault.UploadTooLarge)
		got, err := w.Append(w.Context(), anna, u.ID, resumable.Chunk{Offset: 100, Length: -1, Body: bytes.NewReader(append(data[100:], 0))})
		w.refused(err, fault.UploadTooLarge)
		if got.Offset != 100 || len(w.partKeys()) != 1 {
			w.Errorf("after too many bytes = %+v with %d parts", got, len(w.partKeys()))
		}
		got, err = w.Append(w.Context(), anna, u.ID, resumable.Chunk{Offset: 100, Length: -1, Body: bytes.NewReader(data[100:])})
		if err != nil || !got.Finished() {
			w.Errorf("the rest = %+v, %v", got, err)
		}
	})
}

func TestTwoAtOnce(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		data := sound(100_000)
		u := w.create(anna, len(data))
		start := 0
		for _, end := range []int{50_000, len(data)} {
			var won, lost atomic.Int64
			dbtest.Together(6, func(int) {
				switch _, err := w.add(anna, u.ID, start, data[start:end]); {
				case err == nil:
					won.Add(1)
				case fault.Is(err, fault.UploadOffsetConflict):
					lost.Add(1)
				default:
					w.Error(err)
				}
			})
			if won.Load() != 1 || lost.Load() != 5 {
				w.Errorf("%d requests succeeded and %d conflicted, want 1 and 5", won.Load(), lost.Load())
			}
			w.state(anna, u.ID, end)
			start = end
		}
		if !bytes.Equal(w.content(anna, w.state(anna, u.ID, len(data))), data) {
			w.Error("the content differs")
		}
		all, err := w.Library.ListUploads(w.Context(), anna, anna.AccountID, "", nil, 10)
		if keys := blobtest.Keys(w.T, w.Intake.Blobs, ""); err != nil || len(all) != 1 || len(keys) != 1 {
			w.Errorf("uploads = %v, %v, files = %v; want one", all, err, keys)
		}
	})
}

func TestCutBodies(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		data := sound(9 << 20)
		cut := fault.New(fault.RequestTimeout, "The body was incomplete.")
		u := w.create(anna, len(data))
		got, err := w.Append(w.Context(), anna, u.ID, resumable.Chunk{Length: int64(len(data)), Body: blobtest.FailAfter(data[:8<<20+5], cut)})
		w.refused(err, fault.RequestTimeout)
		if got.Offset != 8<<20+5 {
			w.Errorf("offset = %d after %d bytes", got.Offset, 8<<20+5)
		}
		w.state(anna, u.ID, 8<<20+5)

		// With a checksum nothing of a cut body counts.
		rest := data[8<<20+5:]
		sum := sha256.Sum256(rest)
		check := func() *resumable.Checksum { return &resumable.Checksum{Hash: sha256.New(), Sum: sum[:]} }
		_, err = w.Append(w.Context(), anna, u.ID, resumable.Chunk{Offset: got.Offset, Length: int64(len(rest)), Body: blobtest.FailAfter(rest[:9], cut), Checksum: check()})
		w.refused(err, fault.RequestTimeout)
		wrong := append(slices.Clone(rest[:len(rest)-1]), rest[len(rest)-1]^1)
		_, err = w.Append(w.Context(), anna, u.ID, resumable.Chunk{Offset: got.Offset, Length: int64(len(rest)), Body: bytes.NewReader(wrong), Checksum: check()})
		w.refused(err, fault.UploadChecksumMismatch)
		w.state(anna, u.ID, 8<<20+5)
		if n := len(w.partKeys()); n != 2 {
			w.Errorf("%d parts are stored, want 2", n)
		}
		done, err := w.Append(w.Context(), anna, u.ID, resumable.Chunk{Offset: got.Offset, Length: int64(len(rest)), Body: bytes.NewReader(rest), Checksum: check()})
		w.OK(err)
		if !bytes.Equal(w.content(anna, done), data) {
			w.Error("the content differs")
		}
	})
}

// TestRefusedFiles ends uploads whose whole file is not acceptable, like POST
// /uploads would refuse it.
func TestRefusedFiles(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		for code, data := range map[fault.Code][]byte{
			fault.UnsupportedMediaType: []byte(strings.Repeat("plain text ", 100)),
			fault.Invalid:              sound(1000)[:20],
		} {
			u := w.create(anna, len(data))
			_, err := w.add(anna, u.ID, 0, data[:10])
			w.OK(err)
			_, err = w.add(anna, u.ID, 10, data[10:])
			w.refused(err, code)
			_, err = w.Get(w.Context(), anna, u.ID)
			w.refused(err, fault.NotFound)
		}
		w.used(anna, 0)
		if keys := blobtest.Keys(w.T, w.Intake.Blobs, ""); len(keys) != 0 {
			w.Errorf("files = %v, want none", keys)
		}
	})
}

// TestFullAccountCanFinishLater refuses the last bytes of a file for which the
// account has no room, and takes them when it has.
func TestFullAccountCanFinishLater(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		data := sound(1000)
		w.Library.Storage.Account = int64(len(data)) + 99
		u := w.create(anna, len(data))
		_, _, err := w.Create(w.Context(), anna, resumable.Draft{Length: 100})
		w.refused(err, fault.StorageQuotaExceeded)
		small, _, err := w.Create(w.Context(), anna, resumable.Draft{Length: 99})
		w.OK(err)
		w.used(anna, int64(len(data))+99)
		w.OK(w.Delete(w.Context(), anna, small.ID))
		_, err = w.Get(w.Context(), anna, small.ID)
		w.refused(err, fault.NotFound)
		w.refused(w.Delete(w.Context(), anna, small.ID), fault.NotFound)
		w.used(anna, int64(len(data)))

		w.Library.Storage.Account = 10 // an upload that has begun may still finish
		done, err := w.add(anna, u.ID, 0, data)
		if err != nil || !done.Finished() {
			w.Errorf("finished = %+v, %v", done, err)
		}
		w.OK(w.Delete(w.Context(), anna, u.ID))
		w.used(anna, int64(len(data)))
		w.content(anna, done)

		w.Library.Storage.Account = 0
		w.Library.Storage.Total = int64(len(data)) + 50
		_, _, err = w.Create(w.Context(), anna, resumable.Draft{Length: 51})
		w.refused(err, fault.StorageQuotaExceeded)
		_, _, err = w.Create(w.Context(), anna, resumable.Draft{Length: 50})
		w.OK(err)
	})
}

func TestExpiry(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		data := sound(1000)
		u := w.create(anna, len(data))
		finished := w.create(anna, len(data))
		_, err := w.add(anna, finished.ID, 0, data)
		w.OK(err)
		w.Pass(23 * time.Hour)
		_, err = w.add(anna, u.ID, 0, data[:500]) // counts from here
		w.OK(err)
		w.touch()
		w.Pass(23 * time.Hour)
		w.OK(w.SweepExpired(w.Context()))
		w.state(anna, u.ID, 500)
		_, err = w.Get(w.Context(), anna, finished.ID)
		w.refused(err, fault.NotFound)

		w.Pass(time.Hour)
		_, err = w.Get(w.Context(), anna, u.ID)
		w.refused(err, fault.NotFound)
		_, err = w.add(anna, u.ID, 500, data[500:])
		w.refused(err, fault.NotFound)
		w.used(anna, 2*int64(len(data)))
		w.OK(w.SweepExpired(w.Context()))
		w.used(anna, int64(len(data)))
		if keys := w.partKeys(); len(keys) != 0 {
			w.Errorf("parts = %v, want none", keys)
		}
	})
}

// TestOrphanedParts deletes parts that a killed node left without a row, but not
// those of a request that is still arriving.
func TestOrphanedParts(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		u := w.create(anna, 1000)
		_, err := w.add(anna, u.ID, 0, make([]byte, 10))
		w.OK(err)
		_, err = w.Intake.Blobs.Put(w.Context(), resumable.Folder+"/ab/"+ids.New()+"-0-"+ids.New(), strings.NewReader("x"))
		w.OK(err)
		w.touch()
		w.Pass(59 * time.Minute)
		w.OK(w.SweepExpired(w.Context()))
		if n := len(w.partKeys()); n != 2 {
			w.Errorf("%d parts after 59 minutes, want 2", n)
		}
		w.Pass(2 * time.Minute)
		w.OK(w.SweepExpired(w.Context()))
		if keys := w.partKeys(); len(keys) != 1 || !strings.Contains(keys[0], u.ID) {
			w.Errorf("parts after 61 minutes = %v, want that of %s", keys, u.ID)
		}
	})
}

func TestLimits(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		_, _, err := w.Create(w.Context(), anna, resumable.Draft{Length: w.Settings.MaxBytes + 1})
		w.refused(err, fault.UploadTooLarge)
		var won, refused atomic.Int64
		dbtest.Together(20, func(int) {
			switch _, _, err := w.Create(w.Context(), anna, resumable.Draft{Length: 5}); {
			case err == nil:
				won.Add(1)
			case fault.Is(err, fault.RateLimited):
				refused.Add(1)
			default:
				w.Error(err)
			}
		})
		if won.Load() != 16 || refused.Load() != 4 {
			w.Errorf("%d created and %d refused, want 16 and 4", won.Load(), refused.Load())
		}
		w.create(bert, 5)
		w.Pass(24 * time.Hour)
		w.create(anna, 5) // expired ones do not count
	})
}

func TestIdempotentCreation(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		data := sound(100)
		draft := resumable.Draft{Name: "sound.wav", Metadata: "filename c291bmQud2F2", Length: int64(len(data)), Key: "k"}
		first, _, err := w.Create(w.Context(), anna, draft)
		w.OK(err)
		_, err = w.add(anna, first.ID, 0, data[:50])
		w.OK(err)
		var replays atomic.Int64
		dbtest.Together(5, func(int) {
			u, replayed, err := w.Create(w.Context(), anna, draft)
			if err != nil || u.ID != first.ID || u.Offset != 50 || !replayed {
				w.Errorf("the same again = %+v, %v, %v", u, replayed, err)
			}
			replays.Add(1)
		})
		other := draft
		other.Length++
		_, _, err = w.Create(w.Context(), anna, other)
		w.refused(err, fault.IdempotencyKeyConflict)
		other = draft
		other.Metadata = ""
		_, _, err = w.Create(w.Context(), anna, other)
		w.refused(err, fault.IdempotencyKeyConflict)
		foreign, replayed, err := w.Create(w.Context(), bert, draft)
		if err != nil || replayed || foreign.ID == first.ID {
			w.Errorf("the key of somebody else = %+v, %v, %v", foreign, replayed, err)
		}
		_, err = w.add(anna, first.ID, 50, data[50:])
		w.OK(err)
		if u, replayed, err := w.Create(w.Context(), anna, draft); err != nil || !replayed || !u.Finished() {
			w.Errorf("after the end = %+v, %v, %v", u, replayed, err)
		}
		w.Pass(25 * time.Hour)
		if u, replayed, err := w.Create(w.Context(), anna, draft); err != nil || replayed || u.ID == first.ID {
			w.Errorf("an expired key = %+v, %v, %v", u, replayed, err)
		}
	})
}

func TestUploadsOfOthers(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		u := w.create(anna, 100)
		team := principal.Principal{PersonID: anna.PersonID, AccountID: ids.New()}
		for _, p := range []principal.Principal{bert, team, {PersonID: bert.PersonID, AccountID: anna.AccountID}} {
			_, err := w.Get(w.Context(), p, u.ID)
			w.refused(err, fault.NotFound)
			_, err = w.add(p, u.ID, 0, []byte("x"))
			w.refused(err, fault.NotFound)
			w.refused(w.Delete(w.Context(), p, u.ID), fault.NotFound)
		}
		_, err := w.Get(w.Context(), anna, "\x00")
		w.refused(err, fault.NotFound)
		w.state(anna, u.ID, 0)
	})
}

func TestErasure(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		data := sound(100)
		for range 3 {
			_, err := w.add(anna, w.create(anna, len(data)).ID, 0, data[:50])
			w.OK(err)
		}
		done, err := w.add(anna, w.create(anna, len(data)).ID, 0, data)
		w.OK(err)
		kept := w.create(bert, 10)
		if all := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]resumable.Upload, error) {
			return resumable.Unfinished(w.Context(), tx, anna.PersonID, "", 10)
		}); len(all) != 3 || all[0].Name != "sound.wav" {
			w.Errorf("unfinished = %+v", all)
		}
		n := 0
		for dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return resumable.EraseNext(w.Context(), tx, anna.PersonID) }) {
			n++
		}
		if n != 4 {
			w.Errorf("%d rows were erased, want 4", n)
		}
		w.used(anna, int64(len(data)))
		w.content(anna, done)
		w.state(bert, kept.ID, 0)
		w.touch()
		w.Pass(2 * time.Hour)
		w.OK(w.SweepExpired(w.Context()))
		if keys := w.partKeys(); len(keys) != 0 {
			w.Errorf("parts = %v, want none", keys)
		}

		w.Do(func(tx *sqldb.Tx) error { return resumable.DeleteUnfinished(w.Context(), tx) })
		_, err = w.Get(w.Context(), bert, kept.ID)
		w.refused(err, fault.NotFound)
		w.used(bert, 0)
	})
}

// TestChecks damages rows and files, and expects that it is found.
func TestChecks(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		data := sound(1000)
		u := w.create(anna, len(data))
		for _, end := range []int{100, 200} {
			_, err := w.add(anna, u.ID, end-100, data[end-100:end])
			w.OK(err)
		}
		done, err := w.add(anna, w.create(anna, len(data)).ID, 0, data)
		w.OK(err)
		for damage, want := range map[string]string{
			`UPDATE resumable_upload SET offset_bytes = 201 WHERE id = '` + u.ID + `'`:                           "the parts of an unfinished upload are its first bytes without gaps",
			`UPDATE resumable_part SET start_bytes = 101 WHERE start_bytes = 100`:                                "the parts of an unfinished upload are its first bytes without gaps",
			`DELETE FROM resumable_part WHERE start_bytes = 0`:                                                   "the parts of an unfinished upload are its first bytes without gaps",
			`UPDATE resumable_upload SET part_count = 3 WHERE id = '` + u.ID + `'`:                               "a resumable upload knows how many parts it has",
			`UPDATE resumable_part SET resumable_id = '` + done.ID + `'`:                                         "a finished resumable upload has no parts",
			`UPDATE resumable_upload SET person_id = '` + bert.PersonID + `' WHERE id = '` + done.ID + `'`:       "a finished resumable upload and its upload have the same person and account",
			`UPDATE resumable_upload SET length_bytes = length_bytes + 1 WHERE id = '` + u.ID + `'`:              "the stored bytes of an account are the sum of its files and unfinished uploads",
			`UPDATE storage_shard SET bytes = bytes + 1 WHERE shard = 3`:                                         "the stored bytes of the installation are the sum of all files and unfinished uploads",
			`UPDATE resumable_upload SET account_id = '` + bert.AccountID + `' WHERE id = '` + u.ID + `'`:        "the stored bytes of an account are the sum of its files and unfinished uploads",
			`UPDATE storage_account SET used_bytes = used_bytes - 1 WHERE account_id = '` + anna.AccountID + `'`: "the stored bytes of an account are the sum of its files and unfinished uploads",
		} {
			if found := w.Damage(checks, damage); !found[want] {
				w.Errorf("%s: found %v, want %q", damage, found, want)
			}
		}

		var problems []string
		verify := func() int {
			problems = nil
			w.OK(resumable.VerifyParts(w.Context(), w.Fixture.DB, w.Intake.Blobs, func(problem string) { problems = append(problems, problem) }))
			return len(problems)
		}
		if verify() != 0 {
			w.Errorf("problems = %v", problems)
		}
		keys := w.partKeys()
		w.OK(w.Intake.Blobs.Delete(w.Context(), keys[0]))
		_, err = w.Intake.Blobs.Put(w.Context(), keys[1], strings.NewReader("short"))
		w.OK(err)
		if verify() != 2 {
			w.Errorf("problems = %v, want two", problems)
		}
		// A damaged part never becomes a file.
		if _, err := w.add(anna, u.ID, 200, data[200:]); err == nil {
			w.Error("a file was made of damaged parts")
		}
		w.OK(w.Delete(w.Context(), anna, u.ID))
	})
}
