package webhook_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/testkit/watch"
)

// TestHungReceiversDelayNobody has a fifth of the receivers never answer, each
// with more events than its share of the slots. They hang for longer than the
// test waits, so that what is delivered was not waiting for one of them.
func TestHungReceiversDelayNobody(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, func(w http.ResponseWriter, req *http.Request) {
			if strings.HasPrefix(req.Host, "hung") {
				watch.Hang(w, req)
			}
		})
		for i := range 20 {
			for range 5 {
				w.run(r.at(fmt.Sprint("hung", i)))
			}
		}
		for i := range 40 {
			w.run(r.at(fmt.Sprint("well", i)))
		}
		o := w.options(r)
		o.Timeout = 10 * time.Minute
		s, stop := w.start(o)
		delivered := func(want int) {
			w.Helper()
			watch.Until(w, "the healthy ones", func() bool {
				var n int
				w.OK(w.DB.QueryRow(w.Context(), `SELECT count(*) FROM webhook_event WHERE state = 'delivered'`).Scan(&n))
				return n == want
			})
		}
		delivered(40)
		for i := range 40 { // with the hung ones settled in their slots
			w.run(r.at(fmt.Sprint("also", i)))
		}
		s.WakeSender()
		delivered(80)
		busy := map[string]int{}
		for _, q := range r.requests() {
			busy[q.host]++
		}
		for host, n := range busy {
			if n > 4 {
				w.Errorf("%s got %d requests at once", host, n)
			}
		}
		stop()
	})
}

// raw answers on the connection itself, for what net/http would not send.
func raw(w http.ResponseWriter, talk func(conn net.Conn)) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	talk(conn)
}

// drip writes text again and again, slowly, until nobody listens.
func drip(conn io.Writer, text string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}

// forever writes text again and again until nobody listens.
func forever(conn io.Writer, text string) {
	for {
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}

func bomb() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(make([]byte, 32<<20))
	z.Close()
	return b.Bytes()
}

// reply is what a receiver does, and what is to come of it.
type reply struct {
	answer http.HandlerFunc
	word   string
	status int
	fail   string
}

// meet sends an event to every receiver.
func meet(t *testing.T, timeout time.Duration, replies map[string]reply) {
	t.Helper()
	each(t, func(w fixture) {
		r := newReceiver(w, func(w http.ResponseWriter, req *http.Request) {
			host, _, _ := strings.Cut(req.Host, ".")
			replies[host].answer(w, req)
		})
		o := w.options(r)
		o.Timeout = timeout
		runs := map[string]string{}
		for name := range replies {
			runs[name] = w.run(r.at(name))
		}
		_, stop := w.start(o)
		for name, c := range replies {
			w.until(runs[name], c.word, 1)
			if a := w.attempts(runs[name])[0]; a.StatusCode != c.status || a.Error != c.fail {
				w.Errorf("%s: attempt = %+v, want %d %s", name, a, c.status, c.fail)
			}
		}
		stop() // everything has ended: no receiver keeps us
	})
}

func TestSlowAnswers(t *testing.T) {
	meet(t, 3*time.Second, map[string]reply{
		"drip-header": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "); drip(c, "a") })
		}, "failing", 0, "timeout"},
		"drip-body": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"); drip(c, "a") })
		}, "delivered", 200, ""},
		"silent": {watch.Hang, "failing", 0, "timeout"},
	})
}

func TestHostileAnswers(t *testing.T) {
	squeezed := bomb()
	meet(t, 15*time.Second, map[string]reply{
		"endless-body": {func(w http.ResponseWriter, _ *http.Request) { forever(w, strings.Repeat("a", 4096)) }, "delivered", 200, ""},
		"endless-failure": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			forever(w, strings.Repeat("a", 4096))
		}, "failing", 500, "status"},
		"endless-header": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) {
				io.WriteString(c, "HTTP/1.1 200 OK\r\n")
				forever(c, "X: aaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")
			})
		}, "failing", 0, "body"},
		"endless-status": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 "); forever(c, "aaaaaaaaaaaaaaaa") })
		}, "failing", 0, "body"},
		"endless-early": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) { forever(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") })
		}, "failing", 0, "body"},
		"large-header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Large", strings.Repeat("a", 12<<10)) }, "delivered", 200, ""},
		"huge-header":  {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Huge", strings.Repeat("a", 20<<10)) }, "failing", 0, "body"},
		"gzip-bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(squeezed)
		}, "delivered", 200, ""},
		"broken-gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "not gzip")
		}, "delivered", 200, ""},
		"cut-body": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99") }, "delivered", 200, ""},
		"not-http": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) { io.WriteString(c, "hello\r\n\r\n") })
		}, "failing", 0, "body"},
		"nothing": {func(w http.ResponseWriter, _ *http.Request) { raw(w, func(net.Conn) {}) }, "failing", 0, "body"},
		"upgrade": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) {
				io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
				drip(c, "a")
			})
		}, "failing", 101, "status"},
		"odd-status": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 999 Odd\r\n\r\n") })
		}, "failing", 999, "status"},
		"bad-location": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://%zz/")
			w.WriteHeader(301)
		}, "failing", 301, "redirect"},
		"to-the-inside": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/latest/meta-data/")
			w.WriteHeader(307)
		}, "failing", 307, "redirect"},
	})
}

