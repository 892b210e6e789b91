package library_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

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
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// fixture is a library with a real store. Stored files get the time of the
// fixture's clock.
type fixture struct {
	dbtest.Fixture
	lib      *library.Library
	pipeline *ingest.Pipeline
	folder   string
	links    library.URLSigner
}

func eachDatabase(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, slices.Concat(asset.Checks, library.Checks, quota.Checks), func(dw dbtest.Fixture) {
		w := fixture{Fixture: dw, folder: dw.TempDir()}
		store, err := blob.Open(dw.Context(), "file://"+w.folder, blob.Options{Now: time.Now})
		w.OK(err)
		dw.Cleanup(func() { store.Close() })
		analyzer := media.NewAnalyzer(media.Limits{Pixels: 20_000_000, Frames: 100, Duration: time.Hour})
		w.lib, w.pipeline = &library.Library{DB: dw.DB, Blobs: store}, &ingest.Pipeline{Blobs: store, Analyzer: analyzer}
		w.links = library.URLSigner{Key: []byte("a key of this test"), BaseURL: "https://media.example", Lifetime: 7 * 24 * time.Hour, Now: dw.Now}
		fn(w)
	})
}

func (w fixture) refused(err error, want *fault.Error) {
	w.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != want.Code || f.Message != want.Message || f.Details["reason"] != want.Details["reason"] {
		w.Errorf("error = %v, want %v", err, want)
	}
}

var (
	noUpload   = fault.New(fault.NotFound, "There is no such upload.")
	noItem     = fault.New(fault.NotFound, "There is no such library item.")
	noFile     = fault.New(fault.NotFound, "There is no such file.")
	invalidURL = fault.New(fault.Forbidden, "This URL is no longer valid. Request a new one.").With("reason", "signature")
	permission = fault.New(fault.Forbidden, "Only the person who created this, or a manager of the team, can delete it.").With("reason", "permission")
)

// People and tools.

func (w fixture) person() string {
	w.Helper()
	id := ids.New()
	w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $2, $2, TRUE, '', 1)`, id, id+"@example.com")
	return id
}

func viewerOf(personID string) principal.Principal {
	return principal.Principal{PersonID: personID, AccountID: personID}
}

func teamViewer(personID string, accounts ...string) principal.Principal {
	p := principal.Principal{PersonID: personID}
	for i, id := range accounts {
		account := principal.Principal{PersonID: personID, AccountID: id}
		if id != personID {
			account.TeamID = id
		}
		if i == 0 {
			p = account
		} else {
			p.Others = append(p.Others, account)
		}
	}
	return p
}

// team makes a team of these people.
func (w fixture) team(people ...string) string {
	w.Helper()
	var id string
	w.Do(func(tx *sqldb.Tx) error {
		c, err := company.Create(w.Context(), tx, "Fox", company.TeamPlan)
		if err != nil {
			return err
		}
		team, err := company.CreateTeam(w.Context(), tx, c.ID, "Film")
		if err != nil {
			return err
		}
		id = team.ID
		for _, p := range people {
			if _, err := company.SetMember(w.Context(), tx, c.ID, p, "member"); err != nil {
				return err
			}
			if _, err := company.SetTeamMember(w.Context(), tx, id, p, "member", company.Added); err != nil {
				return err
			}
		}
		return nil
	})
	return id
}

func (w fixture) tool() string {
	w.Helper()
	id := ids.New()
	w.Exec(`INSERT INTO tool_version (hash, definition) VALUES ($1, '{}')`, id)
	w.Exec(`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ($1, $1, 'builtin', '{}', $1, FALSE, 1, 1)`, id)
	return id
}

// Files.

// picture returns a picture that differs from every other.
func picture(width, height int) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	id := uuid.New()
	for i := range img.Pix {
		img.Pix[i] = id[i%len(id)] ^ uint8(i/64)
	}
	img.Set(0, 0, color.White)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func (w fixture) ingestFile(b []byte) ingest.StoredFile {
	w.Helper()
	stored, err := w.pipeline.IngestFile(w.Context(), bytes.NewReader(b), ingest.Options{MaxBytes: 1 << 30, AllowText: true})
	w.OK(err)
	w.touch(stored.Asset.Blob, stored.Asset.Thumb)
	return stored
}

func (w fixture) upload(accountID, personID, name string) asset.Upload {
	w.Helper()
	u, err := w.lib.AddUpload(w.Context(), teamViewer(personID, accountID), accountID, name, w.ingestFile(picture(16, 9)))
	w.OK(err)
	return u
}

// made describes a run and its results.
type made struct {
	account, person, tool string
	files                 [][]byte
	prompt, inputs        string
	status                string // empty: succeeded
}

type results struct {
	run, library string
	ids          []string // as the library has them
	results      []string
	assets       []asset.Asset
}

func (w fixture) make(m made) (r results) {
	w.Helper()
	if m.tool == "" {
		m.tool = w.tool()
	}
	if m.inputs == "" {
		m.inputs = "{}"
	}
	r.run, r.library = uuid.NewString(), ids.New()
	w.run(r.run, r.library, m)
	for i, b := range m.files {
		a := w.ingestFile(b).Asset
		a.AccountID, a.Created = m.account, w.Now()
		id := uuid.NewString()
		w.Do(func(tx *sqldb.Tx) error {
			if err := w.insert(tx, a); err != nil {
				return err
			}
			_, err := tx.Exec(w.Context(), `
				INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, note, created, search_text)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, id, r.run, i, a.ID, m.account, m.tool, a.Type,
				library.AspectRatio(a.Width, a.Height), library.Resolution(a.Width, a.Height), "Not quite: "+m.prompt, sqldb.At(w.Now()), library.SearchText(m.prompt))
			return err
		})
		r.results, r.ids, r.assets = append(r.results, id), append(r.ids, r.library+":"+id), append(r.assets, a)
	}
	return r
}

