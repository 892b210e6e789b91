package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/webhook"
	"atelier/internal/testkit/watch"
)

func TestSchedule(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, status(500))
		o := w.options(r)
		o.Schedule = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour}
		run := w.run(r.at("a"))
		s, _ := w.start(o)
		for i, wait := range o.Schedule {
			w.until(run, "failing", i+1)
			next := w.nextAt(run).Sub(w.Now())
			if least, most := wait-wait/5, wait+wait/5; next < least || next > most {
				w.Errorf("attempt %d comes after %v, want %v to %v", i+2, next, least, most)
			}
			w.Pass(next - time.Microsecond)
			w.quiet(s, r)
			w.Pass(time.Microsecond)
			s.WakeSender()
		}
		w.until(run, "exhausted", 8)
		w.Pass(48 * time.Hour)
		w.quiet(s, r)
		if !w.nextAt(run).IsZero() {
			w.Error("an event that gave up is still due")
		}
		for _, a := range w.attempts(run) {
			if a.StatusCode != 500 || a.Error != "status" {
				w.Errorf("attempt = %+v", a)
			}
		}
	})
}

func TestWaitsAreSpread(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, status(500))
		w.start(w.options(r))
		seen := map[time.Duration]bool{}
		for i := range 6 {
			run := w.run(r.at(fmt.Sprint("r", i)))
			w.until(run, "failing", 1)
			seen[w.nextAt(run).Sub(w.Now())] = true
		}
		if len(seen) < 3 {
			w.Errorf("six waits are %v", seen)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		o := w.options(r)
		s, _ := w.start(o)
		for i, c := range []struct {
			status      int
			header      string
			least, most time.Duration
		}{
			{429, "90", 90 * time.Second, 90 * time.Second},
			{503, "1", 4 * time.Second, 6 * time.Second}, // the schedule's is longer
			{500, "86400", 24 * time.Hour, 24 * time.Hour},
			{404, "9999999", 24 * time.Hour, 24 * time.Hour},
			{302, "600", 10 * time.Minute, 10 * time.Minute},
			{429, "soon", 4 * time.Second, 6 * time.Second},
			{429, "-5", 4 * time.Second, 6 * time.Second},
			{503, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 59 * time.Minute, time.Hour},
		} {
			r.then(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.header)
				w.WriteHeader(c.status)
			})
			run := w.run(r.at(fmt.Sprint("r", i)))
			s.WakeSender()
			w.until(run, "failing", 1)
			if got := w.nextAt(run).Sub(w.Now()); got < c.least || got > c.most {
				w.Errorf("%d with Retry-After %q: again after %v, want %v to %v", c.status, c.header, got, c.least, c.most)
			}
		}
	})
}

func TestStatuses(t *testing.T) {
	each(t, func(w fixture) {
		elsewhere := newReceiver(w, nil)
		r := newReceiver(w, func(w http.ResponseWriter, req *http.Request) {
			var code int
			host, _, _ := strings.Cut(req.Host, ".")
			fmt.Sscanf(host, "s%d", &code)
			w.Header().Set("Location", elsewhere.at("next"))
			w.WriteHeader(code)
		})
		w.start(w.options(r))
		runs := map[int]string{}
		for _, code := range []int{200, 201, 202, 204, 299, 300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 410, 429, 500, 503, 599} {
			runs[code] = w.run(r.at(fmt.Sprint("s", code)))
		}
		for code, run := range runs {
			word, failure := "failing", "status"
			switch {
			case code < 300:
				word, failure = "delivered", ""
			case code < 400:
				failure = "redirect"
			case code == 410:
				word = "gone"
			}
			w.until(run, word, 1)
			if a := w.attempts(run)[0]; a.StatusCode != code || a.Error != failure {
				w.Errorf("%d: attempt = %+v", code, a)
			}
		}
		if n := len(elsewhere.requests()); n != 0 {
			w.Errorf("%d redirects were followed", n)
		}
	})
}

