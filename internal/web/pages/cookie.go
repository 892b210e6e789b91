package pages

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"time"

	"atelier/internal/base/ids"
)

// cookies are the names of what we leave in browsers. The prefixes keep other
// hosts of the same domain, and pages without TLS, from planting theirs; they
// need TLS themselves.
type cookies struct {
	session  string // who is signed in
	form     string // what forms are bound to before that
	provider string // a sign-in at the provider that is under way
	known    string // whom this browser was signed in as before; see session.Remember
	secure   bool
}

func cookiesFor(app *url.URL) cookies {
	if app.Scheme == "https" {
		return cookies{"__Host-atelier", "__Host-atelier-form", "__Secure-atelier-oidc", "__Host-atelier-known", true}
	}
	return cookies{"atelier_session", "atelier_form", "atelier_oidc", "atelier_known", false}
}

// brought is the value of a cookie, "" where there is none.
func (v *visit) brought(name string) string {
	c, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// keep leaves a cookie in the browser for a while, or, without an age, until
// it is closed.
func (v *visit) keep(name, value, path string, age time.Duration) {
	http.SetCookie(v.w, &http.Cookie{
		Name:     name,
		Value:    value,
		Path:     path,
		MaxAge:   int(age.Seconds()),
		HttpOnly: true,
		Secure:   v.cookies.secure,
		SameSite: http.SameSiteLaxMode,
	})
}

// drop takes a cookie out of the browser.
func (v *visit) drop(name, path string) { v.keep(name, "", path, -time.Second) }

// formChars makes 256 bits and a few more.
const formChars = 44

// formSecret is what forms are bound to before somebody is signed in. A browser
// that has none yet gets one with this answer.
func (v *visit) formSecret() string {
	if v.secret == "" {
		v.secret = v.broughtSecret()
	}
	if v.secret == "" {
		v.secret = ids.Text(formChars)
		v.keep(v.cookies.form, v.secret, "/", 0)
	}
	return v.secret
}

func (v *visit) broughtSecret() string {
	if c := v.brought(v.cookies.form); len(c) == formChars && ids.Alphanumeric(c) {
		return c
	}
	return ""
}

// tokenField is the name of the field with the token of a form.
const tokenField = "form_token"

// token is what a form that is sent to path must carry. It shows that the form
// came from a page of ours, shown to this browser.
func (v *visit) token(path string) string {
	secret := v.cookie
	if v.open[path] {
		secret = v.formSecret()
	}
	return v.mac(secret, path)
}

func (s *server) mac(secret, path string) string {
	m := hmac.New(sha256.New, s.Key)
	m.Write([]byte(secret + " " + path)) // the secret has no spaces
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// tokenFits tells whether the form that was sent carries its token.
func (v *visit) tokenFits() bool {
	path := v.r.URL.Path
	secret := v.cookie
	if v.open[path] {
		secret = v.broughtSecret()
	}
	return secret != "" && hmac.Equal([]byte(v.form.Get(tokenField)), []byte(v.mac(secret, path)))
}
