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
	each(t, func(w world) {
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
			`UPDATE run SET webhook_url = '' WHERE id = '` + run + `'`:                                                                   "an event is that of a finished run, for its account and its webhook",
			`UPDATE webhook_event SET account_id = 'x' WHERE run_id = '` + run + `'`:                                                     "an event is that of a finished run, for its account and its webhook",
			`UPDATE webhook_event SET host = 'x' WHERE run_id = '` + run + `'`:                                                           "the host of an event is that of its address",
			`UPDATE webhook_event SET host = 'x' WHERE run_id IS NULL`:                                                                   "the host of an event is that of its address",
			`UPDATE webhook_event SET attempts = 9 WHERE run_id IS NULL`:                                                                 "every attempt of the schedule is written down, and none comes after a success",
			`UPDATE webhook_event SET lease_until = 1 WHERE run_id = '` + run + `'`:                                                      "what is being sent was waiting",
			`UPDATE webhook_event SET state = 'delivered', next_at = NULL WHERE run_id = '` + waiting + `'`:                              "an event is delivered when a receiver said so, and then never ends otherwise",
			`UPDATE webhook_event SET state = 'exhausted' WHERE run_id = '` + run + `'`:                                                  "an event is delivered when a receiver said so, and then never ends otherwise",
			`UPDATE webhook_event SET state = 'gone', next_at = NULL WHERE run_id = '` + waiting + `'`:                                   "an event is gone when a receiver said so",
			`UPDATE webhook_event SET state = 'exhausted', next_at = NULL, attempts = 0 WHERE run_id = '` + waiting + `'`:                "an event gives up only after its attempts",
			`UPDATE webhook_event SET attempts = 2 WHERE run_id = '` + run + `'`:                                                         "every attempt of the schedule is written down, and none comes after a success",
			`UPDATE webhook_attempt SET error = 'timeout' WHERE event_id = ` + event:                                                     "an attempt was answered with 2xx or failed",
			`INSERT INTO webhook_attempt (id, event_id, at, status_code, duration_ms, error) VALUES ('x', ` + event + `, 1, 500, 1, '')`: "an attempt was answered with 2xx or failed",
			`INSERT INTO webhook_host (host, failures, open_until) VALUES ('x', 19, 1)`:                                                  "only hosts that failed again and again are left alone",
			`INSERT INTO webhook_host (host, failures) VALUES ('x', 20)`:                                                                 "only hosts that failed again and again are left alone",
		} {
			found := w.Damage(webhook.Checks, damage)
			if len(found) != 1 || !found[want] {
				w.Errorf("%s\nfound %v, want %q", damage, found, want)
			}
		}
	})
}
