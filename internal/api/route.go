package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	"atelier/internal/credential"
	"atelier/internal/fault"
	"atelier/internal/httpd"
)

// route is one operation of the API.
type route struct {
	method, path string
	open         bool // needs no credential
	do           handler
}

// handler answers a request or returns why it cannot.
type handler func(w http.ResponseWriter, r *http.Request) error

// handler builds the tree of routes. Paths that exist answer other methods
// with 405 and what they allow, all else under /api/ is 404.
func (s *Server) handler(routes []route) http.Handler {
	mux := http.NewServeMux()
	allow := map[string][]string{}
	for _, rt := range routes {
		mux.Handle(rt.method+" "+rt.path, s.serve(rt))
		allow[rt.path] = append(allow[rt.path], rt.method)
		if rt.method == http.MethodGet {
			allow[rt.path] = append(allow[rt.path], http.MethodHead)
		}
	}
	for path, methods := range allow {
		slices.Sort(methods)
		allowed := strings.Join(methods, ", ")
		mux.Handle(path, s.serve(route{path: path, open: true, do: func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", allowed)
			return fault.New(fault.MethodNotAllowed, "This address takes "+allowed+" only.")
		}}))
	}
	mux.Handle("/", s.serve(route{path: "unknown", open: true, do: func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.NotFound, "There is nothing at this address.")
	}}))
	return mux
}

// serve wraps a route's handler with what all of them need.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httpd.RecordOf(r.Context())
		rec.Route = rt.path
		err := s.attempt(rt, rec, w, r)
		if err == nil {
			return
		}
		rec.Err = err
		if httpd.Started(w) {
			panic(http.ErrAbortHandler)
		}
		writeError(w, rec.TraceID, err)
	})
}

// attempt runs the route's handler for a caller that may. A panic is an error
// like any other.
func (s *Server) attempt(rt route, rec *httpd.Record, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if why, ok := p.(error); ok && errors.Is(why, http.ErrAbortHandler) {
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if !rt.open {
		caller, err := s.authenticate(r)
		if err != nil {
			if wait, ok := s.addresses.Take(addressKey(rec.Addr)); !ok {
				return rateLimited(wait)
			}
			return err
		}
		rec.PersonID = caller.PersonID
		if wait, ok := s.persons.Take(caller.PersonID); !ok {
			return rateLimited(wait)
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, caller))
	} else if wait, ok := s.addresses.Take(addressKey(rec.Addr)); !ok {
		return rateLimited(wait)
	}
	return rt.do(w, r)
}

func (s *Server) authenticate(r *http.Request) (credential.Caller, error) {
	values := r.Header.Values("Authorization")
	header := ""
	if len(values) == 1 { // two are no credential: which one would count?
		header = values[0]
	}
	return credential.Authenticate(r.Context(), s.DB, header)
}

type callerKey struct{}

// callerFrom gives who is asking. Only routes that are not open have one.
func callerFrom(ctx context.Context) credential.Caller {
	return ctx.Value(callerKey{}).(credential.Caller)
}

// addressKey is what an address is limited by: IPv6 hands out whole /64
// networks to one customer.
func addressKey(a netip.Addr) string {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
