package chaos

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// searchLimit is how long the search for an order of one history may take. A
// history that is not decided by then fails the test.
const searchLimit = 5 * time.Minute

// judgeHistories expects that the calls of the clients can be put into one
// order, consistent with their times, in which every answer is right for a
// service that does one thing at a time. It uses porcupine, for the creates
// with a key, the states of each run, and the balance of each account.
func (w *installation) judgeHistories(runs map[string]record) {
	w.t.Helper()
	end := time.Now()
	byOrder := map[string]string{}
	for id, r := range runs {
		byOrder[w.order(r).id] = id
	}
	keys := map[string][]porcupine.Operation{}
	states := map[string][]porcupine.Operation{}
	for _, c := range w.log.all() {
		had := c.Had
		if c.isUnknown() {
			had = end // it may take effect at any time
		}
		o := porcupine.Operation{ClientId: c.Client, Input: byOrder[c.Order], Call: c.Invoked.UnixNano(), Output: c, Return: had.UnixNano()}
		switch {
		case c.Op == "create" && c.Key != "":
			keys[c.Order] = append(keys[c.Order], o)
		case c.Op == "poll" || c.Op == "cancel":
			states[c.Run] = append(states[c.Run], o)
		}
		for id := range c.listed {
			o.Input = id
			states[id] = append(states[id], o)
		}
	}
	for name, all := range keys {
		w.search(keyModel, "the creates of order "+name, all)
	}
	for id, all := range states {
		w.search(stateModel, "the states of run "+id, all)
	}
	balanceModel := newBalanceModel(w.flowChanges(runs))
	for _, a := range w.accounts {
		w.search(balanceModel, "the balance of account "+a.id, w.balanceHistory(a, runs, end))
	}
}

// isUnknown reports whether a call may have taken effect although its client
// was not told so.
func (c *call) isUnknown() bool { return c.Status == 0 || c.Status == http.StatusServiceUnavailable }

// search looks for an order of operations.
func (w *installation) search(m porcupine.NondeterministicModel, what string, all []porcupine.Operation) {
	if len(all) == 0 {
		return
	}
	w.histories++
	switch porcupine.CheckOperationsTimeout(m.ToModel(), all, searchLimit) {
	case porcupine.Illegal:
		var lines []string
		for _, o := range all {
			lines = append(lines, fmt.Sprintf("%d–%d %v %v", o.Call, o.Return, o.Input, o.Output))
		}
		w.t.Errorf("no order explains %s:\n%s", what, strings.Join(lines, "\n"))
	case porcupine.Unknown:
		w.t.Errorf("no order of %s was found within %v, and none is excluded: %d operations", what, searchLimit, len(all))
	}
}

// String describes a call in a failure.
func (c *call) String() string {
	return fmt.Sprintf("client %d: %s %s %s = %d %s", c.Client, c.Op, c.Order, c.Run, c.Status, c.body)
}

