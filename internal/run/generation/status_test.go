package generation_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

func units(h *installation, personID string) int64 {
	h.Helper()
	return h.Count(`SELECT count(*) FROM rate_log WHERE key = $1`, "create/person/"+personID)
}

func TestPolls(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna, bert, team := h.Person(0), h.Person(0), h.Team(0)
		r := h.Create(h.Draft(in(anna, team), "free"))
		if r.PollAfter != 2*time.Second {
			h.Fatalf("poll after %v", r.PollAfter)
		}
		poll := func(who principal.Principal, what string, wantAnna, wantBert int64) {
			h.Helper()
			rec, err := h.Runs.PollRun(h.Context(), who, r.ID)
			if err != nil || rec.ID != r.ID {
				h.Errorf("%s: %v", what, err)
			}
			if a, b := units(h, anna), units(h, bert); a != wantAnna || b != wantBert {
				h.Errorf("%s: %d and %d units, want %d and %d", what, a, b, wantAnna, wantBert)
			}
		}
		poll(in(anna, team), "at once", 2, 0)
		h.Pass(2 * time.Second)
		poll(in(anna, team), "in time", 2, 0)
		h.Pass(2*time.Second - time.Microsecond)
		poll(in(anna, team), "a moment early", 3, 0)
		poll(in(bert, team), "his first", 3, 0)
		poll(in(bert, team), "his own account of polls", 3, 1)

		before := h.Rows()
		for _, who := range []principal.Principal{own(anna), own(bert), in(bert, "other")} {
			_, err := h.Runs.PollRun(h.Context(), who, r.ID)
			refused(h, "another account", err, fault.NotFound)
		}
		_, err := h.Runs.PollRun(h.Context(), in(anna, team), uuid.NewString())
		refused(h, "no such run", err, fault.NotFound)
		if after := h.Rows(); after != before {
			h.Errorf("a foreign poll left %s, was %s", after, before)
		}

		for units(h, anna) < 10 {
			poll(in(anna, team), "until it is full", units(h, anna)+1, 1)
		}
		before = h.Rows()
		_, err = h.Runs.PollRun(h.Context(), in(anna, team), r.ID)
		if f := refused(h, "too often", err, fault.RateLimited); f.RetryAfter != r.PollAfter {
			h.Errorf("retry after %v, want the time of a poll that is not early", f.RetryAfter)
		}
		_, err = create(h, h.Draft(own(anna), "free"))
		refused(h, "polls count as creates", err, fault.RateLimited)
		if h.Rows() != before {
			h.Error("a refused poll left a trace")
		}
		h.Pass(2 * time.Second) // from the last answer: what was refused is none
		poll(in(anna, team), "in time, though all is used up", 10, 1)
		poll(in(bert, team), "another has all of his", 10, 1)

		phone := in(anna, team)
		phone.Credential.ID = "phone"
		poll(phone, "the first of another device", 10, 1)
		poll(phone, "the first early one of another device, though all is used up", 10, 1)
		_, err = h.Runs.PollRun(h.Context(), phone, r.ID)
		refused(h, "the second early one", err, fault.RateLimited)
		h.Pass(2 * time.Second)
		poll(phone, "in time again", 10, 1)
		_, err = h.Runs.PollRun(h.Context(), phone, r.ID)
		refused(h, "an early one later", err, fault.RateLimited)

		h.OK(h.Runs.EndRun(h.Context(), h.Claim("worker"), generation.Outcome{State: run.Cancelled}))
		for range 3 {
			poll(in(anna, team), "after the end", 10, 1)
		}
		if n := h.Count(`SELECT count(*) FROM run_poll`); n != 0 {
			h.Errorf("%d polls are kept", n)
		}
	})
}

// TestDevicesPollPolitely has two devices and a token of one person ask for the
// same run, each when it was told to: none of it counts.
func TestDevicesPollPolitely(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna := h.Person(0)
		desk, phone, script := own(anna), own(anna), own(anna)
		phone.Credential.ID = "phone"
		script.Credential.Kind = principal.PersonalToken
		r := h.Create(h.Draft(desk, "free"))
		for range 5 {
			h.Pass(r.PollAfter / 2)
			for _, who := range []principal.Principal{phone, script} {
				_, err := h.Runs.PollRun(h.Context(), who, r.ID)
				h.OK(err)
			}
			h.Pass(r.PollAfter / 2)
			_, err := h.Runs.PollRun(h.Context(), desk, r.ID)
			h.OK(err)
		}
		if n := units(h, anna); n != 1 {
			h.Errorf("%d units, want the create alone", n)
		}
		for range 9 {
			h.Create(h.Draft(phone, "free"))
		}
	})
}

