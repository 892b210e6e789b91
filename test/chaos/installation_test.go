package chaos

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

const (
	unit      = 3 // tokens for a result
	active    = 5
	lease     = 2 * time.Second
	orphans   = 15 * time.Second
	toolLimit = 20 * time.Second

	signupGrant = 100000
)

var manifest = fmt.Sprintf(`name: Scripted
price: {type: COST, tokens: %d}
num_results: {max: 4}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
timeout: %s
fields:
  - {key: script, type: TEXT_AREA, label: Script, max_length: 10000}
  - {key: picture, type: IMG, label: Picture, accept: [image/png]}
`, unit, toolLimit)

// account is who pays: a person, or a team.
type account struct {
	id      string
	team    string // "" for a person
	token   string // that sees it
	granted int64
	secret  string // that its events are signed with
}

// query selects the account.
func (a *account) query() string {
	if a.team == "" {
		return ""
	}
	return "?team_id=" + a.team
}

// load is what the clients ask for.
type load struct {
	flowShare int  // hundredths of the orders that are flows
	noEvents  bool // no order has a receiver of events
	perMinute int  // runs that a person may start
	perHour   int
	perFault  int // runs that are accepted between two faults; 0: no limit
}

// version is a version of a tool.
type version struct{ id, hash string }

// person has an account, is in a team and has several clients.
type person struct {
	name     string
	accounts []*account // their own, and the team's through a token of theirs
}

// installation is a running installation with all who use it.
type installation struct {
	t        *testing.T
	seed     uint64
	data     string
	database string
	env      []string
	count    string // file in which the engine counts its starts
	servers  []*server
	accounts []*account // each once
	people   []*person
	clients  []*client
	sink     *sink
	tool     string
	hash     string
	flows    map[string]version // by name
	log      log

	load
	accepted atomic.Int64 // runs so far
	rounds   atomic.Int64 // faults that are over

	// What stands between the parts. With SQLite, the database and the files are
	// on a small disk; with PostgreSQL, the files are in an S3 bucket, and the
	// database and the bucket each have a proxy.
	disk          *disk // nil: there is no disk that can be filled
	postgres      *dbtest.Server
	databaseProxy *proxy
	bucket        *blobtest.Bucket
	storeProxy    *proxy
	sinkProxy     *proxy
	served        string // address of the database for the servers
	calmData      string // data folder and database where nothing happens
	calmDatabase  string

	steps    map[string]*step             // runs of the steps of flows, when all have ended
	taken    map[string]map[string]string // runs that flows took over, by the run of the flow and the place
	flowEnds map[string]int               // how many flows ended how
	retries  int                          // flows that went on from another run

	caused        map[string]int // faults by name
	crashes       map[string]int // deaths by crash point
	point         int            // number of crash points tried
	histories     int            // given to porcupine
	excused       int            // answers with 503 during faults
	faults        []fault
	starvation    starvation
	kills, pauses int
	slowest       time.Duration // start
	slowestReady  time.Duration // from the end of a fault to readiness
	statuses      map[string]int
}

