package asset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/asset"
)

type fixture struct{ dbtest.Fixture }

func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, asset.Checks, func(w dbtest.Fixture) { fn(fixture{w}) })
}

func (w fixture) person() string {
	w.Helper()
	id := ids.New()
	w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $2, $2, TRUE, '', 1)`, id, id+"@example.com")
	return id
}

// file is a picture of nobody yet.
func file() asset.Asset {
	id := ids.New()
	return asset.Asset{
		ID: id, Type: "IMG", MimeType: "image/png", Size: 7, SHA256: strings.Repeat("0a", 32), Width: 3, Height: 2,
		Blurhash: "LEHV6n", Blob: "media/" + id + ".png", Thumb: "media/" + id + "-thumb.jpg",
	}
}

func (w fixture) add(u asset.Upload) asset.Upload {
	w.Helper()
	u.ID, u.Asset = ids.New(), file()
	w.Do(func(tx *sqldb.Tx) error { return asset.AddUpload(w.Context(), tx, u) })
	u.Name, u.Created = asset.CleanName(u.Name), w.Now()
	u.Asset.AccountID, u.Asset.Created = u.AccountID, w.Now()
	return u
}

func (w fixture) upload(accountID, id string) (asset.Upload, error) {
	var u asset.Upload
	err := w.Try(func(tx *sqldb.Tx) (err error) { u, err = asset.UploadByID(w.Context(), tx, accountID, id); return err })
	return u, err
}

func (w fixture) refused(err error, want *fault.Error) {
	w.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != want.Code || f.Message != want.Message {
		w.Errorf("error = %v, want %v", err, want)
	}
}

func TestFiles(t *testing.T) {
	each(t, func(w fixture) {
		film := file()
		film.AccountID, film.Type, film.MimeType, film.Duration = "team", "VID", "video/mp4", 1500*time.Millisecond
		film.Preview, film.Created = "media/preview.jpg", w.Now().Add(-time.Hour)
		sound := file()
		sound.AccountID, sound.Type, sound.Width, sound.Height, sound.Thumb = "team", "AUDIO", 0, 0, ""
		for _, a := range []asset.Asset{film, sound} {
			w.Do(func(tx *sqldb.Tx) error { return asset.Insert(w.Context(), tx, a) })
			if a.Created.IsZero() {
				a.Created = w.Now()
			}
			got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (asset.Asset, error) { return asset.Get(w.Context(), tx, a.ID) })
			if got != a {
				w.Errorf("got %+v, want %+v", got, a)
			}
		}
		w.Exec(`UPDATE asset SET gone = $2 WHERE id = $1`, film.ID, sqldb.At(w.Now()))
		got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (asset.Asset, error) { return asset.Get(w.Context(), tx, film.ID) })
		if !got.Gone.Equal(w.Now()) {
			w.Errorf("gone = %v, want %v", got.Gone, w.Now())
		}
		for _, id := range []string{ids.New(), "", "nul\x00", strings.Repeat("\xff", 20)} {
			err := w.Try(func(tx *sqldb.Tx) error { _, err := asset.Get(w.Context(), tx, id); return err })
			if !fault.Is(err, fault.NotFound) {
				w.Errorf("get %q = %v, want not found", id, err)
			}
		}
		for what, a := range map[string]asset.Asset{"of nobody": {ID: ids.New(), Blob: "k"}, "without bytes": {ID: ids.New(), AccountID: "team"}} {
			if err := w.Try(func(tx *sqldb.Tx) error { return asset.Insert(w.Context(), tx, a) }); err == nil {
				w.Errorf("a file %s was inserted", what)
			}
		}
		again := file()
		again.AccountID, again.Blob = "team", sound.Blob
		if err := w.Try(func(tx *sqldb.Tx) error { return asset.Insert(w.Context(), tx, again) }); !sqldb.IsDuplicate(err) {
			w.Errorf("two files with one key: %v, want a duplicate", err)
		}
	})
}

func TestUploadsOfOthersAreMissing(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		u := w.add(asset.Upload{AccountID: anna, PersonID: anna, Name: "TENANT-A"})
		if got, err := w.upload(anna, u.ID); err != nil || got != u {
			w.Errorf("upload = %+v, %v, want %+v", got, err, u)
		}
		for _, c := range [][2]string{{bert, u.ID}, {anna, ids.New()}, {anna, u.Asset.ID}, {anna, ""}, {anna, "\x00"}, {anna, u.ID + "\x00"}, {"", u.ID}} {
			got, err := w.upload(c[0], c[1])
			w.refused(err, asset.ErrNoUpload)
			if got != (asset.Upload{}) {
				w.Errorf("a refusal gives %+v", got)
			}
			w.refused(w.Try(func(tx *sqldb.Tx) error { return asset.DeleteUpload(w.Context(), tx, c[0], c[1]) }), asset.ErrNoUpload)
		}
		w.Do(func(tx *sqldb.Tx) error { return asset.DeleteUpload(w.Context(), tx, anna, u.ID) })
		_, err := w.upload(anna, u.ID)
		w.refused(err, asset.ErrNoUpload)
		w.refused(w.Try(func(tx *sqldb.Tx) error { return asset.DeleteUpload(w.Context(), tx, anna, u.ID) }), asset.ErrNoUpload)
	})
}

func TestUploadsAreListedNewestFirst(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		want := map[string]bool{}
		for i := range 7 {
			if i%3 == 0 { // some share a moment
				w.Pass(time.Second)
			}
			want[w.add(asset.Upload{AccountID: anna, PersonID: anna}).ID] = true
			w.add(asset.Upload{AccountID: bert, PersonID: bert})
		}
		gone := w.add(asset.Upload{AccountID: anna, PersonID: anna})
		w.Do(func(tx *sqldb.Tx) error { return asset.DeleteUpload(w.Context(), tx, anna, gone.ID) })

		var all []asset.Upload
		var after *asset.Cursor
		for {
			page := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]asset.Upload, error) { return asset.Uploads(w.Context(), tx, anna, "", after, 2) })
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
			last := page[len(page)-1].PageCursor()
			after = &last
		}
		for i, u := range all {
			if !want[u.ID] || u.AccountID != anna || u.Asset.AccountID != anna {
				w.Errorf("%+v is in the list, or twice", u)
			}
			delete(want, u.ID)
			if i > 0 && u.Created.After(all[i-1].Created) {
				w.Errorf("upload %d is newer than the one before", i)
			}
		}
		if len(want) != 0 {
			w.Errorf("the list lacks %v", want)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, want string }{
		{"cat.png", "cat.png"},
		{"", ""},
		{"  a b \n", "a b \ufffd"},
		{"../../etc/passwd", "../../etc/passwd"},
		{"a\x00b", "a\ufffdb"},
		{"a\r\nSet-Cookie: x", "a\ufffd\ufffdSet-Cookie: x"},
		{"\xff\xfe", "\ufffd\ufffd"},
		{"gpj.\u202eexe", "gpj.\ufffdexe"},
		{"日本語.png", "日本語.png"},
		{strings.Repeat("x", 255), strings.Repeat("x", 255)},
		{strings.Repeat("x", 256), strings.Repeat("x", 255)},
		{strings.Repeat("😀", 255), strings.Repeat("😀", 255)},
		{strings.Repeat("😀", 256), strings.Repeat("😀", 255)},
		{strings.Repeat("é", 4096), strings.Repeat("é", 255)},
		{strings.Repeat("\x00", 4096), strings.Repeat("\ufffd", 255)},
	} {
		if got := asset.CleanName(c.name); got != c.want {
			t.Errorf("Name(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("a\x00b")
	f.Add(strings.Repeat("é", 300))
	f.Fuzz(func(t *testing.T, s string) {
		got := asset.CleanName(s)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > 255 || strings.ContainsAny(got, "\x00\r\n") || asset.CleanName(got) != got {
			t.Errorf("Name(%q) = %q", s, got)
		}
	})
}

// Names of every sort can be kept by both databases.
func TestOddNamesAreKept(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person()
		for _, name := range []string{"../../etc", "a\x00b", strings.Repeat("n", 4096), "\xff", "CON", ""} {
			u := w.add(asset.Upload{AccountID: anna, PersonID: anna, Name: name})
			if got, err := w.upload(anna, u.ID); err != nil || got.Name != asset.CleanName(name) {
				w.Errorf("%q came back as %q, %v", name, got.Name, err)
			}
		}
	})
}

// Of many who delete at once, one has deleted.
func TestDeletedOnce(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person()
		u := w.add(asset.Upload{AccountID: anna, PersonID: anna})
		errs := make([]error, 8)
		dbtest.Together(len(errs), func(i int) {
			errs[i] = w.DB.Write(context.Background(), func(tx *sqldb.Tx) error { return asset.DeleteUpload(context.Background(), tx, anna, u.ID) })
		})
		done := 0
		for _, err := range errs {
			if err == nil {
				done++
			} else {
				w.refused(err, asset.ErrNoUpload)
			}
		}
		if done != 1 {
			w.Errorf("%d deletions, want 1", done)
		}
	})
}

func TestChecksFind(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person()
		u := w.add(asset.Upload{AccountID: anna, PersonID: anna})
		for _, c := range []struct{ check, damage string }{
			{"the file of an upload belongs to the account of the upload", `UPDATE asset SET account_id = 'other' WHERE id = $1`},
			{"the content of an upload exists until the upload is deleted", `UPDATE asset SET gone = 5 WHERE id = $1`},
			{"a file has a key and a SHA-256", `UPDATE asset SET sha256 = 'ff' WHERE id = $1`},
			{"a file has a key and a SHA-256", fmt.Sprintf(`UPDATE asset SET sha256 = '%s' WHERE id = $1`, strings.Repeat("A", 64))},
			{"a file has a key and a SHA-256", `UPDATE asset SET blob = '' WHERE id = $1`},
			{"a file's dimensions and duration are positive", `UPDATE asset SET width = 0 WHERE id = $1`},
			{"a file's dimensions and duration are positive", `UPDATE asset SET duration_ms = -1 WHERE id = $1`},
			{"a file's dimensions and duration are positive", `UPDATE asset SET height = NULL WHERE id = $1`},
		} {
			if found := w.Damage(asset.Checks, c.damage, u.Asset.ID); !found[c.check] {
				w.Errorf("after %s the checks found %v, want %q", c.damage, found, c.check)
			}
		}
	})
}
