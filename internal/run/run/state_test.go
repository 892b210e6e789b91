package run_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/run"
)

var states = []run.State{run.Queued, run.Running, run.Succeeded, run.Failed, run.Cancelled}

// TestEveryMove tries every way from every state, as whoever knows the run as it
// is would.
func TestEveryMove(t *testing.T) {
	eachFixture(t, func(w fixture) {
		for _, from := range states {
			for _, to := range states {
				w.Pass(time.Second)
				anna := w.person()
				r := w.bring(anna, from)
				var moved bool
				switch {
				case to == run.Queued:
					moved = w.requeue(r, run.Lost)
				case to == run.Running:
					_, moved = w.try("another")
				default:
					moved = w.end(r, outcome(to))
				}
				if want := run.Moves(from, to); moved != want {
					w.Errorf("%s to %s: moved = %v, want %v", from, to, moved, want)
				}
				now := w.get(r.ID)
				if !moved && !reflect.DeepEqual(now, r) {
					w.Errorf("%s to %s changed the run: %+v, was %+v", from, to, now, r)
				}
				if moved && (now.State != to || now.Revision <= r.Revision) {
					w.Errorf("%s to %s: it is %s, revision %d after %d", from, to, now.State, now.Revision, r.Revision)
				}
				if now.State == run.Queued { // out of the way of the next
					w.end(now, outcome(run.Cancelled))
				}
			}
		}
	})
}

func TestWhatHasEndedStays(t *testing.T) {
	eachFixture(t, func(w fixture) {
		r := w.bring(w.person(), run.Failed)
		for _, change := range []string{
			`status = 'pending', stage = 'queued', finished = NULL, tokens_charged = NULL, allowance_used = NULL, error_code = ''`,
			`status = 'succeeded', error_code = ''`, `finished = finished + 1`, `error_message = 'other'`, `error_code = 'OTHER'`,
			`tokens_charged = 1`, `allowance_used = 1`, `started = NULL`, `num_results = 5`, `seed = 5`, `metadata = '{}'`,
		} {
			err := w.Try(func(tx *sqldb.Tx) error {
				_, err := tx.Exec(w.Context(), `UPDATE run SET `+change+` WHERE id = $1`, r.ID)
				return err
			})
			if err == nil {
				w.Errorf("%s: was done", change)
			}
		}
		if now := w.get(r.ID); !reflect.DeepEqual(now, r) {
			w.Errorf("run = %+v, was %+v", now, r)
		}
	})
}

