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

// cookies are the names of the cookies. The prefixes __Host- and __Secure- keep other
// hosts of the domain and pages without TLS from setting them, and require TLS.
type cookies struct {
	session  string // the session of a signed-in person
	form     string // the secret of CSRF tokens before signing in
	provider string // the state of a sign-in at the OpenID provider
	known    string // proves earlier sign-ins of this browser; see session.Remember
	secure   bool
}

func cookiesFor(app *url.URL) cookies {
	if app.Scheme == "https" {
		return cookies{"__Host-atelier", "__Host-atelier-form", "__Secure-atelier-oidc", "__Host-atelier-known", true}
	}
	return cookies{"atelier_session", "atelier_form", "atelier_oidc", "atelier_known", false}
}

// brought returns the value of a cookie, or "".
func (v *visit) brought(name string) string {
	c, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// keep sets a cookie. Without an age it lasts until the browser is closed.
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

// drop deletes a cookie.
func (v *visit) drop(name, path string) { v.keep(name, "", path, -time.Second) }

// formChars is the length of a form secret: more than 256 bits.
const formChars = 44

// formSecret returns the secret that CSRF tokens are bound to before a person is
// signed in. A browser without one gets it with this response.
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

// tokenField is the name of the form field with the CSRF token.
const tokenField = "form_token"

// token returns the CSRF token for forms that are sent to path. It proves that this
// browser got the form from a page of this service.
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

// tokenFits reports whether the submitted form has the right CSRF token.
func (v *visit) tokenFits() bool {
	path := v.r.URL.Path
	secret := v.cookie
	if v.open[path] {
		secret = v.broughtSecret()
	}
	return secret != "" && hmac.Equal([]byte(v.form.Get(tokenField)), []byte(v.mac(secret, path)))
}
