package pages

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"atelier/internal/base/ids"
	"atelier/internal/people/session"
)

// formSecretLength is the length of a form secret in characters, which is more
// than 256 bits.
const formSecretLength = 44

// formSecret returns the secret that CSRF tokens are derived from before a
// person is signed in. It creates the secret and sets its cookie if the
// browser has none.
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

// csrfToken returns the CSRF token for forms that are submitted to path. It
// proves that this browser received the form from a page of this service.
func (v *pageRequest) csrfToken(path string) string {
	secret := v.cookie
	if v.openForms[path] {
		secret = v.formSecret()
	}
	return v.computeMAC(secret, path)
}

func (s *server) computeMAC(secret, path string) string {
	m := hmac.New(sha256.New, s.Key)
	m.Write([]byte(secret + " " + path)) // unambiguous, because the secret contains no space
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// hasValidToken reports whether the submitted form has the CSRF token for its
// path. The studio, which has no such form, signs out with its own header
// instead: no form can send a header, and no other site may.
func (v *pageRequest) hasValidToken() bool {
	path := v.r.URL.Path
	if path == signOutPath && v.r.Header.Get(session.StudioHeader) == "1" {
		return true
	}
	secret := v.cookie
	if v.openForms[path] {
		secret = v.readFormSecret()
	}
	return secret != "" && hmac.Equal([]byte(v.form.Get(tokenField)), []byte(v.computeMAC(secret, path)))
}
