package httpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// redirectTimeout is the time limit for reading a request to the redirect
// server, and for an idle connection.
const redirectTimeout = 5 * time.Second

// RedirectToHTTPS returns a handler that redirects plain HTTP to the same path
// on HTTPS. first and others are the public URLs of the service; a request for
// any other host is redirected to first, so that a forged Host header cannot
// choose the target.
//
// Requests other than GET and HEAD are refused: a client that follows the
// redirect would send its next request body unencrypted too.
func RedirectToHTTPS(first *url.URL, others ...*url.URL) http.Handler {
	byHost := map[string]string{}
	for _, origin := range append(others, first) {
		byHost[strings.ToLower(origin.Hostname())] = "https://" + origin.Host
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for name, value := range securityHeaders {
			h[name] = value
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "This address requires HTTPS.", http.StatusForbidden)
			return
		}
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		to, known := byHost[strings.ToLower(host)]
		if !known {
			to = "https://" + first.Host
		}
		h.Set("Location", to+r.URL.RequestURI())
		w.WriteHeader(http.StatusPermanentRedirect)
	})
}

// ServeRedirect serves handler on l, with limits on the connections, until ctx
// is cancelled.
func ServeRedirect(ctx context.Context, l net.Listener, handler http.Handler, limits ConnectionLimits, log *slog.Logger, now func() time.Time) error {
	listener := NewListener(l, limits, log, now)
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: redirectTimeout,
		ReadTimeout:       redirectTimeout,
		WriteTimeout:      2 * redirectTimeout, // longer, because responding to an ACME challenge reads the database
		IdleTimeout:       redirectTimeout,
		MaxHeaderBytes:    16 << 10,
		ConnState:         listener.TrackState,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the redirect to HTTPS: %w", err)
	}
	return nil
}
