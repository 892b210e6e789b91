package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/test/program"
)

// crash is a named point, and what is true when the program died there.
type crash struct {
	point   string
	file    bool // the create brings a file
	litters bool // files are left that belong to nothing
	kept    bool // the run was committed before
	// starts are the attempts in which the engine began.
	starts []string
}

// crashes are the points in the life of a run, in their order.
var crashes = []crash{
	{"create.before_tx:1", false, false, false, []string{"1"}},
	{"create.after_person_lock:1", false, false, false, []string{"1"}},
	{"create.after_hold:1", false, false, false, []string{"1"}},
	{"create.after_run_insert:1", false, false, false, []string{"1"}},
	{"create.before_commit:1", true, true, false, []string{"1"}},
	{"create.after_commit_before_reply:1", false, true, true, nil}, // the engine may be quicker than the crash
	{"upload.after_tmp:1", true, true, false, []string{"1"}},
	{"upload.after_rename:1", true, true, false, []string{"1"}},
	{"dispatch.after_lease:1", true, false, true, []string{"2"}},
	{"engine.after_start:1", false, false, true, []string{"2"}},
	{"engine.after_first_result:1", false, true, true, []string{"1", "2"}},
	{"settle.before_commit:1", false, true, true, []string{"1", "2"}},
}

// TestKilledWithARun kills the program at every step of a run's life. The
// client that tries again with its key finds one run, which ends, is paid once
// and has one event.
func TestKilledWithARun(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			// An event whose sender died waits for half a minute: in the
			// meantime the others are tried.
			settled := untold(t, engine, "settle.after_commit:1")
			connected := untold(t, engine, "hook.after_connect:1")
			delivered := untold(t, engine, "hook.after_2xx_before_record:1")
			for _, c := range crashes {
				t.Run(c.point, func(t *testing.T) {
					if strings.HasPrefix(c.point, "upload.") {
						needOneProcess(t, "a bucket has no temporary files")
					}
					c.try(t, engine)
				})
			}
			settled.told(1, 2) // the sender may be quicker than the crash
			connected.told(1, 1)
			delivered.told(2, 2)
		})
	}
}

// act is one run with a server that dies of it.
type act struct {
	t     *testing.T
	s     *site
	env   []string
	n     *node
	token string
	order order
	file  []byte
	key   string
	id    string // the request_id
	count string // file in which the engine counts
	first answer // what the server said before it died, if anything

	mu    sync.Mutex
	heard []event
}

// event is what a receiver is told.
type event struct {
	id   string // webhook-id
	body struct {
		Type string
		Data map[string]any
	}
}

const granted = 100

// perform starts the server with a crash point and asks for a run.
func perform(t *testing.T, engine, point string, file bool) *act {
	t.Helper()
	a := &act{t: t, key: "key-of-" + strings.ReplaceAll(point, ":", "-"), count: filepath.Join(t.TempDir(), "count")}
	receiver, trusted := program.Receiver(t, a.hear)
	a.s = newStage(t, engine, "SSL_CERT_FILE="+trusted, "ATELIER_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8", "ATELIER_WEBHOOK_TIMEOUT=1s", "ATELIER_WEBHOOK_RETRY_SCHEDULE=1s,1s,1s")
	a.token = a.s.token("anna@example.com")
	a.s.grant("--email", "anna@example.com", granted)
	a.env = a.s.env
	// The lease of the worker that dies is soon over, so that the next need
	// not wait for it.
	a.s.env = append(slices.Clone(a.env), "ATELIER_CRASH="+point, "ATELIER_RUNS_LEASE=300ms")
	a.n = a.s.serve()
	a.n.token = a.token
	a.order = a.n.order(2, countTo(a.count), picture, `{"progress": 0.5}`, picture)
	a.order.WebhookURL = receiver.URL + "/hook"
	if file {
		a.file = aPicture(t)
		a.order.Inputs["picture"] = map[string]any{"kind": "MULTIPART", "file_index": 0}
	}
	first, err := a.send()
	if err == nil {
		first.want(t, 202)
		a.first = first
	}
	select {
	case <-a.n.exited:
	case <-time.After(time.Minute):
		t.Fatalf("%s: the program goes on: %d %s, %v", point, first.StatusCode, first.body, err)
	}
	if !killed(a.n.err) {
		t.Fatalf("%s: the program ended with %v", point, a.n.err)
	}
	return a
}

func (a *act) send() (answer, error) {
	return a.n.create(a.token, "", a.order, a.file, "Idempotency-Key", a.key)
}

