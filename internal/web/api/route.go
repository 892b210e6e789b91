package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
	"atelier/internal/web/access"
	"atelier/internal/web/httpd"
)

// route is one operation of the API.
type route struct {
	method, path string
	rule         access.Rule
	do           handler
}

// handler answers a request or returns why it cannot.
type handler func(w http.ResponseWriter, r *http.Request) error

// handler builds the tree of routes. Paths that exist answer other methods
// with 405 and what they allow, all else under /api/ is 404. Patterns have no
// methods, so that a path such as /invitations/accept can stand beside
// /invitations/{invitation_id} whatever each of them takes.
func (s *Server) handler(routes []route) http.Handler {
	paths := map[string]map[string]http.Handler{}
	for _, rt := range routes {
		methods := paths[rt.path]
		if methods == nil {
			methods = map[string]http.Handler{}
			paths[rt.path] = methods
		}
		methods[rt.method] = s.serve(rt)
		if rt.method == http.MethodGet {
			methods[http.MethodHead] = methods[http.MethodGet]
		}
	}
	mux := http.NewServeMux()
	for path, methods := range paths {
		allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		other := s.serve(route{path: path, rule: access.Open, do: func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", allowed)
			return fault.New(fault.MethodNotAllowed, "This address takes "+allowed+" only.")
		}})
		preflight := s.preflight(path, allowed)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if h, ok := methods[r.Method]; ok {
				h.ServeHTTP(w, r)
				return
			}
			if isPreflight(w, r) {
				preflight.ServeHTTP(w, r)
				return
			}
			other.ServeHTTP(w, r)
		})
	}
	unknown := s.serve(route{path: "unknown", rule: access.Open, do: func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.NotFound, "There is nothing at this address.")
	}})
	preflight := s.preflight("unknown", allMethods)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if isPreflight(w, r) {
			preflight.ServeHTTP(w, r)
			return
		}
		unknown.ServeHTTP(w, r)
	})
	return s.cors(mux)
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
		if _, decided := errors.AsType[*fault.Error](err); !decided && r.Context().Err() != nil {
			rec.Left = true // what went wrong then is that the client did not wait
		}
		if httpd.Started(w) || rec.Left {
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
	if rt.rule.Open {
		if err := takeRequest(s.addresses, httpd.AddressKey(rec.Addr)); err != nil {
			return err
		}
		return rt.do(w, r)
	}
	c := call{params: paramsOf(r), gate: s.Gate, rule: rt.rule}
	c.presented = access.Presented{
		Authorization: r.Header["Authorization"],
		DeviceID:      r.Header["X-Device-Id"],
		TeamID:        c.params.values["team_id"],
		CompanyID:     c.params.values["company_id"],
		Address:       rec.Addr.String(),
		Reads:         r.Method == http.MethodGet || r.Method == http.MethodHead,
	}
	c.caller, err = s.Gate.Admit(r.Context(), rt.rule, c.presented)
	bucket := s.addresses
	key := httpd.AddressKey(rec.Addr)
	if rec.PersonID = c.caller.PersonID; rec.PersonID != "" {
		bucket = s.persons
		key = rec.PersonID
	}
	if limited := takeRequest(bucket, key); limited != nil {
		return limited
	}
	if err != nil {
		return err
	}
	rec.Reauthorize = c.reauthorize
	ctx := sqldb.WithGuard(r.Context(), s.Gate.Guard(access.Admitted{
		Rule:      c.rule,
		Presented: c.presented,
		Principal: c.caller,
		HasBody:   r.ContentLength != 0,
	}))
	return rt.do(w, r.WithContext(context.WithValue(ctx, callKey{}, &c)))
}

// call is what is known about a request once it was let in.
type call struct {
	caller principal.Principal
	params *params

	gate      *access.Gate
	rule      access.Rule
	presented access.Presented
}

// reauthorize makes the decision about the request again. Answers that last call
// it between their parts; whatever a request changes is decided about again by
// the transaction that changes it (access.Gate.Guard).
func (c *call) reauthorize(ctx context.Context) error {
	_, err := c.gate.Admit(ctx, c.rule, c.presented)
	return err
}

type callKey struct{}

// callOf gives the call that a request is. Only routes that are not open have
// one.
func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// principalOf returns the caller of a request. Only routes that are not open
// have one.
func principalOf(r *http.Request) principal.Principal { return callOf(r).caller }
