package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
)

// TestFirstDay is what a newcomer does: start, set up, list, page, filter,
// make every mistake.
func TestFirstDay(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		servers.NeedShippedPrograms(t)
		tools := t.TempDir()
		n := s.serve("--tools", tools)

		watch.Until(t, "the set-up link", func() bool { return strings.Contains(n.stderr.String(), "/setup?token=") })
		link := regexp.MustCompile(`http://\S+(/setup\?token=\w+)`).FindStringSubmatch(n.stderr.String())[1]
		if a := n.get(link); a.StatusCode != 200 || !bytes.Contains(a.body, []byte("atelier admin person create")) {
			t.Errorf("set-up page = %d %s", a.StatusCode, a.body)
		}
		if a := n.get(link + "x"); a.StatusCode != 404 {
			t.Errorf("wrong set-up link = %d, want 404", a.StatusCode)
		}
		n.token = s.token("anna@example.com")
		if a := n.get(link); a.StatusCode != 404 {
			t.Errorf("set-up link after the first person = %d, want 404", a.StatusCode)
		}

		shipped := n.tools("", nil)
		if len(shipped) < 8 {
			t.Fatalf("shipped tools: %v", shipped)
		}
		paged := n.tools("limit=1", func(page int) {
			if page == 1 {
				write(t, tools, "zzz.yaml", manifest("Added meanwhile"))
				watch.Until(t, "the new tool", func() bool { _, ok := n.tools("", nil)["Added meanwhile"]; return ok })
			}
		})
		delete(paged, "Added meanwhile")
		if !maps.Equal(paged, shipped) {
			t.Errorf("paged one by one: %v, want %v", paged, shipped)
		}
		for name, id := range n.tools("", nil) {
			if detail := n.json("/api/v2/tools/" + id); detail["name"] != name {
				t.Errorf("detail of %s is of %v", name, detail["name"])
			}
		}
		tags := n.json("/api/v2/tool-tags")["data"].([]any)
		for _, one := range tags {
			tag := one.(map[string]any)
			if got := n.tools("limit=2&tool_tag="+tag["id"].(string), nil); len(got) == 0 || len(got) > len(shipped) {
				t.Errorf("tools with %v: %v", tag["label"], got)
			}
		}
		if kits := n.json("/api/v2/kits")["data"].([]any); len(kits) < 2 {
			t.Errorf("%d kits, want those that ship", len(kits))
		}

		for query, want := range map[string]string{
			"limit=0": "INVALID_REQUEST", "limit=101": "INVALID_REQUEST", "limit=x": "INVALID_REQUEST", "cursor=AAAA": "INVALID_REQUEST",
			"team_id=abcdefghij0123456789": "ACCOUNT_SELECTION_INVALID",
		} {
			if a := n.get("/api/v2/tools?" + query); a.StatusCode != 400 || !bytes.Contains(a.body, []byte(want)) {
				t.Errorf("%s = %d %s", query, a.StatusCode, a.body)
			}
		}
		for _, header := range []string{"", "Bearer nonsense", "Bearer " + n.token + "x"} {
			if a := n.get("/api/v2/tools", "Authorization", header); a.StatusCode != 401 {
				t.Errorf("with %q = %d, want 401", header, a.StatusCode)
			}
		}
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/docs": 200, "/docs/api": 200, "/docs/generate.md": 200, "/llms.txt": 200, "/api/v2/openapi.json": 200, "/metrics": 404, "/debug/pprof/": 404, "/": 303} {
			if a := n.get(path); a.StatusCode != want {
				t.Errorf("%s = %d, want %d", path, a.StatusCode, want)
			}
		}
		s.check()

		n.stop()
		if strings.Contains(n.stderr.String(), n.token) {
			t.Error("the log has the token")
		}
		filepath.WalkDir(s.data, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if text, _ := os.ReadFile(path); bytes.Contains(text, []byte(n.token)) || bytes.Contains(text, []byte("correct horse")) {
					t.Errorf("%s has a secret in clear", path)
				}
				if info, _ := d.Info(); strings.HasSuffix(path, "secret") && info.Mode().Perm() != 0o600 {
					t.Errorf("%s has mode %v", path, info.Mode())
				}
			}
			return nil
		})

		again := s.serve("--tools", tools)
		again.token = n.token
		if got := again.tools("", nil); got["Gradient"] != shipped["Gradient"] || len(got) != len(shipped)+1 {
			t.Errorf("after a restart: %v, want the same tools with the same ids", got)
		}
		if strings.Contains(again.stderr.String(), "/setup?token=") {
			t.Error("a set-up link is offered though somebody is there")
		}
	})
}