func TestTwoSendersShareTheWork(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		var runs []string
		for i := range 40 {
			runs = append(runs, w.run(r.at(fmt.Sprint("r", i))))
		}
		first, _ := w.start(w.options(r))
		second, _ := w.start(w.options(r))
		dbtest.Together(20, func(i int) { []*webhook.Sender{first, second}[i%2].WakeSender() })
		for _, run := range runs {
			w.until(run, "delivered", 1)
		}
		if n := len(r.requests()); n != len(runs) {
			w.Errorf("%d requests for %d events", n, len(runs))
		}
	})
}

// TestALostSenderIsTakenOver has the first sender hang until its lease is over,
// as one that died would look to the second.
func TestALostSenderIsTakenOver(t *testing.T) {
	each(t, func(w fixture) {
		arrived, release := make(chan struct{}), make(chan struct{})
		var calls atomic.Int64
		r := newReceiver(w, func(http.ResponseWriter, *http.Request) {
			if calls.Add(1) == 1 {
				close(arrived)
				<-release
			}
		})
		run := w.run(r.at("a"))
		_, stopFirst := w.start(w.options(r))
		<-arrived
		second, _ := w.start(w.options(r))
		w.Pass(15*time.Second + 30*time.Second - time.Microsecond)
		w.quiet(second, r)
		w.redeliver(run) // it is on its way already
		w.quiet(second, r)
		w.Pass(time.Microsecond)
		second.WakeSender()
		w.until(run, "delivered", 1)
		close(release)
		stopFirst() // its 200 comes too late to be written down
		if s, n := w.state(run), calls.Load(); s != (webhook.State{State: webhook.Delivered, Attempts: 1}) || n != 2 {
			w.Errorf("state = %+v after %d requests", s, n)
		}
		ids := map[string]bool{}
		for _, q := range r.requests() {
			if q.host == "a" {
				ids[q.header.Get("webhook-id")] = true
			}
		}
		if len(ids) != 1 {
			w.Errorf("webhook-ids = %v, want one", ids)
		}
	})
}

func TestRunEndsInTime(t *testing.T) {
	each(t, func(w fixture) {
		arrived, slow := make(chan string, 2), make(chan struct{})
		r := newReceiver(w, func(w http.ResponseWriter, req *http.Request) {
			host, _, _ := strings.Cut(req.Host, ".")
			arrived <- host
			if host == "hung" {
				watch.Hang(w, req)
			}
			<-slow
		})
		o := w.options(r)
		o.Grace = 2 * time.Second
		hung, late := w.run(r.at("hung")), w.run(r.at("late"))
		s, stop := w.start(o)
		<-arrived
		<-arrived
		if err := s.Run(w.Context()); err == nil {
			w.Error("it ran twice at once")
		}
		time.AfterFunc(100*time.Millisecond, func() { close(slow) }) // within the grace
		began := time.Now()
		stop()
		took := time.Since(began)
		if took < o.Grace {
			w.Errorf("run ended after %v", took)
		}
		watch.Took(w, "the end of run", took, o.Grace+5*time.Second)
		w.until(late, "delivered", 1)
		w.until(hung, "pending", 0) // nobody is blamed for what we broke off
		r.then(nil)
		w.start(o) // and it can be sent at once
		w.until(hung, "delivered", 1)
	})
}

func TestOurOwnFailures(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		o := w.options(r)
		good := o.Events
		var broken atomic.Int64
		o.Events = bodies(func(ctx context.Context, runID string) ([]byte, error) {
			switch broken.Load() {
			case 1:
				return nil, errors.New("no such run")
			case 2:
				panic("no such run")
			}
			return good.EventBody(ctx, runID)
		})
		s, _ := w.start(o)
		for kind := range int64(2) {
			broken.Store(kind + 1)
			run := w.run(r.at("a"))
			s.WakeSender()
			w.until(run, "failing", 1)
			if a := w.attempts(run)[0]; a.Error != "internal" || a.StatusCode != 0 {
				w.Errorf("attempt = %+v", a)
			}
			broken.Store(0)
			w.Pass(10 * time.Second)
			s.WakeSender()
			w.until(run, "delivered", 2)
		}
		// The host has nothing to do with it.
		var n int
		w.OK(w.DB.QueryRow(w.Context(), `SELECT count(*) FROM webhook_host`).Scan(&n))
		if n != 0 {
			w.Errorf("%d hosts are blamed", n)
		}
		if !strings.Contains(w.log.String(), "no such run") {
			w.Error("nobody is told")
		}
		w.Exec(`UPDATE webhook_secret SET secret = 'damaged'`)
		run := w.run(r.at("a"))
		s.WakeSender()
		w.until(run, "failing", 1)
		if a := w.attempts(run)[0]; a.Error != "internal" {
			w.Errorf("attempt = %+v", a)
		}
	})
}

