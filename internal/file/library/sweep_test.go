package library_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
)

func (w fixture) sweep() {
	w.Helper()
	w.OK(w.lib.SweepFiles(w.Context()))
}

// there tells which of these files have their bytes.
func (w fixture) there(assets ...asset.Asset) (n int) {
	w.Helper()
	for _, a := range assets {
		if w.has(a.Blob) != w.has(a.Thumb) {
			w.Errorf("%s and its thumbnail do not go together", a.Blob)
		}
		if w.has(a.Blob) {
			n++
		}
	}
	return n
}

func TestSweepTakesDeletedBytes(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(9, 9), picture(9, 9)}})
		u, kept := w.upload(anna, anna, "a"), w.upload(anna, anna, "b")
		w.Pass(48 * time.Hour)
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), r.ids[0]))
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
		// Somebody may be creating a run from them at this moment.
		for _, pass := range []time.Duration{0, time.Hour} {
			w.Pass(pass)
			w.sweep()
			if n := w.there(r.assets[0], u.Asset); n != 2 {
				w.Errorf("%v after they were deleted %d of 2 have bytes", pass, n)
			}
		}
		w.Pass(time.Microsecond)
		w.sweep()
		if w.there(r.assets[0], u.Asset) != 0 || w.there(r.assets[1], kept.Asset) != 2 {
			w.Errorf("keys = %v", w.keys())
		}
		for id, want := range map[string]bool{r.assets[0].ID: true, u.Asset.ID: true, r.assets[1].ID: false, kept.Asset.ID: false} {
			a := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (asset.Asset, error) { return asset.Get(w.Context(), tx, id) })
			if a.Gone.IsZero() == want {
				w.Errorf("gone = %v, want %v", a.Gone, want)
			}
		}
		w.OK(w.lib.VerifyFiles(w.Context(), func(problem string) { w.Error(problem) }))
	})
}

func TestRetention(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		old := w.make(made{account: anna, person: anna, files: [][]byte{picture(9, 9)}})
		oldUpload := w.upload(anna, anna, "old")
		w.Pass(time.Hour)
		fresh := w.make(made{account: anna, person: anna, files: [][]byte{picture(9, 9)}})
		freshUpload := w.upload(anna, anna, "fresh")

		w.Pass(10_000 * time.Hour)
		w.sweep() // kept for ever
		if n := len(w.list(viewerOf(anna), library.Filter{})); n != 2 {
			w.Fatalf("%d items without a retention, want 2", n)
		}
		w.lib.Retention = library.Retention{Results: 10_000*time.Hour + 1*time.Minute}
		w.sweep()
		if got := w.list(viewerOf(anna), library.Filter{}); !slices.Equal(got, fresh.ids) {
			w.Errorf("items = %v, want %v", got, fresh.ids)
		}
		if all, err := w.lib.ListUploads(w.Context(), viewerOf(anna), anna, "", nil, 10); err != nil || len(all) != 2 {
			w.Errorf("uploads = %v, %v, want both", all, err)
		}
		w.lib.Retention = library.Retention{Uploads: 10_000*time.Hour + 1*time.Minute}
		w.sweep()
		if all, err := w.lib.ListUploads(w.Context(), viewerOf(anna), anna, "", nil, 10); err != nil || len(all) != 1 || all[0].ID != freshUpload.ID {
			w.Errorf("uploads = %v, %v, want the fresh one", all, err)
		}
		w.Pass(2 * time.Hour)
		w.lib.Retention = library.Retention{}
		w.sweep()
		if w.there(old.assets[0], oldUpload.Asset) != 0 || w.there(fresh.assets[0], freshUpload.Asset) != 2 {
			w.Errorf("keys = %v", w.keys())
		}
	})
}

// Bytes that a pending run needs stay, whatever was deleted and however long
// it takes; they go once it has ended.
func TestSweepSparesPendingRuns(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(9, 9)}})
		u := w.upload(anna, anna, "a")
		sent := w.ingestFile(picture(9, 9)).Asset // with the request itself
		sent.AccountID, sent.Created = anna, w.Now()
		w.Do(func(tx *sqldb.Tx) error { return w.insert(tx, sent) })
		run := w.pending(anna, anna, r.assets[0].ID, u.Asset.ID, sent.ID)
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), r.ids[0]))
		w.lib.Retention = library.Retention{Uploads: time.Second}
		for range 3 {
			w.Pass(24 * time.Hour)
			w.sweep()
			if n := w.there(r.assets[0], u.Asset, sent); n != 3 {
				w.Fatalf("%d of 3 inputs of a pending run are there", n)
			}
		}
		w.end(run)
		w.sweep()
		if n := w.there(r.assets[0], u.Asset, sent); n != 0 {
			w.Errorf("%d inputs are left of a run that has ended", n)
		}
	})
}

