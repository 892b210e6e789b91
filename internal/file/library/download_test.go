package library_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/people/company"
)

// fetch goes the way of an address: made, opened, located.
func (w fixture) fetch(kind library.URLKind, id, variant, viewerID string) (library.File, error) {
	w.Helper()
	g, err := w.links.VerifyURL(address(w.T, w.links.SignURL(kind, id, variant, viewerID, "a.png")))
	w.OK(err)
	return w.lib.FindFile(w.Context(), g)
}

func (w fixture) bytes(key string) []byte {
	w.Helper()
	r, _, err := w.lib.Blobs.Open(w.Context(), key, 0, -1)
	w.OK(err)
	defer r.Close()
	b, err := io.ReadAll(r)
	w.OK(err)
	return b
}

func TestLocate(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(24, 18), []byte("once upon a time")}})
		w.Exec(`UPDATE tool SET slug = 'fairy-tale'`)
		called := func(i int) string { return "fairy-tale-" + r.results[i][len(r.results[i])-8:] }
		u := w.upload(anna, anna, "my cat.PNG")

		f, err := w.fetch(library.KindResult, r.results[0], library.VariantFile, anna)
		if want := (library.File{Key: r.assets[0].Blob, MimeType: "image/png", Size: r.assets[0].Size, SHA256: r.assets[0].SHA256, Name: called(0) + ".png", Inline: true}); err != nil || f != want {
			w.Errorf("file = %+v, %v, want %+v", f, err, want)
		}
		if got := w.bytes(f.Key); int64(len(got)) != f.Size || sum(got) != f.SHA256 {
			w.Errorf("the bytes are %d, %s", len(got), sum(got))
		}
		f, err = w.fetch(library.KindResult, r.results[1], library.VariantFile, anna)
		if err != nil || f.MimeType != "text/plain; charset=utf-8" || f.Name != called(1)+".txt" || f.Inline {
			w.Errorf("text = %+v, %v", f, err)
		}
		f, err = w.fetch(library.KindUpload, u.ID, library.VariantFile, anna)
		if err != nil || f.Key != u.Asset.Blob || f.Name != "my cat.png" || f.SHA256 != u.Asset.SHA256 {
			w.Errorf("upload = %+v, %v", f, err)
		}
		f, err = w.fetch(library.KindUpload, u.ID, library.VariantThumb, anna)
		if err != nil || f.Key != u.Asset.Thumb || !strings.HasPrefix(f.Name, "my cat-thumb.") || !f.Inline || f.SHA256 != "" || f.Size != int64(len(w.bytes(f.Key))) || !strings.HasPrefix(f.MimeType, "image/") {
			w.Errorf("thumb = %+v, %v", f, err)
		}
		for _, none := range []library.SignedURL{
			{Kind: library.KindUpload, ID: u.ID, Variant: library.VariantPreview},
			{Kind: library.KindUpload, ID: u.ID, Variant: "other"},
			{Kind: library.KindUpload, ID: u.ID},
			{Kind: library.KindUpload, ID: ids.New(), Variant: library.VariantFile},
			{Kind: library.KindUpload, ID: r.results[0], Variant: library.VariantFile},
			{Kind: library.KindUpload, ID: "\x00", Variant: library.VariantFile},
			{Kind: library.KindResult, ID: r.results[1], Variant: library.VariantThumb},
			{Kind: library.KindResult, ID: r.ids[0], Variant: library.VariantFile},
			{Kind: library.KindResult, ID: uuid.NewString(), Variant: library.VariantFile},
			{Kind: library.KindRunPreview, ID: r.run, Variant: library.VariantPreview},
			{Kind: "x", ID: u.ID, Variant: library.VariantFile},
		} {
			_, err := w.fetch(none.Kind, none.ID, none.Variant, anna)
			w.refused(err, noFile)
		}
		for _, nobody := range []string{"", "\x00", ids.New()} {
			_, err := w.lib.FindFile(w.Context(), library.SignedURL{Kind: library.KindUpload, ID: u.ID, Variant: library.VariantFile, ViewerID: nobody})
			w.refused(err, invalidURL)
		}
	})
}

// The address of what was deleted stops working at once.
func TestDeletedFilesAreNotServed(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{picture(8, 6)}})
		u := w.upload(anna, anna, "a.png")
		w.OK(w.lib.DeleteItem(w.Context(), viewerOf(anna), r.ids[0]))
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
		gone := func() {
			w.Helper()
			for _, variant := range []string{library.VariantFile, library.VariantThumb} {
				_, err := w.fetch(library.KindResult, r.results[0], variant, anna)
				w.refused(err, noFile)
				_, err = w.fetch(library.KindUpload, u.ID, variant, anna)
				w.refused(err, noFile)
			}
		}
		if !w.has(r.assets[0].Blob) || !w.has(u.Asset.Blob) {
			w.Error("the bytes went before their time")
		}
		gone()
		w.Pass(2 * time.Hour)
		w.OK(w.lib.SweepFiles(w.Context()))
		gone()
	})
}

