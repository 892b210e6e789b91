package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"atelier/client"
)

// TestRetries has a request fail once in every way, and looks at whether it is
// sent again.
func TestRetries(t *testing.T) {
	t.Parallel()
	read := func(ctx context.Context, c *client.Client) error { _, err := c.Me.Get(ctx); return err }
	create := func(ctx context.Context, c *client.Client) error {
		_, err := c.AccessTokens.Create(ctx, client.AccessTokenDraft{Name: "n"})
		return err
	}
	keyed := func(ctx context.Context, c *client.Client) error {
		_, err := c.Runs.Create(ctx, client.RunRequest{Tool: "PagW53lsaa2KiGgg5wR4", FieldsHash: "v1:x"})
		return err
	}
	for _, tt := range []struct {
		name   string
		call   func(context.Context, *client.Client) error
		status int // 0: the connection breaks after the request was sent; -1: there is none
		after  string
		again  bool
	}{
		{"a read after a reset", read, 0, "", true},
		{"a read without a connection", read, -1, "", true},
		{"a read after 500", read, 500, "", true},
		{"a read after 502", read, 502, "", true},
		{"a read after 503", read, 503, "", true},
		{"a read after 408", read, 408, "", true},
		{"a read after 429", read, 429, "1", true},
		{"a read after 400", read, 400, "", false},
		{"a read after 404", read, 404, "", false},
		{"a read after 403", read, 403, "", false},
		{"a create without a key after a reset", create, 0, "", false},
		{"a create without a key and connection", create, -1, "", true},
		{"a create without a key after 500", create, 500, "", false},
		{"a create without a key after a bare 503", create, 503, "", false},
		{"a create without a key after 503", create, 503, "1", true},
		{"a create without a key after 429", create, 429, "1", true},
		{"a create without a key after 408", create, 408, "", true},
		{"a run after a reset", keyed, 0, "", true},
		{"a run after 500", keyed, 500, "", true},
		{"a run after 402", keyed, 402, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &memoryTransport{}
				m.handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if tt.status > 0 && m.requests() == 1 {
						refusal(w, tt.status, client.CodeInternal, tt.status >= 500, tt.after)
						return
					}
					fmt.Fprint(w, `{}`)
				})
				m.refuse = func(n int, _ *http.Request) error {
					if n == 1 && tt.status == -1 {
						return errRefused
					}
					return nil
				}
				m.lose = func(n int, _ *http.Request) error {
					if n == 1 && tt.status == 0 {
						return errReset
					}
					return nil
				}
				err := tt.call(t.Context(), connect(t, m, nil))
				if again := m.requests() == 2; again != tt.again || (err == nil) != tt.again {
					t.Errorf("%d requests, %v", m.requests(), err)
				}
			})
		})
	}
}

// TestRetryLimits ends calls by attempts, by time and by their context.
func TestRetryLimits(t *testing.T) {
	t.Parallel()
	down := func(after string) *memoryTransport {
		return &memoryTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refusal(w, http.StatusServiceUnavailable, client.CodeUpstreamUnavailable, true, after)
		})}
	}
	t.Run("attempts", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := down("")
			var told int
			c := connect(t, m, func(o *client.Options) {
				o.Retry = client.RetryPolicy{Attempts: 4, OnRetry: func(error, time.Duration) { told++ }}
			})
			_, err := c.Me.Get(t.Context())
			if !client.HasCode(err, client.CodeUpstreamUnavailable) || m.requests() != 4 || told != 3 {
				t.Errorf("%d requests, %d told, %v", m.requests(), told, err)
			}
		})
	})
	t.Run("the service's wait", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			c := connect(t, down("7"), func(o *client.Options) { o.Retry.Attempts = 3 })
			_, err := c.Me.Get(t.Context())
			if e, ok := errors.AsType[*client.Error](err); !ok || e.RetryAfter != 7*time.Second || time.Since(began) != 14*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	})
	t.Run("a wait that is too long", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			m := down("3600")
			if _, err := connect(t, m, nil).Me.Get(t.Context()); err == nil || time.Since(began) != 0 || m.requests() != 1 {
				t.Errorf("after %v and %d requests: %v", time.Since(began), m.requests(), err)
			}
		})
	})
	t.Run("the time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			c := connect(t, down(""), func(o *client.Options) { o.Retry = client.RetryPolicy{Attempts: 1000, MaxTime: 20 * time.Second} })
			if _, err := c.Me.Get(t.Context()); err == nil || time.Since(began) > 20*time.Second || time.Since(began) < 10*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	})
	t.Run("the context", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			began := time.Now()
			_, err := connect(t, down("60"), nil).Me.Get(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	})
}