func newInstallation(t *testing.T, engine string, servers int, seed uint64, l load) *installation {
	t.Helper()
	dir := t.TempDir()
	w := &installation{
		t: t, seed: seed, load: l, data: filepath.Join(dir, "data"), count: filepath.Join(dir, "count"),
		sink: newSink(t, seed), statuses: map[string]int{}, caused: map[string]int{}, crashes: map[string]int{},
		flows: map[string]version{}, flowEnds: map[string]int{},
	}
	w.openStorage(engine)
	w.sinkProxy = newProxy(t, "tcp", w.sink.Listener.Addr().String())
	tools := filepath.Join(dir, "tools")
	for _, err := range []error{
		os.Mkdir(tools, 0o700),
		os.WriteFile(filepath.Join(tools, "scripted.yaml"), []byte(manifest), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range flowManifests {
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range servers {
		p := &server{t: t, w: w, address: program.FreeAddress(t), log: &watch.Log{}}
		p.front = newProxy(t, "tcp", p.address)
		w.servers = append(w.servers, p)
		t.Cleanup(func() {
			p.end()
			if t.Failed() {
				t.Logf("the last a server said:\n%s", tail(p.log.String(), 8000))
			}
		})
	}
	w.env = append(w.env,
		"ATELIER_BASE_URL=http://"+w.servers[0].address, "ATELIER_CATALOG_BUILTIN=false", "ATELIER_TOOLS="+tools, "ATELIER_LOG_LEVEL=warn",
		fmt.Sprint("ATELIER_LIMITS_CREATE_PER_MINUTE=", l.perMinute), fmt.Sprint("ATELIER_LIMITS_CREATE_PER_HOUR=", l.perHour), fmt.Sprint("ATELIER_LIMITS_ACTIVE_RUNS=", active),
		"ATELIER_LIMITS_REQUESTS_PER_MINUTE=0", "ATELIER_RUNS_LEASE="+lease.String(), "ATELIER_RUNS_ATTEMPTS=10000",
		"ATELIER_RETENTION_ORPHANS="+orphans.String(), "ATELIER_RETENTION_EVERY=1s",
		fmt.Sprint("ATELIER_TOKENS_SIGNUP_GRANT=", signupGrant),
		"SSL_CERT_FILE="+w.sink.roots, "ATELIER_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8", "ATELIER_WEBHOOK_TIMEOUT=4s", // a receiver that is slow to run is not asked twice
		"ATELIER_WEBHOOK_RETRY_SCHEDULE="+strings.TrimSuffix(strings.Repeat("200ms,", 30), ","),
		// A run outlasts every fault of the store, so it ends as it was to end.
		"ATELIER_RUNS_RETRY="+strings.TrimSuffix(strings.Repeat("500ms,", 60), ","),
	)
	w.populate()
	for _, p := range w.servers {
		p.start()
	}
	w.prepare()
	return w
}

// openStorage creates the database and the place for files.
func (w *installation) openStorage(engine string) {
	w.t.Helper()
	if engine != "postgres" {
		w.database = dbtest.URL(w.t, engine)
		if w.disk = newDisk(w.t); w.disk != nil {
			w.data = filepath.Join(w.disk.dir, "data")
			w.database = copyDatabase(w.t, w.database, w.disk.dir)
			w.env = append(w.env, "ATELIER_STORAGE_MIN_FREE_BYTES=0", "ATELIER_STORAGE_WARN_FREE_BYTES=0")
		}
		w.served = w.database
		w.calmData = filepath.Join(filepath.Dir(w.data), "calm")
		if err := os.Mkdir(w.calmData, 0o700); err != nil {
			w.t.Fatal(err)
		}
		w.calmDatabase = copyDatabase(w.t, w.database, w.calmData)
		return
	}
	w.openBucket()
	w.postgres = dbtest.OwnServer(w.t)
	w.database = w.postgres.URL
	u, err := url.Parse(w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	w.calmData = w.t.TempDir()
	w.calmDatabase = strings.Replace(w.database, u.Path, "/calm", 1)
	if err := w.postgres.Exec(w.t.Context(), `CREATE DATABASE calm TEMPLATE postgres`); err != nil {
		w.t.Fatal(err)
	}
	w.databaseProxy = newProxy(w.t, "unix", filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
	w.served = "postgres://postgres@" + w.databaseProxy.address + u.Path + "?sslmode=disable"
}

// copyDatabase copies an SQLite database to a folder and returns its address.
func copyDatabase(t *testing.T, address, dir string) string {
	t.Helper()
	file, err := os.ReadFile(strings.TrimPrefix(address, "sqlite://"))
	path := filepath.Join(dir, "atelier.db")
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "sqlite://" + path
}

// openBucket creates a bucket that is reached through a proxy. Without an S3
// server the files are in the data folder.
func (w *installation) openBucket() {
	w.t.Helper()
	if os.Getenv("ATELIER_TEST_S3") == "skip" {
		w.t.Log("ATELIER_TEST_S3=skip: faults between service and store are not tried")
		return
	}
	bucket := blobtest.S3(w.t)
	w.bucket = &bucket
	w.storeProxy = newProxy(w.t, "tcp", strings.TrimPrefix(bucket.Endpoint, "http://"))
	served := bucket
	served.Endpoint = "http://" + w.storeProxy.address
	w.env = append(w.env, "ATELIER_BLOBS="+served.Address(), "ATELIER_S3_ACCESS_KEY="+bucket.AccessKey, "ATELIER_S3_SECRET_KEY="+bucket.SecretKey)
}

// files are the keys of all stored files.
func (w *installation) files() map[string]bool {
	w.t.Helper()
	if w.bucket == nil {
		return program.Files(w.t, w.data)
	}
	keys := map[string]bool{}
	for object := range w.bucket.Client(w.t).Client.ListObjects(w.t.Context(), w.bucket.Name, minio.ListObjectsOptions{Recursive: true}) {
		if object.Err != nil {
			w.t.Fatal(object.Err)
		}
		keys[object.Key] = true
	}
	return keys
}

// populate makes people, and teams of which the last is poor.
func (w *installation) populate() {
	w.t.Helper()
	w.do("migrate")
	company := w.do("admin", "company", "create", "--name", "Acme", "--plan", "TEAM")["id"].(string)
	var teams []*account
	for name, tokens := range map[string]int64{"Blue": 50000, "Red": 7 * unit} {
		id := w.do("admin", "team", "create", "--company", company, "--name", name)["id"].(string)
		a := &account{id: id, team: id, granted: tokens}
		w.do("admin", "grant", "--team", id, "--tokens", fmt.Sprint(a.granted))
		teams = append(teams, a)
		w.accounts = append(w.accounts, a)
	}
	for i, name := range []string{"anna", "bert", "cora"} {
		email := name + "@example.com"
		uid := w.do("admin", "person", "create", "--email", email, "--password", "correct horse", "--verified")["uid"].(string)
		own := &account{id: uid, granted: signupGrant, token: w.do("admin", "token", "create", "--email", email, "--name", "own")["token"].(string)}
		shared := *teams[i%len(teams)]
		w.do("admin", "company", "add", "--company", company, "--email", email)
		w.do("admin", "team", "add", "--team", shared.team, "--email", email, "--role", "manager")
		shared.token = w.do("admin", "token", "create", "--email", email, "--name", "team", "--company", company)["token"].(string)
		teams[i%len(teams)].token = shared.token
		w.accounts = append(w.accounts, own)
		p := &person{name: name, accounts: []*account{own, &shared}}
		w.people = append(w.people, p)
		for range 2 {
			w.clients = append(w.clients, newClient(w, p, len(w.clients)))
		}
	}
}

// prepare reads what clients read before their first run.
func (w *installation) prepare() {
	w.t.Helper()
	own := w.people[0].accounts[0]
	list := w.ask(own, "/api/v2/tools")
	for _, one := range list["data"].([]any) {
		tool := one.(map[string]any)
		id := tool["id"].(string)
		v := version{id: id, hash: w.ask(own, "/api/v2/tools/"+id)["tool_fields_hash"].(string)}
		w.flows[tool["name"].(string)] = v
	}
	w.tool = w.flows["Scripted"].id
	w.hash = w.flows["Scripted"].hash
	delete(w.flows, "Scripted")
	for _, a := range w.accounts {
		a.secret = w.ask(a, "/api/v2/webhook-secret"+a.query())["secret"].(string)
	}
}

// ask reads something that is there, at the first server.
func (w *installation) ask(a *account, path string) map[string]any {
	w.t.Helper()
	var c call
	for range 12 { // a machine that is busy elsewhere may not answer in time
		c = call{Method: "GET", Path: path, account: a}
		if w.send(w.servers[0], &c, nil, ""); c.Status != 0 {
			break
		}
	}
	if c.Status != http.StatusOK {
		w.t.Fatalf("%s = %d %s %s", path, c.Status, c.body, c.Problem)
	}
	return c.decoded(w.t)
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// summary is what happened, in a line.
func (w *installation) summary() string {
	n := map[string]int{}
	keyed := map[string]bool{}
	for _, c := range w.log.all() {
		switch {
		case c.Op != "create":
			n[c.Op]++
			continue
		case c.Status == 0:
			n["unknown"]++
		case c.Status == http.StatusAccepted && c.replayed:
			n["replays"]++
		case c.Status == http.StatusAccepted:
			n["accepted"]++
		default:
			n["refused with "+c.code()]++
		}
		n["creates"]++
		if c.Key != "" {
			keyed[c.Key] = true
		}
	}
	n["keys"] = len(keyed)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, n[name]))
	}
	return fmt.Sprintf("%d kills, %d pauses, slowest start %v, slowest recovery %v; calls: %s; answers with 503 during faults: %d; processes starved %d times; runs: %v; webhooks: %s",
		w.kills, w.pauses, w.slowest.Round(time.Millisecond), w.slowestReady.Round(time.Millisecond), strings.Join(parts, ", "), w.excused, len(w.starvation.faults), w.statuses, w.sink.summary())
}
