package run_test

import (
	"testing"
	"time"

	"atelier/internal/run/run"
)

// addAhead queues a run of a person with a head start.
func (w fixture) addAhead(personID string, headStart time.Duration) string {
	w.Helper()
	d := w.draft(personID)
	d.HeadStart = headStart
	return w.insert(d)
}

// TestHeadStart has people with different priorities arrive one after the other.
func TestHeadStart(t *testing.T) {
	eachFixture(t, func(w fixture) {
		next := func(what, want string) {
			w.Helper()
			w.Pass(time.Second)
			if r := w.claim("worker"); r.ID != want {
				w.Errorf("%s: claimed another run", what)
			}
		}
		slow := w.addAhead(w.person(), -time.Minute)
		w.Pass(time.Second)
		first := w.add(w.person())
		w.Pass(time.Second)
		ahead := w.addAhead(w.person(), time.Minute)
		next("a high priority comes first", ahead)
		next("then a normal one", first)
		next("a low one last", slow)

		old := w.add(w.person())
		w.Pass(time.Minute + time.Second)
		late := w.addAhead(w.person(), time.Minute)
		next("a run that has waited for longer than the head start comes first", old)
		next("then the high priority", late)

		// The runs of one person.
		anna := w.person()
		normal := w.add(anna)
		w.Pass(time.Second)
		urgent := w.addAhead(anna, time.Minute)
		next("her run with the high priority", urgent)
		next("her other one", normal)

		// A run that is cancelled takes its head start with it.
		bert := w.person()
		his := w.add(bert)
		w.Pass(time.Second)
		gone := w.addAhead(bert, time.Hour)
		w.Pass(time.Second)
		hers := w.addAhead(w.person(), time.Minute)
		w.end(w.get(gone), outcome(run.Cancelled))
		next("the head start of a cancelled run does not count", hers)
		next("and his run waits for its turn", his)

		// A run that its worker returns keeps its head start.
		urgent = w.addAhead(w.person(), time.Hour)
		w.requeue(w.claim("worker"), run.Returned)
		other := w.add(w.person())
		w.Pass(time.Second)
		next("a returned run keeps its head start", urgent)
		next("and the other run follows", other)
	})
}

// TestNobodyStarves has a person with a high priority queue runs without end,
// and then new people without end.
func TestNobodyStarves(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		w.add(anna)
		w.claim("worker")
		w.Pass(time.Second)

		const ahead = 10 * time.Second
		hers := w.add(anna)
		before := 0
		for ; before < 100; before++ {
			w.addAhead(bert, ahead)
			w.Pass(time.Second)
			if w.claim("worker").ID == hers {
				break
			}
		}
		if before < 2 || before > 13 {
			w.Errorf("%d runs of the person ahead came before hers, want about %v", before, ahead)
		}

		// She was served a while ago; each new person was never served.
		w.Pass(time.Hour)
		hers = w.add(anna)
		for before = 0; before < 20; before++ {
			w.Pass(time.Second)
			w.add(w.person())
			if w.claim("worker").ID == hers {
				break
			}
		}
		if before > 1 {
			w.Errorf("%d new people came before her", before)
		}
	})
}
