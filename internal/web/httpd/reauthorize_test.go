package httpd_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/web/httpd"
)

func quietOptions() httpd.Options {
	return httpd.Options{
		Log:     slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry(),
		Health:  &httpd.Health{Now: time.Now},
		Now:     time.Now,
	}
}

// TestLongAnswersAreAuthorizedAgain sends an answer that takes long, whose
// reader loses access on the way.
func TestLongAnswersAreAuthorizedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		gone := errors.New("no longer")
		began := time.Now()
		var sent time.Duration
		s := httpd.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			httpd.RecordOf(r.Context()).Reauthorize = func(context.Context) error {
				asked.Add(1)
				if time.Since(began) > 6*time.Second {
					return gone
				}
				return nil
			}
			time.Sleep(time.Minute) // before the answer begins its transactions decide
			began = time.Now()
			for {
				if _, err := io.WriteString(w, "x"); err != nil {
					if !errors.Is(err, gone) {
						t.Errorf("write = %v, want %v", err, gone)
					}
					sent = time.Since(began)
					panic(http.ErrAbortHandler)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}), quietOptions())
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler {
					t.Errorf("the answer ended with %v", p)
				}
			}()
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}()
		if sent < 6*time.Second || sent > 9*time.Second {
			t.Errorf("the answer went on for %v", sent)
		}
		if asked.Load() > 4 {
			t.Errorf("asked %d times in %v", asked.Load(), sent)
		}
	})
}

// TestErrorsAreSentWithoutAuthorization holds that whoever lost access learns so.
func TestErrorsAreSentWithoutAuthorization(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := httpd.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			httpd.RecordOf(r.Context()).Reauthorize = func(context.Context) error { return errors.New("no longer") }
			w.WriteHeader(http.StatusUnauthorized)
			time.Sleep(time.Minute)
			_, err := io.WriteString(w, "x")
			if err != nil {
				t.Errorf("write = %v", err)
			}
		}), quietOptions())
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	})
}
