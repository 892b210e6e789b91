package chaos

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/test/program"
)

// punctual is how old an event may be when it arrives. Senders are stopped for
// a few seconds at times.
const punctual = lease + 8*time.Second

// circuitOpen is how long the service sends no events to the receiver, because
// too many in a row failed during the storm.
func (w *installation) circuitOpen() time.Duration {
	w.t.Helper()
	db := dbtest.Open(w.t, w.database)
	defer db.Close()
	var until sqldb.Time
	err := db.Read(w.t.Context(), func(tx *sqldb.Tx) error {
		return tx.QueryRow(w.t.Context(), `SELECT max(open_until) FROM webhook_host`).Scan(&until)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return max(0, time.Until(until.Time))
}

// judgeEvents expects one event for every run that has a receiver, delivered,
// signed and true.
func (w *installation) judgeEvents(runs map[string]record) {
	told := map[string][]delivery{}
	for _, d := range w.sink.heard() {
		id, _ := d.body.Data["request_id"].(string)
		r := runs[id]
		if r == nil || !w.order(r).plan.webhook {
			w.t.Errorf("an event for nothing: %s", d.raw)
			continue
		}
		told[id] = append(told[id], d)
		w.judgeDelivery(d, r)
	}
	for id, r := range runs {
		if !w.order(r).plan.webhook {
			continue
		}
		var good []time.Time
		for _, d := range told[id] {
			if d.id != told[id][0].id {
				w.t.Errorf("run %s has the events %s and %s", id, told[id][0].id, d.id)
			}
			if d.status == http.StatusOK {
				good = append(good, d.at)
			}
		}
		if len(good) == 0 {
			w.t.Errorf("the event of run %s was not delivered", id)
		}
		// After a success that was written down nothing more is sent.
		for i := 1; i < len(good); i++ {
			if !slices.ContainsFunc(w.faults, func(f fault) bool { return f.to.After(good[i-1]) && f.from.Before(good[i]) }) {
				w.t.Errorf("the event of run %s was delivered at %v and again at %v, and nothing had gone wrong", id, good[i-1], good[i])
			}
		}
	}
}

// judgeDelivery holds one attempt against the run that it tells of.
func (w *installation) judgeDelivery(d delivery, r record) {
	i := slices.IndexFunc(w.accounts, func(a *account) bool { return a.id == w.order(r).account.id })
	hook, err := standardwebhooks.NewWebhook(w.accounts[i].secret)
	if err == nil {
		err = hook.VerifyIgnoringTimestamp(d.raw, d.header)
	}
	if err != nil {
		w.t.Errorf("event %s: %v", d.id, err)
	}
	stamp, err := strconv.ParseInt(d.header.Get("webhook-timestamp"), 10, 64)
	if age := d.at.Sub(time.Unix(stamp, 0)); err != nil || age < -time.Second || age > punctual {
		w.t.Errorf("event %s is from %v before it came", d.id, age)
	}
	if d.body.Type != "generation."+r["status"].(string) {
		w.t.Errorf("event %s is %s, the run ended as %v", d.id, d.body.Type, r["status"])
	}
	// How the event itself fares is not known before.
	was, is := maps.Clone(withoutLinks(d.body.Data)), maps.Clone(withoutLinks(r))
	delete(was, "webhook")
	delete(is, "webhook")
	if program.Fixed(w.t, was) != program.Fixed(w.t, is) {
		w.t.Errorf("event %s tells of %s, the run is %s", d.id, program.Fixed(w.t, was), program.Fixed(w.t, is))
	}
}

// judgeFiles starts the program once more, without patience for files that
// belong to nothing, and expects those that the database names and no others.
func (w *installation) judgeFiles() {
	for _, p := range w.servers {
		p.end()
	}
	db := dbtest.Open(w.t, w.database)
	program.ForgetDead(w.t, db)
	w.env = append(w.env, "ATELIER_RETENTION_ORPHANS=1ms")
	w.servers[0].start()
	program.KeptKeys(w.t, db, w.files)
	w.check()
	if w.postgres == nil {
		if problems, err := db.CheckIntegrity(w.t.Context()); err != nil || len(problems) != 0 {
			w.t.Errorf("the database file: %v, %v", problems, err)
		}
	}
}
