package webhook_test

import (
	"context"
	"errors"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/testkit/watch"
)

// notices waits for every notice to be in a state after so many attempts.
func (w fixture) notices(state string, n, attempts int) {
	w.Helper()
	watch.Until(w, state, func() bool {
		var got int
		w.OK(w.DB.QueryRow(w.Context(), `
			SELECT count(*) FROM webhook_event e WHERE run_id IS NULL AND state = $1
			AND (SELECT count(*) FROM webhook_attempt a WHERE a.event_id = e.id) = $2`, state, attempts).Scan(&got))
		return got == n
	})
}

func TestNoticesAreDeliveredAsTheyAre(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		o := w.options(r)
		o.Events = bodies(func(context.Context, string) ([]byte, error) { return nil, errors.New("a notice is about no run") })
		const first, second = `{"type":"budget.reached","data":{"name":"Größe <&> \u2028"}}`, ` [1, 2] `
		w.notice(r.at("a"), first)
		w.notice(r.at("a"), second)
		w.start(o)
		w.notices(webhook.Delivered, 2, 1)
		hook, err := standardwebhooks.NewWebhook(w.secret())
		w.OK(err)
		bodies, ids := map[string]bool{}, map[string]bool{}
		for _, got := range r.requests() {
			if err := hook.Verify([]byte(got.body), got.header); err != nil || got.header.Get("Content-Type") != "application/json" {
				w.Errorf("verify = %v, %v", err, got.header)
			}
			bodies[got.body], ids[got.header.Get("webhook-id")] = true, true
		}
		if len(r.requests()) != 2 || len(ids) != 2 || !bodies[first] || !bodies[second] {
			w.Errorf("requests = %+v", r.requests())
		}
	})
}

func TestNoticesAreRetried(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, status(500))
		w.notice(r.at("a"), `{"n":1}`)
		s, _ := w.start(w.options(r))
		w.notices(webhook.Waiting, 1, 1)
		w.quiet(s, r)
		r.then(nil)
		w.Pass(10 * time.Second)
		s.WakeSender()
		w.notices(webhook.Delivered, 1, 2)
		got := r.requests()
		first, last := got[0], got[len(got)-1]
		if first.header.Get("webhook-id") != last.header.Get("webhook-id") || first.body != last.body {
			w.Errorf("first %+v, then %+v", first, last)
		}
		w.Pass(48 * time.Hour)
		w.quiet(s, r)
	})
}

func TestNoticesKeepToTheGuard(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		o := w.options(r)
		o.Guard = webhook.NewGuard(nil)
		w.notice(r.at("a"), `{}`)
		w.start(o)
		w.notices(webhook.Waiting, 1, 1)
		if n := len(r.requests()); n != 0 {
			w.Errorf("%d requests came", n)
		}
	})
}

func TestNoticesSaySomethingToSomebody(t *testing.T) {
	each(t, func(w fixture) {
		for _, n := range []webhook.Notice{
			{AccountID: w.account, URL: "https://a.example.com/"},
			{AccountID: w.account, URL: "nowhere", Body: []byte(`{}`)},
		} {
			if err := w.Try(func(tx *sqldb.Tx) error { return webhook.AddNotice(w.Context(), tx, n) }); err == nil {
				w.Errorf("%+v was taken", n)
			}
		}
	})
}