// TestALife follows a run with everything it is told.
func TestALife(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna, team := w.person(), ids.New()
		w.Exec(`INSERT INTO company (id, name, plan, created) VALUES ('c', 'C', 'TEAM', 1)`)
		w.Exec(`INSERT INTO team (id, company_id, name, removed, created) VALUES ($1, 'c', 'T', FALSE, 1)`, team)
		d := w.draft(anna)
		d.AccountID, d.TeamID, d.Credential, d.CredentialID, d.Plugin = team, team, "device", "d1", "blender"
		d.Prompt, d.Seed, d.Metadata, d.WebhookURL, d.Estimated = "a fox", 1<<32-1, `{"a":1}`, "https://example.com/", 8*time.Second
		in := run.Input{Field: "picture", Index: 1, AssetID: w.asset(team)}
		w.Do(func(tx *sqldb.Tx) error { return add(w.Context(), tx, d, []run.Input{in}) })
		d.CompanyID = "c" // of the team
		d.State, d.Revision, d.Created = run.Queued, 1, w.Now()
		if got := w.get(d.ID); !reflect.DeepEqual(got, d) {
			w.Errorf("run = %+v, want %+v", got, d)
		}

		w.Pass(time.Second)
		var r run.Run
		w.Do(func(tx *sqldb.Tx) error {
			one, inputs, ok, err := run.Claim(w.Context(), tx, run.ClaimOptions{Engine: engine, Worker: "worker", Lease: lease})
			if r = one; !ok || len(inputs) != 1 || inputs[0] != in {
				w.Errorf("claim = %v, inputs %+v", ok, inputs)
			}
			return err
		})
		d.State, d.Attempt, d.Revision, d.Started = run.Running, 1, 2, w.Now()
		if !reflect.DeepEqual(r, d) {
			w.Errorf("claimed %+v, want %+v", r, d)
		}
		if !w.report(r, 250, "preview/1.png") {
			w.Error("its worker cannot report")
		}
		if got := w.get(d.ID); got.Progress == nil || *got.Progress != 250 || got.Preview != "preview/1.png" || got.Revision != 3 {
			w.Errorf("after a report: %+v", got)
		}
		w.Pass(time.Second)
		asset := w.asset(team)
		o := run.Outcome{State: run.Succeeded, TokensCharged: 1, AllowanceUsed: 2, Results: []run.Result{
			{ID: uuid.NewString(), AssetID: asset, Type: "IMG", Shape: "1:1", Resolution: "1K"},
		}}
		if !w.end(r, o) {
			w.Fatal("its worker cannot end it")
		}
		d.State, d.Revision, d.Finished, d.TokensCharged, d.AllowanceUsed = run.Succeeded, 4, w.Now(), 1, 2
		if got := w.get(d.ID); !reflect.DeepEqual(got, d) {
			w.Errorf("ended as %+v, want %+v", got, d)
		}
		all := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (map[string][]run.Output, error) {
			return run.Outputs(w.Context(), tx, d.ID, "other")
		})
		want := run.Output{ID: o.Results[0].ID, Library: d.LibraryID, Type: "IMG", MimeType: "image/png", Width: 3, Height: 4, Size: 5, SHA256: "00", ToolSlug: d.ToolID, Blob: asset, Thumb: "t"}
		if len(all) != 1 || len(all[d.ID]) != 1 || all[d.ID][0] != want {
			w.Errorf("outputs = %+v, want %+v", all, want)
		}
		w.Exec(`UPDATE asset SET gone = 1 WHERE id = $1`, asset)
		all = dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (map[string][]run.Output, error) { return run.Outputs(w.Context(), tx, d.ID) })
		if !all[d.ID][0].Expired {
			w.Error("an output whose bytes are gone has not expired")
		}
	})
}

func (w fixture) asset(accountID string) string {
	w.Helper()
	id := ids.New()
	w.Exec(`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created)
		VALUES ($1, $2, 'IMG', 'image/png', 5, '00', 3, 4, '', $1, 't', '', 1)`, id, accountID)
	return id
}

// TestTimesKeepTheirOrder has a node whose clock is behind work on a run.
func TestTimesKeepTheirOrder(t *testing.T) {
	eachFixture(t, func(w fixture) {
		id := w.add(w.person())
		created := w.Now()
		w.Pass(-3 * time.Millisecond)
		r := w.claim("behind")
		w.end(r, outcome(run.Cancelled))
		if now := w.get(id); !now.Started.Equal(created) || !now.Finished.Equal(created) {
			w.Errorf("created %v, started %v, finished %v", created, now.Started, now.Finished)
		}
	})
}

func TestWhoseRunItIs(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		id := w.add(anna)
		for _, c := range []struct {
			account, id string
			found       bool
		}{{anna, id, true}, {bert, id, false}, {"", id, false}, {anna, uuid.NewString(), false}} {
			r, err := run.Get(w.Context(), w.DB, c.account, c.id)
			if (err == nil) != c.found || !c.found && (r.ID != "" || err != run.ErrNotFound || !fault.Is(err, fault.NotFound)) {
				w.Errorf("%q looks for %q: %v, %v", c.account, c.id, r.ID, err)
			}
			var ok bool
			err = w.Try(func(tx *sqldb.Tx) (err error) {
				_, ok, err = run.RequestCancel(w.Context(), tx, c.account, c.id)
				return err
			})
			if (err == nil) != c.found || ok != c.found {
				w.Errorf("%q cancels %q: %v, %v", c.account, c.id, ok, err)
			}
		}
		if !w.get(id).Cancel {
			w.Error("nobody asked for the end")
		}
		r := w.bring(bert, run.Queued)
		w.end(r, outcome(run.Failed))
		w.Do(func(tx *sqldb.Tx) error {
			now, ok, err := run.RequestCancel(w.Context(), tx, bert, r.ID)
			if ok || now.State != run.Failed || now.Cancel {
				w.Errorf("cancel after the end: %v, %+v", ok, now)
			}
			return err
		})
	})
}
