package pages

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"atelier/internal/account/signin"
	"atelier/internal/base/fault"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/web/httpd"
)

// pageRequest is one request of a browser.
type pageRequest struct {
	*server
	w      http.ResponseWriter
	r      *http.Request
	record *httpd.Record

	session signin.Session // zero: no person is signed in
	cookie  string         // the session's cookie
	form    url.Values     // the submitted values of a POST
	secret  string         // see formSecret
}

// maxFormBytes is the limit of a form's body in bytes. Its largest value is a password.
const maxFormBytes = 16 << 10

// readForm parses the submitted form. It refuses control characters: no field has
// more than one line.
func (v *pageRequest) readForm() error {
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return fault.New(fault.UnsupportedMediaType, "This address accepts only forms.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, maxFormBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.New(fault.PayloadTooLarge, "The form is too large.")
	}
	if err != nil {
		return httpd.IncompleteBody(err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return fault.New(fault.Invalid, "The form cannot be read. Send it again.").Because(err)
	}
	for name, values := range form {
		for _, value := range values {
			if !isLine(name) || !isLine(value) {
				return fault.New(fault.Invalid, "A field contains characters that are not allowed. Go back and enter it again.")
			}
		}
	}
	v.form = form
	return nil
}

// isLine reports whether s is text on one line.
func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// loadSession looks up the session of the browser's cookie.
func (v *pageRequest) loadSession() error {
	cookie := v.cookieValue(v.cookies.session)
	s, err := v.Accounts.SignIn.FindSession(v.r.Context(), cookie, v.record.Addr.String())
	if err != nil {
		return err
	}
	v.session = s
	v.cookie = cookie
	v.record.PersonID = s.PersonID
	return nil
}

// reauthorizeSession returns an error once the browser is signed out. Long responses call
// it periodically.
func (v *pageRequest) reauthorizeSession(ctx context.Context) error {
	_, err := v.Accounts.SignIn.FindSession(ctx, v.cookie, v.record.Addr.String())
	return err
}

func (v *pageRequest) signedIn() bool { return v.session.PersonID != "" }

// requestClient returns the origin of the request.
func (v *pageRequest) requestClient() session.Client {
	return session.Client{UserAgent: v.r.UserAgent(), Address: v.record.Addr.String(), KnownBrowser: v.cookieValue(v.cookies.known)}
}

// currentPrincipal returns the person who is signed in.
func (v *pageRequest) currentPrincipal() principal.Principal {
	return v.session.Principal(v.record.Addr.String())
}

// queryValue returns a query parameter.
func (v *pageRequest) queryValue(name string) string { return v.r.URL.Query().Get(name) }

// redirectTo redirects the browser to another page.
func (v *pageRequest) redirectTo(address string) error {
	v.w.Header().Set("Location", address)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// startSession sets the cookies of a new session and redirects to next. The browser's old
// session is ended, because its cookie is lost.
func (v *pageRequest) startSession(in signin.NewSession, next string) error {
	if v.signedIn() {
		err := v.Accounts.SignIn.SignOut(v.r.Context(), v.currentPrincipal(), v.session.ID)
		if err != nil && !signin.IsSignedOut(err) { // another password has ended it already
			return err
		}
	}
	v.record.PersonID = in.Person.ID
	v.setCookie(v.cookies.session, in.Cookie, "/", v.Accounts.Settings.SessionLifetime)
	v.setKnownCookie(in.Browser)
	return v.redirectTo(next)
}

// setKnownCookie sets the cookie by which later sign-ins of this browser are recognised.
func (v *pageRequest) setKnownCookie(cookie string) {
	v.setCookie(v.cookies.known, cookie, "/", v.Accounts.Settings.KnownLifetime)
}

// redirectSignedOut deletes the session's cookie and redirects to the sign-in
// page, with a message about the action done.
func (v *pageRequest) redirectSignedOut(done string) error {
	v.deleteCookie(v.cookies.session, "/")
	return v.redirectTo("/signin?done=" + done)
}