// TestReload edits manifests under a running server.
func TestReload(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		tools := t.TempDir()
		write(t, tools, "mine.yaml", manifest("One"))
		s.env = append(s.env, "ATELIER_CATALOG_BUILTIN=false", "ATELIER_CATALOG_REFRESH=1h")
		n := s.serve("--tools", tools)
		n.token = s.token("anna@example.com")
		id := n.tools("", nil)["One"]
		hash := n.json("/api/v2/tools/" + id)["tool_fields_hash"]

		write(t, tools, "mine.yaml", manifest("Two"))
		n.signal(syscall.SIGHUP)
		watch.Until(t, "the edit", func() bool { return n.tools("", nil)["Two"] == id })
		if n.json("/api/v2/tools/" + id)["tool_fields_hash"] == hash {
			t.Error("the hash is as before the edit")
		}
		write(t, tools, "mine.yaml", "name: [")
		n.signal(syscall.SIGHUP)
		watch.Until(t, "the report", func() bool { return strings.Contains(n.stderr.String(), "mine.yaml:1:1") })
		if got := n.tools("", nil); got["Two"] != id {
			t.Errorf("tools with a broken manifest: %v, want the last good one", got)
		}
		if _, err := s.try("tools", "lint", tools); err == nil || !strings.Contains(err.Error(), "mine.yaml") {
			t.Errorf("lint = %v, want the problem", err)
		}

		// The command works beside the server, which sees it without a signal
		// of its own once it looks.
		write(t, tools, "mine.yaml", manifest("Three"))
		if got := s.do("tools", "apply", tools)["changes"].([]any); len(got) != 1 {
			t.Errorf("apply = %v, want one change", got)
		}
		n.signal(syscall.SIGHUP)
		watch.Until(t, "the applied edit", func() bool { return n.tools("", nil)["Three"] == id })
		s.check()
		n.stop()
	})
}

func TestTerminate(t *testing.T) {
	needOneProcess(t, "it ends one process without a proxy; test/nodes restarts nodes behind one")
	each(t, func(t *testing.T, s *site) {
		s.env = append(s.env, "ATELIER_SHUTDOWN_DELAY=1s")
		n := s.serve()
		n.token = s.token("anna@example.com")

		// Callers that come all the time see no broken request until the
		// listener is closed, which is after the service said it is not ready.
		var group sync.WaitGroup
		notReady := make(chan struct{})
		var once sync.Once
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for range 4 {
			group.Go(func() {
				for {
					r, _ := http.NewRequest("GET", n.url+"/api/v2/tools", nil)
					r.Header.Set("Authorization", "Bearer "+n.token)
					res, err := client.Do(r)
					if err != nil {
						select {
						case <-notReady:
						default:
							t.Errorf("a request failed before the service was not ready: %v", err)
						}
						return
					}
					if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 {
						t.Errorf("a request during the end: %d, %v", res.StatusCode, err)
					}
					res.Body.Close()
				}
			})
		}
		group.Go(func() {
			for {
				res, err := client.Get(n.url + "/readyz")
				if err != nil {
					return
				}
				res.Body.Close()
				if res.StatusCode == 503 {
					once.Do(func() { close(notReady) })
				}
			}
		})
		start := time.Now()
		n.stop()
		group.Wait()
		select {
		case <-notReady:
		default:
			t.Error("the service was never not ready")
		}
		watch.Took(t, "the end", time.Since(start), 30*time.Second)
	})
}

