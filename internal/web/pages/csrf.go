package pages

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"atelier/internal/base/ids"
)

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
