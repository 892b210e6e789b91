package webhook_test

import (
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/webhook"
)

// TestChecksSeeWhatIsWrong breaks each rule and looks for its name. The tables
// refuse what three others look for: a second event, a state without its time,
// and an event about nothing.
func TestChecksSeeWhatIsWrong(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		run := w.run(r.at("a"))
		w.start(w.options(r))
		w.until(run, "delivered", 1)
		waiting := w.run("https://waiting.test/")
		w.until(waiting, "failing", 1)
		w.notice("https://waiting.test/", "{}") // several events without a run are no second event
		w.notice("https://waiting.test/", "{}")
		plain := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) { return w.ended(tx, "") })
		event := "(SELECT id FROM webhook_event WHERE run_id = '" + run + "')"
		for damage, want := range map[string]string{
			`UPDATE run SET webhook_url = 'https://x/' WHERE id = '` + plain + `'`:                                                       "a finished run with a webhook has an event",
			`UPDATE run SET webhook_url = '' WHERE id = '` + run + `'`:                                                                   "the run of an event has ended and has the account and the webhook of the event",
			`UPDATE webhook_event SET account_id = 'x' WHERE run_id = '` + run + `'`:                                                     "the run of an event has ended and has the account and the webhook of the event",
			`UPDATE webhook_event SET host = 'x' WHERE run_id = '` + run + `'`:                                                           "the host of an event is the host of its URL",
			`UPDATE webhook_event SET host = 'x' WHERE run_id IS NULL`:                                                                   "the host of an event is the host of its URL",
			`UPDATE webhook_event SET attempts = 9 WHERE run_id IS NULL`:                                                                 "every attempt is recorded, and no attempt follows a success",
			`UPDATE webhook_event SET lease_until = 1 WHERE run_id = '` + run + `'`:                                                      "only waiting events have a lease",
			`UPDATE webhook_event SET state = 'delivered', next_at = NULL WHERE run_id = '` + waiting + `'`:                              "an ended event is delivered if and only if a receiver answered with 2xx",
			`UPDATE webhook_event SET state = 'exhausted' WHERE run_id = '` + run + `'`:                                                  "an ended event is delivered if and only if a receiver answered with 2xx",
			`UPDATE webhook_event SET state = 'gone', next_at = NULL WHERE run_id = '` + waiting + `'`:                                   "an event is gone only if a receiver answered with 410",
			`UPDATE webhook_event SET state = 'exhausted', next_at = NULL, attempts = 0 WHERE run_id = '` + waiting + `'`:                "an exhausted event has at least one attempt",
			`UPDATE webhook_event SET attempts = 2 WHERE run_id = '` + run + `'`:                                                         "every attempt is recorded, and no attempt follows a success",
			`UPDATE webhook_attempt SET error = 'timeout' WHERE event_id = ` + event:                                                     "an attempt has an error unless it was answered with 2xx",
			`INSERT INTO webhook_attempt (id, event_id, at, status_code, duration_ms, error) VALUES ('x', ` + event + `, 1, 500, 1, '')`: "an attempt has an error unless it was answered with 2xx",
			`INSERT INTO webhook_host (host, failures, open_until) VALUES ('x', 19, 1)`:                                                  "the circuit breaker of a host is open only after 20 failures",
			`INSERT INTO webhook_host (host, failures) VALUES ('x', 20)`:                                                                 "the circuit breaker of a host is open only after 20 failures",
		} {
			found := w.Damage(webhook.Checks, damage)
			if len(found) != 1 || !found[want] {
				w.Errorf("%s\nfound %v, want %q", damage, found, want)
			}
		}
	})
}
