package simulation

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/keyring"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/engine"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

var sealKey = []byte("a key for tests, of 32 bytes and n")

const (
	unit = 3 // tokens of a result
	tool = `price: {type: COST, tokens: 3}
num_results: {min: 1, max: 4, default: 1}
output: {type: TEXT, mime_types: [text/plain]}
engine: {name: script}
timeout: 10m
fields: [{key: script, type: TEXT_AREA, label: Script, max_length: 1000}]
`
)

// world is an installation with its nodes and clients. It embeds a connection
// to the database that never fails, for the test itself.
type world struct {
	*generationtest.Installation
	address  string
	chance   *rand.Rand // only for the goroutine of the test
	receiver *receiver
	secrets  *webhook.Secrets
	engine   *simulatedEngine
	nodes    []*node
	people   []account
	clients  sync.WaitGroup

	statements atomic.Int64
	crashes    atomic.Int64
	counts     counts

	mu     sync.Mutex
	orders []*order
	seen   map[string]generation.Record // runs that a client saw ended
}

// account is a person with tokens.
type account struct {
	id      string
	granted int64
}

// order is a create that a client wants to happen once.
type order struct {
	number  int
	owner   string
	key     string
	plan    plan
	webhook bool

	ids     map[string]bool // of the runs that clients were told of
	unknown bool            // the outcome of a try is not known
	busy    bool            // a try is under way
	settled bool            // a try was answered
}

// plan is what the engine does for a run.
type plan struct {
	Waits []time.Duration `json:"waits"` // before each result
	Fails string          `json:"fails"` // "", "always" or "first": the first attempt fails for a short time
}

