package metrics_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"atelier/internal/base/ids"
	"atelier/internal/base/memory"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/webhook"
	"atelier/internal/operate/metrics"
	"atelier/internal/run/run"
	"atelier/internal/testkit/watch"
)

// open makes a registry with a collector, and a function that lets a sample
// grow old.
func open(db *sqldb.DB) (registry *prometheus.Registry, grow func()) {
	registry, _, grow = openCollector(db)
	return registry, grow
}

// openCollector is like open, and also returns the collector.
func openCollector(db *sqldb.DB) (registry *prometheus.Registry, c *metrics.Collector, grow func()) {
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	grow = func() {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Minute)
	}
	registry = prometheus.NewPedanticRegistry()
	c = metrics.New(metrics.Options{
		DB: db, Memory: memory.NewBudget(1000), Engines: []string{"idle"}, Pools: []string{"own", "gpu"}, Log: slog.New(slog.DiscardHandler), Now: clock,
	})
	registry.MustRegister(c)
	return registry, c, grow
}

// fill adds a person with runs that wait for an engine, the oldest of them an
// hour old, one that is worked on and one that has ended.
func fill(w dbtest.Fixture, waiting int) {
	w.Helper()
	person := ids.New()
	w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 0)`, person)
	insert := func(engine, status, stage string, created time.Time) {
		w.Exec(`
			INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt,
				seed, num_results, metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month,
				status, stage, attempt, worker, lease_until, cancel, preview, revision, error_code, error_message, created, started, finished, tokens_charged, allowance_used)
			VALUES ($1, $1, $2, $2, 'token', '', '', 'tool', 'hash', $3, '{}', '', 1, 1, '', '', 2, 0, 0, 0, '',
				$4, nullif($5, ''), CASE WHEN $5 = 'queued' THEN 0 ELSE 1 END, '', CASE WHEN $5 = 'running' THEN CAST($6 AS BIGINT) ELSE NULL END, FALSE, '', 1, '', '', CAST($6 AS BIGINT),
				CASE WHEN $5 = 'queued' THEN NULL ELSE CAST($6 AS BIGINT) END, CASE WHEN $4 = 'succeeded' THEN CAST($6 AS BIGINT) ELSE NULL END,
				CASE WHEN $4 = 'succeeded' THEN 0 ELSE NULL END, CASE WHEN $4 = 'succeeded' THEN 0 ELSE NULL END)`,
			ids.New(), person, engine, status, stage, created.UnixMicro())
	}
	for i := range waiting {
		insert("busy", "pending", "queued", w.DB.Now().Add(-time.Hour+time.Duration(i)*time.Minute))
	}
	insert("busy", "pending", "running", w.DB.Now().Add(-2*time.Hour))
	insert("done", "succeeded", "", w.DB.Now().Add(-3*time.Hour))
	w.Exec(`INSERT INTO run_turn (engine, person_id, served, waiting) VALUES ('busy', $1, 0, $2), ('done', $1, 0, 0)`, person, int64(waiting))
}

func start(t *testing.T, fn func(w dbtest.Fixture)) {
	t.Helper()
	dbtest.EachFixture(t, webhook.Checks, func(w dbtest.Fixture) {
		w.Exec(`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ('tool', 'tool', 'builtin', '{}', 'hash', FALSE, 0, 0)`)
		w.Exec(`INSERT INTO tool_version (hash, definition) VALUES ('hash', '{}')`)
		fn(w)
	})
}

// value gives a metric with its labels as the scrape has it, "" where it is
// missing.
func value(t testing.TB, r *prometheus.Registry, name string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("scrape = %d %s", answer.Code, answer.Body)
	}
	for line := range strings.Lines(answer.Body.String()) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return rest
		}
	}
	return ""
}

// answers waits for a fresh sample: a busy machine may need more than one try.
func answers(t testing.TB, r *prometheus.Registry, grow func()) {
	t.Helper()
	watch.Until(t, "the database answers", func() bool {
		grow()
		return value(t, r, "atelier_database_up") == "1"
	})
}

func TestFigures(t *testing.T) {
	start(t, func(w dbtest.Fixture) {
		fill(w, 3)
		fill(w, 2)
		account := ids.New()
		for range 2 {
			w.OK(w.DB.Write(w.Context(), func(tx *sqldb.Tx) error {
				return webhook.AddNotice(w.Context(), tx, webhook.Notice{AccountID: account, URL: "https://hooks.example.com/x", Body: []byte("{}")})
			}))
		}
		w.Exec(`INSERT INTO webhook_host (host, failures, open_until) VALUES ('down.example.com', 20, $1), ('shaky.example.com', 3, NULL)`, w.DB.Now().Add(time.Hour).UnixMicro())
		jobs, err := queue.Open(w.DB, queue.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		w.OK(err)
		for _, kind := range []string{"mail", "mail", "other"} {
			w.OK(w.DB.Write(w.Context(), func(tx *sqldb.Tx) error {
				_, err := jobs.Add(w.Context(), tx, queue.Job{Kind: kind})
				return err
			}))
		}

		registry, grow := open(w.DB)
		answers(w.T, registry, grow)
		for name, want := range map[string]string{
			`atelier_database_up`:                 "1",
			`atelier_runs_waiting{engine="busy"}`: "5", `atelier_runs_waiting{engine="idle"}`: "0", `atelier_runs_waiting{engine="done"}`: "",
			`atelier_runs_active{engine="busy"}`: "2", `atelier_runs_active{engine="idle"}`: "0",
			`atelier_runs_oldest_waiting_seconds{engine="idle"}`: "0",
			`atelier_webhook_events_waiting`:                     "2", `atelier_webhook_hosts_paused`: "1", `atelier_mail_waiting`: "2",
			`atelier_memory_budget_bytes`: "1000", `atelier_memory_used_bytes`: "0", `atelier_memory_waiting{lane="large"}`: "0",
		} {
			if got := value(w.T, registry, name); got != want {
				w.Errorf("%s = %q, want %q", name, got, want)
			}
		}
		var age float64
		if _, err := fmt.Sscan(value(w.T, registry, `atelier_runs_oldest_waiting_seconds{engine="busy"}`), &age); err != nil || age < 3600 || age > 5400 {
			w.Errorf("age of the oldest run = %v, %v, want an hour", age, err)
		}

		// A sample is told again for a while.
		w.Exec(`UPDATE run_turn SET waiting = 0`)
		w.Exec(`UPDATE run SET stage = NULL, status = 'cancelled', finished = created, tokens_charged = 0, allowance_used = 0 WHERE stage = 'queued'`)
		if got := value(w.T, registry, `atelier_runs_waiting{engine="busy"}`); got != "5" {
			w.Errorf("waiting = %q at once, want the sample", got)
		}
		answers(w.T, registry, grow)
		if got := value(w.T, registry, `atelier_runs_waiting{engine="busy"}`); got != "0" {
			w.Errorf("waiting = %q later, want 0", got)
		}
	})
}

// TestPools reads the figures of pools as metrics and as a document.
func TestPools(t *testing.T) {
	start(t, func(w dbtest.Fixture) {
		fill(w, 3)
		w.OK(w.DB.Write(w.Context(), func(tx *sqldb.Tx) error {
			return run.DeclareEngines(w.Context(), tx, map[string]string{"busy": "gpu", "idle": "cpu"})
		}))
		registry, c, grow := openCollector(w.DB)
		answers(w.T, registry, grow)
		for name, want := range map[string]string{
			`atelier_pool_waiting{pool="gpu"}`: "3", `atelier_pool_running{pool="gpu"}`: "1", `atelier_pool_capacity{pool="gpu"}`: "0", `atelier_pool_workers{pool="gpu"}`: "0",
			`atelier_pool_estimated_wait_seconds{pool="gpu"}`: "", `atelier_pool_estimated_wait_seconds{pool="cpu"}`: "0",
			`atelier_pool_waiting{pool="own"}`: "0", `atelier_pool_estimated_wait_seconds{pool="own"}`: "0",
			`atelier_pool_waiting{pool="cpu"}`: "0", `atelier_pool_oldest_waiting_seconds{pool="cpu"}`: "0",
		} {
			if got := value(w.T, registry, name); got != want {
				w.Errorf("%s = %q, want %q", name, got, want)
			}
		}

		document, ok := c.PoolsDocument()
		text, err := json.Marshal(document)
		w.OK(err)
		for _, want := range []string{
			`{"name":"cpu","workers":0,"capacity":0,"running":0,"waiting":0,"oldest_wait_seconds":0,"estimated_wait_seconds":0,"engines":[{"name":"idle",`,
			`{"name":"gpu","workers":0,"capacity":0,"running":1,"waiting":3,"oldest_wait_seconds":`, `"estimated_wait_seconds":null,"engines":[{"name":"busy",`,
			`{"name":"own","workers":0,"capacity":0,"running":0,"waiting":0,"oldest_wait_seconds":0,"estimated_wait_seconds":0,"engines":[]}`,
		} {
			if !ok || !strings.Contains(string(text), want) {
				w.Errorf("document = %s, want %s", text, want)
			}
		}
	})
}

// TestBusyDatabase keeps every connection of the process busy: a scrape answers
// all the same, without what the database would have said.
func TestBusyDatabase(t *testing.T) {
	start(t, func(w dbtest.Fixture) {
		registry, grow := open(w.DB)
		answers(w.T, registry, grow)
		release := make(chan struct{})
		var ended sync.WaitGroup
		for range w.DB.Stats().Max {
			ended.Go(func() {
				_ = w.DB.Read(w.Context(), func(*sqldb.Tx) error { // some find no connection
					<-release
					return nil
				})
			})
		}
		watch.Until(w.T, "all connections are taken", func() bool {
			grow()
			return value(w.T, registry, "atelier_database_up") == "0"
		})

		grow()
		began := time.Now()
		families, err := registry.Gather()
		took := time.Since(began)
		close(release)
		ended.Wait()
		if err != nil {
			w.Errorf("scrape = %v", err)
		}
		watch.Took(w, "a scrape", took, 4*time.Second)
		names := map[string]bool{}
		for _, f := range families {
			names[f.GetName()] = true
		}
		if names["atelier_runs_waiting"] || !names["atelier_database_up"] || !names["atelier_database_connections"] || !names["atelier_memory_budget_bytes"] {
			w.Errorf("metrics = %v", names)
		}
		answers(w.T, registry, grow)
	})
}

// TestHungDatabase stops PostgreSQL with SIGSTOP: several scrapes at once are
// answered in time, and all is told again when it goes on.
func TestHungDatabase(t *testing.T) {
	t.Parallel()
	server := dbtest.OwnServer(t)
	db, err := sqldb.Open(t.Context(), server.URL, sqldb.Options{MaxConns: 4, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	registry, grow := open(db)
	answers(t, registry, grow)

	resume := server.Pause()
	for range 2 {
		grow()
		dbtest.Together(4, func(int) {
			began := time.Now()
			families, err := registry.Gather()
			if err != nil {
				t.Errorf("scrape = %v", err)
			}
			watch.Took(t, "a scrape", time.Since(began), 4*time.Second)
			for _, f := range families {
				if f.GetName() == "atelier_database_up" && f.GetMetric()[0].GetGauge().GetValue() != 0 || f.GetName() == "atelier_runs_waiting" {
					t.Errorf("a database that hangs says %v", f)
				}
			}
		})
	}
	resume()
	answers(t, registry, grow)
}