// TestPollAtOnceAfterCreate has creates that leave no room in the minute, and one
// poll right after each.
func TestPollAtOnceAfterCreate(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna := own(h.Person(0))
		var runs []run.Run
		for range 10 {
			runs = append(runs, h.Create(h.Draft(anna, "free")))
		}
		for i, r := range runs {
			if _, err := h.Runs.PollRun(h.Context(), anna, r.ID); err != nil {
				h.Errorf("first poll of run %d: %v", i, err)
			}
		}
		if n := units(h, anna.PersonID); n != 10 {
			h.Errorf("%d units, want 10: there was no room", n)
		}
		_, err := h.Runs.PollRun(h.Context(), anna, runs[0].ID)
		f := refused(h, "second poll", err, fault.RateLimited)
		if f.Details["limit"] != 10 || f.Details["window_seconds"] != int64(60) || f.Details["retry_after_seconds"] != int64(2) {
			h.Errorf("details = %v", f.Details)
		}
	})
}

// newTraced returns a service of the installation that adds the statements of
// its transactions to sent.
func newTraced(h *installation, sent *[]string) *generation.Service {
	h.Helper()
	db, err := sqldb.Open(h.Context(), h.URL, sqldb.Options{MaxConns: 4, Now: h.Now, Trace: func(query string, _ []any) { *sent = append(*sent, query) }})
	h.OK(err)
	h.Cleanup(db.Close)
	parts := h.Runs.Parts
	parts.DB = db
	return generation.New(parts)
}

// TestPollSendsOneWrite counts the statements of polls.
func TestPollSendsOneWrite(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		var sent []string
		traced := newTraced(h, &sent)

		anna := own(h.Person(0))
		r := h.Create(h.Draft(anna, "free"))
		h.Claim("worker") // who waits is told their place as well
		poll := func(what string, wait time.Duration, want int) {
			h.Helper()
			h.Pass(wait)
			sent = nil
			_, err := traced.PollRun(h.Context(), anna, r.ID)
			h.OK(err)
			if len(sent) != want {
				h.Errorf("%s sent %d statements in transactions, want %d: %q", what, len(sent), want, sent)
			}
		}
		poll("the first poll", r.PollAfter, 1)
		poll("the next one", r.PollAfter, 1)
		poll("an early one", 0, 6) // two for the poll, four for the rate
	})
}

// TestListSendsFewStatements counts the statements of a page of runs: their
// number does not depend on the number of runs.
func TestListSendsFewStatements(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		var sent []string
		traced := newTraced(h, &sent)

		anna, bert := h.Person(1000), h.Person(1000)
		d := h.Draft(own(anna), "free")
		d.WebhookURL = "https://example.com/"
		for range 3 {
			h.Create(d)
			h.OK(h.Runs.EndRun(h.Context(), h.Claim("worker"), generation.Outcome{State: run.Succeeded, Results: h.Results(1), Took: time.Second}))
			h.Pass(time.Second)
		}
		h.Create(h.Draft(own(bert), "free"))
		for range 17 {
			h.Pass(time.Second)
			h.Create(h.Draft(own(anna), "free"))
		}

		sent = nil
		list, err := traced.ListRuns(h.Context(), anna, run.Filter{}, nil, 20)
		h.OK(err)
		if len(sent) != 4 { // the runs, the positions, the states of webhooks, the results
			h.Errorf("a page sent %d statements, want 4: %q", len(sent), sent)
		}
		if len(list) != 20 {
			h.Fatalf("a page has %d runs", len(list))
		}
		for i, rec := range list {
			if want := int64(18 - i); i < 17 && rec.Position != want {
				h.Errorf("run %d has position %d, want %d", i, rec.Position, want)
			}
			if i >= 17 && (rec.Webhook == nil || len(rec.Outputs) != 1 || rec.Position != 0) {
				h.Errorf("run %d = %+v", i, rec)
			}
		}
	})
}

