package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atelier/internal/base/config"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
)

func TestThreadsOfTheModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ cores, wanted, want int }{{4, 0, 4}, {4, 1, 1}, {4, 4, 4}, {4, 2000, 4}} {
		if got := workerThreads(tt.cores, tt.wanted); got != tt.want {
			t.Errorf("%d of %d cores = %d threads, want %d", tt.wanted, tt.cores, got, tt.want)
		}
	}
}

// TestTheDoctorOpensTheModel has it say which kernel computes, or why none does.
func TestTheDoctorOpensTheModel(t *testing.T) {
	t.Parallel()
	k := kernel.Best()
	well := checkPictureModel(k, func() (*neural.Model, error) { return neural.Open(k, 1) })
	if well.State != "ok" || !strings.Contains(well.Detail, k.String()) {
		t.Errorf("finding = %+v", well)
	}
	ill := checkPictureModel(k, func() (*neural.Model, error) { return nil, errors.New("words.bin is damaged") })
	if ill.State != "missing" || !strings.Contains(ill.Detail, "words.bin is damaged") {
		t.Errorf("finding = %+v", ill)
	}
}

// headerServer records the headers of its requests.
type headerServer struct {
	*httptest.Server

	mu      sync.Mutex
	headers []http.Header
}

func startHeaderServer(t *testing.T, answer http.HandlerFunc) *headerServer {
	t.Helper()
	s := &headerServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.headers = append(s.headers, r.Header)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// requestHeaders returns the headers of all requests so far.
func (s *headerServer) requestHeaders() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers
}

// TestServersGetTheirCredentials probes a server of every kind through each
// form of authentication, as "tools doctor" does.
func TestServersGetTheirCredentials(t *testing.T) {
	t.Parallel()
	forms := map[string]struct{ settings, header, value string }{
		"bearer": {"key: geheim, auth: bearer", "Authorization", "Bearer geheim"},
		"basic":  {`key: "me:geheim", auth: basic`, "Authorization", "Basic bWU6Z2VoZWlt"},
		"header": {"key: geheim, key_header: x-api-key", "X-Api-Key", "geheim"},
		"fixed":  {"headers: {x-gateway: geheim}", "X-Gateway", "geheim"},
	}
	for _, kind := range []string{config.Cog, config.ComfyUI, config.OpenAI, config.A1111, config.Replicate, config.Fal} {
		for name, tt := range forms {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				s := startHeaderServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
				file := filepath.Join(t.TempDir(), "backends.yaml")
				text := fmt.Sprintf("server: {engine: %s, url: %q, %s}\n", kind, s.URL, tt.settings)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}

				p := &program{installation: installation{cfg: &config.Config{Backends: file, Data: t.TempDir()}}, ctx: t.Context()}
				all, err := p.readBackends()
				if err != nil {
					t.Fatal(err)
				}
				e, shut, err := p.openBackend(all["server"])
				if err != nil {
					t.Fatal(err)
				}
				defer shut()
				probed := probeEngine(t.Context(), e)

				headers := s.requestHeaders()
				if len(headers) == 0 {
					t.Fatal("the server got no request")
				}
				for _, h := range headers {
					if got := h.Get(tt.header); got != tt.value {
						t.Errorf("%s = %q, want %q", tt.header, got, tt.value)
					}
				}
				if probed != nil && strings.Contains(probed.Error(), "geheim") {
					t.Errorf("probe = %v, which contains the key", probed)
				}
			})
		}
	}
}

