package library_test

import (
	"errors"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/quota"
)

func (w fixture) usage(accountID string) quota.Usage {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (quota.Usage, error) { return w.lib.Storage.AccountUsage(w.Context(), tx, accountID) })
}

func (w fixture) total() int64 {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (int64, error) { return quota.TotalBytes(w.Context(), tx) })
}

// Many uploads at once, on two nodes and for several accounts, never store more
// than an account's limit or the installation's, and store as much as fits.
func TestConcurrentUploadsStayWithinTheQuota(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		const accounts, each, fit, fitTotal = 6, 12, 4, 17
		files := make([]ingest.StoredFile, accounts*each)
		for i := range files {
			files[i] = w.ingestFile(picture(8, 8))
			// All of one size, so that it is known how many fit.
			files[i].Asset.Size, files[i].Asset.PictureBytes = 1000, 24
		}
		limits := quota.Limits{Account: fit*1024 + 1000, Total: fitTotal*1024 + 1023}
		w.lib.Storage = limits
		other := library.Library{DB: w.DB, Blobs: w.lib.Blobs, Storage: limits}
		nodes := []*library.Library{w.lib, &other}
		people := make([]string, accounts)
		for i := range people {
			people[i] = w.person()
		}

		errs := make([]error, len(files))
		dbtest.Together(len(files), func(i int) {
			who := people[i%accounts]
			_, errs[i] = nodes[i/accounts%2].AddUpload(w.Context(), viewerOf(who), who, "x", files[i])
		})

		added := 0
		for _, err := range errs {
			if err == nil {
				added++
			} else if !fault.Is(err, fault.StorageQuotaExceeded) {
				t.Errorf("error = %v, want StorageQuotaExceeded", err)
			}
		}
		if added != fitTotal || w.total() != fitTotal*1024 {
			t.Errorf("%d uploads with %d bytes, want %d", added, w.total(), fitTotal)
		}
		for _, id := range people {
			if u := w.usage(id); u.Used > fit*1024 {
				t.Errorf("an account uses %d bytes of %d", u.Used, limits.Account)
			}
		}

		// Without the installation's limit, each account is filled up.
		limits.Total = 0
		for _, n := range nodes {
			n.Storage = limits
		}
		dbtest.Together(len(files), func(i int) {
			if errs[i] != nil {
				who := people[i%accounts]
				nodes[i/accounts%2].AddUpload(w.Context(), viewerOf(who), who, "x", files[i])
			}
		})
		for _, id := range people {
			if u := w.usage(id); u.Used != fit*1024 {
				t.Errorf("an account uses %d bytes, want %d", u.Used, fit*1024)
			}
		}
	})
}

// A deletion makes room at once, retention too; whoever uploads and deletes in
// turn stores at most twice their limit. The sweep makes the rest free again.
func TestDeletionFreesTheQuota(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		stored := func() ingest.StoredFile {
			one := w.ingestFile(picture(8, 8))
			one.Asset.Size, one.Asset.PictureBytes = 900, 100
			return one
		}
		w.lib.Storage.Account = 2000
		add := func() (string, error) {
			u, err := w.lib.AddUpload(w.Context(), viewerOf(anna), anna, "x", stored())
			return u.ID, err
		}
		wantReason := func(err error, reason string) {
			t.Helper()
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.StorageQuotaExceeded || f.Details["reason"] != reason {
				t.Errorf("error = %v, want StorageQuotaExceeded for %s", err, reason)
			}
		}

		var ids []string
		for range 2 {
			id, err := add()
			w.OK(err)
			ids = append(ids, id)
		}
		_, err := add()
		wantReason(err, "account")
		for range 2 {
			w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, ids[0]))
			if err := w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, ids[0]); !fault.Is(err, fault.NotFound) {
				t.Errorf("second deletion: %v", err)
			}
			id, err := add()
			w.OK(err)
			ids = append(ids[1:], id)
		}
		if u := w.usage(anna); u.Used != 2000 || u.Leaving != 2000 || w.total() != 4000 {
			t.Errorf("usage = %+v, total %d", u, w.total())
		}
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, ids[0]))
		_, err = add()
		wantReason(err, "deleted_recently")

		w.Pass(2 * time.Hour)
		w.sweep()
		if u := w.usage(anna); u.Used != 1000 || u.Leaving != 0 || w.total() != 1000 {
			t.Errorf("usage after the sweep = %+v, total %d", u, w.total())
		}
		_, err = add()
		w.OK(err)

		w.lib.Retention.Uploads = time.Hour
		w.Pass(2 * time.Hour)
		w.sweep()
		if u := w.usage(anna); u.Used != 0 || u.Leaving != 2000 {
			t.Errorf("usage after retention = %+v", u)
		}
		w.Pass(2 * time.Hour)
		w.sweep()
		if u := w.usage(anna); u.Used != 0 || u.Leaving != 0 || w.total() != 0 {
			t.Errorf("usage at the end = %+v, total %d", u, w.total())
		}
	})
}