// newDatabase returns the address of a migrated SQLite database, in memory if
// the system has a file system there.
func newDatabase(t *testing.T) string {
	t.Helper()
	path := strings.TrimPrefix(dbtest.URL(t, "sqlite"), "sqlite://")
	dir, err := os.MkdirTemp("/dev/shm", "atelier-simulation-")
	if err != nil {
		return "sqlite://" + path
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file, err := os.ReadFile(path)
	if err == nil {
		path = filepath.Join(dir, "atelier.db")
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "sqlite://" + path
}

func newWorld(t *testing.T, seed uint64, address string, r *receiver) *world {
	t.Helper()
	db := dbtest.Open(t, address)
	w := &world{
		Installation: generationtest.New(dbtest.Fixture{T: t, DB: db, URL: address}, nil),
		address:      address,
		chance:       rand.New(rand.NewPCG(seed, 0)),
		receiver:     r,
		engine:       &simulatedEngine{begun: map[string]int{}},
		seen:         map[string]generation.Record{},
	}
	w.Apply(map[string]string{"text": tool})
	ring, err := keyring.New(strings.Repeat("A", 43) + "=")
	w.OK(err)
	w.secrets = webhook.NewSecrets(ring.BoxFor("webhook secrets"), 24*time.Hour)
	for _, tokens := range []int64{100_000, 100_000, 40 * unit} {
		w.people = append(w.people, account{id: w.Person(tokens), granted: tokens})
	}
	for range 2 {
		w.nodes = append(w.nodes, w.startNode())
		w.pass(0, time.Second)
	}
	return w
}

// pass lets a random time pass. It is never a round number, so that few things
// happen at the same instant.
func (w *world) pass(least, most time.Duration) {
	time.Sleep(least + time.Duration(w.chance.Int64N(int64(most-least))))
}

// simulate makes requests and faults until the statements are used up.
func (w *world) simulate(steps int64) {
	for i := 0; w.statements.Load() < steps; i++ {
		w.pass(time.Millisecond, 500*time.Millisecond)
		for j, n := range w.nodes {
			if n.dead.Load() && w.chance.IntN(10) == 0 {
				<-n.ended
				w.nodes[j] = w.startNode()
			}
		}
		n := w.nodes[w.chance.IntN(len(w.nodes))]
		switch p := w.chance.IntN(1000); {
		case p < 500:
			w.create(n)
		case p < 700:
			w.poll(n)
		case p < 780:
			w.cancelRun(n)
		case p < 810:
			n.crashIn.Store(1 + w.chance.Int64N(120))
		case p < 820:
			n.crash()
		case p < 850:
			n.offset.Store(int64(time.Duration(w.chance.Int64N(int64(70*time.Second))) - 10*time.Second))
			w.counts.jumps++
		case p < 870:
			w.pass(time.Second, 2*time.Minute)
		}
		if i%250 == 249 {
			w.check()
		}
	}
}

// check verifies everything that must hold at every moment.
func (w *world) check() {
	w.Helper()
	w.counts.checks++
	if v, err := w.DB.VerifyChecks(w.Context(), generationtest.Checks); err != nil || len(v) != 0 {
		w.Fatalf("after %d statements: %v, %v", w.statements.Load(), v, err)
	}
	if n := w.Count(`SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM run WHERE status = 'pending' GROUP BY person_id) AS active`); n > activeRuns {
		w.Fatalf("a person has %d active runs, more than %d", n, activeRuns)
	}
	for _, p := range w.people {
		if b := w.Balance(p.id); b.Tokens < 0 {
			w.Fatalf("the balance of %s is %+v", p.id, b)
		}
	}
}

// create sends a new create, or repeats one whose outcome is unknown.
func (w *world) create(n *node) {
	w.mu.Lock()
	var o *order
	if again := w.chance.IntN(5) == 0; again {
		for _, one := range w.orders[max(0, len(w.orders)-20):] {
			if one.key != "" && !one.busy {
				o = one
				break
			}
		}
	}
	if o == nil {
		o = w.newOrder()
	}
	o.busy = true
	w.mu.Unlock()
	w.counts.creates++
	w.clients.Go(func() { w.send(n, o) })
}

// newOrder thinks of a run. The caller holds the lock.
func (w *world) newOrder() *order {
	o := &order{number: len(w.orders), owner: w.people[w.chance.IntN(len(w.people))].id, ids: map[string]bool{}, webhook: w.chance.IntN(3) == 0}
	if w.chance.IntN(5) > 0 {
		o.key = fmt.Sprint("key-", o.number)
	}
	for range 1 + w.chance.IntN(3) {
		longest := time.Second
		if w.chance.IntN(8) == 0 {
			longest = time.Minute
		}
		o.plan.Waits = append(o.plan.Waits, time.Duration(w.chance.Int64N(int64(longest))))
	}
	switch w.chance.IntN(10) {
	case 0:
		o.plan.Fails = "always"
	case 1:
		o.plan.Fails = "first"
	}
	w.orders = append(w.orders, o)
	return o
}

// send sends an order to a node once.
func (w *world) send(n *node, o *order) {
	script, err := json.Marshal(o.plan)
	if err != nil {
		w.Error(err)
	}
	d := w.Draft(generationtest.Own(o.owner), "text")
	results := int64(len(o.plan.Waits))
	d.NumResults = &results
	d.Inputs = map[string]any{"script": string(script)}
	d.Metadata = fmt.Sprintf(`{"order":%d}`, o.number)
	d.Key = o.key
	d.Fingerprint = d.Metadata
	if o.webhook {
		d.WebhookURL = w.receiver.URL + "/hook"
	}
	var c generation.Created
	answered, err := n.call(func(ctx context.Context) (err error) { c, err = n.runs.CreateRun(ctx, d); return err })

	w.mu.Lock()
	defer w.mu.Unlock()
	o.busy = false
	switch {
	case answered && err == nil:
		o.ids[c.Run.ID] = true
		o.settled = true
	case answered && (fault.Is(err, fault.InsufficientBalance) || fault.Is(err, fault.ActiveRunCap)):
		o.settled = true
	case answered && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.IdempotencyKeyConflict) && !fault.Is(err, fault.RequestTimeout):
		w.Errorf("order %d was refused: %v", o.number, err)
	default:
		o.unknown = true
	}
}

// someRun returns a run that clients know of, and its owner.
func (w *world) someRun() (id, owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range 5 {
		if len(w.orders) == 0 {
			break
		}
		o := w.orders[len(w.orders)-1-w.chance.IntN(min(len(w.orders), 30))]
		for id := range o.ids {
			return id, o.owner
		}
	}
	return "", ""
}

// poll reads the state of a run. An end that a client has seen must never
// change.
func (w *world) poll(n *node) {
	id, owner := w.someRun()
	if id == "" {
		return
	}
	w.counts.polls++
	w.clients.Go(func() {
		var rec generation.Record
		answered, err := n.call(func(ctx context.Context) (err error) { rec, err = n.runs.GetStatus(ctx, owner, id); return err })
		w.note(answered, rec, err)
	})
}

// cancelRun cancels a run.
func (w *world) cancelRun(n *node) {
	id, owner := w.someRun()
	if id == "" {
		return
	}
	w.counts.cancels++
	w.clients.Go(func() {
		var rec generation.Record
		answered, err := n.call(func(ctx context.Context) (err error) {
			rec, _, err = n.runs.CancelRun(ctx, generationtest.Own(owner), id)
			return err
		})
		w.note(answered, rec, err)
	})
}

// note remembers the state of a run that a client was told.
func (w *world) note(answered bool, rec generation.Record, err error) {
	if !answered || err != nil {
		if answered && fault.Is(err, fault.NotFound) {
			w.Errorf("a run that was accepted is not found: %v", err)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was, before := w.seen[rec.ID]
	switch {
	case before && (was.State != rec.State || was.TokensCharged != rec.TokensCharged || len(was.Outputs) != len(rec.Outputs)):
		w.Errorf("run %s had ended as %s with %d tokens, and is %s with %d", rec.ID, was.State, was.TokensCharged, rec.State, rec.TokensCharged)
	case rec.State.IsEnded():
		w.seen[rec.ID] = rec
	}
}

// finish ends the faults and lets everything come to its end.
func (w *world) finish() {
	w.clients.Wait()
	for i, n := range w.nodes {
		n.crashIn.Store(0)
		n.offset.Store(0)
		if n.dead.Load() {
			<-n.ended
			w.nodes[i] = w.startNode()
		}
	}
	for _, o := range w.orders {
		for tries := 0; o.key != "" && !o.settled; tries++ {
			if tries == 100 {
				w.Fatalf("order %d is never answered", o.number)
			}
			w.send(w.nodes[tries%len(w.nodes)], o)
			time.Sleep(time.Second)
		}
	}
	w.until("all runs to end", `SELECT count(*) FROM run WHERE status = 'pending'`)
	w.until("all events to be sent", `SELECT count(*) FROM webhook_event WHERE state = 'waiting'`)
	for _, n := range w.nodes {
		n.cancel()
		<-n.ended
	}
	w.counts.statements = w.statements.Load()
	w.counts.crashes = w.crashes.Load()
}

// until waits until a query returns zero.
func (w *world) until(what, query string) {
	w.Helper()
	for range 100_000 {
		if w.Count(query) == 0 {
			return
		}
		time.Sleep(time.Second)
	}
	w.Fatalf("waited in vain for %s", what)
}

// receiver is an HTTPS server for events, outside the simulated time.
type receiver struct {
	*httptest.Server
	roots *x509.CertPool

	mu    sync.Mutex
	tries map[string]int
	got   map[string]map[string]bool // ids of events by run
	good  map[string]int             // deliveries that were answered with 200, by event
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{tries: map[string]int{}, got: map[string]map[string]bool{}, good: map[string]int{}, roots: x509.NewCertPool()}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // senders may die
	r.StartTLS()
	t.Cleanup(r.Close)
	r.roots.AddCert(r.Certificate())
	return r
}

// ServeHTTP records an event. It fails often, depending on the event's id and
// the number of its deliveries.
func (r *receiver) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	var body struct {
		Data struct {
			RequestID string `json:"request_id"`
		}
	}
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	if err := json.Unmarshal(text, &body); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	id := req.Header.Get("webhook-id")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got[body.Data.RequestID] == nil {
		r.got[body.Data.RequestID] = map[string]bool{}
	}
	r.got[body.Data.RequestID][id] = true
	r.tries[id]++
	sum := uint64(r.tries[id])
	for _, c := range []byte(id) {
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	switch sum >> 32 % 10 {
	case 0:
		rw.WriteHeader(http.StatusInternalServerError)
	case 1:
		panic(http.ErrAbortHandler)
	case 2:
		rw.Header().Set("Retry-After", "3")
		rw.WriteHeader(http.StatusServiceUnavailable)
	default:
		r.good[id]++
	}
}

// simulatedEngine follows the plan in the run's inputs.
type simulatedEngine struct {
	mu    sync.Mutex
	begun map[string]int // calls by run, attempt and try
}

// Run waits and delivers, as the plan says.
func (e *simulatedEngine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	e.mu.Lock()
	e.begun[fmt.Sprintf("run %s, attempt %d, try %d", j.RunID, j.Attempt, j.Try)]++
	e.mu.Unlock()
	var p plan
	if err := json.Unmarshal([]byte(j.Values["script"].(string)), &p); err != nil {
		return err
	}
	for i, wait := range p.Waits {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		if i == len(p.Waits)-1 && p.Fails == "always" {
			return engine.Fail(engine.Failed, "The engine is broken.")
		}
		if p.Fails == "first" && j.Try == 0 {
			return engine.FailTransient(engine.Unavailable, "The engine is busy.")
		}
		if err := out.Output(ctx, engine.Result{Data: strings.NewReader(fmt.Sprint("result ", i, " of ", j.RunID))}); err != nil {
			return err
		}
		out.Progress(float64(i+1) / float64(len(p.Waits)))
	}
	return nil
}

// judge compares what is stored with what the clients were told.
func (w *world) judge() {
	w.Helper()
	w.check()
	byOrder := map[int]run.Run{}
	spent := map[string]int64{}
	var all []run.Run
	for _, id := range w.runIDs() {
		all = append(all, w.Run(id))
	}
	for _, r := range all {
		var m struct{ Order int }
		if err := json.Unmarshal([]byte(r.Metadata), &m); err != nil || m.Order >= len(w.orders) {
			w.Fatalf("run %s has the metadata %s", r.ID, r.Metadata)
		}
		o := w.orders[m.Order]
		if other, twice := byOrder[m.Order]; twice {
			w.Errorf("order %d has the runs %s and %s", m.Order, other.ID, r.ID)
		}
		byOrder[m.Order] = r
		spent[r.AccountID] += r.TokensCharged
		if len(o.ids) == 0 && !o.unknown || len(o.ids) > 0 && !o.ids[r.ID] || len(o.ids) > 1 {
			w.Errorf("order %d made run %s, and its client was told %v", m.Order, r.ID, o.ids)
		}
		w.judgeRun(o, r)
	}
	for _, o := range w.orders {
		if _, ok := byOrder[o.number]; !ok && len(o.ids) > 0 {
			w.Errorf("order %d was accepted as %v, and the run is lost", o.number, o.ids)
		}
	}
	for _, p := range w.people {
		if b := w.Balance(p.id); b.Tokens != p.granted-spent[p.id] || b.Held != 0 {
			w.Errorf("account %s has %+v, want %d less %d", p.id, b, p.granted, spent[p.id])
		}
	}
	for what, n := range w.engine.begun {
		if n > 1 {
			w.Errorf("the engine began %d times with %s", n, what)
		}
	}
	if len(all) == 0 {
		w.Error("there were no runs to judge")
	}
	w.counts.runs = int64(len(all))
	w.receiver.mu.Lock()
	defer w.receiver.mu.Unlock()
	for _, n := range w.receiver.tries {
		w.counts.deliveries += int64(n)
	}
}

// runIDs returns the ids of all runs.
func (w *world) runIDs() (all []string) {
	w.Do(func(tx *sqldb.Tx) error {
		all = nil
		return tx.EachRow(w.Context(), `SELECT id FROM run ORDER BY created, id`, nil, func(row sqldb.Scanner) error {
			var id string
			err := row.Scan(&id)
			all = append(all, id)
			return err
		})
	})
	return all
}

// judgeRun compares a run with its order.
func (w *world) judgeRun(o *order, r run.Run) {
	results := w.Count(`SELECT count(*) FROM result WHERE run_id = $1`, r.ID)
	want := int64(len(o.plan.Waits))
	switch {
	case r.State == run.Succeeded && o.plan.Fails != "always" && results == want && r.TokensCharged == want*unit:
	case r.State == run.Failed && o.plan.Fails == "always" && results == 0 && r.TokensCharged == 0:
	case r.State == run.Cancelled && results == 0 && r.TokensCharged == 0:
	default:
		w.Errorf("run %s of the plan %+v is %s with %d results for %d tokens (%s %s)", r.ID, o.plan, r.State, results, r.TokensCharged, r.ErrorCode, r.ErrorText)
	}
	if seen, ok := w.seen[r.ID]; ok && (seen.State != r.State || seen.TokensCharged != r.TokensCharged) {
		w.Errorf("run %s had ended as %s and is %s", r.ID, seen.State, r.State)
	}

	events := w.Count(`SELECT count(*) FROM webhook_event WHERE run_id = $1`, r.ID)
	w.receiver.mu.Lock()
	defer w.receiver.mu.Unlock()
	got := w.receiver.got[r.ID]
	if !o.webhook {
		if events != 0 || len(got) != 0 {
			w.Errorf("run %s without a receiver has %d events and %d deliveries", r.ID, events, len(got))
		}
		return
	}
	if events != 1 || len(got) > 1 {
		w.Errorf("run %s has %d events, and the receiver got %v", r.ID, events, got)
	}
	good := 0
	for id := range got {
		good += w.receiver.good[id]
	}
	delivered := w.Count(`SELECT count(*) FROM webhook_event WHERE run_id = $1 AND state = 'delivered'`, r.ID)
	tries := w.Count(`SELECT attempts FROM webhook_event WHERE run_id = $1`, r.ID)
	recorded := w.Count(`SELECT count(*) FROM webhook_attempt a JOIN webhook_event e ON e.id = a.event_id WHERE e.run_id = $1 AND a.status_code = 200`, r.ID)
	if delivered == 1 && (good == 0 || recorded != 1) || delivered == 0 && (recorded != 0 || tries <= int64(len(retries))) {
		w.Errorf("the event of run %s: delivered %d, attempts %d, successes recorded %d, answered with 200 %d times", r.ID, delivered, tries, recorded, good)
	}
}