// TestWorkersAreBoundToPools opens the engines of nodes with different pools.
func TestWorkersAreBoundToPools(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "backends.yaml")
	text := `
big: {engine: cog, url: "http://127.0.0.1:9", pool: gpu, parallel: 3}
small: {engine: cog, url: "http://127.0.0.1:9"}
own: {engine: exec, command: [/bin/true], pool: gpu}
total: {engine: exec, command: [/bin/true], parallel: 2}
each: {engine: cog, url: "http://127.0.0.1:9", parallel_per_node: 2}
both: {engine: cog, url: "http://127.0.0.1:9", parallel: 6, parallel_per_node: 4}
low: {engine: cog, url: "http://127.0.0.1:9", parallel: 3, parallel_per_node: 4}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(pools []string, perNode int) (*engines, error) {
		t.Helper()
		c := &config.Config{Backends: file, Data: t.TempDir(), Pools: pools, Roles: []string{"worker"}}
		c.Engines.Sandbox = "off"
		c.Runs.Parallel = perNode
		in := installation{cfg: c}
		all, err := in.openEngines(slog.New(slog.DiscardHandler))
		if err == nil {
			t.Cleanup(all.Close)
		}
		return all, err
	}

	for pools, want := range map[string]struct{ has, lacks []string }{
		"":            {[]string{"image", "tiny", "big", "small", "own"}, nil},
		"gpu":         {[]string{"big", "own"}, []string{"image", "tiny", "small"}},
		"cpu":         {[]string{"image", "tiny"}, []string{"big", "small", "own"}},
		"default,cpu": {[]string{"image", "tiny", "small"}, []string{"big", "own"}},
	} {
		var names []string
		if pools != "" {
			names = strings.Split(pools, ",")
		}
		all, err := open(names, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want.has {
			if _, ok := all.slots[name]; !ok {
				t.Errorf("pools %q: the engine %s is missing", pools, name)
			}
		}
		for _, name := range want.lacks {
			if _, ok := all.slots[name]; ok {
				t.Errorf("pools %q: the node has the engine %s", pools, name)
			}
		}
		for name, pool := range map[string]string{"image": "cpu", "tiny": "cpu", "big": "gpu", "small": "default", "own": "gpu"} {
			if all.pools[name] != pool {
				t.Errorf("pools %q: the pool of %s = %q, want %q", pools, name, all.pools[name], pool)
			}
		}
	}

	if _, err := open([]string{"cpu", "gpus"}, 0); err == nil || !strings.Contains(err.Error(), "no engine is in the pool gpus") {
		t.Errorf("a pool without engines: %v", err)
	}

	for perNode, want := range map[int]map[string]engine.Slots{
		0: {
			"big": {Parallel: 3, Limit: 3}, "small": {Parallel: 1, Limit: 1}, "own": {Parallel: 1}, "total": {Parallel: 2, Limit: 2},
			"each": {Parallel: 2}, "both": {Parallel: 4, Limit: 6}, "low": {Parallel: 3, Limit: 3},
		},
		5: {
			"big": {Parallel: 3, Limit: 3}, "small": {Parallel: 5}, "own": {Parallel: 5}, "total": {Parallel: 2, Limit: 2},
			"each": {Parallel: 2}, "image": {Parallel: 5},
		},
	} {
		all, err := open(nil, perNode)
		if err != nil {
			t.Fatal(err)
		}
		for name, slots := range want {
			if got := all.slots[name]; got.Parallel != slots.Parallel || got.Limit != slots.Limit {
				t.Errorf("runs.parallel %d: %s has %d slots and the limit %d, want %d and %d", perNode, name, got.Parallel, got.Limit, slots.Parallel, slots.Limit)
			}
		}
	}
}

// TestToolsOfOtherPools are neither offered nor hidden by a node that does not
// serve the built-in engines.
func TestToolsOfOtherPools(t *testing.T) {
	t.Parallel()
	c := &config.Config{Roles: []string{"worker"}, Pools: []string{"gpu"}}
	if got := toolAvailability(c)(speechEngine); got != catalog.UnknownAvailability {
		t.Errorf("availability = %v, want unknown", got)
	}
}

// TestOtherHostsGetNoHeaders redirects a client, with a key and a fixed header,
// to another host.
func TestOtherHostsGetNoHeaders(t *testing.T) {
	t.Parallel()
	other := startHeaderServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a file") })
	s := startHeaderServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", other.URL)
		w.WriteHeader(http.StatusFound)
	})
	file := filepath.Join(t.TempDir(), "backends.yaml")
	text := fmt.Sprintf("server: {engine: cog, url: %q, key: geheim, key_header: x-api-key, headers: {x-gateway: geheim}}\n", s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Backends: file}
	c.Engines.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	in := installation{cfg: c}
	all, err := in.readBackends()
	if err != nil {
		t.Fatal(err)
	}
	client, err := in.newBackendClient(all["server"], s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	var status *backend.Status
	if err := client.CallJSON(t.Context(), "GET", "x", nil, nil); !errors.As(err, &status) || status.Code != http.StatusFound {
		t.Errorf("a call that is redirected = %v, want the redirect's status", err)
	}
	if n := len(other.requestHeaders()); n != 0 {
		t.Errorf("the other host got %d requests, want none", n)
	}
	r, err := client.OpenFile(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	headers := other.requestHeaders()
	if len(headers) != 1 {
		t.Fatalf("the other host got %d requests, want one for the file", len(headers))
	}
	for name := range headers[0] {
		if strings.HasPrefix(name, "X-") || name == "Authorization" {
			t.Errorf("the other host got the header %s", name)
		}
	}
}
