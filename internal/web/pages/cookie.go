package pages

import (
	"net/http"
	"net/url"
	"time"

	"atelier/internal/people/session"
)

// cookies has the names of the cookies. The prefixes __Host- and __Secure-
// require TLS, and prevent other hosts of the domain and pages without TLS
// from setting the cookies.
type cookies struct {
	session  string // the session of a signed-in person
	form     string // the secret of CSRF tokens before signing in
	provider string // the state of a sign-in at the OpenID provider
	known    string // proves earlier sign-ins in this browser; see session.RememberBrowser
	secure   bool
}

func cookiesFor(app *url.URL) cookies {
	if app.Scheme == "https" {
		return cookies{session.CookieName(true), "__Host-atelier-form", "__Secure-atelier-oidc", "__Host-atelier-known", true}
	}
	return cookies{session.CookieName(false), "atelier_form", "atelier_oidc", "atelier_known", false}
}

// cookieValue returns the value of a cookie, or "" if the browser sent none.
func (v *pageRequest) cookieValue(name string) string {
	c, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie sets a cookie. With an age of 0 it lasts until the browser is
// closed.
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

// deleteCookie makes the browser delete a cookie.
func (v *pageRequest) deleteCookie(name, path string) { v.setCookie(name, "", path, -time.Second) }