// insert adds a file that is counted.
func (w fixture) insert(tx *sqldb.Tx, a asset.Asset) error {
	if err := asset.Insert(w.Context(), tx, a); err != nil {
		return err
	}
	if err := w.lib.Storage.ChargeAccount(w.Context(), tx, a.AccountID, a.StoredBytes()); err != nil {
		return err
	}
	return w.lib.Storage.ChargeTotal(w.Context(), tx, a.AccountID, a.StoredBytes())
}

// run writes the row of a run, pending or ended.
func (w fixture) run(id, libraryID string, m made) {
	w.Helper()
	status := m.status
	if status == "" {
		status = "succeeded"
	}
	var team, stage, finished, charged any
	if m.account != m.person {
		team = m.account
	}
	code := ""
	if status == "pending" {
		stage = "queued"
	} else {
		finished, charged = w.Now().UnixMicro(), 0
	}
	if status == "failed" {
		code = "ENGINE_FAILED"
	}
	w.Exec(`
		INSERT INTO run (id, library_id, person_id, account_id, team_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt,
			seed, num_results, metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
			status, stage, attempt, worker, cancel, preview, revision, error_code, error_message, created, finished)
		VALUES ($1, $2, $3, $4, $5, 'personal', '', '', $6, $6, 'fake', $7, $8, 1, $9, '', '', 2, 0, 0, 0, '', $10, $10, $11, $12, 1, '', FALSE, '', 1, $13, '', $14, $15)`,
		id, libraryID, m.person, m.account, team, m.tool, m.inputs, m.prompt, max(len(m.files), 1), charged, status, stage, code, w.Now().UnixMicro(), finished)
}

// pending makes a run that waits, and works on files.
func (w fixture) pending(account, person string, assets ...string) string {
	w.Helper()
	id := uuid.NewString()
	w.run(id, ids.New(), made{account: account, person: person, tool: w.tool(), inputs: "{}", status: "pending"})
	for i, a := range assets {
		w.Exec(`INSERT INTO run_input (run_id, field, place, asset_id) VALUES ($1, 'image', $2, $3)`, id, i, a)
	}
	return id
}

// end ends a pending run without results.
func (w fixture) end(run string) {
	w.Helper()
	w.Exec(`UPDATE run SET status = 'cancelled', stage = NULL, finished = 1, tokens_charged = 0, allowance_used = 0 WHERE id = $1`, run)
}

// The store.

// touch sets the time of values to the time of the fixture's clock.
func (w fixture) touch(keys ...string) {
	w.Helper()
	for _, key := range keys {
		if key != "" {
			w.OK(os.Chtimes(filepath.Join(w.folder, "data", key), w.Now(), w.Now()))
		}
	}
}

// put stores a value that no row refers to.
func (w fixture) put(key string) {
	w.Helper()
	_, err := w.lib.Blobs.Put(w.Context(), key, strings.NewReader(key))
	w.OK(err)
	w.touch(key)
}

func (w fixture) keys() []string {
	w.Helper()
	return blobtest.Keys(w.T, w.lib.Blobs, "")
}

func (w fixture) has(key string) bool {
	w.Helper()
	_, err := w.lib.Blobs.Stat(w.Context(), key)
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		w.Fatal(err)
	}
	return err == nil
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