func TestConnectionsThatFail(t *testing.T) {
	each(t, func(w fixture) {
		r := newReceiver(w, nil)
		port := func(address string) string { return address[strings.LastIndex(address, ":"):] }
		silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never says a word
		w.OK(err)
		w.Cleanup(func() { silent.Close() })
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		w.OK(err)
		closed.Close()
		unsafe := httptest.NewServer(http.NotFoundHandler())
		w.Cleanup(unsafe.Close)
		old := httptest.NewUnstartedServer(http.NotFoundHandler())
		old.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
		old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
		old.StartTLS()
		w.Cleanup(old.Close)
		o := w.options(r)
		o.Timeout = 2 * time.Second
		runs := map[string][]string{
			"tls":     {w.run("https://other.test" + port(r.URL) + "/"), w.run("https://plain.example.com" + port(unsafe.URL) + "/"), w.run("https://old.example.com" + port(old.URL) + "/")},
			"timeout": {w.run("https://silent.example.com" + port(silent.Addr().String()) + "/")},
			"refused": {w.run("https://closed.example.com" + port(closed.Addr().String()) + "/")},
			"dns":     {w.run("https://nobody.test/"), w.run("https://nobody.test:8443/")},
		}
		_, stop := w.start(o)
		for word, all := range runs {
			for _, run := range all {
				w.until(run, "failing", 1)
				if a := w.attempts(run)[0]; a.Error != word || a.StatusCode != 0 {
					w.Errorf("attempt = %+v, want %s", a, word)
				}
			}
		}
		stop()
		o.RootCAs = w.options(nil).RootCAs // whom nobody vouches for
		stranger := w.run(r.at("stranger"))
		w.start(o)
		w.until(stranger, "failing", 1)
		if a := w.attempts(stranger)[0]; a.Error != "tls" {
			w.Errorf("attempt = %+v, want tls", a)
		}
		if n := len(r.requests()); n != 0 {
			w.Errorf("%d requests came through", n)
		}
	})
}

// TestAnswersAreNotKept looks for what receivers said in all that is written.
func TestAnswersAreNotKept(t *testing.T) {
	each(t, func(w fixture) {
		const canary = "CANARY-7f3a"
		r := newReceiver(w, func(w http.ResponseWriter, req *http.Request) {
			raw(w, func(c net.Conn) {
				code, first := 200, strings.HasPrefix(req.Host, "fine")
				if !first {
					code = 500
				}
				fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nSet-Cookie: %s\r\nX-%s: %s\r\nRetry-After: %s\r\nConnection: close\r\n\r\n%s", code, canary, canary, canary, canary, canary, canary)
			})
		})
		broken := newReceiver(w, func(w http.ResponseWriter, _ *http.Request) {
			raw(w, func(c net.Conn) { fmt.Fprintf(c, "%s\r\n\r\n", canary) })
		})
		fine, failing := w.run(r.at("fine")), w.run(r.at("failing"))
		odd := w.run(broken.at("odd"))
		w.start(w.options(r))
		w.until(fine, "delivered", 1)
		w.until(failing, "failing", 1)
		w.until(odd, "failing", 1)
		var all strings.Builder
		w.Do(func(tx *sqldb.Tx) error {
			for _, query := range []string{
				`SELECT id || ' ' || run_id || ' ' || account_id || ' ' || url || ' ' || host || ' ' || state FROM webhook_event`,
				`SELECT id || ' ' || event_id || ' ' || coalesce(status_code, 0) || ' ' || error FROM webhook_attempt`,
				`SELECT host || ' ' || failures FROM webhook_host`,
				`SELECT account_id || ' ' || secret || ' ' || previous FROM webhook_secret`,
			} {
				err := tx.EachRow(w.Context(), query, nil, func(row sqldb.Scanner) error {
					var line string
					err := row.Scan(&line)
					all.WriteString(line + "\n")
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if text := all.String(); strings.Contains(text, canary) || !strings.Contains(text, "status") {
			w.Errorf("the database has %s", text)
		}
		if strings.Contains(w.log.String(), canary) {
			w.Errorf("the log has %s", w.log)
		}
		for _, run := range []string{fine, failing, odd} {
			if text := fmt.Sprint(w.attempts(run), w.state(run)); strings.Contains(text, canary) {
				w.Errorf("attempts = %s", text)
			}
		}
	})
}