// again starts the server anew and sends the create once more.
func (a *act) again(env ...string) (id string, replayed bool) {
	a.t.Helper()
	a.s.env = append(slices.Clone(a.env), env...)
	old := a.n.url
	a.n = a.s.serve()
	a.n.token = a.token
	second, err := a.send()
	if err != nil {
		a.t.Fatal(err)
	}
	id = second.want(a.t, 202)["request_id"].(string)
	// The server has another address after its restart, and no fixed base_url.
	if a.first.Response != nil && strings.ReplaceAll(string(a.first.body), old, a.n.url) != string(second.body) {
		a.t.Errorf("the first answer was %s, the second %s", a.first.body, second.body)
	}
	return id, second.Header.Get("Idempotent-Replayed") == "true"
}

// succeeded expects the one run to have succeeded and to be paid once.
func (a *act) succeeded() {
	a.t.Helper()
	all, id := a.n.settled(a.token, ""), a.id
	r := all[id]
	if len(all) != 1 || r["status"] != "succeeded" || r["tokens_charged"] != 2.0*unit || len(r["outputs"].([]any)) != 2 {
		a.t.Fatalf("runs = %v, want %s with two results", all, id)
	}
	if tokens, held := a.n.balance(a.token, ""); tokens != granted-2*unit || held != 0 {
		a.t.Errorf("balance = %v with %v held, want %d", tokens, held, granted-2*unit)
	}
	for _, one := range r["outputs"].([]any) {
		output := one.(map[string]any)
		a.download(output["url"].(string), output["sha256"].(string))
	}
}

// download expects the bytes behind an address to have this hash.
func (a *act) download(address, want string) {
	a.t.Helper()
	res, err := http.Get(address)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	h := sha256.New()
	if _, err := io.Copy(h, res.Body); err != nil {
		a.t.Fatal(err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); res.StatusCode != 200 || got != want {
		a.t.Errorf("%s = %d with hash %s, want %s", address, res.StatusCode, got, want)
	}
}

func (c crash) try(t *testing.T, engine string) {
	a := perform(t, engine, c.point, c.file)
	id, replayed := a.again("ATELIER_RUNS_LEASE=2s")
	if replayed != c.kept {
		t.Errorf("the second create was replayed: %v, want %v", replayed, c.kept)
	}
	a.id = id
	a.succeeded()
	var starts []string
	for _, line := range started(t, a.count) {
		run, attempt, _ := strings.Cut(line, " ")
		if run != id {
			t.Errorf("the engine began with %s, which nobody knows", run)
		}
		starts = append(starts, attempt)
	}
	if c.starts != nil && !slices.Equal(starts, c.starts) {
		t.Errorf("the engine began in the attempts %v, want %v", starts, c.starts)
	}
	a.told(1, 1)
	if c.litters {
		// Now that nothing goes on, no file is too young to be swept.
		program.ForgetDead(a.t, dbtest.Open(a.t, a.s.database))
		a.s.env = append(slices.Clone(a.env), "ATELIER_RETENTION_ORPHANS=1ms", "ATELIER_RETENTION_EVERY=1s")
		a.n = a.s.serve()
		defer a.n.stop()
	}
	a.s.keptFiles()
	a.s.check()
}

// aPicture is a small PNG.
func aPicture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 32, 24))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// untold is a run after whose end the program died, and was started again.
func untold(t *testing.T, engine, point string) *act {
	t.Helper()
	a := perform(t, engine, point, false)
	var replayed bool
	if a.id, replayed = a.again(); !replayed {
		t.Errorf("%s: the second create was not replayed", point)
	}
	return a
}

func (a *act) hear(w http.ResponseWriter, r *http.Request) {
	var e event
	e.id = r.Header.Get("webhook-id")
	if err := json.NewDecoder(r.Body).Decode(&e.body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.heard = append(a.heard, e)
	a.mu.Unlock()
}

// told expects the event to be delivered, always the same and so often. It
// stops the server.
func (a *act) told(least, most int) {
	a.t.Helper()
	a.n.until(a.token, "", func(r map[string]any) bool {
		hook, _ := r["webhook"].(map[string]any)
		return hook["state"] == "delivered"
	})
	a.succeeded()
	a.n.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.heard); n < least || n > most {
		a.t.Errorf("the receiver was told %d times, want from %d to %d", n, least, most)
	}
	for _, e := range a.heard {
		if e.id == "" || e.id != a.heard[0].id || e.body.Type != "generation.succeeded" || e.body.Data["request_id"] != a.id {
			a.t.Errorf("the receiver was told %v", e)
		}
	}
	a.s.check()
}
