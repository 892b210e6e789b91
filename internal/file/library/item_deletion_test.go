package library_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/library"
	"atelier/internal/people/company"
)

var restorePermission = fault.New(fault.Forbidden, "Only the person who created this, or a manager of the team, can restore it.").With("reason", "permission")

func TestRestore(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.lib.Retention.Deleted = 24 * time.Hour
		anna, bert := w.person(), w.person()
		team := w.team(anna, bert)
		r := w.make(made{account: team, person: anna, prompt: "a fox", files: [][]byte{picture(3, 3), picture(3, 3)}})
		id := r.ids[0]
		w.OK(w.lib.SetFavorite(w.Context(), teamViewer(bert, team), id, true))
		before, err := w.lib.GetItem(w.Context(), teamViewer(bert, team), id)
		w.OK(err)
		used := w.usage(team)

		w.OK(w.lib.DeleteItem(w.Context(), teamViewer(anna, team), id))
		grant := library.SignedURL{Kind: library.KindResult, ID: r.results[0], Variant: library.VariantFile, ViewerID: anna}
		_, err = w.lib.FindFile(w.Context(), grant)
		w.refused(err, noFile)
		_, err = w.lib.GetItem(w.Context(), teamViewer(anna, team), id)
		w.refused(err, noItem)
		w.Do(func(tx *sqldb.Tx) error {
			_, err := library.ResolveReference(w.Context(), tx, team, library.LibraryRef, id)
			w.refused(err, noItem)
			shown, err := library.DescribeReferences(w.Context(), tx, team, library.LibraryRef, r.ids)
			if len(shown) != 1 {
				w.Errorf("references to %d files are shown, want 1", len(shown))
			}
			return err
		})
		size := r.assets[0].StoredBytes()
		if got := w.usage(team); got.Used != used.Used-size || got.Leaving != size {
			w.Errorf("usage of a deleted file = %+v", got)
		}
		w.Pass(23 * time.Hour)
		w.OK(w.lib.SweepFiles(w.Context()))

		_, err = w.lib.RestoreItem(w.Context(), teamViewer(bert, team), id)
		w.refused(err, restorePermission)
		_, err = w.lib.RestoreItem(w.Context(), viewerOf(bert), id)
		w.refused(err, noItem)
		manager := teamViewer(bert, team)
		manager.Role.Permissions = []company.Permission{company.ManageTeam}
		for range 2 { // the second call changes nothing
			got, err := w.lib.RestoreItem(w.Context(), manager, id)
			before.Inputs = ""
			if err != nil || got != before {
				w.Errorf("restored %+v, %v, want %+v", got, err, before)
			}
		}
		if got := w.usage(team); got != used {
			w.Errorf("usage = %+v, want %+v as before", got, used)
		}
		if _, err := w.lib.FindFile(w.Context(), grant); err != nil || !w.has(r.assets[0].Blob) {
			w.Errorf("the file of a restored item: %v", err)
		}
		w.Do(func(tx *sqldb.Tx) error {
			shown, err := library.DescribeReferences(w.Context(), tx, team, library.LibraryRef, r.ids)
			if len(shown) != 2 {
				w.Errorf("references to %d files are shown, want 2", len(shown))
			}
			return err
		})
		for _, id := range []string{"", "x", r.library + ":x", r.library + ":" + r.run} {
			_, err := w.lib.RestoreItem(w.Context(), teamViewer(anna, team), id)
			w.refused(err, noItem)
		}
		w.Pass(48 * time.Hour)
		w.OK(w.lib.SweepFiles(w.Context()))
		if got := w.list(teamViewer(anna, team), library.Filter{}); !slices.Equal(got, sorted(slices.Clone(r.ids)...)) {
			w.Errorf("two days later = %v, want %v", got, r.ids)
		}
	})
}

func TestRestoreEnds(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.lib.Retention.Deleted = 24 * time.Hour
		anna := w.person()
		r := w.make(made{account: anna, person: anna, prompt: "a fox", files: [][]byte{picture(3, 3)}})
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), r.ids[0]))
		w.Pass(24*time.Hour - time.Microsecond)
		w.OK(w.lib.SweepFiles(w.Context()))
		if !w.has(r.assets[0].Blob) {
			w.Error("the file was deleted too early")
		}
		w.Pass(time.Microsecond)
		_, err := w.lib.RestoreItem(w.Context(), viewerOf(anna), r.ids[0])
		w.refused(err, noItem)
		w.OK(w.lib.SweepFiles(w.Context()))
		if len(w.keys()) != 0 {
			w.Errorf("files = %v, want none", w.keys())
		}
		if got := w.usage(anna); got.Used != 0 || got.Leaving != 0 {
			w.Errorf("usage = %+v, want none", got)
		}
		_, err = w.lib.RestoreItem(w.Context(), viewerOf(anna), r.ids[0])
		w.refused(err, noItem)
	})
}