// An address lends the access of the person it was made for, and dies with it.
func TestAddressesDieWithTheAccess(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert, carl := w.person(), w.person(), w.person()
		team := w.team(anna, bert)
		w.team(carl)
		r := w.make(made{account: team, person: anna, files: [][]byte{picture(8, 6)}})
		mine := w.make(made{account: anna, person: anna, files: [][]byte{picture(8, 6)}})
		u := w.upload(team, anna, "a.png")
		run := w.pending(team, anna)
		w.put("preview/x.png")
		w.Exec(`UPDATE run SET preview = 'preview/x.png' WHERE id = $1`, run)
		all := func(viewer string) (errs []error) {
			for _, g := range []library.SignedURL{{Kind: library.KindResult, ID: r.results[0], Variant: library.VariantFile}, {Kind: library.KindUpload, ID: u.ID, Variant: library.VariantThumb}, {Kind: library.KindRunPreview, ID: run, Variant: library.VariantPreview}} {
				_, err := w.fetch(g.Kind, g.ID, g.Variant, viewer)
				errs = append(errs, err)
			}
			return errs
		}
		for _, member := range []string{anna, bert} {
			for _, err := range all(member) {
				w.OK(err)
			}
		}
		for _, err := range all(carl) {
			w.refused(err, invalidURL)
		}
		_, err := w.fetch(library.KindResult, mine.results[0], library.VariantFile, bert) // a colleague is no owner
		w.refused(err, invalidURL)

		w.Do(func(tx *sqldb.Tx) error { return company.RemoveTeamMember(w.Context(), tx, team, bert) })
		for _, err := range all(bert) {
			w.refused(err, invalidURL)
		}
		w.Exec(`UPDATE person SET suspended = TRUE WHERE id = $1`, anna)
		for _, err := range all(anna) {
			w.refused(err, invalidURL)
		}
		_, err = w.fetch(library.KindResult, mine.results[0], library.VariantFile, anna)
		w.refused(err, invalidURL)
		w.Exec(`UPDATE person SET suspended = FALSE WHERE id = $1`, anna)
		for _, err := range all(anna) {
			w.OK(err)
		}
		w.Do(func(tx *sqldb.Tx) error { return company.RemoveTeam(w.Context(), tx, team) })
		for _, err := range all(anna) {
			w.refused(err, invalidURL)
		}
	})
}

func TestLivePreviews(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		run := w.pending(anna, anna)
		_, err := w.fetch(library.KindRunPreview, run, library.VariantPreview, anna)
		w.refused(err, noFile) // none yet
		w.put("preview/a.jpg")
		w.Exec(`UPDATE run SET preview = 'preview/a.jpg' WHERE id = $1`, run)
		f, err := w.fetch(library.KindRunPreview, run, library.VariantPreview, anna)
		if want := (library.File{Key: "preview/a.jpg", MimeType: "image/jpeg", Size: 13, Name: "run-preview.jpg", Inline: true}); err != nil || f != want {
			w.Errorf("preview = %+v, %v, want %+v", f, err, want)
		}
		_, err = w.fetch(library.KindRunPreview, run, library.VariantPreview, bert)
		w.refused(err, invalidURL)
		_, err = w.fetch(library.KindRunPreview, run, library.VariantFile, anna)
		w.refused(err, noFile)
		w.OK(w.lib.Blobs.Delete(w.Context(), "preview/a.jpg")) // replaced meanwhile
		_, err = w.fetch(library.KindRunPreview, run, library.VariantPreview, anna)
		w.refused(err, noFile)
		w.put("preview/a.jpg")
		w.end(run)
		_, err = w.fetch(library.KindRunPreview, run, library.VariantPreview, anna)
		w.refused(err, noFile)
	})
}

// A name to save under is short, has the right extension and leads nowhere.
func TestSaveAs(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		stored := w.ingestFile(picture(4, 4))
		stored.Asset.Thumb = ""
		for name, want := range map[string]string{
			"cat.png":                     "cat.png",
			"cat":                         "cat.png",
			"cat.exe":                     "cat.exe.png",
			"v1.2 final":                  "v1.2 final.png",
			"../../etc/passwd":            "_.._etc_passwd.png",
			`C:\con.png`:                  "C__con.png",
			"":                            "file.png",
			"..":                          "file.png",
			".png":                        "file.png",
			" . ":                         "file.png",
			"a\"b\r\nc.png":               "a_b\ufffd\ufffdc.png",
			"evil\u202egpj.exe":           "evil\ufffdgpj.exe.png",
			strings.Repeat("x", 5000):     strings.Repeat("x", 100) + ".png",
			strings.Repeat("é", 200) + "": strings.Repeat("é", 100) + ".png",
		} {
			one := ingest.StoredFile{Asset: stored.Asset}
			one.Asset.ID = ids.New()
			one.Asset.Blob = ingest.Key(one.Asset.ID, "", "png")
			u, err := w.lib.AddUpload(w.Context(), viewerOf(anna), anna, name, one)
			w.OK(err)
			if f, err := w.fetch(library.KindUpload, u.ID, library.VariantFile, anna); err != nil || f.Name != want {
				w.Errorf("%q is saved as %q, %v, want %q", name, f.Name, err, want)
			}
		}
		one := ingest.StoredFile{Asset: asset.Asset{ID: ids.New(), Type: "IMG", MimeType: "image/jpeg", SHA256: sum(nil)}}
		one.Asset.Blob = ingest.Key(one.Asset.ID, "", "jpg")
		u, err := w.lib.AddUpload(w.Context(), viewerOf(anna), anna, "cat.JPEG", one)
		w.OK(err)
		if f, err := w.fetch(library.KindUpload, u.ID, library.VariantFile, anna); err != nil || f.Name != "cat.jpeg" {
			w.Errorf("cat.JPEG is saved as %q, %v", f.Name, err)
		}
	})
}
