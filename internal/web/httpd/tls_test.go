package httpd_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
	"atelier/internal/web/certificate/certificatetest"
	"atelier/internal/web/httpd"
)

// secureServer serves h over TLS and gives its address and how clients trust it.
func secureServer(t *testing.T, h http.HandlerFunc, limits httpd.ConnectionLimits) (address string, trust *tls.Config, stop func(), ended <-chan error) {
	t.Helper()
	pair := certificatetest.Issue(t, -time.Hour, time.Hour, "atelier.test")
	url, _, stop, ended := serve(t, h, httpd.Options{
		TLS:           pair.TLS(t),
		Connections:   limits,
		HeaderTimeout: time.Second,
		BodyTimeout:   5 * time.Second,
		WriteTimeout:  5 * time.Second,
		IdleTimeout:   5 * time.Second,
		HeaderBytes:   16 << 10,
	})
	return strings.TrimPrefix(url, "http://"), &tls.Config{RootCAs: certificatetest.Roots(pair), ServerName: "atelier.test"}, stop, ended
}

// secureClient calls a server over HTTP/2, or HTTP/1.
func secureClient(t *testing.T, trust *tls.Config, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: trust.Clone(), Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// TestSecureServer speaks both versions of HTTP over TLS, and what is neither.
func TestSecureServer(t *testing.T) {
	t.Parallel()
	address, trust, stop, ended := secureServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "%s %s %t %s", r.Proto, r.URL.Path, r.TLS != nil, body)
	}, httpd.ConnectionLimits{Total: 20, PerAddress: 20})
	for _, two := range []bool{false, true} {
		res, err := secureClient(t, trust, two).Post("https://"+address+"/a", "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		want := "HTTP/1.1 /a true xxx"
		if two {
			want = "HTTP/2.0 /a true xxx"
		}
		if err != nil || !strings.HasPrefix(string(body), want) || len(body) < 1<<20 {
			t.Errorf("answer = %.40s… of %d bytes, %v, want %s… of a megabyte", body, len(body), err, want)
		}
	}

	// Both ends of a body behind TLS are refused as without it.
	dial := func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", address, trust)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
	c := dial()
	io.WriteString(c, "POST /sound HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"+
		"POST /faulty HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+
		"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
	all, err := io.ReadAll(c)
	text := string(all)
	if err != nil || strings.Count(text, "HTTP/1.1 200") != 1 || !strings.Contains(text, "HTTP/1.1 400") || !strings.Contains(text, "/sound") || strings.Contains(text, "smuggled") {
		t.Errorf("a request with two lengths: %v %s, want 200, 400 and the end", err, text)
	}

	// Who speaks no TLS is told, who says nothing is left.
	plain, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	plain.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(plain, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(plain), nil)
	if err != nil {
		t.Fatal(err)
	}
	told, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 400 || !strings.Contains(string(told), "HTTPS") {
		t.Errorf("plain HTTP = %d %s %v, want 400", res.StatusCode, told, err)
	}
	silent, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	silent.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("a silent client got something")
	} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("a silent client is waited for beyond the time for headers")
	}

	// A handshake that is going on does not hold the end up.
	waiting, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the server does not end")
	}
}

// TestSecureConnectionsAreLimited takes all connections of an address with TLS:
// one more finds no place, unless another is idle.
func TestSecureConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%t", two), func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			var running atomic.Int64
			address, trust, _, _ := secureServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/wait" {
					running.Add(1)
					<-release
				}
			}, httpd.ConnectionLimits{Total: 10, PerAddress: 2})
			get := func(path string) error {
				client := secureClient(t, trust, two) // with a connection of its own
				res, err := client.Get("https://" + address + path)
				if err == nil {
					res.Body.Close()
				}
				return err
			}
			if err := get("/idle"); err != nil {
				t.Fatal(err)
			}
			var waiting sync.WaitGroup
			for range 2 { // the first connection makes room for the second once the server sees that it is idle
				waiting.Go(func() {
					watch.Until(t, "a connection", func() bool { return get("/wait") == nil })
				})
			}
			watch.Until(t, "two requests", func() bool { return running.Load() == 2 })
			if err := get("/more"); err == nil {
				t.Error("a third connection was served")
			}
			close(release)
			waiting.Wait()
			watch.Until(t, "a connection after the others are idle", func() bool { return get("/after") == nil })
		})
	}
}

// TestStreamsAreLimited has many requests on one HTTP/2 connection: those above
// the limit on connections of an address are answered 503.
func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var running atomic.Int64
	address, trust, _, _ := secureServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			running.Add(1)
			<-release
		}
	}, httpd.ConnectionLimits{Total: 10, PerAddress: 3})
	client := secureClient(t, trust, true)
	get := func(path string) (int, string) {
		res, err := client.Get("https://" + address + path)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer res.Body.Close()
		return res.StatusCode, res.Header.Get("Retry-After")
	}
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if status, _ := get("/wait"); status != 200 {
				t.Errorf("a request within the limit = %d", status)
			}
		})
	}
	watch.Until(t, "three requests", func() bool { return running.Load() == 3 })
	if status, wait := get("/more"); status != 503 || wait != "1" {
		t.Errorf("a fourth request = %d with Retry-After %q, want 503 and 1", status, wait)
	}
	close(release)
	waiting.Wait()
	if status, _ := get("/after"); status != 200 {
		t.Errorf("after the others = %d", status)
	}
}
