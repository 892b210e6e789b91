package httpd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"atelier/internal/testkit/watch"
	"atelier/internal/web/httpd"
)

// serve runs a server on loopback; stop tells it to end, ended has its result.
func serve(t *testing.T, h http.Handler, o httpd.Options) (url string, log *watch.Log, stop func(), ended <-chan error) {
	t.Helper()
	log = &watch.Log{}
	o.Log, o.Now = slog.New(slog.NewJSONHandler(log, nil)), time.Now
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Health == nil {
		o.Health = &httpd.Health{Now: time.Now}
	}
	if o.ShutdownTimeout == 0 {
		o.ShutdownTimeout = 5 * time.Second
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- httpd.New(h, o).Run(ctx, l) }()
	t.Cleanup(cancel)
	return "http://" + l.Addr().String(), log, cancel, done
}

func fetch(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	url, log, _, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httpd.RecordOf(r.Context())
		rec.Route, rec.PersonID, rec.Err = "/x", "anna", errors.New("line one\nline two")
	}), httpd.Options{})
	r, _ := http.NewRequest("GET", url+"/x?limit=5&device_code=hunter2&token=hunter2&SIG=hunter2&hunter2&%64evice_code=hunter2&cursor=hunter2&limit", nil)
	r.Header.Set("Authorization", "Bearer hunter2")
	r.Header.Set("Cookie", "hunter2")
	r.Header.Set("User-Agent", "a\tb")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	watch.Until(t, "the log", func() bool { return strings.Contains(log.String(), "\n") })
	text := log.String()
	if strings.Count(text, "\n") != 1 || strings.Contains(text, "hunter2") {
		t.Errorf("log = %s, want one line without secrets", text)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"method": "GET", "path": "/x", "status": 200.0, "person": "anna", "trace_id": res.Header.Get("X-Trace-Id"), "addr": "127.0.0.1",
		"query": "limit=5&device_code=…&token=…&…&…&…&cursor=…&limit",
	} {
		if line[key] != want {
			t.Errorf("%s = %v, want %v", key, line[key], want)
		}
	}
}

func TestMetricsHaveFewLabels(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	url, _, _, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/a") {
			httpd.RecordOf(r.Context()).Route = "/a/{id}"
		}
		w.WriteHeader(http.StatusTeapot)
	}), httpd.Options{Metrics: reg})
	for i := range 10 {
		fetch(t, fmt.Sprintf("%s/a/%d", url, i))
		fetch(t, fmt.Sprintf("%s/b/%d", url, i))
	}
	want := `# HELP atelier_http_requests_total Requests by route, method and status.
# TYPE atelier_http_requests_total counter
atelier_http_requests_total{method="GET",route="/a/{id}",status="418"} 10
atelier_http_requests_total{method="GET",route="other",status="418"} 10
`
	watch.Until(t, "the counts", func() bool {
		return testutil.GatherAndCompare(reg, strings.NewReader(want), "atelier_http_requests_total") == nil
	})
}

func TestPanicOutsideTheAPI(t *testing.T) {
	t.Parallel()
	url, log, _, _ := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("hunter2") }), httpd.Options{HSTS: true})
	res, body := fetch(t, url)
	if res.StatusCode != 500 || strings.Contains(body, "hunter2") || !strings.Contains(body, res.Header.Get("X-Trace-Id")) {
		t.Errorf("panic = %d %s", res.StatusCode, body)
	}
	if res.Header.Get("Strict-Transport-Security") == "" {
		t.Error("no HSTS on an https service")
	}
	watch.Until(t, "the log", func() bool { return strings.Contains(log.String(), "panic: hunter2") })
}

