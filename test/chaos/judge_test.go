package chaos

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"atelier/test/program"
)

// record is a run as the program tells of it.
type record = map[string]any

// judge waits until all is quiet, and then holds everything that is known
// against everything else.
func (w *installation) judge() {
	if *history != "" {
		name := strings.ReplaceAll(w.t.Name(), "/", "-") + ".jsonl"
		if err := w.log.write(*history, name); err != nil {
			w.t.Error(err)
		}
	}
	w.sink.calmDown()
	w.wait("all runs to end", toolLimit+lease+time.Minute, func(r record) bool { return r["status"] != "pending" })
	// The lease of an event outlives its sender by half a minute.
	w.wait("all events to be delivered", w.circuitOpen()+2*time.Minute, func(r record) bool {
		hook, ok := r["webhook"].(map[string]any)
		return !ok || hook["state"] == "delivered"
	})
	runs := w.runs()
	w.readSteps(runs)
	w.judgeAnswers(runs)
	w.judgeRuns(runs)
	w.judgeRates(runs)
	w.judgeMoney(runs)
	w.judgeEvents(runs)
	w.judgeStarts(runs)
	w.judgeHistories(runs)
	for id, r := range runs {
		w.judgeResults(id, r)
	}
	w.check()
	w.judgeFiles()
	for _, r := range runs {
		w.statuses[r["status"].(string)]++
		if p := w.order(r).plan.flow; p != nil {
			w.flowEnds[p.name+" "+r["status"].(string)]++
			if w.order(r).retryOf != "" {
				w.retries++
			}
		}
	}
}

// wait asks for all runs until each is so.
func (w *installation) wait(what string, limit time.Duration, so func(record) bool) {
	w.t.Helper()
	deadline := time.Now().Add(limit)
	for tick := time.Tick(200 * time.Millisecond); ; <-tick {
		rest := slices.DeleteFunc(slices.Collect(maps.Values(w.runs())), so)
		if len(rest) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited %v in vain for %s: %d are not, such as %v", limit, what, len(rest), rest[0])
		}
	}
}

// runs are all runs of all accounts by request_id, whoever knows of them.
func (w *installation) runs() map[string]record {
	w.t.Helper()
	all := map[string]record{}
	for _, a := range w.accounts {
		for next := ""; ; {
			page := w.ask(a, "/api/v2/generations?limit=100&team_id="+a.team+next)
			for _, one := range page["data"].([]any) {
				r := one.(record)
				all[r["request_id"].(string)] = r
			}
			if page["has_more"] == false {
				break
			}
			next = "&cursor=" + page["next_cursor"].(string)
		}
	}
	return all
}

// order is the create that a run came from.
func (w *installation) order(r record) *order {
	metadata, _ := r["metadata"].(map[string]any)
	for _, c := range w.clients {
		for _, o := range c.orders {
			if o.id == metadata["order"] {
				return o
			}
		}
	}
	w.t.Fatalf("nobody asked for this run: %v", r)
	return nil
}

// metFault reports whether the server of a call, its database or its store was
// dead, paused or disturbed during the call, or had not reported to be ready
// again.
// The database ends the transactions of a process that stands still for too
// long.
func (w *installation) metFault(c *call) bool {
	return slices.ContainsFunc(w.faults, func(f fault) bool {
		return (f.everywhere || f.server == c.Server) && f.from.Before(c.Had) && f.to.After(c.Invoked)
	})
}

