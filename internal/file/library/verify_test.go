package library_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/file/asset"
	"atelier/internal/file/library"
)

func TestVerifyFiles(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		fine, flipped, short, missing, thumbless := w.upload(anna, anna, "a"), w.upload(anna, anna, "b"), w.upload(anna, anna, "c"), w.upload(anna, anna, "d"), w.upload(anna, anna, "e")
		problems := func() (all []string) {
			w.Helper()
			w.OK(w.lib.VerifyFiles(w.Context(), func(problem string) { all = append(all, problem) }))
			return all
		}
		if got := problems(); len(got) != 0 {
			w.Fatalf("problems = %v", got)
		}
		path := func(key string) string { return filepath.Join(w.folder, "data", key) }
		b, err := os.ReadFile(path(flipped.Asset.Blob))
		w.OK(err)
		b[len(b)/2] ^= 1
		w.OK(os.WriteFile(path(flipped.Asset.Blob), b, 0o600))
		w.OK(os.Truncate(path(short.Asset.Blob), 5))
		w.OK(os.Remove(path(missing.Asset.Blob)))
		w.OK(os.Remove(path(thumbless.Asset.Thumb)))
		got := problems()
		if len(got) != 4 {
			w.Errorf("problems = %q, want 4", got)
		}
		for u, want := range map[asset.Upload]string{flipped: "SHA-256 mismatch", short: "5 bytes", missing: "missing file " + missing.Asset.Blob, thumbless: "missing file " + thumbless.Asset.Thumb} {
			if !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, u.Asset.ID) && strings.Contains(p, want) }) {
				w.Errorf("problems = %q, want %q of %s", got, want, u.Name)
			}
		}
		if slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, fine.Asset.ID) }) {
			w.Errorf("problems = %q, with one that is fine", got)
		}
		w.Exec(`UPDATE upload SET deleted = 1`)
		w.Exec(`UPDATE asset SET gone = 1, released = 1`)
		w.Exec(`UPDATE storage_account SET used_bytes = 0, leaving_bytes = 0`)
		w.Exec(`UPDATE storage_shard SET bytes = 0`)
		if got := problems(); len(got) != 0 {
			w.Errorf("problems of files that are gone: %q", got)
		}
	})
}

func TestChecksFind(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3), picture(3, 3)}})
		w.lib.Retention.Deleted = time.Hour
		deleted := w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3)}})
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), deleted.ids[0]))
		u := w.upload(anna, anna, "a")
		run := w.pending(anna, anna, u.Asset.ID)
		tool := w.tool()
		failed := w.make(made{account: anna, person: anna, status: "failed"}).run
		cancelled := w.pending(anna, anna)
		w.end(cancelled)
		spare := w.upload(anna, anna, "b")
		for _, c := range []struct {
			check, damage string
			args          []any
		}{
			{"the file of a result has the account and the type of the result", `UPDATE asset SET account_id = $2 WHERE id = $1`, []any{r.assets[0].ID, bert}},
			{"the file of a result has the account and the type of the result", `UPDATE result SET type = 'VID' WHERE id = $1`, []any{r.results[0]}},
			{"a result has the account and the tool of its run", `UPDATE run SET account_id = $2 WHERE id = $1`, []any{r.run, bert}},
			{"a result has the account and the tool of its run", `UPDATE result SET tool_id = $2 WHERE id = $1`, []any{r.results[0], tool}},
			{"the content of a result exists until the result is deleted", `UPDATE asset SET gone = 5 WHERE id = $1`, []any{r.assets[0].ID}},
			{"a deleted result that cannot be restored has no note", `UPDATE result SET deleted = 5, note = 'a fox' WHERE id = $1`, []any{r.results[0]}},
			{"only a deleted result whose content exists can be restored", `UPDATE result SET restorable_until = 5 WHERE id = $1`, []any{r.results[0]}},
			{"only a deleted result whose content exists can be restored", `UPDATE asset SET gone = 5 WHERE id = $1`, []any{deleted.assets[0].ID}},
			{"the results of a run without a prompt have no text for searching", `UPDATE result SET search_text = 'a fox' WHERE id = $1`, []any{r.results[0]}},
			{"the results of a successful run are numbered without gaps", `DELETE FROM result WHERE run_id = $1`, []any{r.run}},
			{"the results of a successful run are numbered without gaps", `DELETE FROM result WHERE id = $1`, []any{r.results[0]}},
			{"the results of a successful run are numbered without gaps", `UPDATE result SET place = 2 WHERE id = $1`, []any{r.results[1]}},
			{"a run that failed or was cancelled has no results", `UPDATE result SET run_id = $2 WHERE run_id = $1`, []any{r.run, failed}},
			{"a run that failed or was cancelled has no results", `UPDATE result SET run_id = $2 WHERE run_id = $1`, []any{r.run, cancelled}},
			{"the input files of a run belong to the account of the run", `UPDATE run SET account_id = $2 WHERE id = $1`, []any{run, bert}},
			{"the content of the input files of a pending run exists", `UPDATE asset SET gone = 5 WHERE id = $1`, []any{u.Asset.ID}},
			{"a file is an upload or a result, not both", `UPDATE result SET asset_id = $2 WHERE id = $1`, []any{r.results[0], spare.Asset.ID}},
		} {
			if found := w.Damage(library.Checks, c.damage, c.args...); !found[c.check] {
				w.Errorf("after %s the checks found %v, want %q", c.damage, found, c.check)
			}
		}
	})
}