// TestClientsThatLeave are no trouble of ours: nobody has to look at them.
func TestClientsThatLeave(t *testing.T) {
	t.Parallel()
	came := make(chan struct{})
	url, log, _, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
		rec := httpd.RecordOf(r.Context())
		rec.Err, rec.ClientLeft = r.Context().Err(), true
		panic(http.ErrAbortHandler)
	}), httpd.Options{})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-came; leave() }()
	r, _ := http.NewRequestWithContext(ctx, "GET", url+"/x", nil)
	if res, err := http.DefaultClient.Do(r); err == nil {
		res.Body.Close()
		t.Error("there was an answer")
	}
	watch.Until(t, "the log", func() bool { return strings.Contains(log.String(), "\n") })
	if line := log.String(); !strings.Contains(line, `"status":499`) || !strings.Contains(line, `"level":"INFO"`) {
		t.Errorf("log = %s", line)
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	url, _, _, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpd.RecordOf(r.Context()).Route = "/x"
	}), httpd.Options{Tracer: provider.Tracer("test")})
	r, _ := http.NewRequest("GET", url+"/x?device_code=hunter2", nil)
	r.Header.Set("Traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got := res.Header.Get("X-Trace-Id"); got != "0123456789abcdef0123456789abcdef" {
		t.Errorf("X-Trace-Id = %s, want the caller's trace", got)
	}
	watch.Until(t, "the span", func() bool { return len(spans.Ended()) == 1 })
	if text := fmt.Sprint(spans.Ended()[0].Attributes(), spans.Ended()[0].Name()); strings.Contains(text, "hunter2") || !strings.Contains(text, "GET /x") {
		t.Errorf("span = %s", text)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	var clock, asked atomic.Int64
	var broken atomic.Bool
	broken.Store(true)
	health := &httpd.Health{Now: func() time.Time { return time.Unix(clock.Load(), 0) }, Checks: map[string]func(context.Context) error{
		"database": func(context.Context) error { asked.Add(1); return nil },
		"blobs": func(ctx context.Context) error {
			if broken.Load() {
				<-ctx.Done() // slow as well: the others must not suffer
				return errors.New("hunter2")
			}
			return nil
		},
	}}
	url, _, _, _ := serve(t, http.NotFoundHandler(), httpd.Options{Health: health})
	if res, body := fetch(t, url+"/healthz"); res.StatusCode != 200 {
		t.Errorf("healthz = %d %s", res.StatusCode, body)
	}
	res, body := fetch(t, url+"/readyz")
	if res.StatusCode != 503 || strings.Contains(body, "hunter2") || !strings.Contains(body, `"blobs":"unreachable"`) || !strings.Contains(body, `"database":"ok"`) {
		t.Errorf("readyz = %d %s", res.StatusCode, body)
	}
	broken.Store(false)
	for range 20 {
		if res, body := fetch(t, url+"/readyz"); res.StatusCode != 503 {
			t.Errorf("readyz within the second = %d %s", res.StatusCode, body)
		}
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("21 callers made the service look %d times, want once", got)
	}
	clock.Add(1)
	if res, body := fetch(t, url+"/readyz"); res.StatusCode != 200 {
		t.Errorf("readyz = %d %s", res.StatusCode, body)
	}
}

// TestShutdown follows the way down: not ready while still serving, the slow
// request finished, then closed.
func TestShutdown(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	url, _, stop, ended := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-release
			io.WriteString(w, "whole")
		}
	}), httpd.Options{ShutdownDelay: 500 * time.Millisecond, ShutdownTimeout: 10 * time.Second})
	slow := make(chan string, 1)
	go func() {
		res, err := http.Get(url + "/slow")
		if err != nil {
			slow <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		slow <- string(body)
	}()
	<-entered
	if res, _ := fetch(t, url+"/other"); res.Close {
		t.Error("a response before the shutdown closes its connection")
	}
	stop()
	watch.Until(t, "not ready", func() bool { res, _ := fetch(t, url+"/readyz"); return res.StatusCode == 503 })
	if res, _ := fetch(t, url+"/other"); res.StatusCode != 200 || !res.Close {
		t.Errorf("a request during the delay = %d, closes its connection: %t, want it served on a connection that closes", res.StatusCode, res.Close)
	}
	watch.Until(t, "closed", func() bool { _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); return err != nil })
	select {
	case err := <-ended:
		t.Fatalf("ended before the slow request: %v", err)
	default:
	}
	close(release)
	if got := <-slow; got != "whole" {
		t.Errorf("slow request = %q, want whole", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("run = %v", err)
	}
}

func TestShutdownCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	url, _, stop, ended := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(entered); <-release }), httpd.Options{ShutdownTimeout: 100 * time.Millisecond})
	go http.Get(url)
	<-entered
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("run = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a request that does not end keeps the server up")
	}
}

// TestSlowClients sends headers and bodies that never end.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	url, _, _, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}), httpd.Options{HeaderTimeout: 200 * time.Millisecond, BodyTimeout: 400 * time.Millisecond, WriteTimeout: time.Second, IdleTimeout: 300 * time.Millisecond, HeaderBytes: 4096})
	for name, text := range map[string]string{
		"half a request line": "GET / HT",
		"half the headers":    "GET / HTTP/1.1\r\nHost: x\r\nX-A: b",
		"half a body":         "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
		"half a chunk":        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"nothing more":        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, text)
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Errorf("the connection stays open: %v", err)
			}
		})
	}
	for name, text := range map[string]string{
		"huge headers": "GET / HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"two lengths":  "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, text)
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		answer, _ := io.ReadAll(c)
		c.Close()
		if !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
			t.Errorf("%s = %.60s, want a refusal", name, answer)
		}
	}
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ trusted, forwarded, want string }{
		{"", "203.0.113.9", "127.0.0.1"},
		{"127.0.0.0/8", "203.0.113.9", "203.0.113.9"},
		{"127.0.0.0/8", "198.51.100.1, 203.0.113.9", "203.0.113.9"},
		{"127.0.0.0/8", "198.51.100.1, 203.0.113.9, 127.0.0.5", "203.0.113.9"},
		{"127.0.0.0/8", "nonsense", "127.0.0.1"},
		{"127.0.0.0/8", "", "127.0.0.1"},
		{"10.0.0.0/8", "203.0.113.9", "127.0.0.1"},
	} {
		var trusted []netip.Prefix
		if c.trusted != "" {
			trusted = append(trusted, netip.MustParsePrefix(c.trusted))
		}
		url, _, _, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, httpd.RecordOf(r.Context()).Addr.String())
		}), httpd.Options{TrustedProxies: trusted})
		r, _ := http.NewRequest("GET", url, nil)
		r.Header.Set("X-Forwarded-For", c.forwarded)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(got) != c.want {
			t.Errorf("trusting %q, forwarded %q: address %s, want %s", c.trusted, c.forwarded, got, c.want)
		}
	}
}

// TestProbesAreNotLogged keeps what balancers ask every few seconds out of the
// log while all is well.
func TestProbesAreNotLogged(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	var clock atomic.Int64
	health := &httpd.Health{Now: func() time.Time { return time.Unix(clock.Load(), 0) }, Checks: map[string]func(context.Context) error{
		"database": func(context.Context) error {
			if broken.Load() {
				return errors.New("away")
			}
			return nil
		},
	}}
	url, log, _, _ := serve(t, http.NotFoundHandler(), httpd.Options{Health: health})
	fetch(t, url+"/healthz")
	fetch(t, url+"/readyz")
	broken.Store(true)
	clock.Add(1)
	fetch(t, url+"/readyz")
	fetch(t, url+"/last")
	watch.Until(t, "the log", func() bool { return strings.Contains(log.String(), "/last") })
	text := log.String()
	if strings.Contains(text, "/healthz") || strings.Count(text, "/readyz") != 2 || !strings.Contains(text, `"level":"ERROR"`) { // one line, its route and its path
		t.Errorf("log = %s, want one line of a probe: the one that failed", text)
	}
}
