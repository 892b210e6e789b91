package resumable_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/file/quota"
	"atelier/internal/file/resumable"
	"atelier/internal/people/principal"
)

var checks = slices.Concat(asset.Checks, library.Checks, resumable.Checks, quota.Checks)

// fixture is a service with a real store.
type fixture struct {
	dbtest.Fixture
	*resumable.Service
	folder string // of the store; empty for S3
}

// eachDatabase runs fn on both databases, with a store in a folder.
func eachDatabase(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, checks, func(dw dbtest.Fixture) {
		folder := dw.TempDir()
		fn(newFixture(dw, folder, "file://"+folder, blob.Options{Now: time.Now}))
	})
}

// eachStore runs fn on both databases with both kinds of stores.
func eachStore(t *testing.T, fn func(w fixture)) {
	t.Run("disk", func(t *testing.T) { eachDatabase(t, fn) })
	t.Run("s3", func(t *testing.T) {
		dbtest.EachFixture(t, checks, func(dw dbtest.Fixture) {
			bucket := blobtest.S3(dw.T)
			fn(newFixture(dw, "", bucket.Address(), bucket.Options()))
		})
	})
}

func newFixture(dw dbtest.Fixture, folder, address string, o blob.Options) fixture {
	store, err := blob.Open(dw.Context(), address, o)
	dw.OK(err)
	dw.Cleanup(func() { store.Close() })
	pipeline := &ingest.Pipeline{Blobs: store, Analyzer: media.NewAnalyzer(media.Limits{Pixels: 1e6, Frames: 100, Duration: time.Hour})}
	return fixture{Fixture: dw, folder: folder, Service: &resumable.Service{
		DB:      dw.DB,
		Library: &library.Library{DB: dw.DB, Blobs: store},
		Intake:  pipeline,
		Settings: resumable.Settings{
			Lifetime:      24 * time.Hour,
			MaxUnfinished: 16,
			MaxBytes:      50 << 20,
			DecodeWait:    time.Second,
			OrphanAge:     time.Hour,
		},
	}}
}

func (w fixture) person() principal.Principal {
	w.Helper()
	id := ids.New()
	w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $2, $2, TRUE, '', 1)`, id, id+"@example.com")
	return principal.Principal{PersonID: id, AccountID: id}
}

// soundHeader returns the beginning of a WAV file with n bytes of samples.
func soundHeader(n int) []byte {
	var b bytes.Buffer
	b.WriteString("RIFF")
	binary.Write(&b, binary.LittleEndian, uint32(36+n))
	b.WriteString("WAVEfmt ")
	for _, field := range []any{uint32(16), uint16(1), uint16(1), uint32(48_000), uint32(96_000), uint16(2), uint16(16)} {
		binary.Write(&b, binary.LittleEndian, field)
	}
	b.WriteString("data")
	binary.Write(&b, binary.LittleEndian, uint32(n))
	return b.Bytes()
}

// sound returns a WAV file of noise with n bytes of samples.
func sound(n int) []byte {
	samples := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(samples)
	return append(soundHeader(n), samples...)
}

func (w fixture) create(p principal.Principal, length int) resumable.Upload {
	w.Helper()
	u, replayed, err := w.Create(w.Context(), p, resumable.Draft{Name: "sound.wav", Metadata: "filename c291bmQud2F2", Length: int64(length)})
	w.OK(err)
	if replayed || u.Offset != 0 || u.Finished() {
		w.Errorf("a new upload = %+v, replayed %v", u, replayed)
	}
	return u
}

func (w fixture) add(p principal.Principal, id string, offset int, data []byte) (resumable.Upload, error) {
	return w.Append(w.Context(), p, id, resumable.Chunk{Offset: int64(offset), Length: int64(len(data)), Body: bytes.NewReader(data)})
}

// state requires that an upload has the offset, and returns it.
func (w fixture) state(p principal.Principal, id string, offset int) resumable.Upload {
	w.Helper()
	u, err := w.Get(w.Context(), p, id)
	w.OK(err)
	if u.Offset != int64(offset) {
		w.Errorf("offset = %d, want %d", u.Offset, offset)
	}
	return u
}

func (w fixture) refused(err error, code fault.Code) {
	w.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != code {
		w.Errorf("error = %v, want %s", err, code)
	}
}

// used requires that an account uses so many bytes, and that none are leaving.
func (w fixture) used(p principal.Principal, want int64) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) error {
		u, err := w.Library.Storage.AccountUsage(w.Context(), tx, p.AccountID)
		if u.Used != want || u.Leaving != 0 {
			w.Errorf("usage = %+v, want %d used", u, want)
		}
		return err
	})
}

func (w fixture) partKeys() []string {
	w.Helper()
	return blobtest.Keys(w.T, w.Intake.Blobs, resumable.Folder)
}

// touch gives all parts in the store the time of the fixture's clock.
func (w fixture) touch() {
	w.Helper()
	for _, key := range w.partKeys() {
		w.OK(os.Chtimes(filepath.Join(w.folder, "data", key), w.Now(), w.Now()))
	}
}

// content returns the stored bytes of a finished upload.
func (w fixture) content(p principal.Principal, u resumable.Upload) []byte {
	w.Helper()
	kept, err := w.Library.GetUpload(w.Context(), p, p.AccountID, u.UploadID)
	w.OK(err)
	r, _, err := w.Intake.Blobs.Open(w.Context(), kept.Asset.Blob, 0, -1)
	w.OK(err)
	defer r.Close()
	data, err := io.ReadAll(r)
	w.OK(err)
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != kept.Asset.SHA256 || kept.Name != "sound.wav" {
		w.Errorf("upload = %+v", kept)
	}
	return data
}
