package pages

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"atelier/internal/account/signin"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/web/httpd"
)

// route is one page or form.
type route struct {
	method, path string
	who          who
	do           func(v *visit) error
}

// who is the audience of a route.
type who int

const (
	nobody   who = iota // the session is not looked up
	anybody             // people who are signed in or not
	somebody            // people who are signed in
)

// policy is the Content-Security-Policy of pages without a script: it allows the
// style sheet, images and forms of this site only.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// scriptPolicy allows page.js too, but no inline script: text that a user entered
// stays text.
const scriptPolicy = policy + "; script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

// handler returns the handler of all routes. A known path responds to other methods
// with 405 and an Allow header; an unknown path is 404.
func (s *server) handler(routes []route) http.Handler {
	mux := http.NewServeMux()
	allow := map[string][]string{}
	for _, rt := range routes {
		mux.Handle(rt.method+" "+rt.path, s.serve(rt))
		allow[rt.path] = append(allow[rt.path], rt.method)
		switch rt.method {
		case http.MethodGet:
			allow[rt.path] = append(allow[rt.path], http.MethodHead)
		case http.MethodPost:
			s.open[rt.path] = rt.who == anybody
		}
	}
	for path, methods := range allow {
		slices.Sort(methods)
		allowed := strings.Join(methods, ", ")
		mux.Handle(path, s.serve(route{path: path, do: func(v *visit) error {
			v.w.Header().Set("Allow", allowed)
			return fault.New(fault.MethodNotAllowed, "This address accepts only "+allowed+" requests.")
		}}))
	}
	mux.Handle("/", s.serve(route{path: "unknown", do: func(*visit) error {
		return fault.New(fault.NotFound, "This page does not exist. Check the address.")
	}}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		// With no-referrer, browsers send "Origin: null" with a form.
		w.Header().Set("Referrer-Policy", "same-origin")
		mux.ServeHTTP(w, r)
	})
}

// serve returns the handler of a route, with its log record and error page.
func (s *server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httpd.RecordOf(r.Context())
		rec.Route = strings.TrimSuffix(rt.path, "{$}")
		v := &visit{server: s, w: w, r: r, rec: rec}
		err := v.attempt(rt)
		if err == nil {
			return
		}
		rec.Err = err
		if httpd.Started(w) {
			panic(http.ErrAbortHandler)
		}
		v.fail(err)
	})
}

// attempt checks the request (origin, session, CSRF token) and runs the route's
// function. A panic becomes an error.
func (v *visit) attempt(rt route) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if why, ok := p.(error); ok && errors.Is(why, http.ErrAbortHandler) {
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if rt.who == nobody {
		return rt.do(v)
	}
	if err := v.origins.Check(v.r); err != nil {
		return fault.New(fault.Forbidden, "This form was sent from another site. Nothing was changed.").With("reason", "cross_site").Because(err)
	}
	if v.r.Method == http.MethodPost {
		if err := v.readForm(); err != nil {
			return err
		}
	}
	if err := v.recognise(); err != nil && (rt.who == somebody || !signin.IsSignedOut(err)) {
		return err
	}
	if v.r.Method == http.MethodPost && !v.tokenFits() {
		return fault.New(fault.Forbidden, "This form is out of date. Nothing was changed. Open the page again and send the form once more. If this message stays, allow cookies for this site.").With("reason", "form_token")
	}
	if rt.who == somebody {
		v.rec.Reauthorize = v.reauthorize
		v.r = v.r.WithContext(sqldb.WithGuard(v.r.Context(), v.Accounts.SignIn.SessionGuard(v.cookie)))
	}
	return rt.do(v)
}