// keyModel is an idempotency key. Its state is the id of its run, or "". The
// input of an operation is the run that the order has in the end.
var keyModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, output any) []any {
		c := output.(*call)
		switch {
		case c.isUnknown():
			return []any{state, input}
		case c.Status == http.StatusConflict:
			return []any{state}
		case c.Status != http.StatusAccepted: // refused: there is no run
			if state == "" {
				return []any{""}
			}
		case !c.replayed && state == "", c.replayed && state == c.Run:
			return []any{c.Run}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}

// runState is the state of a run, and whether somebody asked to cancel it.
type runState struct {
	status string
	asked  bool
}

// stateModel is a run. It ends at any time by itself, once. The input of a list
// is the id of the run.
var stateModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{runState{status: "pending"}} },
	Step: func(state, input, output any) []any {
		s := state.(runState)
		c := output.(*call)
		if c.Op == "cancel" && c.isUnknown() {
			return []any{s, runState{s.status, true}}
		}
		if c.isUnknown() || c.Status == http.StatusTooManyRequests {
			return []any{s}
		}
		s.asked = s.asked || c.Op == "cancel"
		said := c.status()
		if c.listed != nil {
			said = c.listed[input.(string)]
		}
		switch {
		case s.status == said:
			return []any{s}
		case s.status == "pending" && (said != "cancelled" || s.asked):
			return []any{runState{said, s.asked}}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}

// status is the status of a run in an answer.
func (c *call) status() string {
	_, rest, _ := strings.Cut(string(c.body), `"status":`)
	rest = strings.TrimPrefix(strings.TrimSpace(rest), `"`)
	status, _, _ := strings.Cut(rest, `"`)
	return status
}

// funds is the state of an account.
type funds struct {
	tokens, held int64
	pending      string // ids of the runs with a hold, sorted
}

// movement is an operation on an account: the hold of a new run, its settlement,
// or, without a run, a reading.
type movement struct {
	run           string
	settles       bool
	hold, charged int64
	granted       int64 // only in the first operation, which gives the account its tokens
}

// newBalanceModel returns the model of an account. A flow is settled step by
// step: while it is pending, a reading finds some of its steps settled. changes
// are the changes of the balance that this can make, by the id of the flow.
func newBalanceModel(changes map[string][]change) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{funds{}} },
		Step: func(state, input, output any) []any {
			return stepBalance(changes, state.(funds), input.(movement), output)
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

func stepBalance(changes map[string][]change, f funds, m movement, output any) []any {
	pending := strings.Fields(f.pending)
	i, holds := slices.BinarySearch(pending, m.run)
	switch {
	case m.granted > 0:
		return []any{funds{tokens: f.tokens + m.granted}}
	case m.run == "":
		read := output.(funds)
		if reaches(changes, pending, change{tokens: read.tokens - f.tokens, held: read.held - f.held}) {
			return []any{f}
		}
		return nil
	case m.settles != holds:
		return nil
	case m.settles:
		return []any{funds{f.tokens + m.hold - m.charged, f.held - m.hold, strings.Join(slices.Delete(pending, i, i+1), " ")}}
	}
	return []any{funds{f.tokens - m.hold, f.held + m.hold, strings.Join(slices.Insert(pending, i, m.run), " ")}}
}

// change is a difference between two balances.
type change struct{ tokens, held int64 }

// reaches reports whether a change of the balance can be what steps of pending
// flows have settled.
func reaches(changes map[string][]change, pending []string, want change) bool {
	reached := map[change]bool{{}: true}
	for _, id := range pending {
		if all := changes[id]; len(all) > 0 {
			reached = addChanges(reached, all)
		}
	}
	return reached[want]
}

// addChanges returns all sums of a change that is reached and another one.
func addChanges(reached map[change]bool, all []change) map[change]bool {
	sums := map[change]bool{}
	for a := range reached {
		for _, b := range all {
			sums[change{tokens: a.tokens + b.tokens, held: a.held + b.held}] = true
		}
	}
	return sums
}

// flowChanges returns the changes of the balance that settled steps can make
// while their flow is pending, by the id of the flow.
func (w *installation) flowChanges(runs map[string]record) map[string][]change {
	all := map[string][]change{}
	for id, r := range runs {
		if w.order(r).plan.flow == nil {
			continue
		}
		reached := map[change]bool{{}: true}
		for _, s := range w.stepsOf(id) {
			part := w.part(s.run, s.held)
			reached = addChanges(reached, []change{{}, {tokens: part - s.charged, held: -part}})
		}
		all[id] = slices.Collect(maps.Keys(reached))
	}
	return all
}

// sightings are the times between which a run was created and ended, as far as
// answers show them: none of them is later than the answer that shows it.
type sightings struct {
	there map[string]time.Time // when the first answer with the run came
	open  map[string]time.Time // when the last request began that found it pending
	ended map[string]time.Time // when the first answer came that showed its end
}

// sightings reads the log for what it shows of each run.
func (w *installation) sightings() sightings {
	s := sightings{there: map[string]time.Time{}, open: map[string]time.Time{}, ended: map[string]time.Time{}}
	see := func(c *call, id, status string) {
		if at, ok := s.there[id]; !ok || c.Had.Before(at) {
			s.there[id] = c.Had
		}
		if at, ok := s.ended[id]; status != "pending" && (!ok || c.Had.Before(at)) {
			s.ended[id] = c.Had
		}
		if status == "pending" && c.Invoked.After(s.open[id]) {
			s.open[id] = c.Invoked
		}
	}
	for _, c := range w.log.all() {
		if (c.Op == "poll" || c.Op == "cancel") && c.Status != 0 && c.Status < 300 {
			see(c, c.Run, c.status())
		}
		for id, status := range c.listed {
			see(c, id, status)
		}
	}
	return s
}

// balanceHistory are the operations on an account: what clients read, and what
// the runs moved. A run was settled after the second that it tells as its end,
// and between the answers that showed it pending and ended.
func (w *installation) balanceHistory(a *account, runs map[string]record, end time.Time) []porcupine.Operation {
	var all []porcupine.Operation
	add := func(m movement, read any, from, to time.Time) {
		all = append(all, porcupine.Operation{Input: m, Output: read, Call: from.UnixNano(), Return: max(to.UnixNano(), from.UnixNano())})
	}
	add(movement{granted: a.granted}, nil, time.Unix(0, 0), time.Unix(1, 0))
	first, told, seen := map[string]time.Time{}, map[string]time.Time{}, w.sightings()
	for _, c := range w.log.all() {
		switch {
		case c.Op == "balance" && c.Status == http.StatusOK && c.account.id == a.id:
			if f, ok := w.fundsOf(c, a); ok {
				add(movement{}, f, c.Invoked, c.Had)
			}
		case c.Op == "create":
			if at, ok := first[c.Order]; !ok || c.Invoked.Before(at) {
				first[c.Order] = c.Invoked
			}
			if at, ok := told[c.Order]; c.Status == http.StatusAccepted && (!ok || c.Had.Before(at)) {
				told[c.Order] = c.Had
			}
		}
	}
	for id, r := range runs {
		o := w.order(r)
		if o.account.id != a.id {
			continue
		}
		hold := o.plan.hold()
		to, ok := told[o.id]
		if !ok {
			to = end
		}
		if at, ok := seen.there[id]; ok && at.Before(to) {
			to = at
		}
		add(movement{run: id, hold: hold}, nil, first[o.id], to)
		from, err := time.Parse(time.RFC3339, r["finished"].(string))
		if err != nil || from.Before(first[o.id]) {
			from = first[o.id]
		}
		if at := seen.open[id]; at.After(from) {
			from = at
		}
		if to, ok = seen.ended[id]; !ok {
			to = end
		}
		add(movement{run: id, settles: true, hold: hold, charged: w.charged(id, r)}, nil, from, to)
	}
	return all
}

// fundsOf reads the balance of an account from an answer.
func (w *installation) fundsOf(c *call, a *account) (f funds, ok bool) {
	for _, one := range c.decoded(w.t)["accounts"].([]any) {
		if v := one.(map[string]any); v["id"] == a.id {
			balance := v["balance"].(map[string]any)
			return funds{tokens: int64(balance["tokens"].(float64)), held: int64(balance["held"].(float64))}, true
		}
	}
	return funds{}, false
}