// TestCreateIsOneRun loses the answers to creates: the service sees one key and
// one body.
func TestCreateIsOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		keys := map[string]int{}
		bodies := map[string]bool{}
		var progress []string
		m := &memoryTransport{}
		m.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			keys[r.Header.Get("Idempotency-Key")]++
			body := readAll(t, r.Body)
			bodies[body] = true
			if r.ContentLength != int64(len(body)) {
				t.Errorf("%d of %d bytes arrived", len(body), r.ContentLength)
			}
			if m.requests() == 3 { // the first request is still in progress
				refusal(w, http.StatusConflict, client.CodeIdempotencyKeyConflict, true, "")
				return
			}
			fmt.Fprint(w, `{"request_id": "r", "status": "pending", "retry_after_seconds": 2}`)
		})
		m.lose = func(n int, _ *http.Request) error {
			if n < 3 {
				return errReset
			}
			return nil
		}
		run, err := connect(t, m, nil).Runs.Create(t.Context(), client.RunRequest{
			Tool:       "PagW53lsaa2KiGgg5wR4",
			FieldsHash: "v1:x",
			Progress:   func(done, total int64) { progress = append(progress, fmt.Sprintf("%d/%d", done, total)) },
			Inputs: map[string]any{
				"b": []any{client.FileOf("2.png", []byte("second")), client.UploadInput("u")},
				"a": client.FileOf("1.png", []byte("first")),
			},
		})
		if err != nil || run.RequestID != "r" || run.HasEnded() || run.Err() != nil {
			t.Fatalf("run = %+v, %v", run, err)
		}
		if len(keys) != 1 || len(bodies) != 1 || m.requests() != 4 {
			t.Errorf("%d requests with keys %v and %d bodies", m.requests(), keys, len(bodies))
		}
		if got := strings.Join(progress, " "); got != strings.TrimSpace(strings.Repeat("5/11 11/11 ", 4)) {
			t.Errorf("progress = %s", got)
		}
		for body := range bodies {
			first := strings.Index(body, "first")
			if first < 0 || strings.Index(body, "second") < first || !strings.Contains(body, `"a":{"file_index":0,"kind":"MULTIPART"}`) && !strings.Contains(body, `"a":{"kind":"MULTIPART","file_index":0}`) {
				t.Errorf("body = %s", body)
			}
		}

		if _, err := connect(t, m, nil).Runs.Create(t.Context(), client.RunRequest{Tool: "PagW53lsaa2KiGgg5wR4", FieldsHash: "v1:x", Key: "mine"}); err != nil || keys["mine"] != 1 {
			t.Errorf("keys = %v, %v", keys, err)
		}
	})
}

// TestDeleteTwice takes 404 for a success if an earlier attempt may have
// deleted it, and for a failure otherwise.
func TestDeleteTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := false
		m := &memoryTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if gone {
				refusal(w, http.StatusNotFound, client.CodeNotFound, false, "")
				return
			}
			gone = true
			w.WriteHeader(http.StatusNoContent)
		})}
		m.lose = func(n int, _ *http.Request) error {
			if n == 1 {
				return errReset
			}
			return nil
		}
		c := connect(t, m, nil)
		if err := c.Uploads.Delete(t.Context(), "u"); err != nil {
			t.Error(err)
		}
		if err := c.Uploads.Delete(t.Context(), "u"); !client.HasCode(err, client.CodeNotFound) {
			t.Errorf("error = %v", err)
		}
	})
}

// TestErrors reads errors of the service and of proxies before it.
func TestErrors(t *testing.T) {
	t.Parallel()
	m := &memoryTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/me") {
			refusal(w, http.StatusBadRequest, client.CodeInvalidRequest, false, "")
			return
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<html>go away</html>")
	})}
	c := connect(t, m, nil)
	_, err := c.Me.Get(t.Context())
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status != 400 || e.TraceID != "t" || len(e.Fields()) != 1 || e.Error() != "INVALID_REQUEST: no\n  a: b" {
		t.Errorf("error = %+v", err)
	}
	if _, err := c.Companies.List(t.Context()); !client.HasCode(err, client.CodeForbidden) {
		t.Errorf("error = %v", err)
	}
}

// TestPages iterates over pages, with the client's team, and stops where the
// loop does.
func TestPages(t *testing.T) {
	t.Parallel()
	m := &memoryTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("team_id") != "T" || q.Get("limit") != "2" {
			t.Errorf("query = %v", q)
		}
		switch q.Get("cursor") {
		case "":
			fmt.Fprint(w, `{"data": [{"slug": "a"}, {"slug": "b"}], "has_more": true, "next_cursor": "c1"}`)
		case "c1":
			fmt.Fprint(w, `{"data": [{"slug": "c"}], "has_more": false, "next_cursor": null}`)
		}
	})}
	c := connect(t, m, nil).ForTeam("T")
	all := c.Tools.All(t.Context(), client.ToolsListParams{Limit: 2})
	for range 2 { // an iterator can be used again
		var slugs []string
		for tool, err := range all {
			if err != nil {
				t.Fatal(err)
			}
			slugs = append(slugs, tool.Slug)
		}
		if strings.Join(slugs, "") != "abc" {
			t.Errorf("slugs = %v", slugs)
		}
	}
	before := m.requests()
	for range all {
		break
	}
	if m.requests() != before+1 {
		t.Errorf("%d requests for the first item", m.requests()-before)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []client.Options{{}, {URL: "atelier.example"}, {URL: "ftp://a"}, {URL: "http://"}, {URL: "http://a b"}, {URL: "http://a/?b"}, {URL: "http://a#b"}, {URL: "http://a", Token: "a\nb"}} {
		if _, err := client.New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// TestInvalidIDs calls with ids that would be another path: nothing is sent.
func TestInvalidIDs(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) }))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, Token: "atl_p_x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", ".", ".."} {
		if err := c.AccessTokens.Delete(t.Context(), id); !errors.Is(err, client.ErrInvalidID) {
			t.Errorf("deleting the token %q = %v", id, err)
		}
		if _, err := c.Runs.Wait(t.Context(), id, client.Watch{}); !errors.Is(err, client.ErrInvalidID) {
			t.Errorf("waiting for the run %q = %v", id, err)
		}
	}
}

// TestUntrustedCertificate does not ask again: the next answer would come from
// the same place.
func TestUntrustedCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	retries := 0
	c, err := client.New(client.Options{URL: server.URL, Token: "t", Retry: client.RetryPolicy{OnRetry: func(error, time.Duration) { retries++ }}})
	if err != nil {
		t.Fatal(err)
	}
	_, get := c.Me.Get(t.Context())
	_, wait := c.Runs.Wait(t.Context(), "r", client.Watch{})
	for _, err := range []error{get, wait} {
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || retries > 0 {
			t.Errorf("%d retries, %v", retries, err)
		}
	}
}
