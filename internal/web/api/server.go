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
	"atelier/internal/base/throttle"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// server authorizes requests and passes them to the resources.
type server struct {
	gate      *access.Gate
	origins   []string
	resources []resource
	persons   *throttle.Buckets // rate limits of authenticated callers
	addresses *throttle.Buckets // rate limits of other requests, by IP address
	document  document
}

func newServer(p Parts) (*server, error) {
	content, err := documentJSON()
	if err != nil {
		return nil, err
	}
	compressed := &rest.GzipCache{}
	return &server{
		gate:      p.Gate,
		origins:   p.Origins,
		resources: newResources(p, compressed),
		persons:   throttle.New(p.Limits.RequestsPerMinute, p.Now),
		addresses: throttle.New(p.Limits.RequestsPerMinute, p.Now),
		document:  document{content: content, tag: httpd.ETag(content), compressed: compressed},
	}, nil
}

// allRoutes returns the routes of all operations. A route with the zero rule
// refuses every caller.
func (s *server) allRoutes() []rest.Route {
	all := s.document.Routes()
	for _, resource := range s.resources {
		all = append(all, resource.Routes()...)
	}
	return all
}

// newHandler returns a handler for all routes. Known paths respond to other
// methods with 405 and an Allow header, unknown paths with 404. The patterns
// of the mux contain no methods, because otherwise /invitations/accept and
// /invitations/{invitation_id} could conflict.
func (s *server) newHandler(routes []rest.Route) http.Handler {
	paths := map[string]map[string]http.Handler{}
	errorsOf := map[string]errorWriter{}
	for _, rt := range routes {
		errorsOf[rt.Path] = rt.WriteError
		methods := paths[rt.Path]
		if methods == nil {
			methods = map[string]http.Handler{}
			paths[rt.Path] = methods
		}
		methods[rt.Method] = s.serveRoute(rt)
		if rt.Method == http.MethodGet {
			methods[http.MethodHead] = methods[http.MethodGet]
		}
	}

	mux := http.NewServeMux()
	for path, methods := range paths {
		mux.HandleFunc(path, s.servePath(path, methods, errorsOf[path]))
	}
	unknown := s.serveOpen("unknown", nil, func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.NotFound, "This address does not exist.")
	})
	preflight := s.servePreflight("unknown", allMethods)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if isPreflight(w, r) {
			preflight.ServeHTTP(w, r)
			return
		}
		unknown.ServeHTTP(w, r)
	})
	return s.allowOrigins(mux)
}

// servePath returns the handler of all methods of one path.
func (s *server) servePath(path string, methods map[string]http.Handler, writeError errorWriter) http.HandlerFunc {
	otherwise := methods[""]
	delete(methods, "")
	allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
	notAllowed := s.serveOpen(path, writeError, func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowed)
		return fault.New(fault.MethodNotAllowed, "This address accepts only "+allowed+".")
	})
	preflight := s.servePreflight(path, allowed)
	return func(w http.ResponseWriter, r *http.Request) {
		if isPreflight(w, r) {
			preflight.ServeHTTP(w, r)
			return
		}
		h, ok := methods[r.Method]
		switch {
		case ok:
			h.ServeHTTP(w, r)
		case otherwise != nil:
			otherwise.ServeHTTP(w, r)
		default:
			notAllowed.ServeHTTP(w, r)
		}
	}
}

// errorWriter responds with an error. nil stands for rest.WriteError.
type errorWriter = func(w http.ResponseWriter, traceID string, err error)

// serveOpen returns the handler of requests that need no credential.
func (s *server) serveOpen(path string, writeError errorWriter, handle rest.HandlerFunc) http.Handler {
	return s.serveRoute(rest.Route{Path: path, Rule: access.Open, Handle: handle, WriteError: writeError})
}

// serveRoute returns the handler of a route. It sends errors in the error
// format of the route.
func (s *server) serveRoute(rt rest.Route) http.Handler {
	writeError := rt.WriteError
	if writeError == nil {
		writeError = rest.WriteError
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httpd.RecordOf(r.Context())
		rec.Route = rt.Path
		err := s.callRoute(rt, rec, w, r)
		if err == nil {
			return
		}

		rec.Err = err
		if _, decided := errors.AsType[*fault.Error](err); !decided && r.Context().Err() != nil {
			rec.ClientLeft = true // the error is a consequence of the disconnect
		}
		if httpd.ResponseStarted(w) || rec.ClientLeft {
			panic(http.ErrAbortHandler)
		}
		writeError(w, rec.TraceID, err)
	})
}

// callRoute authorizes the request, counts it towards the rate limit and calls
// the route's handler. It converts a panic to an error.
func (s *server) callRoute(rt rest.Route, rec *httpd.Record, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if cause, ok := p.(error); ok && errors.Is(cause, http.ErrAbortHandler) {
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if rt.Rule.Open {
		if err := rest.CheckRate(s.addresses, httpd.AddressKey(rec.Addr)); err != nil {
			return err
		}
		return rt.Handle(w, r)
	}

	params := rest.ParamsOf(r)
	presented := access.Presented{
		Authorization: r.Header["Authorization"],
		DeviceID:      r.Header["X-Device-Id"],
		TeamID:        params.Values["team_id"],
		CompanyID:     params.Values["company_id"],
		Address:       rec.Addr.String(),
		Reads:         r.Method == http.MethodGet || r.Method == http.MethodHead,
	}
	if rt.TeamHeader != "" && len(presented.TeamID) == 0 {
		presented.TeamID = r.Header[rt.TeamHeader]
	}
	p, err := s.gate.Admit(r.Context(), rt.Rule, presented)
	bucket := s.addresses
	key := httpd.AddressKey(rec.Addr)
	if rec.PersonID = p.PersonID; rec.PersonID != "" {
		bucket = s.persons
		key = rec.PersonID
	}
	if limited := rest.CheckRate(bucket, key); limited != nil {
		return limited
	}
	if err != nil {
		return err
	}

	ctx, call := s.newCall(r.Context(), access.Admitted{
		Rule:      rt.Rule,
		Presented: presented,
		Principal: p,
		HasBody:   r.ContentLength != 0,
	})
	call.Params = params
	rec.Reauthorize = call.Reauthorize
	return rt.Handle(w, rest.WithCall(r.WithContext(ctx), call))
}

// newCall returns the call of an admitted request, and a context whose
// transactions authorize it again.
func (s *server) newCall(ctx context.Context, a access.Admitted) (context.Context, *rest.Call) {
	call := &rest.Call{Principal: a.Principal}
	call.Reauthorize = func(ctx context.Context) error {
		_, err := s.gate.Admit(ctx, a.Rule, a.Presented)
		return err
	}
	call.Authorize = func(ctx context.Context, rule access.Rule) (context.Context, *rest.Call, error) {
		p, err := s.gate.Admit(ctx, rule, a.Presented)
		if err != nil {
			return ctx, nil, err
		}
		other := a
		other.Rule = rule
		other.Principal = p
		ctx, call := s.newCall(ctx, other)
		return ctx, call, nil
	}
	return sqldb.WithGuard(ctx, s.gate.Guard(a)), call
}
