package personaldata_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation/generationtest"
)

// TestExportHasEverything looks for all data of a person, and for secrets that
// no archive may contain.
func TestExportHasEverything(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		l := h.live()
		h.Pass(time.Minute)
		files := h.export(l.id)
		for file, words := range map[string][]string{
			"README.txt":         {"runs.jsonl"},
			"person.json":        {email, `"email_verified": true`, "https://id.example"},
			"devices.json":       {l.device.DeviceID, agent, "figma", "192.0.2.7"},
			"sessions.json":      {l.session.ID, agent},
			"access-tokens.json": {`"name": "test"`, l.company},
			"companies.json":     {"Studio", "Design", "maker", `"email": "` + email + `"`},
			"balance.json":       {`"tokens": 97`, `"grant"`, `"settle"`, l.own.ID},
			"notices.json":       {`"kind": `},
			"audit.jsonl":        {"session.signed_in", "session.sign_in_failed", "device.signed_in", "person.exported"},
			"runs.jsonl":         {prompt, "mezcal", hook, plugin, "a chair", l.team, l.own.ID, l.work.ID},
			"uploads.jsonl":      {filename, l.upload, "files/uploads/" + l.upload + ".png"},
			"unfinished.jsonl":   {"half " + filename, `"received_bytes":4`},
			"library.jsonl":      {l.item.ID, `"favorited":true`, "files/results/" + l.item.ResultID + ".png", `"note":"No idea what this is: ` + prompt},
			"favorites.jsonl":    {l.item.ResultID},
			"boards.jsonl":       {note, `"kind":"TEXT"`},
			"flows.jsonl":        {note, `"version":1`},
		} {
			for _, word := range words {
				if !strings.Contains(files[file], word) {
					h.Errorf("%s has no %s: %.2000s", file, word, files[file])
				}
			}
			switch {
			case strings.HasSuffix(file, ".json"):
				if !json.Valid([]byte(files[file])) {
					h.Errorf("%s is not JSON: %s", file, files[file])
				}
			case strings.HasSuffix(file, ".jsonl"):
				for line := range strings.Lines(files[file]) {
					if !json.Valid([]byte(line)) {
						h.Errorf("%s has a line that is not JSON: %s", file, line)
					}
				}
			}
		}
		if files["files/uploads/"+l.upload+".png"] != string(l.picture) || files["files/results/"+l.item.ResultID+".png"] != string(generationtest.PNG(0)) {
			h.Error("the files are not what was stored")
		}
		if n := len(files); n != 18 {
			h.Errorf("%d files, want 18: %v", n, slices.Sorted(maps.Keys(files)))
		}
		if n := strings.Count(files["unfinished.jsonl"], "\n"); n != 1 {
			h.Errorf("%d unfinished uploads, want that of the personal account: %s", n, files["unfinished.jsonl"])
		}
		secrets := []string{l.token, l.company2, l.cookie, l.device.Tokens.Refresh, l.device.Tokens.ID, accounttest.Password, "argon2", ids.Hash(l.token), ids.Hash(l.cookie), "old " + filename}
		for name, text := range files {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					h.Errorf("%s has the secret %s", name, secret)
				}
			}
		}
	})
}