// judgeAnswers holds what clients were told against the runs there are.
func (w *installation) judgeAnswers(runs map[string]record) {
	good := map[string][]int{"create": {202, 402, 409, 429}, "poll": {200, 429}, "cancel": {200, 202}, "balance": {200}, "upload": {201}, "list": {200}}
	first, fresh, unknown, accepted := map[string]*call{}, map[string]int{}, map[string]bool{}, 0
	for _, c := range w.log.all() {
		if c.Status == 0 || c.Status == http.StatusServiceUnavailable && c.retryAfter != "" && w.metFault(c) {
			unknown[c.Order] = true
			w.excused += c.Status / http.StatusServiceUnavailable
			continue
		}
		if !slices.Contains(good[c.Op], c.Status) || c.Status == 429 && c.retryAfter == "" || c.Status == 409 && !strings.Contains(string(c.body), "in_flight") {
			w.t.Errorf("%s of client %d at %v = %d %s", c.Op, c.Client, c.Invoked, c.Status, c.body)
			continue
		}
		if c.Op == "poll" || c.Op == "cancel" {
			w.judgeSeen(c, runs[c.Run])
		}
		if c.Op != "create" || c.Status != 202 {
			continue
		}
		if !c.replayed {
			fresh[c.Order]++
			accepted++
		}
		was := first[c.Order]
		if was == nil {
			was = c
			first[c.Order] = c
		}
		if was.Run != c.Run || string(was.body) != string(c.body) || was.retryAfter != c.retryAfter {
			w.t.Errorf("order %s was answered %s and %s", c.Order, was.body, c.body)
		}
		v, r := c.decoded(w.t), runs[c.Run]
		if r == nil {
			w.t.Errorf("run %s was accepted and is lost", c.Run)
			continue
		}
		for _, name := range []string{"request_id", "created", "estimated_seconds", "retry_after_seconds"} {
			if fmt.Sprint(v[name]) != fmt.Sprint(r[name]) {
				w.t.Errorf("run %s was accepted with %s %v and has %v", c.Run, name, v[name], r[name])
			}
		}
	}
	byOrder := map[string]string{}
	for id, r := range runs {
		o := w.order(r)
		if other, twice := byOrder[o.id]; twice {
			w.t.Errorf("order %s has the runs %s and %s", o.id, other, id)
		}
		byOrder[o.id] = id
		if was := first[o.id]; was != nil && was.Run != id || was == nil && !unknown[o.id] {
			w.t.Errorf("run %s of order %s is not what the client was told", id, o.id)
		}
	}
	for id := range first {
		if fresh[id] > 1 || fresh[id] == 0 && !unknown[id] {
			w.t.Errorf("order %s had %d answers that were no replay", id, fresh[id])
		}
	}
	if accepted == 0 {
		w.t.Error("nothing was accepted: there was nothing to judge")
	}
}

// judgeSeen holds what a client saw of a run against its end: what had ended
// stays as it was.
func (w *installation) judgeSeen(c *call, r record) {
	if c.Status == 429 {
		return
	}
	v := c.decoded(w.t)
	if v["status"] == "pending" {
		return
	}
	for _, name := range []string{"status", "finished", "tokens_charged", "started", "error"} {
		if fmt.Sprint(v[name]) != fmt.Sprint(r[name]) {
			w.t.Errorf("run %s had ended with %s %v and has %v", c.Run, name, v[name], r[name])
		}
	}
}

// judgeRuns holds how runs ended against what they were to do.
func (w *installation) judgeRuns(runs map[string]record) {
	cancelled := map[string]bool{}
	for _, c := range w.log.all() {
		if c.Op == "cancel" {
			cancelled[c.Run] = true
		}
	}
	for id, r := range runs {
		p := w.order(r).plan
		if p.flow != nil {
			w.judgeFlow(id, r, p.flow, cancelled[id])
			continue
		}
		outputs, charged := len(r["outputs"].([]any)), int(r["tokens_charged"].(float64))
		ok := charged == outputs*unit && r["tokens_held"] == 0.0
		switch r["status"] {
		case "succeeded":
			ok = ok && !p.fails && outputs == p.delivered
		case "failed":
			problem := r["error"].(map[string]any)
			ok = ok && p.fails && outputs == 0 && problem["code"] == "ENGINE_FAILED"
		case "cancelled":
			ok = ok && cancelled[id] && outputs == 0
		default:
			ok = false
		}
		if !ok {
			w.t.Errorf("run %s was to do %+v and ended as %v", id, p, r)
		}
	}
}

