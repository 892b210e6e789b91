package webhook_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/webhook"
)

func TestDelivery(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, status(http.StatusNoContent))
		run := w.run(r.at("a"))
		if s := w.state(run); s.PublicState() != "pending" || s.Attempts != 0 || len(w.attempts(run)) != 0 {
			w.Errorf("before: %+v", s)
		}
		w.start(w.options(r))
		w.until(run, "delivered", 1)

		got := r.requests()
		if len(got) != 1 {
			w.Fatalf("%d requests, want 1", len(got))
		}
		h := got[0].header
		if got[0].path != "POST /hook?of=a" || got[0].body != body(run) || h.Get("Content-Type") != "application/json" ||
			!strings.HasPrefix(h.Get("User-Agent"), "Atelier-Webhooks/") || h.Get("Accept-Encoding") != "" || h.Get("Authorization") != "" {
			w.Errorf("request = %+v", got[0])
		}
		id := h.Get("webhook-id")
		if prefix, rest, _ := strings.Cut(id, "_"); prefix != "msg" || !ids.Valid(rest) {
			w.Errorf("webhook-id = %q", id)
		}
		stamp, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
		if d := got[0].at.Sub(time.Unix(stamp, 0)); err != nil || d < -time.Second || d > 5*time.Second {
			w.Errorf("webhook-timestamp = %v, %v before arrival", err, d)
		}
		a := w.attempts(run)
		if len(a) != 1 || !ids.Valid(a[0].ID) || !a[0].At.Equal(w.Now()) || a[0].StatusCode != 204 || a[0].Error != "" || a[0].Duration < 0 || a[0].Duration > 15*time.Second {
			w.Errorf("attempts = %+v", a)
		}
	})
}

func TestSignatures(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		run := w.run(r.at("a"))
		w.start(w.options(r)) // the secret comes into being with the first event
		w.until(run, "delivered", 1)
		hook, err := standardwebhooks.NewWebhook(w.secret())
		w.OK(err)
		got := r.requests()[0]
		if err := hook.Verify([]byte(got.body), got.header); err != nil {
			w.Fatalf("verify = %v", err)
		}
		for i := range len(got.body) * 8 {
			changed := []byte(got.body)
			changed[i/8] ^= 1 << (i % 8)
			if hook.Verify(changed, got.header) == nil {
				w.Fatalf("the body verifies with bit %d changed", i)
			}
		}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			value := got.header.Get(name)
			for i := range len(value) * 7 {
				changed, h := []byte(value), got.header.Clone()
				changed[i/7] ^= 1 << (i % 7)
				h.Set(name, string(changed))
				if hook.Verify([]byte(got.body), h) == nil {
					w.Fatalf("%s verifies as %q", name, changed)
				}
			}
		}
		other, err := standardwebhooks.NewWebhook("whsec_" + strings.Repeat("A", 43) + "=")
		w.OK(err)
		if other.Verify([]byte(got.body), got.header) == nil {
			w.Error("it verifies with another secret")
		}
	})
}

func TestStampsAreOfTheAttempt(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, status(500))
		o := w.options(r)
		real := o.Now
		o.Now = func() time.Time { return real().Add(-6 * time.Minute) }
		run := w.run(r.at("a"))
		_, stop := w.start(o)
		w.until(run, "failing", 1)
		stop()
		o.Now = real
		w.Pass(time.Minute)
		w.start(o)
		w.until(run, "failing", 2)
		hook, err := standardwebhooks.NewWebhook(w.secret())
		w.OK(err)
		got := r.requests()
		if err := hook.Verify([]byte(got[0].body), got[0].header); err == nil || hook.VerifyIgnoringTimestamp([]byte(got[0].body), got[0].header) != nil {
			w.Errorf("a stale stamp: %v", err)
		}
		if err := hook.Verify([]byte(got[1].body), got[1].header); err != nil {
			w.Errorf("a fresh stamp: %v", err)
		}
		if got[0].header.Get("webhook-id") != got[1].header.Get("webhook-id") {
			w.Error("the second attempt has another webhook-id")
		}
	})
}

func TestRotationSignsWithBoth(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		first := w.secret()
		second := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (webhook.Secret, error) { return w.secrets.RotateSecret(w.Context(), tx, w.account) }).Value
		s, _ := w.start(w.options(r))
		verified := func() (by []string) {
			run := w.run(r.at(ids.Text(8)))
			s.WakeSender()
			w.until(run, "delivered", 1)
			got := r.requests()[len(r.requests())-1]
			for _, secret := range []string{first, second} {
				hook, err := standardwebhooks.NewWebhook(secret)
				w.OK(err)
				if hook.Verify([]byte(got.body), got.header) == nil {
					by = append(by, secret)
				}
			}
			if n := len(strings.Split(got.header.Get("webhook-signature"), " ")); n != len(by) {
				w.Errorf("%d signatures, of which %d verify", n, len(by))
			}
			return by
		}
		if got := verified(); !slices.Equal(got, []string{first, second}) {
			w.Errorf("just rotated: verified by %v", got)
		}
		w.Pass(overlap - time.Microsecond)
		if got := verified(); !slices.Equal(got, []string{first, second}) {
			w.Errorf("before the end: verified by %v", got)
		}
		w.Pass(time.Microsecond)
		if got := verified(); !slices.Equal(got, []string{second}) {
			w.Errorf("at the end: verified by %v", got)
		}
	})
}