// TestPollInterval follows how long a tool took lately: one slow run, as when a
// model is loaded, moves the average and not the interval.
func TestPollInterval(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna := own(h.Person(1000))
		tool := h.Tool("many")
		ran := func(took time.Duration, times int) {
			h.Helper()
			for range times {
				h.Pass(time.Second)
				h.Do(func(tx *sqldb.Tx) error { return catalog.RecordDuration(h.Context(), tx, tool.ID, took) })
			}
			h.OK(catalog.UpdateAverages(h.Context(), h.DB))
			_, err := h.Catalog.RefreshSnapshot(h.Context())
			h.OK(err)
		}
		check := func(results int64, pollAfter, estimated time.Duration) {
			h.Helper()
			d := h.Draft(anna, "many")
			d.NumResults = &results
			r := h.Create(d)
			if r.PollAfter != pollAfter || r.Estimated != estimated {
				h.Errorf("%d results: poll after %v, estimated %v, want %v and %v", results, r.PollAfter, r.Estimated, pollAfter, estimated)
			}
			cost, err := h.Runs.PriceDraft(h.Context(), d)
			h.OK(err)
			if cost.Estimated != estimated {
				h.Errorf("%d results: priced with %v, want %v", results, cost.Estimated, estimated)
			}
		}
		check(1, 2*time.Second, 0)
		ran(0, 1)
		check(1, time.Second, time.Second)
		ran(62*time.Second, 1)
		ran(2*time.Second, 14)
		check(1, 2*time.Second, 6*time.Second)
		check(4, 2*time.Second, 23*time.Second)
		ran(400*time.Millisecond, 8)
		check(1, time.Second, 4*time.Second)
		ran(time.Minute, 15)
		check(1, 10*time.Second, 25*time.Second)
	})
}

func TestCancel(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna, bert, team := h.Person(0), h.Person(0), h.Team(100)
		manager := in(bert, team)
		manager.Role.Permissions = []company.Permission{company.Generate, company.ManageTeam}
		cancel := func(who principal.Principal, id string) (generation.Record, bool) {
			h.Helper()
			rec, was, err := h.Runs.CancelRun(h.Context(), who, id)
			h.OK(err)
			return rec, was
		}
		d := h.Draft(in(anna, team), "cost")
		d.WebhookURL = "https://example.com/hook"
		r := h.Create(d)
		before := h.Rows()
		_, _, err := h.Runs.CancelRun(h.Context(), in(bert, team), r.ID)
		if f := refused(h, "another member", err, fault.Forbidden); f.Details["reason"] != "permission" {
			h.Errorf("details = %v", f.Details)
		}
		for _, who := range []principal.Principal{own(bert), own(anna)} {
			_, _, err = h.Runs.CancelRun(h.Context(), who, r.ID)
			refused(h, "another account", err, fault.NotFound)
		}
		if h.Rows() != before || h.Run(r.ID).Cancel {
			h.Error("a refusal left a trace")
		}

		news, stop := h.Hub.Follow(r.ID)
		defer stop()
		rec, was := cancel(in(anna, team), r.ID)
		if was || rec.State != run.Cancelled || rec.TokensCharged != 0 || rec.Webhook == nil {
			h.Errorf("cancelled = %+v, %v", rec, was)
		}
		if b := h.Balance(team); b.Held != 0 || b.Tokens != 100 {
			h.Errorf("balance = %+v: the hold ends at once", b)
		}
		select {
		case <-news:
		default:
			h.Error("who follows it heard nothing")
		}
		again, was := cancel(in(anna, team), r.ID)
		if !was || fmt.Sprint(again.Run) != fmt.Sprint(rec.Run) {
			h.Errorf("once more = %+v, %v, was %+v", again, was, rec)
		}

		r = h.Create(d)
		if rec, was := cancel(manager, r.ID); was || rec.State != run.Cancelled {
			h.Errorf("by a manager = %+v", rec)
		}

		h.Create(d)
		running := h.Claim("worker")
		news, stop = h.Hub.Follow(running.ID)
		defer stop()
		rec, was = cancel(in(anna, team), running.ID)
		if was || rec.State != run.Running || !rec.Cancel || h.Balance(team).Held != 3 {
			h.Errorf("while it runs = %+v", rec)
		}
		select {
		case <-news:
		default:
			h.Error("who works on it heard nothing")
		}
		h.OK(h.Runs.EndRun(h.Context(), running, generation.Outcome{State: run.Cancelled}))
		done, was := cancel(in(anna, team), running.ID)
		if !was || done.State != run.Cancelled {
			h.Errorf("after its end = %+v, %v", done, was)
		}
		if n := h.Count(`SELECT count(*) FROM webhook_event`); n != 3 {
			h.Errorf("%d events, want 3", n)
		}
	})
}

