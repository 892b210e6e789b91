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

// cookieValue returns the value of a cookie, or "".
func (v *pageRequest) cookieValue(name string) string {
	c, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie sets a cookie. Without an age it lasts until the browser is closed.
func (v *pageRequest) setCookie(name, value, path string, age time.Duration) {
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

// deleteCookie deletes a cookie.
func (v *pageRequest) deleteCookie(name, path string) { v.setCookie(name, "", path, -time.Second) }

// formSecretLength is the length of a form secret: more than 256 bits.
const formSecretLength = 44

// formSecret returns the secret that CSRF tokens are bound to before a person is
// signed in. A browser without one gets it with this response.
func (v *pageRequest) formSecret() string {
	if v.secret == "" {
		v.secret = v.readFormSecret()
	}
	if v.secret == "" {
		v.secret = ids.Text(formSecretLength)
		v.setCookie(v.cookies.form, v.secret, "/", 0)
	}
	return v.secret
}

func (v *pageRequest) readFormSecret() string {
	if c := v.cookieValue(v.cookies.form); len(c) == formSecretLength && ids.Alphanumeric(c) {
		return c
	}
	return ""
}

// tokenField is the name of the form field with the CSRF token.
const tokenField = "form_token"

// csrfToken returns the CSRF token for forms that are sent to path. It proves that this
// browser got the form from a page of this service.
func (v *pageRequest) csrfToken(path string) string {
	secret := v.cookie
	if v.openForms[path] {
		secret = v.formSecret()
	}
	return v.computeMAC(secret, path)
}

func (s *server) computeMAC(secret, path string) string {
	m := hmac.New(sha256.New, s.Key)
	m.Write([]byte(secret + " " + path)) // the secret has no spaces
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// hasValidToken reports whether the submitted form has the right CSRF token.
func (v *pageRequest) hasValidToken() bool {
	path := v.r.URL.Path
	secret := v.cookie
	if v.openForms[path] {
		secret = v.readFormSecret()
	}
	return secret != "" && hmac.Equal([]byte(v.form.Get(tokenField)), []byte(v.computeMAC(secret, path)))
}
