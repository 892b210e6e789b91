package pages

import (
	"context"
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

// pageRequest is a browser's request for a page.
type pageRequest struct {
	*server
	w      http.ResponseWriter
	r      *http.Request
	record *httpd.Record

	session signin.Session // zero if no person is signed in
	cookie  string         // the value of the session cookie
	form    url.Values     // the submitted values of a POST request
	secret  string         // the secret of CSRF tokens; see formSecret
}

// maxFormBytes is the maximum size of a form's body in bytes. The longest
// field is a password.
const maxFormBytes = 16 << 10

// readForm parses the submitted form. It refuses control characters, because
// every field is a single line.
func (v *pageRequest) readForm() error {
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return fault.New(fault.UnsupportedMediaType, "This address accepts only forms.")
	}
	body, err := httpd.ReadBody(http.MaxBytesReader(v.w, v.r.Body, maxFormBytes))
	if err != nil {
		return err
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

// isLine reports whether s is valid UTF-8 without control characters.
func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// loadSession looks up the session of the browser's session cookie.
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

// reauthorizeSession returns an error if the browser has been signed out. Long
// responses call it periodically.
func (v *pageRequest) reauthorizeSession(ctx context.Context) error {
	_, err := v.Accounts.SignIn.FindSession(ctx, v.cookie, v.record.Addr.String())
	return err
}

func (v *pageRequest) signedIn() bool { return v.session.PersonID != "" }

// requestClient returns the user agent, IP address and cookie with which
// sign-ins are recorded and known browsers are recognized.
func (v *pageRequest) requestClient() session.Client {
	return session.Client{UserAgent: v.r.UserAgent(), Address: v.record.Addr.String(), KnownBrowser: v.cookieValue(v.cookies.known)}
}

// currentPrincipal returns the signed-in person as the principal of the
// request.
func (v *pageRequest) currentPrincipal() principal.Principal {
	return v.session.Principal(v.record.Addr.String())
}

// queryValue returns the value of a query parameter, or "".
func (v *pageRequest) queryValue(name string) string { return v.r.URL.Query().Get(name) }

// redirectTo redirects the browser to another URL.
func (v *pageRequest) redirectTo(address string) error {
	v.w.Header().Set("Location", address)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// startSession sets the cookies of a new session and redirects to next. It
// ends the browser's previous session, whose cookie is overwritten.
func (v *pageRequest) startSession(in signin.NewSession, next string) error {
	if v.signedIn() {
		err := v.Accounts.SignIn.SignOut(v.r.Context(), v.currentPrincipal(), v.session.ID)
		if err != nil && !signin.IsSignedOut(err) { // the session may have ended already, for example because the password was changed
			return err
		}
	}
	v.record.PersonID = in.Person.ID
	v.setCookie(v.cookies.session, in.Cookie, "/", v.Accounts.Settings.SessionLifetime)
	v.setKnownCookie(in.Browser)
	return v.redirectTo(next)
}

// setKnownCookie sets the cookie that identifies this browser at later
// sign-ins.
func (v *pageRequest) setKnownCookie(cookie string) {
	v.setCookie(v.cookies.known, cookie, "/", v.Accounts.Settings.KnownLifetime)
}

// redirectSignedOut makes the browser forget the session and redirects to the
// sign-in page. done names the message to show there.
func (v *pageRequest) redirectSignedOut(done string) error {
	v.forgetSession()
	return v.redirectTo("/signin?done=" + done)
}

// forgetSession makes the browser delete the session cookie and everything that
// the studio has stored or cached.
func (v *pageRequest) forgetSession() {
	v.deleteCookie(v.cookies.session, "/")
	v.w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
}
