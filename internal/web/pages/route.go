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

// route is one page or one form.
type route struct {
	method, path string
	who          who
	do           func(v *visit) error
}

// who is whom a route is for.
type who int

const (
	nobody   who = iota // it does not matter who asks
	anybody             // signed in or not
	somebody            // signed in
)

// policy lets a page have our style sheet and forms to us, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// scriptPolicy lets a page have page.js as well, and no script of its own: what
// somebody put into the page as text stays text.
const scriptPolicy = policy + "; script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

// handler builds the tree of routes. Addresses that exist answer other methods
// with 405 and what they allow, all else is 404.
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
			return fault.New(fault.MethodNotAllowed, "This address takes "+allowed+" only.")
		}}))
	}
	mux.Handle("/", s.serve(route{path: "unknown", do: func(*visit) error {
		return fault.New(fault.NotFound, "The address is not one of ours, or it is not complete.")
	}}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		// With no-referrer browsers send "Origin: null" along with a form.
		w.Header().Set("Referrer-Policy", "same-origin")
		mux.ServeHTTP(w, r)
	})
}

// serve wraps a route's function with what all of them need.
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

// attempt runs the route's function for a browser that may. A panic is an error
// like any other.
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
		return fault.New(fault.Forbidden, "This form was sent from another site, so nothing was done.").With("reason", "cross_site").Because(err)
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
		return fault.New(fault.Forbidden, "This form is out of date, so nothing was done. Open the page again and send it once more. If that does not help, allow cookies for this site.").With("reason", "form_token")
	}
	if rt.who == somebody {
		v.rec.Reauthorize = v.reauthorize
		v.r = v.r.WithContext(sqldb.WithGuard(v.r.Context(), v.Accounts.SignIn.SessionGuard(v.cookie)))
	}
	return rt.do(v)
}
