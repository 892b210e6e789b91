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

// visit is one request of a browser.
type visit struct {
	*server
	w   http.ResponseWriter
	r   *http.Request
	rec *httpd.Record

	session signin.Session // zero: nobody is signed in
	cookie  string         // the session's cookie
	form    url.Values     // the submitted values of a POST
	secret  string         // see formSecret
}

// maxForm is the limit of a form's body in bytes. Its largest value is a password.
const maxForm = 16 << 10

// readForm parses the submitted form. It refuses control characters: no field has
// more than one line.
func (v *visit) readForm() error {
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return fault.New(fault.UnsupportedMediaType, "This address accepts only forms.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, maxForm))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.New(fault.PayloadTooLarge, "The form is too large.")
	}
	if err != nil {
		return httpd.NotWhole(err)
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

// recognise looks up the session of the browser's cookie.
func (v *visit) recognise() error {
	cookie := v.brought(v.cookies.session)
	s, err := v.Accounts.SignIn.FindSession(v.r.Context(), cookie, v.rec.Addr.String())
	if err != nil {
		return err
	}
	v.session = s
	v.cookie = cookie
	v.rec.PersonID = s.PersonID
	return nil
}

// reauthorize returns an error once the browser is signed out. Long responses call
// it periodically.
func (v *visit) reauthorize(ctx context.Context) error {
	_, err := v.Accounts.SignIn.FindSession(ctx, v.cookie, v.rec.Addr.String())
	return err
}

func (v *visit) signedIn() bool { return v.session.PersonID != "" }

// client returns where the request comes from.
func (v *visit) client() session.Client {
	return session.Client{UserAgent: v.r.UserAgent(), Address: v.rec.Addr.String(), KnownBrowser: v.brought(v.cookies.known)}
}

// principal returns the person who is signed in.
func (v *visit) principal() principal.Principal {
	return v.session.Principal(v.rec.Addr.String())
}

// query returns a query parameter.
func (v *visit) query(name string) string { return v.r.URL.Query().Get(name) }

// to redirects the browser to another page.
func (v *visit) to(address string) error {
	v.w.Header().Set("Location", address)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// enter sets the cookies of a new session and redirects to next. The browser's old
// session is ended, because its cookie is lost.
func (v *visit) enter(in signin.NewSession, next string) error {
	if v.signedIn() {
		err := v.Accounts.SignIn.SignOut(v.r.Context(), v.principal(), v.session.ID)
		if err != nil && !signin.IsSignedOut(err) { // another password has ended it already
			return err
		}
	}
	v.rec.PersonID = in.Person.ID
	v.keep(v.cookies.session, in.Cookie, "/", v.Accounts.Settings.SessionLifetime)
	v.keepKnown(in.Browser)
	return v.to(next)
}

// keepKnown sets the cookie by which later sign-ins of this browser are recognised.
func (v *visit) keepKnown(cookie string) {
	v.keep(v.cookies.known, cookie, "/", v.Accounts.Settings.KnownLifetime)
}

// leave deletes the session's cookie and redirects to the sign-in page with a message
// about what was done.
func (v *visit) leave(done string) error {
	v.drop(v.cookies.session, "/")
	return v.to("/signin?done=" + done)
}