// TestTwoNodes runs two processes on one PostgreSQL and one S3 bucket.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		bucket := blobtest.S3(t)
		database := dbtest.Bare(t, "postgres")
		var sites []*site
		var nodes []*node
		tools := t.TempDir()
		write(t, tools, "mine.yaml", manifest("Mine")+"avatar: dot.png\n")
		dot, err := os.ReadFile("../../internal/catalog/catalog/testdata/everything/dot.png")
		if err != nil {
			t.Fatal(err)
		}
		write(t, tools, "dot.png", string(dot))
		for i := range 2 {
			s := newSite(t)
			s.database = database
			s.env = []string{"ATELIER_SECRET=" + strings.Repeat("A", 43) + "=", "ATELIER_S3_ACCESS_KEY=" + bucket.AccessKey, "ATELIER_S3_SECRET_KEY=" + bucket.SecretKey}
			args := []string{"--blobs", bucket.Address()}
			if i == 0 {
				args = append(args, "--tools", tools)
			}
			sites, nodes = append(sites, s), append(nodes, s.serveOne(args...))
		}
		token := sites[0].token("anna@example.com")
		nodes[0].token, nodes[1].token = token, token
		if a, b := nodes[0].tools("", nil), nodes[1].tools("", nil); !maps.Equal(a, b) || a["Mine"] == "" {
			t.Errorf("the nodes list %v and %v", a, b)
		}

		// A cursor of one node opens at the other, and a picture stored by one
		// is served by both.
		page := nodes[0].json("/api/v2/tools?limit=3")
		if rest := nodes[1].json("/api/v2/tools?cursor=" + page["next_cursor"].(string)); len(rest["data"].([]any)) != len(nodes[0].tools("", nil))-3 {
			t.Errorf("the other node goes on with %v", rest)
		}
		avatar := nodes[0].json("/api/v2/tools/" + nodes[0].tools("", nil)["Mine"])["avatar_url"].(string)
		avatar = strings.TrimPrefix(avatar, nodes[0].url)
		for i, n := range nodes {
			if a := n.get(avatar); a.StatusCode != 200 || !bytes.Equal(a.body, dot) {
				t.Errorf("node %d serves the avatar with %d", i, a.StatusCode)
			}
		}
		write(t, tools, "mine.yaml", manifest("Edited"))
		watch.Until(t, "the edit on both", func() bool {
			return nodes[0].tools("", nil)["Edited"] != "" && nodes[1].tools("", nil)["Edited"] != ""
		})

		stranger := newSite(t)
		stranger.database = database
		refused, lines := stranger.start()
		refused.wait(lines)
		if refused.err == nil || !strings.Contains(refused.stderr.String(), "ATELIER_SECRET") {
			t.Errorf("a node with another secret ends with %v: %s", refused.err, refused.stderr)
		}
		sites[0].check()
		nodes[0].stop()
		nodes[1].stop()
	})
}

func TestRoles(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		work := s.serve("--roles", "worker", "--shutdown.timeout", "1s")
		if a := work.get("/readyz"); a.StatusCode != 200 {
			t.Errorf("a worker's readyz = %d %s", a.StatusCode, a.body)
		}
		if res, err := http.Get(work.url + "/api/v2/tools"); err != nil || res.StatusCode != 404 {
			t.Errorf("a worker serves the API: %v %v", res, err)
		}
		serve := s.serve("--roles", "api")
		serve.token = s.token("anna@example.com")
		if len(serve.tools("", nil)) == 0 {
			t.Error("the API lists nothing")
		}
		work.stop()
		serve.stop()
	})
}

// TestTelemetry reads the metrics and takes the traces of a running server.
func TestTelemetry(t *testing.T) {
	needOneProcess(t, "it reads the metrics of one process")
	each(t, func(t *testing.T, s *site) {
		var traces watch.Log
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(&traces, r.URL.Path)
			io.Copy(&traces, r.Body)
		}))
		defer collector.Close()
		address := freeAddress(t)
		s.env = append(s.env, "ATELIER_METRICS_LISTEN="+address, "ATELIER_TRACE_ENDPOINT="+collector.URL+"/v1/traces")
		n := s.serve()
		n.token = s.token("anna@example.com")
		n.tools("", nil)
		n.get("/api/v2/nowhere?device_code=hunter2")
		res, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		for _, want := range []string{`atelier_http_requests_total{method="GET",route="/api/v2/tools",status="200"} 1`, "atelier_build_info", "go_goroutines"} {
			if !bytes.Contains(body, []byte(want)) {
				t.Errorf("metrics lack %s", want)
			}
		}
		n.stop()
		got := traces.String()
		if !strings.Contains(got, "GET /api/v2/tools") || !strings.Contains(got, "/v1/traces") {
			t.Errorf("traces = %q", got)
		}
		if strings.Contains(got+n.stderr.String()+string(body), "hunter2") {
			t.Error("a device code is in the logs, metrics or traces")
		}
	})
}

// freeAddress gives an address on loopback that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(nil)
	defer s.Close()
	return s.Listener.Addr().String()
}