// Results and files that came with a run count, with the pictures of them.
func TestQuotaCountsResultsAndPictures(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(400, 300), picture(9, 9)}})
		want := int64(0)
		for _, a := range r.assets {
			if a.PictureBytes <= 0 {
				t.Errorf("the pictures of %s have %d bytes", a.ID, a.PictureBytes)
			}
			want += a.Size + a.PictureBytes
		}
		if u := w.usage(anna); u.Used != want {
			t.Errorf("used = %d, want %d", u.Used, want)
		}
		onDisk := int64(0)
		for item, err := range w.lib.Blobs.List(w.Context(), "") {
			w.OK(err)
			onDisk += item.Size
		}
		if onDisk != want {
			t.Errorf("%d bytes are stored, %d counted", onDisk, want)
		}

		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), r.ids[0]))
		if u := w.usage(anna); u.Used != want-r.assets[0].StoredBytes() || u.Leaving != r.assets[0].StoredBytes() {
			t.Errorf("usage after a deletion = %+v", u)
		}
		w.Do(func(tx *sqldb.Tx) error { return library.EraseResults(w.Context(), tx, []string{r.run}) })
		w.Do(func(tx *sqldb.Tx) error { return library.EraseResults(w.Context(), tx, []string{r.run}) })
		if u := w.usage(anna); u.Used != 0 || u.Leaving != want {
			t.Errorf("usage after the erasure = %+v", u)
		}
		u := w.upload(anna, anna, "x")
		w.Do(func(tx *sqldb.Tx) error {
			_, err := library.EraseUploads(w.Context(), tx, anna, "", 100)
			return err
		})
		if got := w.usage(anna); got.Used != 0 || got.Leaving != want+u.Asset.StoredBytes() {
			t.Errorf("usage after the erasure of uploads = %+v", got)
		}
	})
}

// An account's own limit counts instead of the setting, 0 is no limit, and nil
// goes by the setting again.
func TestOwnLimit(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		set := func(limit *int64) (before *int64) {
			w.Helper()
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (*int64, error) { return quota.SetLimit(w.Context(), tx, anna, limit) })
		}
		room := func() int64 {
			w.Helper()
			n, err := w.lib.CheckAvailable(w.Context(), anna, 0)
			w.OK(err)
			return n
		}
		w.lib.Storage = quota.Limits{Account: 100, Total: 1000}
		if room() != 100 {
			t.Errorf("room = %d, want 100", room())
		}
		low, none := int64(10), int64(0)
		if before := set(&low); before != nil || room() != 10 {
			t.Errorf("room = %d, want 10; before %v", room(), before)
		}
		if before := set(&none); before == nil || *before != 10 || room() != 1000 {
			t.Errorf("room = %d, want 1000; before %v", room(), before)
		}
		if before := set(nil); before == nil || *before != 0 || room() != 100 {
			t.Errorf("room = %d, want 100; before %v", room(), before)
		}
		bad := int64(-1)
		if err := w.Try(func(tx *sqldb.Tx) error { _, err := quota.SetLimit(w.Context(), tx, anna, &bad); return err }); !fault.Is(err, fault.Invalid) {
			t.Errorf("a limit below 0: %v", err)
		}
	})
}

// Damaged counts are named, and keep nobody from deleting.
func TestStorageChecks(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		u := w.upload(anna, anna, "x")
		for damage, want := range map[string]string{
			`UPDATE storage_account SET used_bytes = used_bytes + 1`:     "the stored bytes of an account are the sum of its files and unfinished uploads",
			`UPDATE storage_account SET leaving_bytes = 5`:               "the stored bytes of an account are the sum of its files and unfinished uploads",
			`DELETE FROM storage_account`:                                "the stored bytes of an account are the sum of its files and unfinished uploads",
			`UPDATE storage_shard SET bytes = bytes + 1 WHERE shard = 3`: "the stored bytes of the installation are the sum of all files and unfinished uploads",
			`UPDATE asset SET stored_bytes = 0`:                          "the stored bytes of a file are at least its size",
			`UPDATE asset SET released = 1`:                              "a file counts as used until it is deleted",
			`UPDATE upload SET deleted = 1`:                              "a file counts as used until it is deleted",
		} {
			if found := w.Damage(quota.Checks, damage); !found[want] {
				t.Errorf("%s: found %v, want %q", damage, found, want)
			}
		}
		w.Exec(`UPDATE storage_account SET used_bytes = 1`)
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
		w.Pass(2 * time.Hour)
		w.sweep()
	})
}
