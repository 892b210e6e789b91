package backend_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/testkit/watch"
)

// site is a server that remembers who came.
type site struct {
	*httptest.Server
	mux *http.ServeMux

	mu    sync.Mutex
	calls []*http.Request
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{mux: http.NewServeMux()}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls = append(s.calls, r)
		s.mu.Unlock()
		s.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) says(path, body string) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
}

func (s *site) leads(path, to string) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	})
}

// heard gives the secrets that the server was sent, one for each call.
func (s *site) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.calls {
		all = append(all, r.Header.Get("Authorization"))
	}
	return all
}

const secret = "Bearer s3cret"

// client calls the address with the secret. allow are networks elsewhere.
func client(t testing.TB, address string, allow ...string) *backend.Client {
	t.Helper()
	var nets []netip.Prefix
	for _, a := range allow {
		nets = append(nets, netip.MustParsePrefix(a))
	}
	c, err := backend.New(backend.Options{
		URL: address, Header: http.Header{"Authorization": {secret}}, Timeout: 5 * time.Second, Guard: netguard.New(nets),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"http://gpu:5000": true, "https://gpu/v1/": true, "http://[::1]:1": true,
		"": false, "gpu:5000": false, "ftp://gpu": false, "http://": false, "http://me:s3cret@gpu": false, "http://gpu?key=s3cret": false, "http://gpu#a": false, "http://gpu\n": false,
	} {
		_, err := backend.New(backend.Options{URL: address})
		if (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: the error tells the secret: %v", address, err)
		}
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.HandleFunc("POST /v1/echo", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != "application/json" || r.URL.RawQuery != "at=http://x" {
			w.WriteHeader(http.StatusTeapot)
		}
		io.Copy(w, r.Body)
	})
	c := client(t, s.URL+"/v1/")
	var out map[string]any
	for _, path := range []string{"echo?at=http://x", "/echo?at=http://x", s.URL + "/v1/echo?at=http://x"} {
		if err := c.CallJSON(t.Context(), "POST", path, map[string]any{"a": 1 << 60}, &out); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, got := range s.heard() {
		if got != secret {
			t.Errorf("secret = %q", got)
		}
	}
	if n, ok := out["a"].(interface{ String() string }); !ok || n.String() != "1152921504606846976" {
		t.Errorf("number = %v, want every digit", out["a"])
	}
	if err := c.CallJSON(t.Context(), "POST", "echo", make(chan int), nil); err == nil {
		t.Error("what is no JSON was sent")
	}
	if c.BaseURL().Path != "/v1" {
		t.Errorf("base = %v", c.BaseURL())
	}
	c.BaseURL().Host = "elsewhere"
	if _, h := c.HTTPClient(); h.Get("Authorization") != secret || c.BaseURL().Host == "elsewhere" {
		t.Error("what a client gives away changes it")
	}
}

// TestOnlyTheServer has calls with credentials go nowhere else.
func TestOnlyTheServer(t *testing.T) {
	t.Parallel()
	s, other := newSite(t), newSite(t)
	c := client(t, s.URL, "127.0.0.0/8", "::1/128")
	for _, at := range []string{
		other.URL + "/x", strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/x", strings.Replace(s.URL, "http:", "https:", 1) + "/x",
		strings.Replace(s.URL, "http://", "http://me@", 1) + "/x", "http://127.0.0.1/x", s.URL + ".example/x",
	} {
		body := &letGo{Reader: strings.NewReader("x")}
		if _, err := c.Do(t.Context(), backend.Request{Path: at, Method: "POST", Body: body}); err == nil || !body.closed {
			t.Errorf("%s: %v, body closed %v", at, err, body.closed)
		}
	}
	s.leads("/moved", other.URL+"/x")
	err := c.CallJSON(t.Context(), "GET", "moved", nil, nil)
	if st, ok := errors.AsType[*backend.Status](err); !ok || st.Code != http.StatusFound {
		t.Errorf("a call that was sent on = %v, want its status", err)
	}
	if n := len(other.heard()); n != 0 {
		t.Errorf("another server got %d calls", n)
	}
}

type letGo struct {
	io.Reader
	closed bool
}

func (c *letGo) Close() error { c.closed = true; return nil }

func TestStatus(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, strings.Repeat("a", 1<<20))
	})
	c := client(t, s.URL)
	st, ok := errors.AsType[*backend.Status](c.CallJSON(t.Context(), "GET", "busy", nil, nil))
	if !ok || st.Code != 429 || len(st.Body) != 64<<10 || len(st.Error()) > 400 {
		t.Errorf("status = %v", st)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]engine.Code{
		`{"a":1}`: "", ` {"a":null} `: "", `{"a":1} and more`: "",
		``: engine.Unavailable, `{"a":`: engine.Unavailable, `<html>`: engine.Failed, `{"a":"text"}`: engine.Failed, `[]`: engine.Failed,
	} {
		var out struct{ A int }
		err := backend.DecodeJSON(strings.NewReader(body), &out)
		if err == nil && want != "" || err != nil && engine.AsError(backend.CallFailure(t.Context(), err)).Code != want {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
	if err := backend.DecodeJSON(strings.NewReader("anything"), nil); err != nil {
		t.Errorf("an answer that nobody reads: %v", err)
	}
}

// TestAnswersWithoutFilesAreSmall has a server send one that would fit with files
// in it.
func TestAnswersWithoutFilesAreSmall(t *testing.T) {
	t.Parallel()
	const size = 17 << 20
	s := newSite(t)
	s.mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `"`+strings.Repeat("a", size)+`"`)
	})
	c := client(t, s.URL)
	var out string
	if e := engine.AsError(backend.CallFailure(t.Context(), c.CallJSON(t.Context(), "GET", "large", nil, &out))); e.Code != engine.Invalid || e.Transient {
		t.Errorf("plain: %v, want that it is too much", e)
	}
	if err := c.CallJSONLimit(t.Context(), backend.MaxResponse, "GET", "large", nil, &out); err != nil || len(out) != size {
		t.Errorf("with files: %v, %d bytes", err, len(out))
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.HandleFunc("/hangs", watch.Hang)
	c, err := backend.New(backend.Options{URL: s.URL, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	short, end := c.WithTimeout(t.Context())
	defer end()
	e := engine.AsError(backend.CallFailure(t.Context(), c.CallJSON(short, "GET", "hangs", nil, nil)))
	if e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("failure = %v, transient %v; want that the server is away", e, e.Transient)
	}
}
