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

// route is the handler of one page or form.
type route struct {
	method, path string
	audience     audience
	handle       func(v *pageRequest) error
}

// audience determines whether a route requires a signed-in person.
type audience int

const (
	sessionIgnored  audience = iota // the session is not looked up
	sessionOptional                 // for everyone, signed in or not
	sessionRequired                 // for signed-in people only
)

// contentPolicy is the Content-Security-Policy of pages without a script. It
// allows only style sheets, fonts, images and forms of this site.
const contentPolicy = "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// scriptPolicy is the Content-Security-Policy of pages with a script. It
// allows page.js but no inline script, so that text entered by a user is never
// executed.
const scriptPolicy = contentPolicy + "; script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

// newHandler returns the handler of all routes. Known paths respond to other
// methods with 405 and an Allow header, unknown paths with 404.
func (s *server) newHandler(routes []route) http.Handler {
	mux := http.NewServeMux()
	allow := map[string][]string{}
	for _, rt := range routes {
		mux.Handle(rt.method+" "+rt.path, s.newRouteHandler(rt))
		allow[rt.path] = append(allow[rt.path], rt.method)
		switch rt.method {
		case http.MethodGet:
			allow[rt.path] = append(allow[rt.path], http.MethodHead)
		case http.MethodPost:
			s.openForms[rt.path] = rt.audience == sessionOptional
		}
	}
	for path, methods := range allow {
		slices.Sort(methods)
		allowed := strings.Join(methods, ", ")
		mux.Handle(path, s.newRouteHandler(route{path: path, handle: func(v *pageRequest) error {
			v.w.Header().Set("Allow", allowed)
			return fault.New(fault.MethodNotAllowed, "This address accepts only "+allowed+" requests.")
		}}))
	}
	mux.Handle("/", s.newRouteHandler(route{path: "unknown", handle: func(*pageRequest) error {
		return fault.New(fault.NotFound, "This page does not exist. Check the address.")
	}}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", contentPolicy)
		// With no-referrer, browsers send "Origin: null" when a form is
		// submitted, which the origin check would refuse.
		w.Header().Set("Referrer-Policy", "same-origin")
		mux.ServeHTTP(w, r)
	})
}

// newRouteHandler returns the handler of a route. It records the route and
// error for the log, and shows an error page.
func (s *server) newRouteHandler(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httpd.RecordOf(r.Context())
		rec.Route = strings.TrimSuffix(rt.path, "{$}")
		v := &pageRequest{server: s, w: w, r: r, record: rec}
		err := v.runRoute(rt)
		if err == nil {
			return
		}
		rec.Err = err
		if httpd.ResponseStarted(w) {
			panic(http.ErrAbortHandler)
		}
		v.showError(err)
	})
}

// runRoute checks the origin, session and CSRF token of the request and runs
// the route's function. It converts a panic to an error.
func (v *pageRequest) runRoute(rt route) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if why, ok := p.(error); ok && errors.Is(why, http.ErrAbortHandler) {
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if rt.audience == sessionIgnored {
		return rt.handle(v)
	}
	if err := v.origins.Check(v.r); err != nil {
		return fault.New(fault.Forbidden, "This form was sent from another site. Nothing was changed.").With("reason", "cross_site").Because(err)
	}
	if v.r.Method == http.MethodPost {
		if err := v.readForm(); err != nil {
			return err
		}
	}
	if err := v.loadSession(); err != nil && (rt.audience == sessionRequired || !signin.IsSignedOut(err)) {
		return err
	}
	if v.r.Method == http.MethodPost && !v.hasValidToken() {
		return fault.New(fault.Forbidden, "This form is out of date. Nothing was changed. Open the page again and send the form once more. If this message stays, allow cookies for this site.").With("reason", "form_token")
	}
	if rt.audience == sessionRequired {
		v.record.Reauthorize = v.reauthorizeSession
		v.r = v.r.WithContext(sqldb.WithGuard(v.r.Context(), v.Accounts.SignIn.SessionGuard(v.cookie)))
	}
	return rt.handle(v)
}