// TestCancellingAtOnce has many cancel a run that somebody gives up at the same
// time.
func TestCancellingAtOnce(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna := h.Person(100)
		for range 4 {
			r := h.Create(h.Draft(own(anna), "cost"))
			var first atomic.Int64
			dbtest.Together(12, func(i int) {
				if i == 0 {
					err := h.Runs.EndRun(h.Context(), r, generation.Outcome{State: run.Failed, ErrorCode: "ENGINE_UNAVAILABLE"})
					if err != nil && !errors.Is(err, generation.ErrNotHeld) {
						h.Errorf("end: %v", err)
					}
					return
				}
				_, was, err := h.Runs.CancelRun(h.Context(), own(anna), r.ID)
				if err != nil {
					h.Errorf("cancel: %v", err)
				}
				if !was {
					first.Add(1)
				}
			})
			now := h.Run(r.ID)
			if want := map[run.State]int64{run.Cancelled: 1, run.Failed: 0}[now.State]; first.Load() != want || !now.State.IsEnded() {
				h.Errorf("it is %s and %d cancelled it", now.State, first.Load())
			}
		}
		if b := h.Balance(anna); b.Tokens != 100 || b.Held != 0 {
			h.Errorf("balance = %+v", b)
		}
	})
}

func TestRecords(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna, bert := h.Person(100), h.Person(100)
		d := h.Draft(own(anna), "many")
		d.WebhookURL = "https://example.com/"
		done := h.Create(d)
		h.OK(h.Runs.EndRun(h.Context(), h.Claim("worker"), generation.Outcome{State: run.Succeeded, Results: h.Results(2), Took: 6 * time.Second}))
		h.Pass(time.Second)
		running := h.Create(h.Draft(own(anna), "free"))
		h.Claim("worker")
		h.Pass(time.Second)
		other := h.Create(h.Draft(own(bert), "free"))
		h.Pass(time.Second)
		queued := h.Create(h.Draft(own(anna), "free"))

		list, err := h.Runs.ListRuns(h.Context(), anna, run.Filter{}, nil, 10)
		h.OK(err)
		var ids []string
		for _, rec := range list {
			ids = append(ids, rec.ID)
			one, err := h.Runs.GetStatus(h.Context(), anna, rec.ID)
			h.OK(err)
			any, err := h.Runs.GetStatusUnscoped(h.Context(), rec.ID)
			h.OK(err)
			if a, b, c := fmt.Sprintf("%+v", flat(rec)), fmt.Sprintf("%+v", flat(one)), fmt.Sprintf("%+v", flat(any)); a != b || a != c {
				h.Errorf("listed %s, status %s, event %s", a, b, c)
			}
		}
		if want := []string{queued.ID, running.ID, done.ID}; !slices.Equal(ids, want) {
			h.Errorf("list = %v, want %v", ids, want)
		}
		if q, r, s := list[0], list[1], list[2]; q.Position != 2 || r.Position != 0 || len(s.Outputs) != 2 || s.Webhook == nil || s.Webhook.Attempts != 0 ||
			q.Webhook != nil || len(q.Outputs) != 0 || s.TokensCharged != 4 {
			h.Errorf("records = %+v", list)
		}
		for _, id := range []string{other.ID, uuid.NewString()} {
			_, err := h.Runs.GetStatus(h.Context(), anna, id)
			refused(h, "status", err, fault.NotFound)
		}
	})
}

// flat shows what pointers in a record point at.
func flat(r generation.Record) any {
	hook := ""
	if r.Webhook != nil {
		hook = fmt.Sprint(*r.Webhook)
	}
	r.Webhook, r.Progress = nil, nil
	return []any{r, hook}
}