// TestExportOfManyPages exports more rows of every kind than fit on one page.
func TestExportOfManyPages(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		id := h.site.Person(email)
		h.Exec(`INSERT INTO person_notice (id, person_id, kind, text, created) VALUES ('n', $1, 'x', 'x', 1)`, id)
		tool := h.Tool("free")
		for i := range 450 {
			run := ids.New()
			h.Exec(`INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed, num_results, metadata, webhook_url,
				poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used, status, attempt, worker, cancel, preview, revision, error_code, error_message, created, finished)
				VALUES ($1, $1, $2, $2, 'device', 'd', '', $3, $4, 'script', '{}', 'p', 1, 1, '', '', 1, 0, 0, 0, '', 0, 0, 'failed', 0, '', FALSE, '', 1, 'X', '', $5, $5)`,
				run, id, tool.ID, tool.Hash, int64(1000+i/7))
			h.Exec(`INSERT INTO ledger_transaction (id, kind, note, created, run_id) VALUES ($1, 'settle', '', 1, $2)`, ids.New(), run)
		}
		h.Exec(`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ($1, 0, 0, '', 0), ('system:revenue', 0, 0, '', 0) ON CONFLICT (id) DO NOTHING`, id)
		h.Exec(`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT id, CAST($1 AS TEXT), 0, created FROM ledger_transaction WHERE kind = 'settle'`, id)
		h.Exec(`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT id, 'system:revenue', 0, created FROM ledger_transaction WHERE kind = 'settle'`)
		files := h.export(id)
		for file, want := range map[string]int{"runs.jsonl": 450, "balance.json": 450} {
			seen := map[string]bool{}
			for line := range strings.Lines(files[file]) {
				if strings.Contains(line, `"created"`) {
					seen[strings.TrimSuffix(line, ",\n")] = true
				}
			}
			if len(seen) != want {
				h.Errorf("%s has %d different lines, want %d", file, len(seen), want)
			}
		}
		if !json.Valid([]byte(files["balance.json"])) {
			h.Error("balance.json is not JSON")
		}
		// All of them are erased as well.
		h.OK(h.leave(id))
		h.finish()
		if n := h.Count(`SELECT count(*) FROM run WHERE prompt <> ''`); n != 0 {
			h.Errorf("%d prompts are left", n)
		}
	})
}

// TestExportNotesMissingFiles exports a file whose blob is lost.
func TestExportNotesMissingFiles(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		id := h.site.Person(email)
		u, err := h.Library.AddUpload(h.Context(), principal.Principal{PersonID: id, AccountID: id}, id, "x", h.Take(generationtest.PNG(1)))
		h.OK(err)
		h.OK(h.Blobs.Delete(h.Context(), u.Asset.Blob))
		files := h.export(id)
		if text := files["files/uploads/"+u.ID+".png.missing.txt"]; !strings.Contains(text, "lost") {
			h.Errorf("files = %v", files)
		}
	})
}

// TestExportStops revokes the credential while the archive is written.
func TestExportStops(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		l := h.live()
		archive, err := h.data.ExportPerson(h.Context(), principal.Principal{PersonID: l.id}, l.id)
		h.OK(err)
		asked, ended := 0, errors.New("ended")
		err = archive.Write(h.Context(), io.Discard, func(context.Context) error {
			if asked++; asked == 5 {
				return ended
			}
			return nil
		})
		if !errors.Is(err, ended) || asked != 5 {
			h.Errorf("write = %v after %d questions", err, asked)
		}
	})
}

// TestFiveExportsADay counts exports, even after other rate limits were swept.
func TestFiveExportsADay(t *testing.T) {
	eachDatabase(t, func(h *fixture) {
		id := h.site.Person(email)
		as := principal.Principal{PersonID: id}
		for range 5 {
			archive, err := h.data.ExportPerson(h.Context(), as, id)
			h.OK(err)
			h.OK(archive.Write(h.Context(), &bytes.Buffer{}, nil))
			h.Pass(time.Hour)
		}
		h.OK(h.sweep())
		_, err := h.data.ExportPerson(h.Context(), as, id)
		h.refused(err, fault.RateLimited, "")
		if f, ok := errors.AsType[*fault.Error](err); ok && f.RetryAfter != 19*time.Hour {
			h.Errorf("wait = %v, want 19h", f.RetryAfter)
		}
		_, err = h.data.ExportPerson(h.Context(), principal.Operator(), id)
		h.OK(err)
		_, err = h.data.ExportPerson(h.Context(), principal.Principal{PersonID: ids.New()}, id)
		h.refused(err, fault.Forbidden, "permission")
		h.Pass(19 * time.Hour)
		_, err = h.data.ExportPerson(h.Context(), as, id)
		h.OK(err)
	})
}