// With the setting 0 a deletion is final, and the note is gone at once.
func TestDeletionCanBeFinal(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, prompt: "a fox", files: [][]byte{picture(3, 3)}})
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), r.ids[0]))
		_, err := w.lib.RestoreItem(w.Context(), viewerOf(anna), r.ids[0])
		w.refused(err, noItem)
		w.Pass(time.Hour + time.Second)
		w.OK(w.lib.SweepFiles(w.Context()))
		if len(w.keys()) != 0 {
			w.Errorf("files = %v, want none", w.keys())
		}
	})
}

func TestRestoreNeedsRoom(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.lib.Retention.Deleted = time.Hour
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3)}})
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), r.ids[0]))
		u := w.upload(anna, anna, "a")
		w.lib.Storage.Account = u.Asset.StoredBytes() + r.assets[0].StoredBytes() - 1
		before := w.usage(anna)
		if _, err := w.lib.RestoreItem(w.Context(), viewerOf(anna), r.ids[0]); !fault.Is(err, fault.StorageQuotaExceeded) {
			w.Errorf("restored into a full account: %v", err)
		}
		if got := w.usage(anna); got != before {
			w.Errorf("usage = %+v, want %+v", got, before)
		}
		w.lib.Storage.Account++
		if _, err := w.lib.RestoreItem(w.Context(), viewerOf(anna), r.ids[0]); err != nil {
			w.Errorf("restored into the last room: %v", err)
		}
	})
}

// The erasure of a person's data and the retention of results are final for
// results that could have been restored.
func TestErasureEndsRestoring(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.lib.Retention.Deleted = 24 * time.Hour
		anna := w.person()
		erased := w.make(made{account: anna, person: anna, prompt: "a fox", files: [][]byte{picture(3, 3)}})
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), erased.ids[0]))
		w.Exec(`UPDATE run SET prompt = '' WHERE id = $1`, erased.run)
		w.Do(func(tx *sqldb.Tx) error { return library.EraseResults(w.Context(), tx, []string{erased.run}) })
		_, err := w.lib.RestoreItem(w.Context(), viewerOf(anna), erased.ids[0])
		w.refused(err, noItem)

		old := w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3)}})
		w.lib.Retention.Results = time.Hour
		w.Pass(time.Hour + time.Second)
		w.OK(w.lib.SweepFiles(w.Context()))
		_, err = w.lib.RestoreItem(w.Context(), viewerOf(anna), old.ids[0])
		w.refused(err, noItem)
		w.Pass(time.Hour + time.Second)
		w.OK(w.lib.SweepFiles(w.Context()))
		if len(w.keys()) != 0 {
			w.Errorf("files = %v, want none", w.keys())
		}
	})
}

// However deletions, restorations and sweeps meet, counts and files agree with
// the rows: the checks of the fixture and VerifySizes find nothing.
func TestRestoreRaces(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		w.lib.Retention.Deleted = time.Millisecond
		w.lib.OrphanAge = time.Microsecond
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3), picture(3, 3), picture(3, 3)}})
		dbtest.Together(6, func(i int) {
			ctx := context.Background()
			for k := range 12 {
				id := r.ids[k%len(r.ids)]
				var err error
				switch i % 3 {
				case 0:
					err = w.lib.DeleteItem(ctx, viewerOf(anna), id)
				case 1:
					_, err = w.lib.RestoreItem(ctx, viewerOf(anna), id)
				case 2:
					w.Pass(400 * time.Microsecond)
					err = w.lib.SweepFiles(ctx)
				}
				if err != nil && !fault.Is(err, fault.NotFound) {
					w.Errorf("%v", err)
				}
			}
		})
		w.OK(w.lib.VerifySizes(w.Context(), func(problem string) { w.Error(problem) }))
		for _, id := range w.list(viewerOf(anna), library.Filter{}) {
			i, err := w.lib.GetItem(w.Context(), viewerOf(anna), id)
			if err != nil || i.Expired {
				w.Errorf("item %s: expired %v, %v", id, i.Expired, err)
			}
		}
	})
}