func TestARunHasOneEvent(t *testing.T) {
	each(t, func(w fixture) {
		const address = "https://example.com/"
		run := w.run(address)
		err := w.Try(func(tx *sqldb.Tx) error {
			return webhook.Add(w.Context(), tx, webhook.Event{RunID: run, AccountID: w.account, URL: address})
		})
		if !sqldb.IsDuplicate(err) {
			w.Errorf("a second event = %v", err)
		}
		for _, bad := range []string{"", "https://", "https://a b/", "%"} {
			err := w.Try(func(tx *sqldb.Tx) error {
				id, err := w.ended(tx, "")
				if err == nil {
					err = webhook.Add(w.Context(), tx, webhook.Event{RunID: id, AccountID: w.account, URL: bad})
				}
				return err
			})
			if err == nil {
				w.Errorf("an event for %q was added", bad)
			}
		}
		none := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) { return w.ended(tx, "") })
		states := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (map[string]*webhook.State, error) { return webhook.States(w.Context(), tx, none) })
		if len(states) != 0 || len(w.attempts(none)) != 0 {
			w.Errorf("a run without a webhook has %+v", states[none])
		}
		err = w.Try(func(tx *sqldb.Tx) error { return webhook.Redeliver(w.Context(), tx, none) })
		if !fault.Is(err, fault.NotFound) {
			w.Errorf("redeliver = %v, want not found", err)
		}
	})
}

func TestHostsAreToldApart(t *testing.T) {
	each(t, func(w fixture) {
		for address, want := range map[string]string{
			"https://Example.COM/Hook": "example.com", "https://example.com:443/a": "example.com", "HTTPS://example.com:8443": "example.com:8443",
			"https://[2606:4700::1111]:443/": "[2606:4700::1111]", "https://8.8.8.8:9443/": "8.8.8.8:9443",
		} {
			var host string
			run := w.run(address)
			w.OK(w.DB.QueryRow(w.Context(), `SELECT host FROM webhook_event WHERE run_id = $1`, run).Scan(&host))
			if host != want {
				w.Errorf("host of %s = %s, want %s", address, host, want)
			}
		}
	})
}

func TestRedeliver(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		o := w.options(r)
		o.Schedule = []time.Duration{5 * time.Second}
		s, _ := w.start(o)
		attempt := func(run string, code int, word string, attempts int) {
			w.Helper()
			r.then(status(code))
			s.WakeSender()
			w.until(run, word, attempts)
			if next := w.nextAt(run); next.IsZero() != (word != "failing") {
				w.Errorf("%s, and the next attempt at %v", word, next)
			}
		}

		delivered := w.run(r.at("delivered"))
		attempt(delivered, 200, "delivered", 1)
		w.redeliver(delivered)
		attempt(delivered, 500, "delivered", 2) // it was, whatever came after
		w.redeliver(delivered)
		attempt(delivered, 410, "delivered", 3)
		w.redeliver(delivered)
		attempt(delivered, 200, "delivered", 4)

		gone := w.run(r.at("gone"))
		attempt(gone, 410, "gone", 1)
		w.redeliver(gone)
		if s := w.state(gone); s.State != webhook.Waiting || s.PublicState() != "failing" {
			w.Errorf("asked for = %+v", s)
		}
		attempt(gone, 500, "gone", 2)

		exhausted := w.run(r.at("exhausted"))
		attempt(exhausted, 500, "failing", 1)
		w.Pass(6 * time.Second)
		attempt(exhausted, 500, "exhausted", 2)
		w.redeliver(exhausted)
		attempt(exhausted, 500, "exhausted", 3)
		w.redeliver(exhausted)
		attempt(exhausted, 200, "delivered", 4)

		waiting := w.run(r.at("waiting"))
		attempt(waiting, 500, "failing", 1)
		w.redeliver(waiting) // before its time
		attempt(waiting, 500, "exhausted", 2)
		w.redeliver(gone)
		attempt(gone, 200, "delivered", 3)

		w.Pass(48 * time.Hour)
		w.quiet(s, r)
		if a := w.attempts(gone); len(a) != 3 || a[0].StatusCode != 200 || a[2].Error != "status" || a[0].At.Before(a[2].At) {
			w.Errorf("attempts = %+v, want them newest first", a)
		}
		ids := map[string]string{}
		for _, q := range r.requests()[:len(r.requests())-2] { // without the last two, of quiet
			if id := q.header.Get("webhook-id"); ids[q.host] == "" {
				ids[q.host] = id
			} else if ids[q.host] != id {
				w.Errorf("%s has two webhook-ids", q.host)
			}
		}
	})
}
