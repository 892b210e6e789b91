package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/watch"
	"atelier/test/visitor"
)

// answerWithin is how long any request may take while the database hangs.
const answerWithin = 10 * time.Second

// TestPausedDatabase stops PostgreSQL under a node: requests of every kind are
// answered with 503 in time, and all of them work again when it goes on.
// ATELIER_TEST_PAUSE=60s is the long form.
func TestPausedDatabase(t *testing.T) {
	t.Parallel()
	pause := time.Duration(0) // one round of requests
	if text := os.Getenv("ATELIER_TEST_PAUSE"); text != "" {
		var err error
		if pause, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	server := dbtest.OwnServer(t)
	s := newStageOn(t, server.URL, "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0", "ATELIER_LIMITS_CREATE_PER_MINUTE=1000", "ATELIER_LIMITS_ACTIVE_RUNS=1000", "ATELIER_TOKENS_SIGNUP_GRANT=100000")
	company := s.do("admin", "company", "create", "--name", "Fox", "--plan", "ENTERPRISE")["id"].(string)
	scim := s.do("admin", "scim-token", "create", "--company", company)["token"].(string)
	n := s.serve()
	anna := visitor.New(n.url)
	if err := anna.SignUp("anna@example.com", password); err != nil {
		t.Fatal(err)
	}
	in, err := anna.Device("")
	if err != nil {
		t.Fatal(err)
	}
	n.token = in.Tokens.IDToken
	o := n.order(1, picture)
	created, err := n.create(n.token, "", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := created.want(t, 202)["request_id"].(string)
	n.settled(n.token, "")
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Inputs["picture"] = map[string]any{"kind": "MULTIPART", "file_index": 0}
	withFile, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	kind, multipart, err := form(withFile, aPicture(t))
	if err != nil {
		t.Fatal(err)
	}

	output := n.get("/api/v2/generate/"+id, bearer(n.token)...).want(t, 200)["outputs"].([]any)[0].(map[string]any)["url"].(string)
	codes, err := visitor.New(n.url).Start("blender")
	if err != nil {
		t.Fatal(err)
	}
	stranger := visitor.New(n.url)
	entry, err := stranger.Open("/signin")
	if err != nil {
		t.Fatal(err)
	}

	type request struct {
		method, path, kind string
		body               []byte
		token              string
		page               bool // for a person's browser
		good               int
	}
	requests := map[string]request{
		"refresh":     {"POST", "/api/v2/auth/token/refresh", "application/json", []byte(`{"refresh_token": "` + in.Tokens.RefreshToken + `"}`), "", false, 200},
		"device":      {"POST", "/api/v2/auth/device/start", "application/json", []byte(`{"plugin_kind": "blender"}`), "", false, 200},
		"poll":        {"GET", "/api/v2/auth/device/poll?device_code=" + codes.DeviceCode, "", nil, "", false, 428},
		"me":          {"GET", "/api/v2/me", "", nil, n.token, false, 200},
		"tools":       {"GET", "/api/v2/tools", "", nil, n.token, false, 200},
		"create":      {"POST", "/api/v2/generate", "application/json", body, n.token, false, 202},
		"create-file": {"POST", "/api/v2/generate", kind, multipart, n.token, false, 202},
		"price":       {"POST", "/api/v2/generate/preview-cost", "application/json", body, n.token, false, 200},
		"status":      {"GET", "/api/v2/generate/" + id, "", nil, n.token, false, 200},
		"events":      {"GET", "/api/v2/generate/" + id + "/events", "", nil, n.token, false, 200},
		"runs":        {"GET", "/api/v2/generations", "", nil, n.token, false, 200},
		"cancel":      {"POST", "/api/v2/generate/" + id + "/cancel", "", nil, n.token, false, 200},
		"upload":      {"POST", "/api/v2/uploads?name=a.png", "image/png", aPicture(t), n.token, false, 201},
		"download":    {"GET", strings.TrimPrefix(output, n.url), "", nil, "", false, 200},
		"page":        {"GET", "/account", "", nil, "", true, 200},
		"scim":        {"GET", "/scim/v2/Users", "", nil, scim, false, 200},
		"ready":       {"GET", "/readyz", "", nil, "", false, 200},
	}
	// The rest is asked during the pause only: some of it would end what the test
	// is signed in with.
	const anID = "aB3aB3aB3aB3aB3aB3aB"
	paused := maps.Clone(requests)
	for route, open := range n.documentRoutes() {
		if open {
			continue // those that ask the database are above
		}
		method, path, _ := strings.Cut(route, " ")
		path = strings.ReplaceAll(path, "{request_id}", id)
		path = strings.ReplaceAll(path, "{library_id}", anID+":"+id)
		path = placeholder.ReplaceAllString(path, anID)
		paused[route] = request{method, path, "application/json", []byte(`{}`), n.token, false, 0}
	}
	if len(paused) < 80 {
		t.Errorf("the document has routes for %d requests only", len(paused))
	}
	for _, path := range []string{"/devices", "/tokens", "/password", "/account/delete", "/device", "/companies/" + company + "/tokens"} {
		paused["page "+path] = request{"GET", path, "", nil, "", true, 0}
	}
	for _, path := range []string{"/Users/" + anID, "/Groups", "/Groups/" + anID, "/Schemas", "/ServiceProviderConfig"} {
		paused["scim "+path] = request{"GET", "/scim/v2" + path, "", nil, scim, false, 0}
		paused["scim DELETE "+path] = request{"DELETE", "/scim/v2" + path, "", nil, scim, false, 0}
	}
	paused["scim create"] = request{"POST", "/scim/v2/Users", "application/scim+json", []byte(`{}`), scim, false, 0}

	send := func(r request, key string) (status int, text string, took time.Duration, err error) {
		begin := time.Now()
		defer func() { took = time.Since(begin) }()
		if r.page {
			p, err := anna.Open(r.path)
			return p.Status, p.HTML, 0, err
		}
		q, err := http.NewRequest(r.method, n.url+r.path, bytes.NewReader(r.body))
		if err != nil {
			return 0, "", 0, err
		}
		if r.kind != "" {
			q.Header.Set("Content-Type", r.kind)
		}
		if r.token != "" {
			q.Header.Set("Authorization", "Bearer "+r.token)
		}
		if key != "" {
			q.Header.Set("Idempotency-Key", key)
		}
		client := http.Client{Timeout: time.Minute}
		res, err := client.Do(q)
		if err != nil {
			return 0, "", 0, err
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		return res.StatusCode, string(answer), 0, err
	}
	together := func(requests map[string]request, check func(name string, r request, key string)) {
		var group sync.WaitGroup
		for name, r := range requests {
			for _, key := range []string{"", name} {
				if key != "" && !strings.HasPrefix(name, "create") {
					continue
				}
				group.Go(func() { check(name, r, key) })
			}
		}
		group.Wait()
	}
	works := func(when string) {
		together(requests, func(name string, r request, key string) {
			status, text, _, err := send(r, key)
			if err != nil || status != r.good {
				t.Errorf("%s %s = %d %.300s, %v, want %d", when, name, status, text, err, r.good)
			}
		})
	}
	works("before the pause:")

	// Load from before the pause until after it: more requests than the pool has
	// connections, some of them with several operations behind them.
	var mu sync.Mutex
	var slowest time.Duration
	var slowestName string
	answers := map[int]int{}
	var accepted []string // runs
	note := func(name string, status int, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		answers[status]++
		if took > slowest {
			slowest, slowestName = took, name
		}
	}
	stop := make(chan struct{})
	var load sync.WaitGroup
	for worker := range 32 {
		load.Go(func() {
			names := []string{"me", "create", "status", "upload", "price", "refresh", "runs", "download"}
			for i := worker; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond): // it need not be a race for the processor
				}
				name := names[i%len(names)]
				r := requests[name]
				key := ""
				if name == "create" {
					key = fmt.Sprintf("load-%d-%d", worker, i)
				}
				status, text, took, err := send(r, key)
				note("load "+name, status, took)
				if err != nil || status != r.good && status != http.StatusServiceUnavailable {
					t.Errorf("under load: %s = %d %.300s, %v after %v", name, status, text, err, took)
				}
				watch.Took(t, "under load: "+name, took, answerWithin)
				if status == http.StatusAccepted {
					var made struct {
						ID string `json:"request_id"`
					}
					if err := json.Unmarshal([]byte(text), &made); err != nil {
						t.Errorf("a create = %s", text)
					}
					mu.Lock()
					accepted = append(accepted, made.ID)
					mu.Unlock()
				}
			}
		})
	}
	time.Sleep(time.Second)

	resume := server.Pause()
	begin := time.Now()
	signedIn := make(chan error, 1)
	go func() { // a form that a browser had open
		p, err := stranger.Send(entry, "/signin", url.Values{"email": {"anna@example.com"}, "password": {password}})
		if err == nil && p.Status != http.StatusServiceUnavailable {
			err = fmt.Errorf("signing in = %d", p.Status)
		}
		watch.Took(t, "signing in", time.Since(begin), answerWithin)
		signedIn <- err
	}()
	time.Sleep(1100 * time.Millisecond) // for which /readyz counts what it found
	for first := true; first || time.Since(begin) < pause; first = false {
		together(paused, func(name string, r request, key string) {
			if key != "" {
				key += "-paused"
			}
			status, text, took, err := send(r, key)
			hasCode := strings.HasPrefix(r.path, "/api/") && r.method != http.MethodHead // an answer to HEAD has no body
			if err != nil || status != http.StatusServiceUnavailable || hasCode && !strings.Contains(text, "UPSTREAM_UNAVAILABLE") {
				t.Errorf("during the pause: %s = %d %.300s, %v after %v, want 503", name, status, text, err, took)
			}
			watch.Took(t, "during the pause: "+name, took, answerWithin)
			note(name, status, took)
		})
	}
	if err := <-signedIn; err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/healthz", "/signin", "/docs", "/api/v2/openapi.json"} { // they need no database
		status, text, took, err := send(request{method: "GET", path: path}, "")
		if err != nil || status != http.StatusOK {
			t.Errorf("during the pause: %s = %d %.300s, %v after %v", path, status, text, err, took)
		}
		watch.Took(t, "during the pause: "+path, took, answerWithin)
	}

	lasted := time.Since(begin)
	resume()
	begin = time.Now()
	watch.Until(t, "the node to be ready after the pause", func() bool { return n.get("/readyz").StatusCode == 200 })
	works("after the pause:")
	back := time.Since(begin)
	watch.Took(t, "the time from the pause until all was well", back, answerWithin)
	close(stop)
	load.Wait()
	t.Logf("paused for %v: the slowest answer was %s after %v; answers %v; all was well %v after the pause", lasted, slowestName, slowest, answers, back)

	n.settled(n.token, "")
	for _, id := range accepted {
		if got := n.get("/api/v2/generate/"+id, bearer(n.token)...).want(t, 200)["status"]; got != "succeeded" {
			t.Errorf("run %s is %v", id, got)
		}
	}
	n.stop()
	s.check()
}