// judgeRates looks for windows with too many runs of one person. Times are
// told to the second: two that differ by 59 are less than a minute apart, two
// that differ by 60 may not be.
func (w *installation) judgeRates(runs map[string]record) {
	times := map[*person][]time.Time{}
	for _, r := range runs {
		at, err := time.Parse(time.RFC3339, r["created"].(string))
		if err != nil {
			w.t.Error(err)
		}
		p := w.order(r).p
		times[p] = append(times[p], at)
	}
	for p, all := range times {
		slices.SortFunc(all, time.Time.Compare)
		for most, span := range map[int]time.Duration{w.perMinute: time.Minute, w.perHour: time.Hour} {
			for i := most; i < len(all); i++ {
				if d := all[i].Sub(all[i-most]); d < span {
					w.t.Errorf("%s created %d runs in %v", p.name, most+1, d)
				}
			}
		}
	}
}

// judgeMoney expects every account to have what it was granted, less what its
// runs cost.
func (w *installation) judgeMoney(runs map[string]record) {
	spent := map[string]int64{}
	for id, r := range runs {
		spent[w.order(r).account.id] += w.charged(id, r)
	}
	for _, a := range w.accounts {
		found := false
		for _, one := range w.ask(a, "/api/v2/me")["accounts"].([]any) {
			if v := one.(map[string]any); v["id"] == a.id {
				found = true
				balance := v["balance"].(map[string]any)
				if got := int64(balance["tokens"].(float64)); got != a.granted-spent[a.id] || balance["held"] != 0.0 {
					w.t.Errorf("account %s has %v, want %d less %d", a.id, balance, a.granted, spent[a.id])
				}
			}
		}
		if !found {
			w.t.Errorf("account %s is not in /me", a.id)
		}
	}
}

// judgeStarts expects every try of an attempt that the engine saw to be one of a
// run's or a step's, seen once, and every run and step with results to have been
// begun.
func (w *installation) judgeStarts(runs map[string]record) {
	text, err := os.ReadFile(w.count)
	if err != nil {
		w.t.Fatal(err)
	}
	attempts, begun := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(text)) {
		id, _, _ := strings.Cut(line, " ")
		if attempts[line]++; attempts[line] > 1 || runs[id] == nil && w.steps[id] == nil {
			w.t.Errorf("the engine began %d times with %s", attempts[line], line)
		}
		begun[id]++
	}
	for id, r := range runs {
		if r["status"] != "cancelled" && begun[id] == 0 && w.order(r).plan.flow == nil {
			w.t.Errorf("run %s ended as %v and was never begun", id, r["status"])
		}
	}
	for id, s := range w.steps {
		if s.isFlow && begun[id] > 0 || !s.isFlow && s.status != "cancelled" && begun[id] == 0 {
			w.t.Errorf("step %s of flow %s ended as %s and was begun %d times", s.key, s.top, s.status, begun[id])
		}
	}
}

// judgeResults reads a run three times and downloads what it made.
func (w *installation) judgeResults(id string, listed record) {
	a := w.order(listed).account
	want := program.Fixed(w.t, withoutLinks(listed))
	for range 3 {
		r := w.ask(a, "/api/v2/generate/"+id+a.query())
		if got := program.Fixed(w.t, withoutLinks(r)); got != want {
			w.t.Errorf("run %s was %s and is %s", id, want, got)
		}
		listed = r
	}
	outputs := listed["outputs"].([]any)
	steps, _ := listed["steps"].([]any)
	for _, one := range steps {
		outputs = append(outputs, one.(map[string]any)["outputs"].([]any)...)
	}
	for _, one := range outputs {
		output := one.(map[string]any)
		for _, p := range w.servers {
			c := call{Method: "GET", Path: path(output["url"].(string)), account: &account{}}
			w.send(p, &c, nil, "")
			sum := sha256.Sum256(c.body)
			if got := hex.EncodeToString(sum[:]); c.Status != http.StatusOK || got != output["sha256"] || float64(len(c.body)) != output["size_bytes"] {
				w.t.Errorf("result %v = %d %s with hash %s, want %v", output["id"], c.Status, c.Problem, got, output["sha256"])
			}
		}
	}
}