func TestWhatIsAllowedIsAskedAtEveryAttempt(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		o := w.options(r)
		o.Guard = webhook.NewGuard(nil)
		port := r.URL[strings.LastIndex(r.URL, ":"):]
		for _, address := range []string{r.at("a"), "https://127.0.0.1" + port + "/", "https://localhost" + port + "/", "https://b.example.com:80/"} {
			run := w.run(address)
			s, stop := w.start(o)
			s.WakeSender()
			w.until(run, "failing", 1)
			stop()
			if a := w.attempts(run)[0]; a.Error != "blocked" || a.StatusCode != 0 {
				w.Errorf("%s: attempt = %+v", address, a)
			}
		}
		if n := len(r.requests()); n != 0 {
			w.Errorf("%d requests came", n)
		}
	})
}

func TestCircuit(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, status(500))
		var runs []string
		for range 23 {
			runs = append(runs, w.run(r.at("dead")))
		}
		o := w.options(r)
		o.Schedule = []time.Duration{48 * time.Hour, 48 * time.Hour} // so that only first attempts count here
		s, _ := w.start(o)
		failures := func() (n int) {
			for _, q := range r.requests() {
				if q.host == "dead" {
					n++
				}
			}
			return n
		}
		left := func() time.Duration {
			var until int64
			w.OK(w.DB.QueryRow(w.Context(), `SELECT coalesce(max(open_until), 0) FROM webhook_host`).Scan(&until))
			return time.UnixMicro(until).Sub(w.Now())
		}
		watch.Until(w, "the circuit", func() bool { return left() > 0 })
		if got := left(); got != time.Minute || failures() != 20 {
			w.Errorf("left alone for %v after %d failures, want a minute after 20", got, failures())
		}
		for i, again := range []time.Duration{2 * time.Minute, 4 * time.Minute} {
			w.Pass(left() - time.Microsecond)
			w.quiet(s, r)
			w.Pass(time.Microsecond)
			s.WakeSender()
			watch.Until(w, "another chance", func() bool { return left() > 0 })
			if got := left(); got != again || failures() != 21+i {
				w.Errorf("left alone for %v after %d failures, want %v after %d", got, failures(), again, 21+i)
			}
		}
		// The last one has waited all this time, and its schedule has not begun.
		last := ""
		for _, run := range runs {
			if w.state(run).PublicState() == "pending" {
				last += run
			}
		}
		w.Exec(`UPDATE webhook_host SET failures = 40`)
		w.Pass(left())
		s.WakeSender()
		watch.Until(w, "another chance", func() bool { return left() > 0 })
		if got := left(); got != 30*time.Minute {
			w.Errorf("left alone for %v, want half an hour at most", got)
		}
		w.until(last, "failing", 1)

		r.then(nil)
		w.Pass(96 * time.Hour)
		s.WakeSender()
		for _, run := range runs {
			w.until(run, "delivered", 2)
		}
		var n int
		w.OK(w.DB.QueryRow(w.Context(), `SELECT count(*) FROM webhook_host`).Scan(&n))
		if n != 0 {
			w.Error("a success does not count")
		}
		if !strings.Contains(w.log.String(), "webhook circuit open") {
			w.Error("nobody is told")
		}
	})
}

func TestAFloodIsPaced(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		var runs []string
		for range 30 {
			runs = append(runs, w.run(r.at("busy")))
		}
		w.start(w.options(r))
		for _, run := range runs {
			w.until(run, "delivered", 1)
		}
		got := r.requests()
		for i := range len(got) - 10 {
			if d := got[i+10].at.Sub(got[i].at); d < 900*time.Millisecond {
				w.Errorf("eleven requests within %v", d)
			}
		}
	})
}
