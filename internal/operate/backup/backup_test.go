package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/file/resumable"
	"atelier/internal/operate/backup"
	"atelier/internal/people/principal"
)

// fixture is an installation with some files.
type fixture struct {
	*testing.T
	source backup.Source
	blobs  string // folder
	assets []asset.Asset
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	w := &fixture{T: t, blobs: filepath.Join(t.TempDir(), "blobs")}
	store := openStore(t, w.blobs)
	db := dbtest.Open(t, dbtest.URL(t, "sqlite"))
	w.source = backup.Source{
		DB: db, Blobs: store, Secret: []byte("a secret\n"), Version: "test", Now: time.Now,
		Check: func(context.Context, *sqldb.DB) ([]string, error) { return nil, nil },
	}
	for i := range 3 {
		w.add(bytes.Repeat([]byte{byte(i), 'x'}, 700*i))
	}
	w.put("catalog/cat.png", []byte("a picture"))
	w.put("preview/of-a-run.jpg", []byte("not kept"))
	return w
}

func openStore(t *testing.T, folder string) blob.Store {
	t.Helper()
	store, err := blob.Open(t.Context(), "file://"+folder, blob.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func (w *fixture) put(key string, data []byte) {
	w.Helper()
	if _, err := w.source.Blobs.Put(w.Context(), key, bytes.NewReader(data)); err != nil {
		w.Fatal(err)
	}
}

// add stores a file with a thumbnail.
func (w *fixture) add(data []byte) {
	w.Helper()
	sum := sha256.Sum256(data)
	id := ids.New()
	a := asset.Asset{
		ID: id, AccountID: "team", Type: "IMG", MimeType: "image/png", Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Width: 1, Height: 1,
		Blob: "media/" + id + ".png", Thumb: "media/" + id + "-thumb.jpg",
	}
	w.put(a.Blob, data)
	w.put(a.Thumb, []byte("thumb of "+id))
	if err := w.source.DB.Write(w.Context(), func(tx *sqldb.Tx) error { return asset.Insert(w.Context(), tx, a) }); err != nil {
		w.Fatal(err)
	}
	w.assets = append(w.assets, a)
}

func (w *fixture) create(path string) backup.Report {
	w.Helper()
	r, err := backup.Create(w.Context(), w.source, path)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// extract restores an archive into a new folder and says what that folder holds
// by path.
func extract(t *testing.T, archive []byte) (files map[string]string, folder string, err error) {
	t.Helper()
	target := filepath.Join(t.TempDir(), "restored")
	stage, err := backup.NewStage(target)
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	store := openStore(t, filepath.Join(stage.FolderPath(), "blobs"))
	layout := backup.Layout{
		Folder: stage.FolderPath(), Database: filepath.Join(stage.FolderPath(), "atelier.db"), Secret: filepath.Join(stage.FolderPath(), "keys", "secret"), Blobs: store,
	}
	if _, _, err := backup.Extract(t.Context(), bytes.NewReader(archive), layout, func(backup.Header) error { return nil }); err != nil {
		return nil, target, err
	}
	if err := stage.Commit(); err != nil {
		t.Fatal(err)
	}
	return tree(t, target), target, nil
}

// tree is every file below a folder. Each is for its owner only.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// names lists a folder.
func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestThereAndBack(t *testing.T) {
	w := newFixture(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "one.tar")
	r := w.create(path)
	if r.Files != 7 || len(r.Problems) != 0 || !r.HasSecret {
		w.Errorf("report = %+v", r)
	}
	if all := names(t, folder); len(all) != 1 {
		w.Errorf("a backup leaves %v", all)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		w.Errorf("mode = %v, %v", info, err)
	}
	var streamed bytes.Buffer
	if _, err := backup.Stream(t.Context(), w.source, &streamed, t.TempDir()); err != nil {
		w.Fatal(err)
	}
	for _, archive := range [][]byte{read(t, path), streamed.Bytes()} {
		files, target, err := extract(t, archive)
		if err != nil {
			w.Fatal(err)
		}
		want := tree(t, w.blobs)
		delete(want, "data/preview/of-a-run.jpg")
		for name, text := range want {
			if files["blobs/"+name] != text {
				w.Errorf("%s is not as it was", name)
			}
		}
		if files["keys/secret"] != "a secret\n" || len(files) != len(want)+2 {
			w.Errorf("%d files, want %d: %q", len(files), len(want)+2, files["keys/secret"])
		}
		copied := dbtest.Open(t, "sqlite://"+filepath.Join(target, "atelier.db"))
		var holds int64
		if err := copied.QueryRow(t.Context(), `SELECT count(*) FROM sweep_hold`).Scan(&holds); err != nil || holds != 0 {
			w.Errorf("%d holds in the copy, %v", holds, err)
		}
	}
	var holds int64
	if err := w.source.DB.QueryRow(t.Context(), `SELECT count(*) FROM sweep_hold`).Scan(&holds); err != nil || holds != 0 {
		w.Errorf("%d holds are left, %v", holds, err)
	}
}

// TestUnfinishedUploadsAreLeftOut backs up an installation with an unfinished
// and a finished resumable upload. The unfinished one goes on afterwards, but the
// copy has neither its rows, nor its parts, nor its storage.
func TestUnfinishedUploadsAreLeftOut(t *testing.T) {
	w := newFixture(t)
	ctx := t.Context()
	db := w.source.DB
	anna := principal.Principal{PersonID: ids.New()}
	anna.AccountID = anna.PersonID
	err := db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, 'a@example.com', 'a@example.com', TRUE, '', 1)`, anna.PersonID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	service := &resumable.Service{
		DB:       db,
		Library:  &library.Library{DB: db, Blobs: w.source.Blobs},
		Intake:   &ingest.Pipeline{Blobs: w.source.Blobs, Analyzer: media.NewAnalyzer(media.Limits{Pixels: 1e6, Frames: 1, Duration: time.Minute})},
		Settings: resumable.Settings{Lifetime: time.Hour, MaxUnfinished: 2, MaxBytes: 1 << 20},
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 9, 9))); err != nil {
		t.Fatal(err)
	}
	data := picture.Bytes()
	send := func(id string, from, until int) resumable.Upload {
		t.Helper()
		u, err := service.Append(ctx, anna, id, resumable.Chunk{Offset: int64(from), Length: int64(until - from), Body: bytes.NewReader(data[from:until])})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	var uploads [2]resumable.Upload
	for i := range uploads {
		if uploads[i], _, err = service.Create(ctx, anna, resumable.Draft{Length: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
	}
	finished := send(uploads[0].ID, 0, len(data))
	send(uploads[1].ID, 0, 20)

	w.source.Check = func(ctx context.Context, db *sqldb.DB) (found []string, err error) {
		all, err := db.VerifyChecks(ctx, resumable.Checks)
		for _, one := range all {
			found = append(found, one.Check)
		}
		return found, err
	}
	path := filepath.Join(t.TempDir(), "one.tar")
	if r := w.create(path); len(r.Problems) != 0 {
		t.Errorf("problems = %v", r.Problems)
	}
	files, target, err := extract(t, read(t, path))
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if strings.Contains(name, resumable.Folder+"/") {
			t.Errorf("the backup has the part %s", name)
		}
	}
	copied := dbtest.Open(t, "sqlite://"+filepath.Join(target, "atelier.db"))
	count := func(db *sqldb.DB, query string) (n int64) {
		t.Helper()
		if err := db.QueryRow(ctx, query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const used = `SELECT sum(used_bytes) FROM storage_account`
	if n := count(db, used) - count(copied, used); n != int64(len(data)) {
		t.Errorf("the copy counts %d bytes less, want the %d of the unfinished upload", n, len(data))
	}
	if n := count(copied, `SELECT count(*) FROM resumable_part`); n != 0 {
		t.Errorf("the copy has %d parts", n)
	}
	there := *service
	there.DB = copied
	if u, err := there.Get(ctx, anna, finished.ID); err != nil || u.UploadID != finished.UploadID {
		t.Errorf("the finished upload in the copy = %+v, %v, want %+v", u, err, finished)
	}
	if _, err := there.Get(ctx, anna, uploads[1].ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the unfinished upload in the copy: %v", err)
	}
	if u := send(uploads[1].ID, 20, len(data)); !u.Finished() {
		t.Errorf("after the backup = %+v", u)
	}
}

// TestSecretOfSettings stays where it is.
func TestSecretOfSettings(t *testing.T) {
	w := newFixture(t)
	w.source.Secret = nil
	path := filepath.Join(t.TempDir(), "one.tar")
	if w.create(path).HasSecret {
		w.Error("a secret that was not given is said to be there")
	}
	files, _, err := extract(t, read(t, path))
	if _, there := files["keys/secret"]; err != nil || there {
		w.Errorf("secret: %v, %v", there, err)
	}
}

// TestIllInstallation is saved as far as it is there, and what is wrong is told.
func TestIllInstallation(t *testing.T) {
	w := newFixture(t)
	w.put(w.assets[1].Blob, bytes.Repeat([]byte("?"), int(w.assets[1].Size)))
	if err := w.source.Blobs.Delete(t.Context(), w.assets[2].Thumb); err != nil {
		w.Fatal(err)
	}
	w.source.Blobs = breaking{w.source.Blobs, w.assets[2].Blob}
	w.source.Check = func(context.Context, *sqldb.DB) ([]string, error) { return []string{"row 7: is odd"}, nil }
	path := filepath.Join(t.TempDir(), "one.tar")
	r := w.create(path)
	for _, want := range []string{"row 7: is odd", w.assets[1].Blob + " was changed", w.assets[2].Thumb + " is missing", w.assets[2].Blob + " could not be read to its end"} {
		if !strings.Contains(strings.Join(r.Problems, "\n"), want) {
			w.Errorf("problems = %q, want %q", r.Problems, want)
		}
	}
	files, _, err := extract(t, read(t, path))
	half := files["blobs/data/"+w.assets[2].Blob]
	if err != nil || len(half) != int(w.assets[2].Size) || !strings.HasPrefix(half, "\x02x\x02x") || !strings.HasSuffix(half, "\x00\x00") {
		w.Errorf("half a file = %d bytes, %v", len(half), err)
	}
}

// breaking is a store that cannot read one file to its end.
type breaking struct {
	blob.Store
	key string
}

func (b breaking) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error) {
	r, info, err := b.Store.Open(ctx, key, offset, length)
	if err != nil || key != b.key {
		return r, info, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(r, 1000), failing{}), r}, info, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("bad sector") }

func TestNothingIsReplaced(t *testing.T) {
	w := newFixture(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "one.tar")
	if err := os.WriteFile(path, []byte("older"), 0o600); err != nil {
		w.Fatal(err)
	}
	if _, err := backup.Create(t.Context(), w.source, path); err == nil || string(read(t, path)) != "older" {
		w.Errorf("over another backup: %v", err)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	other := filepath.Join(folder, "two.tar")
	if _, err := backup.Create(ended, w.source, other); !errors.Is(err, context.Canceled) {
		w.Errorf("cancelled: %v", err)
	}
	nowhere := filepath.Join(folder, "nowhere", "three.tar")
	if _, err := backup.Create(t.Context(), w.source, nowhere); !errors.Is(err, fs.ErrNotExist) {
		w.Errorf("in no folder: %v", err)
	}
	if all := names(t, folder); len(all) != 1 {
		w.Errorf("failures leave %v", all)
	}

	// What a killed one left is no obstacle.
	for _, left := range []string{".part", ".part.db", ".part.db-wal"} {
		if err := os.WriteFile(other+left, bytes.Repeat([]byte("left"), 1<<20), 0o644); err != nil {
			w.Fatal(err)
		}
	}
	w.create(other)
	if all := names(t, folder); len(all) != 2 {
		w.Errorf("leftovers: %v", all)
	}
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o600 {
		w.Errorf("the mode of a leftover stays: %v, %v", info, err)
	}
}

func TestOnlyNewFoldersAreTaken(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	for name, make := range map[string]func(path string) error{
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link": func(path string) error { return os.Symlink(parent, path) },
		"a full folder": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
		},
	} {
		path := filepath.Join(parent, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.NewStage(path); err == nil {
			t.Errorf("%s is taken", name)
		}
	}

	// An empty one is, with what a killed restore left beside it.
	target := filepath.Join(parent, "empty")
	if err := errors.Join(os.Mkdir(target, 0o755), os.MkdirAll(filepath.Join(target+".restore", "left"), 0o755)); err != nil {
		t.Fatal(err)
	}
	stage, err := backup.NewStage(target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.NewStage(target); err == nil {
		t.Error("two restores into one folder")
	}
	if err := os.WriteFile(filepath.Join(stage.FolderPath(), "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stage.Commit(), stage.Close()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(names(t, target)); got != "[new]" {
		t.Errorf("the folder has %v", got)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode = %v, %v", info, err)
	}
}

// entry is one of an archive that is taken apart.
type entry struct {
	header tar.Header
	data   []byte
}

func entries(t *testing.T, archive []byte) (all []entry) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{tar.Header{Typeflag: h.Typeflag, Name: h.Name, Size: h.Size, Mode: h.Mode}, data})
	}
}

// pack writes entries as an archive. The manifest says what they are by then.
func pack(t *testing.T, all []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	var manifest strings.Builder
	for _, e := range all {
		if e.header.Name == "manifest.jsonl" {
			e.data = []byte(manifest.String())
		}
		if e.header.Typeflag == tar.TypeReg {
			e.header.Size = int64(len(e.data))
		}
		sum := sha256.Sum256(e.data)
		fmt.Fprintf(&manifest, `{"name":%q,"size":%d,"sha256":"%x"}`+"\n", e.header.Name, len(e.data), sum)
		if err := w.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestHostileArchives has archives whose manifest is right in itself.
func TestHostileArchives(t *testing.T) {
	w := newFixture(t)
	path := filepath.Join(t.TempDir(), "one.tar")
	w.create(path)
	good := entries(t, read(t, path))
	last := len(good) - 1
	if _, _, err := extract(t, pack(t, good)); err != nil {
		w.Fatalf("as it was: %v", err)
	}
	file := func(name string) entry {
		return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600}, []byte("evil")}
	}
	link := func(kind byte, name, to string) entry {
		return entry{tar.Header{Typeflag: kind, Name: name, Linkname: to}, nil}
	}
	insert := func(at int, more ...entry) []entry {
		return append(append(append([]entry{}, good[:at]...), more...), good[at:]...)
	}
	sparse := file("files/media/large.png")
	sparse.header.Format = tar.FormatPAX
	sparse.header.PAXRecords = map[string]string{
		"XXX.sparse.major": "1", "XXX.sparse.minor": "0", "XXX.sparse.name": sparse.header.Name, "XXX.sparse.realsize": "1073741824",
	}
	sparse.data = append(append([]byte("1\n0\n4\n"), make([]byte, 512-6)...), "evil"...)
	for _, c := range []struct {
		name, why string
		archive   []byte
	}{
		{"a path that leads out", "not a valid file name", pack(t, insert(last, file("files/../../evil")))},
		{"an absolute path", "not a valid file name", pack(t, insert(last, file("files//etc/evil")))},
		{"a name of nothing", "is out of order or too large", pack(t, insert(last, file("evil")))},
		{"a symbolic link", "not a regular file", pack(t, insert(last, link(tar.TypeSymlink, "files/media/x.png", "/etc/passwd")))},
		{"a hard link", "not a regular file", pack(t, insert(last, link(tar.TypeLink, "files/media/x.png", "atelier.db")))},
		{"a folder", "not a regular file", pack(t, insert(last, link(tar.TypeDir, "files/media/x", "")))},
		{"a device", "not a regular file", pack(t, insert(last, link(tar.TypeChar, "files/media/x", "")))},
		{"a second database", "is out of order or too large", pack(t, insert(last, file("atelier.db")))},
		{"a second header", "is out of order or too large", pack(t, insert(1, file("atelier.json")))},
		{"no header", "is out of order or too large", pack(t, good[1:])},
		{"no database", "is out of order or too large", pack(t, append(append([]entry{}, good[0]), good[2:]...))},
		{"no secret", "is out of order or too large", pack(t, append(append([]entry{}, good[:2]...), good[3:]...))},
		{"something after its end", "data after the manifest", pack(t, append(append([]entry{}, good...), file("files/media/late.png")))},
		{"a huge secret", "is out of order or too large", pack(t, append(append(append([]entry{}, good[:2]...), entry{good[2].header, make([]byte, 1<<20)}), good[3:]...))},
		{"another format", "newer version", pack(t, append([]entry{{good[0].header, []byte(`{"format":2}`)}}, good[1:]...))},
		{"a header that is no JSON", "atelier.json is invalid", pack(t, append([]entry{{good[0].header, []byte(`{`)}}, good[1:]...))},
		{"no archive", "not a tar archive", []byte(strings.Repeat("hello ", 500))},
		{"nothing", "is truncated", nil},
		{"a sparse file of 1 GB", "not a regular file", sparseArchive(t, pack(t, insert(last, sparse)))},
		{"an archive without an end", "is truncated", pack(t, good[:last])},
	} {
		_, target, err := extract(t, c.archive)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			w.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
		if all := names(t, filepath.Dir(target)); len(all) != 0 {
			w.Errorf("%s leaves %v", c.name, all)
		}
	}
}

// sparseArchive makes the records of an entry those of a sparse file. The tar
// package reads such files, and writes none.
func sparseArchive(t *testing.T, archive []byte) []byte {
	t.Helper()
	if !bytes.Contains(archive, []byte("XXX.sparse.")) {
		t.Fatal("there is no such record")
	}
	return bytes.ReplaceAll(archive, []byte("XXX.sparse."), []byte("GNU.sparse."))
}

// TestDamagedArchives cuts an archive off and flips bytes, everywhere in turn.
func TestDamagedArchives(t *testing.T) {
	w := newFixture(t)
	path := filepath.Join(t.TempDir(), "one.tar")
	w.create(path)
	archive := read(t, path)
	end := bytes.LastIndex(archive, []byte("}\n")) + 2 // of the manifest; padding follows
	for i := range 25 {
		at := i * (end - 1) / 25
		if _, _, err := extract(t, archive[:at]); !errors.Is(err, backup.ErrDamaged) {
			w.Errorf("cut off after %d of %d bytes: %v", at, len(archive), err)
		}
	}
	for _, needle := range []string{"SQLite format", "a secret", "a picture", "thumb of ", "\x02x\x02x", `"sha256":"`, "ustar"} {
		at := bytes.LastIndex(archive, []byte(needle))
		if at < 0 {
			w.Fatalf("there is no %q", needle)
		}
		flipped := bytes.Clone(archive)
		flipped[at+len(needle)/2] ^= 1
		if _, _, err := extract(t, flipped); !errors.Is(err, backup.ErrDamaged) {
			w.Errorf("a byte of %q was flipped: %v", needle, err)
		}
	}
}