// placeholder is a parameter in a path.
var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// documentRoutes gives the routes of the node's OpenAPI document as "METHOD
// /path", and whether they need no credential.
func (n *node) documentRoutes() map[string]bool {
	n.t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Security *[]any
		}
	}
	if err := json.Unmarshal([]byte(n.get("/api/v2/openapi.json").body), &document); err != nil {
		n.t.Fatal(err)
	}
	routes := map[string]bool{}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			if method == "parameters" || method == "servers" {
				continue
			}
			open := operation.Security != nil && len(*operation.Security) == 0
			routes[strings.ToUpper(method)+" /api/v2"+path] = open
		}
	}
	return routes
}

// TestPausedNode stops a node again and again in the middle of its work: another
// that shares the database goes on.
func TestPausedNode(t *testing.T) {
	t.Parallel()
	s := newStage(t, "postgres", "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0", "ATELIER_LIMITS_CREATE_PER_MINUTE=100000", "ATELIER_LIMITS_CREATE_PER_HOUR=100000", "ATELIER_LIMITS_ACTIVE_RUNS=1000")
	s.do("admin", "person", "create", "--email", "anna@example.com", "--password", password, "--verified")
	s.grant("--email", "anna@example.com", 1_000_000)
	token := s.do("admin", "token", "create", "--email", "anna@example.com", "--name", "test")["token"].(string)
	paused, other := s.serveTwo()
	paused.token, other.token = token, token
	o := other.order(1, picture)

	// One person on both nodes: every create locks the same rows.
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, _ = paused.create(token, "", o, nil) // it may be paused
			}
		})
	}
	rounds := 2
	if os.Getenv("ATELIER_TEST_PAUSE") != "" {
		rounds = 12
	}
	for round := range rounds {
		time.Sleep(200 * time.Millisecond)
		paused.signal(syscall.SIGSTOP)
		begin := time.Now()
		a, err := other.create(token, "", o, nil)
		if err != nil || a.StatusCode != 202 {
			t.Errorf("round %d: a create beside a paused node = %d %s, %v", round, a.StatusCode, a.body, err)
		}
		watch.Took(t, fmt.Sprintf("round %d: a create beside a paused node", round), time.Since(begin), answerWithin)
		paused.signal(syscall.SIGCONT)
	}
	close(stop)
	load.Wait()
	other.settled(token, "")
	s.check()
}
