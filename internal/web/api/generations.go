package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"atelier/internal/base/cursor"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/wire"
)

// requestID reads the path: what has not the shape of a run's id is no run.
func requestID(r *http.Request) (string, error) {
	id := r.PathValue("request_id")
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return "", run.ErrNotFound
	}
	return id, nil
}

// runCall is the call and the run of a request about one run.
func runCall(r *http.Request) (*call, string, error) {
	c := callOf(r)
	if err := c.params.failed(); err != nil {
		return nil, "", err
	}
	id, err := requestID(r)
	return c, id, err
}

func (s *Server) getGeneration(w http.ResponseWriter, r *http.Request) error {
	c, id, err := runCall(r)
	if err != nil {
		return err
	}
	key := shownRun{id, c.caller.AccountID, c.caller.PersonID}
	now := s.Links.Now().Unix()
	if body := s.ended.get(key, now); body != nil {
		addVary(w.Header(), varies)
		send(w, http.StatusOK, body)
		return nil
	}
	rec, err := s.Runs.Poll(r.Context(), c.caller, id)
	if err != nil {
		return err
	}
	if !rec.State.Ended() {
		return s.replyRun(w, http.StatusOK, c, rec)
	}
	body, err := json.Marshal(asGeneration(s.Links, rec, c.caller.PersonID))
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	s.ended.put(key, now, body)
	addVary(w.Header(), varies)
	send(w, http.StatusOK, body)
	return nil
}

// replyRun answers with a run, and with when to ask again while that makes
// sense.
func (s *Server) replyRun(w http.ResponseWriter, status int, c *call, rec generation.Record) error {
	answer := asGeneration(s.Links, rec, c.caller.PersonID)
	if !rec.State.Ended() {
		w.Header().Set("Retry-After", strconv.FormatInt(answer.RetryAfterSeconds, 10))
	}
	return reply(w, status, answer)
}

func (s *Server) cancelGeneration(w http.ResponseWriter, r *http.Request) error {
	c, id, err := runCall(r)
	if err != nil {
		return err
	}
	rec, was, err := s.Runs.Cancel(r.Context(), c.caller, id)
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if was {
		status = http.StatusOK
	}
	return s.replyRun(w, status, c, rec)
}

func (s *Server) listGenerations(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	f := run.Filter{Status: c.params.one("status"), ToolID: c.params.id("tool_id")}
	if f.Status != "" && !wire.GenerationStatus(f.Status).Valid() {
		c.params.problem("status", "Must be one of pending, succeeded, failed and cancelled.")
	}
	pg, err := s.page(c.params, cursor.Scope("generations", c.caller.PersonID, c.caller.AccountID, f.Status, f.ToolID))
	if err != nil {
		return err
	}
	var after *run.Place
	if pg.after != nil {
		at, err := pg.time()
		if err != nil {
			return err
		}
		after = &run.Place{Created: at, ID: pg.after[1]}
	}
	all, err := s.Runs.List(r.Context(), c.caller.AccountID, f, after, pg.limit+1)
	if err != nil {
		return err
	}
	all, more, next := cut(s, pg, all, func(one generation.Record) (string, string) { return micros(one.Created), one.ID })
	list := wire.GenerationList{Data: make([]wire.Generation, 0, len(all)), HasMore: more, NextCursor: next}
	for _, one := range all {
		list.Data = append(list.Data, asGeneration(s.Links, one, c.caller.PersonID))
	}
	return reply(w, http.StatusOK, list)
}

// Webhooks of runs.

func (s *Server) listWebhookAttempts(w http.ResponseWriter, r *http.Request) error {
	c, id, err := runCall(r)
	if err != nil {
		return err
	}
	pg, err := s.page(c.params, cursor.Scope("webhook-attempts", c.caller.PersonID, c.caller.AccountID, id))
	if err != nil {
		return err
	}
	var all []webhook.Attempt
	err = s.DB.Read(r.Context(), func(tx *sqldb.Tx) error {
		if _, err := run.ByID(r.Context(), tx, c.caller.AccountID, id); err != nil {
			return err
		}
		all, err = webhook.Attempts(r.Context(), tx, id)
		return err
	})
	if err != nil {
		return err
	}
	// There are few: as many as the schedule has, and those by hand.
	if pg.after != nil {
		for i, one := range all {
			if one.ID == pg.after[1] {
				all = all[i+1:]
				break
			}
		}
	}
	all, more, next := cut(s, pg, all, func(one webhook.Attempt) (string, string) { return micros(one.At), one.ID })
	list := wire.WebhookAttemptList{Data: make([]wire.WebhookAttempt, 0, len(all)), HasMore: more, NextCursor: next}
	for _, one := range all {
		attempt := wire.WebhookAttempt{ID: one.ID, At: moment(one.At), DurationMs: one.Duration.Milliseconds(), Error: orNull(one.Error)}
		if one.StatusCode != 0 {
			code := int64(one.StatusCode)
			attempt.StatusCode = &code
		}
		list.Data = append(list.Data, attempt)
	}
	return reply(w, http.StatusOK, list)
}

func (s *Server) redeliverWebhook(w http.ResponseWriter, r *http.Request) error {
	c, id, err := runCall(r)
	if err != nil {
		return err
	}
	var state *webhook.State
	err = s.DB.Write(r.Context(), func(tx *sqldb.Tx) error {
		if _, err := run.ByID(r.Context(), tx, c.caller.AccountID, id); err != nil {
			return err
		}
		if err := webhook.Redeliver(r.Context(), tx, id); err != nil {
			return err
		}
		tx.AfterCommit(s.Runs.Ended)
		state, err = webhook.StateOf(r.Context(), tx, id)
		return err
	})
	if err != nil {
		return err
	}
	s.ended.forget()
	return reply(w, http.StatusAccepted, asWebhook(state))
}

func (s *Server) getWebhookSecret(w http.ResponseWriter, r *http.Request) error {
	return s.webhookSecret(w, r, s.Secrets.GetFor)
}

func (s *Server) rotateWebhookSecret(w http.ResponseWriter, r *http.Request) error {
	return s.webhookSecret(w, r, s.Secrets.RotateFor)
}

// lastEvent reads Last-Event-ID; what is no number of ours is as good as none.
func lastEvent(h http.Header) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(h.Get("Last-Event-ID")), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