// A create can begin with what is deleted before it commits.
func TestCreateAndDeleteAtOnce(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		u := w.upload(anna, anna, "a")
		w.Pass(48 * time.Hour)
		a, err := resolve(w, anna, library.UploadRef, u.ID)
		w.OK(err)
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
		w.sweep()
		w.Pass(10 * time.Minute)
		w.sweep()
		run := w.pending(anna, anna, a.ID)
		w.Pass(48 * time.Hour)
		w.sweep()
		if w.there(a) != 1 {
			w.Error("the run has lost its input")
		}
		w.end(run)
		w.sweep()
		if w.there(a) != 0 {
			w.Error("the input outlives its run")
		}
	})
}

func TestOrphans(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(9, 9)}})
		odd := w.upload(anna, anna, "odd") // whose keys tell nothing
		for _, key := range []string{"media/odd/file.png", "media/odd/small.jpg", "media/odd/frame.jpg"} {
			w.put(key)
		}
		w.Exec(`UPDATE asset SET blob = 'media/odd/file.png', thumb = 'media/odd/small.jpg', preview = 'media/odd/frame.jpg' WHERE id = $1`, odd.Asset.ID)
		shown, ended := w.pending(anna, anna), w.pending(anna, anna)
		for run, key := range map[string]string{shown: "preview/" + shown + "/1-1.jpg", ended: "preview/" + ended + "/1-1.jpg"} {
			w.put(key)
			w.Exec(`UPDATE run SET preview = $2 WHERE id = $1`, run, key)
		}
		w.end(ended)
		lost := w.ingestFile(picture(9, 9)).Asset // nobody committed a row
		stranger := r.assets[0].ID                // bears the name of a file that is not its own
		orphans := []string{lost.Blob, lost.Thumb, odd.Asset.Blob, odd.Asset.Thumb, "preview/left.jpg", "preview/" + ended + "/1-1.jpg",
			"media/xx/junk", "media/xx/" + ids.New() + ".png", "media/" + stranger[:2] + "/" + stranger + "-old.png"}
		for _, key := range orphans[4:] {
			if !w.has(key) {
				w.put(key)
			}
		}
		others := []string{"tools/icon.png", "mediaelse/x.png"}
		for _, key := range others {
			w.put(key)
		}
		before := w.keys()
		w.Pass(time.Hour)
		w.sweep()
		if got := w.keys(); !slices.Equal(got, before) {
			w.Errorf("after an hour %v are gone", len(before)-len(got))
		}
		w.Pass(time.Second)
		w.sweep()
		want := slices.DeleteFunc(slices.Clone(before), func(key string) bool { return slices.Contains(orphans, key) })
		if got := w.keys(); !slices.Equal(got, want) || len(want) != len(before)-len(orphans) {
			w.Errorf("keys = %v, want %v", got, want)
		}
	})
}

func TestOrphanAgeIsASetting(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.lib.OrphanAge = time.Minute
		w.put("media/xx/junk.png")
		w.Pass(time.Minute)
		w.sweep()
		if len(w.keys()) != 1 {
			w.Error("it went too early")
		}
		w.Pass(time.Second)
		w.sweep()
		if len(w.keys()) != 0 {
			w.Error("it stayed")
		}
	})
}

// dying is a store that fails for good at some deletion, like one whose process
// is killed there.
type dying struct {
	blob.Store
	left int
	err  error
}

func (d *dying) Delete(ctx context.Context, key string) error {
	if d.left == 0 {
		return d.err
	}
	d.left--
	return d.Store.Delete(ctx, key)
}

// A sweep that is killed at any deletion leaves a database that is sound and
// bytes that the next one takes.
func TestSweepKilledAnywhere(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		tool := w.tool()
		store := w.lib.Blobs
		checks := slices.Concat(asset.Checks, library.Checks)
		kept := w.upload(anna, anna, "kept")
		killed := fault.New(fault.Unavailable, "killed")
		for n := 0; ; n++ {
			r := w.make(made{account: anna, person: anna, tool: tool, files: [][]byte{picture(5, 5)}})
			u := w.upload(anna, anna, "a")
			w.put("media/xx/junk.png")
			w.put("preview/junk.png")
			w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), r.ids[0]))
			w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
			w.Pass(2 * time.Hour)
			w.lib.Blobs = &dying{store, n, killed}
			err := w.lib.SweepFiles(w.Context())
			w.lib.Blobs = store
			if err != nil && !errors.Is(err, killed) {
				w.Fatal(err)
			}
			if v, err := w.DB.VerifyChecks(w.Context(), checks); err != nil || len(v) != 0 {
				w.Errorf("killed at %d: checks = %v, %v", n, v, err)
			}
			w.OK(w.lib.VerifyFiles(w.Context(), func(problem string) { w.Errorf("killed at %d: %s", n, problem) }))
			w.sweep()
			if got := w.keys(); len(got) != 2 || w.there(kept.Asset) != 1 {
				w.Errorf("killed at %d and swept again, keys = %v", n, got)
			}
			if err == nil {
				if n < 6 {
					w.Errorf("only %d deletions", n)
				}
				break
			}
		}
	})
}

