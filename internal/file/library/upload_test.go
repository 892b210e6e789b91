package library_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/asset"
	"atelier/internal/file/library"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

func TestUploads(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		stored := w.ingestFile(picture(16, 9))
		u, err := w.lib.AddUpload(w.Context(), viewerOf(anna), anna, "cat.png", stored)
		w.OK(err)
		if u.PersonID != anna || u.AccountID != anna || u.Name != "cat.png" || !u.Created.Equal(w.Now()) || u.Asset.AccountID != anna ||
			u.Asset.Width != 16 || u.Asset.SHA256 != stored.Asset.SHA256 || !ids.Valid(u.ID) {
			w.Errorf("upload = %+v", u)
		}
		if got, err := w.lib.GetUpload(w.Context(), viewerOf(anna), anna, u.ID); err != nil || got != u {
			w.Errorf("got %+v, %v, want %+v", got, err, u)
		}
		all, err := w.lib.ListUploads(w.Context(), viewerOf(anna), anna, "", nil, 10)
		if err != nil || len(all) != 1 || all[0] != u {
			w.Errorf("list = %+v, %v", all, err)
		}
		place := u.PageCursor()
		if all, err := w.lib.ListUploads(w.Context(), viewerOf(anna), anna, "", &place, 10); err != nil || len(all) != 0 {
			w.Errorf("behind the last = %+v, %v", all, err)
		}
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
		w.refused(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID), noUpload)
		_, err = w.lib.GetUpload(w.Context(), viewerOf(anna), anna, u.ID)
		w.refused(err, noUpload)
	})
}

// What the accounts of a request do not name is out of reach, whatever the id.
func TestUploadsStayInTheSelectedAccount(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		u := w.upload(anna, anna, "TENANT-A")
		for _, v := range []principal.Principal{viewerOf(bert), teamViewer(anna), teamViewer(bert, bert, anna+"x")} {
			_, err := w.lib.GetUpload(w.Context(), v, anna, u.ID)
			w.refused(err, noUpload)
			w.refused(w.lib.DeleteUpload(w.Context(), v, anna, u.ID), noUpload)
			if all, err := w.lib.ListUploads(w.Context(), v, anna, "", nil, 10); !fault.Is(err, fault.Forbidden) || len(all) != 0 {
				w.Errorf("list = %v, %v", all, err)
			}
			if _, err := w.lib.AddUpload(w.Context(), v, anna, "x", w.ingestFile(picture(2, 2))); !fault.Is(err, fault.Forbidden) {
				w.Errorf("add = %v, want a refusal", err)
			}
		}
		for _, id := range []string{ids.New(), "", "\x00", strings.Repeat("\xff", 20), u.Asset.ID} {
			_, err := w.lib.GetUpload(w.Context(), viewerOf(anna), anna, id)
			w.refused(err, noUpload)
		}
		_, err := w.lib.GetUpload(w.Context(), viewerOf(bert), bert, u.ID)
		w.refused(err, noUpload)
	})
}

func TestWhoMayDeleteAnUpload(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		team := w.team(anna, bert)
		u := w.upload(team, anna, "ours")
		w.refused(w.lib.DeleteUpload(w.Context(), teamViewer(bert, team), team, u.ID), permission)
		manager := teamViewer(bert, team)
		elsewhere := teamViewer(bert, team, bert) // everything is allowed in the own account only
		w.refused(w.lib.DeleteUpload(w.Context(), elsewhere, team, u.ID), permission)
		manager.Role.Permissions = []company.Permission{company.ManageTeam}
		w.OK(w.lib.DeleteUpload(w.Context(), manager, team, u.ID))
		w.OK(w.lib.DeleteUpload(w.Context(), teamViewer(anna, team), team, w.upload(team, anna, "again").ID))
	})
}

func resolve(w fixture, accountID, kind, id string) (a asset.Asset, err error) {
	err = w.DB.Read(w.Context(), func(tx *sqldb.Tx) (err error) {
		a, err = library.ResolveReference(w.Context(), tx, accountID, kind, id)
		return err
	})
	return a, err
}

