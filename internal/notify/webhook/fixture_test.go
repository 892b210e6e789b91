package webhook_test

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/keyring"
	"atelier/internal/base/netguard/netguardtest"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/webhook"
	"atelier/internal/testkit/watch"
)

const overlap = 24 * time.Hour

// fixture is a database with a clock of its own, an account whose runs end, and a
// name server that resolves *.example.com to this machine.
type fixture struct {
	dbtest.Fixture
	secrets *webhook.Secrets
	account string
	log     *watch.Log
}

// each runs fn in a new fixture of every kind.
func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, webhook.Checks, func(base dbtest.Fixture) {
		ring, err := keyring.New(strings.Repeat("A", 43) + "=")
		base.OK(err)
		w := fixture{base, webhook.NewSecrets(ring.BoxFor("webhook secrets"), overlap), ids.New(), &watch.Log{}}
		w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 0)`, w.account)
		w.Exec(`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ('tool', 'tool', 'builtin', '{}', 'hash', FALSE, 0, 0)`)
		w.Exec(`INSERT INTO tool_version (hash, definition) VALUES ('hash', '{}')`)
		fn(w)
	})
}

// ended adds a run that has ended, without an event.
func (w fixture) ended(tx *sqldb.Tx, url string) (runID string, err error) {
	runID = ids.New()
	_, err = tx.Exec(w.Context(), `
		INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt,
			seed, num_results, metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
			status, attempt, worker, cancel, preview, revision, error_code, error_message, created, finished)
		VALUES ($1, $1, $2, $2, 'token', '', '', 'tool', 'hash', 'fake', '{}', '', 1, 1, '', $3, 2, 0, 0, 0, '', 0, 0,
			'succeeded', 1, '', FALSE, '', 1, '', '', $4, $4)`, runID, w.account, url, sqldb.At(tx.Now))
	return runID, err
}

// run adds a run that has ended, and its event.
func (w fixture) run(url string) (runID string) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) {
		id, err := w.ended(tx, url)
		if err == nil {
			err = webhook.Add(w.Context(), tx, webhook.Event{RunID: id, AccountID: w.account, URL: url})
		}
		return id, err
	})
}

// notice adds an event that is about no run.
func (w fixture) notice(url, body string) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) error {
		return webhook.AddNotice(w.Context(), tx, webhook.Notice{AccountID: w.account, URL: url, Body: []byte(body)})
	})
}

func (w fixture) state(runID string) webhook.State {
	w.Helper()
	states := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (map[string]*webhook.State, error) { return webhook.States(w.Context(), tx, runID) })
	if states[runID] == nil {
		w.Fatal("the run has no event")
	}
	return *states[runID]
}

func (w fixture) attempts(runID string) []webhook.Attempt {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]webhook.Attempt, error) {
		return webhook.Attempts(w.Context(), tx, runID)
	})
}

func (w fixture) redeliver(runID string) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) error { return webhook.Redeliver(w.Context(), tx, runID) })
}

func (w fixture) secret() string {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (webhook.Secret, error) { return w.secrets.GetSecret(w.Context(), tx, w.account) }).Value
}

// nextAt returns when an event is due; zero: it is not due.
func (w fixture) nextAt(runID string) time.Time {
	w.Helper()
	var at sqldb.Time
	w.OK(w.DB.QueryRow(w.Context(), `SELECT next_at FROM webhook_event WHERE run_id = $1`, runID).Scan(&at))
	return at.Time
}

// body returns the body of the run's event.
func body(runID string) string {
	return `{"type":"generation.succeeded","data":{"request_id":"` + runID + `"}}`
}

// bodies is a source of events.
type bodies func(ctx context.Context, runID string) ([]byte, error)

func (b bodies) EventBody(ctx context.Context, runID string) ([]byte, error) { return b(ctx, runID) }

// options are for a sender that reaches this machine.
func (w fixture) options(r *receiver) webhook.Options {
	roots := x509.NewCertPool()
	if r != nil {
		roots.AddCert(r.Certificate())
	}
	return webhook.Options{
		DB: w.DB, Secrets: w.secrets, Now: time.Now, RootCAs: roots, Schedule: []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute},
		Guard:  webhook.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
		Events: bodies(func(_ context.Context, runID string) ([]byte, error) { return []byte(body(runID)), nil }),
		Log:    slog.New(slog.NewTextHandler(w.log, nil)), Grace: 50 * time.Millisecond,
		Resolver: netguardtest.NameServer(w, func(name string) []netip.Addr {
			if name == "other.test" || strings.HasSuffix(name, ".example.com") {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
			}
			return nil
		}),
	}
}

// start runs a sender until the test ends or stop is called.
func (w fixture) start(o webhook.Options) (s *webhook.Sender, stop func()) {
	s = webhook.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("run = %v", err)
		}
	})
	w.Cleanup(stop)
	return s, stop
}

// until waits until a run's event has the state and the number of attempts.
func (w fixture) until(runID, word string, attempts int) {
	w.Helper()
	watch.Until(w, word, func() bool {
		s := w.state(runID)
		return s.PublicState() == word && s.Attempts == attempts
	})
}

// quiet proves that nothing is due: two events that are added now are sent, one
// after the other, and r has received nothing else. Before the second is sent,
// every other host has had its turn.
func (w fixture) quiet(s *webhook.Sender, r *receiver) {
	w.Helper()
	before := len(r.requests())
	for range 2 {
		runID := w.run(r.at("quiet"))
		s.WakeSender()
		w.until(runID, "delivered", 1)
	}
	if got := len(r.requests()); got != before+2 {
		w.Errorf("%d requests came that were not due", got-before-2)
	}
}

// receiver is a server for events. It answers 200 unless a test changes that,
// and always 200 for the host "quiet".
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []request
	answer http.HandlerFunc
}

type request struct {
	host   string // without .example.com
	path   string
	header http.Header
	body   string
	at     time.Time
}

func newReceiver(t testing.TB, answer http.HandlerFunc) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	text, _ := io.ReadAll(req.Body)
	host, _, _ := strings.Cut(req.Host, ".")
	r.mu.Lock()
	r.got = append(r.got, request{host, req.Method + " " + req.URL.RequestURI(), req.Header, string(text), time.Now()})
	answer := r.answer
	r.mu.Unlock()
	if answer != nil && host != "quiet" {
		answer(w, req)
	}
}

// then changes the answer.
func (r *receiver) then(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// at is an address of the receiver under one of its names.
func (r *receiver) at(name string) string {
	u, err := url.Parse(r.URL)
	if err != nil {
		panic(err)
	}
	return "https://" + name + ".example.com:" + u.Port() + "/hook?of=" + name
}

// status answers with a status and nothing else.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}
