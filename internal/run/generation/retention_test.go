package generation_test

import (
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

// endOne creates a run of a person with a webhook, and ends it with a result.
func endOne(h *generationtest.Installation, who principal.Principal, key string) run.Run {
	h.Helper()
	d := h.Draft(who, "cost")
	d.Inputs = map[string]any{"prompt": "a secret garden"}
	d.Metadata = `{"a": 1}`
	d.Plugin = "blender"
	d.WebhookURL = "https://example.com/hook"
	d.Key = key
	d.Fingerprint = key
	h.Create(d)
	r := h.Claim("worker")
	h.OK(h.Runs.EndRun(h.Context(), r, generation.Outcome{State: run.Succeeded, Results: h.Results(1), Took: time.Second}))
	return h.Run(r.ID)
}

// deliver records that the events of all runs were delivered.
func deliver(h *generationtest.Installation) {
	h.Helper()
	h.Exec(`INSERT INTO webhook_attempt (id, event_id, at, status_code, duration_ms, error)
		SELECT 'a' || id, id, created, 200, 1, '' FROM webhook_event WHERE state = 'waiting'`)
	h.Exec(`UPDATE webhook_event SET state = 'delivered', attempts = 1, next_at = NULL WHERE state = 'waiting'`)
}

// TestRetentionOfRuns erases the contents of old runs, and keeps what the
// ledger and the reports count: the checks after the test compare them.
func TestRetentionOfRuns(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *generationtest.Installation) {
		anna := h.Person(0)
		team := h.Team(100)
		old := endOne(h, generationtest.In(anna, team), "old")
		deliver(h)
		unsent := endOne(h, generationtest.In(anna, team), "unsent")
		h.Pass(48 * time.Hour)
		fresh := endOne(h, generationtest.In(anna, team), "fresh")
		balance := h.Balance(team)

		h.OK(generation.Prune(h.Context(), h.DB, generation.Retention{}))
		if got := h.Run(old.ID); got.Prompt == "" {
			h.Error("runs are erased without a retention")
		}
		for range 2 { // the second call finds nothing
			h.OK(generation.Prune(h.Context(), h.DB, generation.Retention{Runs: 24 * time.Hour}))
		}

		got := h.Run(old.ID)
		if got.Prompt != "" || got.Inputs != "{}" || got.Metadata != "" || got.WebhookURL != "" {
			h.Errorf("old run = %+v, want no contents", got)
		}
		if got.State != run.Succeeded || got.TokensCharged != 3 || got.Plugin != "blender" || !got.Finished.Equal(old.Finished) {
			h.Errorf("old run = %+v, want its costs, plugin and times", got)
		}
		for name, query := range map[string]string{
			"keys":    `SELECT count(*) FROM idempotency WHERE run_id = $1`,
			"events":  `SELECT count(*) FROM webhook_event WHERE run_id = $1`,
			"results": `SELECT count(*) FROM result WHERE run_id = $1 AND (deleted IS NULL OR search_text <> '')`,
			"marks":   `SELECT count(*) FROM run WHERE id = $1 AND NOT pruned`,
		} {
			if n := h.Count(query, old.ID); n != 0 {
				h.Errorf("%d %s are left of the old run", n, name)
			}
		}
		for _, r := range []run.Run{unsent, fresh} {
			if got := h.Run(r.ID); got.Prompt != "a secret garden" || got.WebhookURL == "" || h.Count(`SELECT count(*) FROM webhook_event WHERE run_id = $1`, r.ID) != 1 {
				h.Errorf("run %s lost its contents: %+v", r.ID, got)
			}
		}
		if got := h.Balance(team); got != balance {
			h.Errorf("balance = %+v, want %+v", got, balance)
		}

		// Once its event was delivered, the other old run follows.
		deliver(h)
		h.OK(generation.Prune(h.Context(), h.DB, generation.Retention{Runs: 24 * time.Hour}))
		if got := h.Run(unsent.ID); got.Prompt != "" {
			h.Errorf("the run whose event waited is not erased: %+v", got)
		}

		// The files go with the next sweep.
		h.Pass(2 * time.Hour)
		h.OK(h.Library.SweepFiles(h.Context()))
		if n := h.Count(`SELECT count(*) FROM asset WHERE gone IS NULL`); n != 1 {
			h.Errorf("%d files have content, want that of the fresh run", n)
		}
	})
}

// TestRetentionOfEvents deletes old events that are sent no more.
func TestRetentionOfEvents(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *generationtest.Installation) {
		anna := h.Person(100)
		old := endOne(h, generationtest.Own(anna), "old")
		deliver(h)
		waiting := endOne(h, generationtest.Own(anna), "waiting")
		h.Pass(48 * time.Hour)
		fresh := endOne(h, generationtest.Own(anna), "fresh")

		h.OK(generation.Prune(h.Context(), h.DB, generation.Retention{Events: 24 * time.Hour}))
		if n := h.Count(`SELECT count(*) FROM webhook_attempt`); n != 0 {
			h.Errorf("%d attempts are left of the deleted event", n)
		}
		for id, want := range map[string]int64{old.ID: 0, waiting.ID: 1, fresh.ID: 1} {
			if n := h.Count(`SELECT count(*) FROM webhook_event WHERE run_id = $1`, id); n != want {
				h.Errorf("%d events of run %s, want %d", n, id, want)
			}
		}
		if got := h.Run(old.ID); got.Prompt == "" || got.WebhookURL != "" {
			h.Errorf("old run = %+v, want all but its webhook", got)
		}
	})
}

// TestInputsAreSweptOnce sends a file with a run: its content goes when the run
// has ended, and the sweep does not look at the run again.
func TestInputsAreSweptOnce(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *generationtest.Installation) {
		anna := h.Person(0)
		d := h.Draft(generationtest.Own(anna), "free")
		h.Create(d)
		r := h.Claim("worker")
		file := h.Take(generationtest.PNG(1)).Asset
		file.AccountID = anna
		file.Created = h.Now()
		h.Exec(`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created, stored_bytes)
			VALUES ($1, $2, 'IMG', 'image/png', 0, $3, 8, 8, '', $4, '', '', $5, 0)`, file.ID, anna, file.SHA256, file.Blob, sqldb.At(file.Created))
		h.Exec(`INSERT INTO storage_account (account_id, used_bytes, leaving_bytes) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING`, anna)
		h.Exec(`INSERT INTO run_input (run_id, field, place, asset_id) VALUES ($1, 'picture', 0, $2)`, r.ID, file.ID)

		const gone = `SELECT count(*) FROM asset WHERE id = $1 AND gone IS NOT NULL`
		const swept = `SELECT count(*) FROM run_input WHERE run_id = $1 AND swept`
		h.Pass(2 * time.Hour)
		h.OK(h.Library.SweepFiles(h.Context()))
		if h.Count(gone, file.ID) != 0 || h.Count(swept, r.ID) != 0 {
			h.Error("the input of a running run was swept")
		}
		h.OK(h.Runs.EndRun(h.Context(), h.Run(r.ID), generation.Outcome{State: run.Failed, ErrorCode: "INTERNAL", ErrorText: "broken"}))
		h.OK(h.Library.SweepFiles(h.Context()))
		if h.Count(gone, file.ID) != 1 || h.Count(swept, r.ID) != 1 {
			h.Error("the input of an ended run was not swept")
		}
	})
}
