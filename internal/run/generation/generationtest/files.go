package generationtest

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/ingest"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
)

// PNG returns a small picture, which is different for each n up to 65535.
func PNG(n int) []byte {
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		img.Set(i%8, i/8, color.RGBA{uint8(n), uint8(n >> 8), uint8(i), 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// WAV returns a short WAV file with silence.
func WAV() []byte {
	return append([]byte("RIFF\x24\x08\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x44\xac\x00\x00\x88\x58\x01\x00\x02\x00\x10\x00data\x00\x08\x00\x00"), make([]byte, 0x800)...)
}

// Take stores a file that no row of the database refers to yet.
func (h *Installation) Take(data []byte) ingest.StoredFile {
	h.Helper()
	taken, err := h.Intake.IngestFile(h.Context(), bytes.NewReader(data), ingest.Options{MaxBytes: 1 << 20})
	h.OK(err)
	return taken
}

// Results stores n pictures, as if an engine had generated them.
func (h *Installation) Results(n int) (all []generation.StoredResult) {
	h.Helper()
	for i := range n {
		all = append(all, generation.StoredResult{StoredFile: h.Take(PNG(i))})
	}
	return all
}

// Upload uploads a file to an account and returns the id of the upload.
func (h *Installation) Upload(personID, accountID string, data []byte) string {
	h.Helper()
	u, err := h.Library.AddUpload(h.Context(), principal.Principal{PersonID: personID, AccountID: accountID, TeamID: accountID}, accountID, "file", h.Take(data))
	h.OK(err)
	return u.ID
}

// Files returns the keys of all blobs in the store.
func (h *Installation) Files() (keys []string) {
	h.Helper()
	for item, err := range h.Blobs.List(h.Context(), "") {
		h.OK(err)
		keys = append(keys, item.Key)
	}
	slices.Sort(keys)
	return keys
}

// Owned returns the keys of all blobs that rows of the database refer to.
func (h *Installation) Owned() (keys []string) {
	h.Helper()
	h.Do(func(tx *sqldb.Tx) error {
		keys = nil
		return tx.EachRow(h.Context(), `SELECT blob, thumb, preview FROM asset`, nil, func(row sqldb.Scanner) error {
			var some [3]string
			if err := row.Scan(&some[0], &some[1], &some[2]); err != nil {
				return err
			}
			for _, key := range some {
				if key != "" {
					keys = append(keys, key)
				}
			}
			return nil
		})
	})
	slices.Sort(keys)
	return keys
}

// Tidy fails the test if the blobs in the store differ from the blobs that rows
// of the database refer to.
func (h *Installation) Tidy() {
	h.Helper()
	if files, owned := h.Files(), h.Owned(); !slices.Equal(files, owned) {
		h.Errorf("the store has %v, the rows name %v", files, owned)
	}
}

// Rows returns the numbers of rows of all tables that runs can change, and the
// sum of held tokens, as text to compare.
func (h *Installation) Rows() (counts string) {
	h.Helper()
	for _, table := range []string{
		"run", "run_turn", "run_attempt", "run_input", "run_poll", "result", "asset", "upload", "idempotency", "rate_log", "rate_key",
		"ledger_account", "ledger_transaction", "ledger_entry", "webhook_event", "tool_duration", "audit", "flow_run", "flow_step",
	} {
		counts += fmt.Sprintf("%s %d\n", table, h.Count(`SELECT count(*) FROM `+table))
	}
	return counts + fmt.Sprintf("held %d", h.Count(`SELECT CAST(coalesce(sum(held), 0) AS BIGINT) FROM ledger_account`))
}