// Of all pairs of accounts and things, only those that belong together resolve.
func TestReferences(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		team := w.team(anna, bert)
		type thing struct{ account, kind, id, asset string }
		var things []thing
		accounts := map[string]string{anna: anna, bert: bert, team: anna} // who works there
		for account, person := range accounts {
			u := w.upload(account, person, "TENANT-"+account)
			things = append(things, thing{account, library.UploadRef, u.ID, u.Asset.ID})
			r := w.make(made{account: account, person: person, files: [][]byte{picture(3, 3), []byte("TENANT-" + account)}})
			for i := range r.ids {
				things = append(things, thing{account, library.LibraryRef, r.ids[i], r.assets[i].ID})
			}
		}
		missing := map[string]*fault.Error{library.UploadRef: noUpload, library.LibraryRef: noItem}
		for _, one := range things {
			for account := range accounts {
				for kind := range missing {
					a, err := resolve(w, account, kind, one.id)
					if account == one.account && kind == one.kind {
						if err != nil || a.ID != one.asset || a.AccountID != account || a.Blob == "" {
							w.Errorf("%s of its own account = %+v, %v", kind, a, err)
						}
						continue
					}
					w.refused(err, missing[kind])
					if a != (asset.Asset{}) {
						w.Errorf("a refusal gives %+v", a)
					}
				}
			}
		}
		if _, err := resolve(w, anna, "MULTIPART", things[0].id); !fault.Is(err, fault.Invalid) {
			w.Errorf("another kind = %v", err)
		}
	})
}

func TestReferencesToNothing(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		one := w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3), picture(3, 3)}})
		two := w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3)}})
		u := w.upload(anna, anna, "a")
		for _, id := range []string{
			"", ":", one.library, one.library + ":", ":" + one.results[0], one.results[0], one.run + ":" + one.results[0],
			one.library + ":" + two.results[0], one.library + ":" + strings.ToUpper(one.results[0]), one.ids[0] + ":", one.ids[0] + " ", " " + one.ids[0],
			one.ids[0] + "\x00", one.library + ":" + strings.Repeat("\xff", 36), strings.Repeat("x", 4096),
			one.library + "::" + one.results[0], one.library + ":" + strings.ReplaceAll(one.results[0], "-", "a"),
		} {
			_, err := resolve(w, anna, library.LibraryRef, id)
			w.refused(err, noItem)
			_, err = w.lib.GetItem(w.Context(), viewerOf(anna), id)
			w.refused(err, noItem)
			w.refused(w.lib.DeleteItem(w.Context(), viewerOf(anna), id), noItem)
			w.refused(w.lib.SetFavorite(w.Context(), viewerOf(anna), id, true), noItem)
			_, err = resolve(w, anna, library.UploadRef, id)
			w.refused(err, noUpload)
		}
		// Deleted at once, gone later: both are missing.
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), two.ids[0]))
		_, err := resolve(w, anna, library.LibraryRef, two.ids[0])
		w.refused(err, noItem)
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
		_, err = resolve(w, anna, library.UploadRef, u.ID)
		w.refused(err, noUpload)
		w.Pass(2 * time.Hour)
		w.OK(w.lib.SweepFiles(w.Context()))
		_, err = resolve(w, anna, library.LibraryRef, two.ids[0])
		w.refused(err, noItem)
		_, err = resolve(w, anna, library.UploadRef, u.ID)
		w.refused(err, noUpload)
		if _, err := resolve(w, anna, library.LibraryRef, one.ids[1]); err != nil {
			w.Errorf("the one beside it: %v", err)
		}
	})
}

// Names reach no key, and come back as one clean line.
func TestOddNames(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		for _, name := range []string{"../../etc/passwd", "..", "/etc/passwd", `C:\con`, "a\x00b.png", strings.Repeat("n", 4096), strings.Repeat("é", 300), "\xff\xfe", "", "CON", "a\r\nX: y"} {
			u := w.upload(anna, anna, name)
			got, err := w.lib.GetUpload(w.Context(), viewerOf(anna), anna, u.ID)
			if err != nil || got != u || got.Name != asset.CleanName(name) {
				w.Errorf("%q: %+v, %v", name, got, err)
			}
		}
		ours := regexp.MustCompile(`^media/../[0-9A-Za-z]{20}(-thumb)?\.(png|jpg)$`)
		for _, key := range w.keys() {
			if !ours.MatchString(key) {
				w.Errorf("key = %q", key)
			}
		}
		outside, err := os.ReadDir(w.folder)
		if err != nil || len(outside) != 2 { // data and tmp
			w.Errorf("folder = %v, %v", outside, err)
		}
	})
}

// Two files with one id, or one file in two uploads, is refused by the database.
func TestATakenFileHasOneOwner(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		stored := w.ingestFile(picture(4, 4))
		errs := make([]error, 4)
		dbtest.Together(len(errs), func(i int) {
			_, errs[i] = w.lib.AddUpload(w.Context(), viewerOf(anna), anna, "x", stored)
		})
		fine := 0
		for _, err := range errs {
			if err == nil {
				fine++
			} else if !sqldb.IsDuplicate(err) {
				w.Errorf("error = %v, want a duplicate", err)
			}
		}
		if fine != 1 {
			w.Errorf("%d uploads of one file, want 1", fine)
		}
	})
}