// One value that can't be removed does not keep the others, and is told.
func TestSweepGoesOn(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		for i := range 5 {
			w.put(fmt.Sprintf("media/xx/junk%d.png", i))
		}
		w.Pass(2 * time.Hour)
		store, stuck := w.lib.Blobs, errors.New("stuck")
		w.lib.Blobs = &stubborn{store, "media/xx/junk2.png", stuck}
		if err := w.lib.SweepFiles(w.Context()); !errors.Is(err, stuck) {
			w.Errorf("sweep = %v, want %v", err, stuck)
		}
		if got := w.keys(); !slices.Equal(got, []string{"media/xx/junk2.png"}) {
			w.Errorf("keys = %v", got)
		}
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		if err := w.lib.SweepFiles(ctx); !errors.Is(err, context.Canceled) {
			w.Errorf("cancelled sweep = %v", err)
		}
	})
}

type stubborn struct {
	blob.Store
	key string
	err error
}

func (s *stubborn) Delete(ctx context.Context, key string) error {
	if key == s.key {
		return s.err
	}
	return s.Store.Delete(ctx, key)
}

// Many nodes sweep more than a batch at once.
func TestManySweepers(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		const n = 450
		w.Do(func(tx *sqldb.Tx) error {
			for range n {
				id := ids.New()
				u := asset.Upload{ID: id, AccountID: anna, PersonID: anna, Asset: asset.Asset{ID: id, Type: "IMG", SHA256: strings.Repeat("0", 64), Blob: "media/none/" + id}}
				if err := asset.AddUpload(w.Context(), tx, u); err != nil {
					return err
				}
			}
			return nil
		})
		for i := range 205 {
			key := fmt.Sprintf("media/xx/junk%d.png", i)
			w.OK(os.MkdirAll(filepath.Join(w.folder, "data/media/xx"), 0o700))
			w.OK(os.WriteFile(filepath.Join(w.folder, "data", key), nil, 0o600))
			w.touch(key)
		}
		kept := w.upload(anna, anna, "kept")
		w.Exec(`UPDATE upload SET created = created + 7200000000 WHERE id = $1`, kept.ID)
		w.Pass(2 * time.Hour)
		w.lib.Retention.Uploads = time.Hour
		for range 2 {
			errs := make([]error, 4)
			dbtest.Together(len(errs), func(i int) { errs[i] = w.lib.SweepFiles(w.Context()) })
			w.OK(errors.Join(errs...))
			w.Pass(time.Hour + time.Second)
			w.Exec(`UPDATE upload SET created = created + 3601000000 WHERE id = $1`, kept.ID)
		}
		var gone int64
		w.OK(w.DB.QueryRow(w.Context(), `SELECT count(*) FROM asset WHERE gone IS NOT NULL`).Scan(&gone))
		if got := w.keys(); gone != n || len(got) != 2 || w.there(kept.Asset) != 1 {
			w.Errorf("%d files are gone, want %d; keys = %v", gone, n, got)
		}
	})
}

// TestErasureTakesEveryNote also takes that of a result which a program deleted
// that knew nothing of notes, as beside this one in an upgrade.
func TestErasureTakesEveryNote(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, prompt: "a fox", files: [][]byte{picture(3, 3), picture(3, 3)}})
		w.Exec(`UPDATE result SET deleted = 5 WHERE id = $1`, r.results[0])
		w.Do(func(tx *sqldb.Tx) error { return library.EraseResults(w.Context(), tx, []string{r.run}) })
		var left, at int64
		w.Do(func(tx *sqldb.Tx) error {
			if err := tx.QueryRow(w.Context(), `SELECT count(*) FROM result WHERE note <> '' OR deleted IS NULL`).Scan(&left); err != nil {
				return err
			}
			return tx.QueryRow(w.Context(), `SELECT deleted FROM result WHERE id = $1`, r.results[0]).Scan(&at)
		})
		if left != 0 || at != 5 {
			w.Errorf("%d results are left or have a note; the first was deleted at %d, want 5", left, at)
		}
	})
}
