package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atelier/internal/base/config"
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
