// Package pages serves the HTML pages on which people sign up and in, manage their
// account, devices and access tokens, and approve devices (RFC 8628).
//
// The pages are plain HTML and need no script. One small file, page.js, shows times
// in the browser's time zone and copies secrets; the Content-Security-Policy allows
// it only on pages that use it, and never allows inline scripts. Only a POST changes
// something, because programs open the links in mails too. Every form has a CSRF
// token that is bound to the browser and to the form's path.
package pages

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/dossier"
	"atelier/internal/base/keyring"
	"atelier/internal/people/oidc"
)

// Parts are the dependencies of the pages.
type Parts struct {
	Accounts *account.Services
	Dossier  *dossier.Dossier
	// Provider is the OpenID provider with which people can sign in; may be nil.
	Provider *oidc.Provider
	// Box seals the state of a sign-in at the provider.
	Box keyring.Box
	// Key authenticates CSRF tokens.
	Key []byte
	// AppURL is the public URL of these pages, BaseURL of the API.
	AppURL, BaseURL string
	Now             func() time.Time
	// Wall is the clock for connections' deadlines; Now is the database's clock.
	Wall func() time.Time
}

type server struct {
	Parts
	cookies cookies
	origins *http.CrossOriginProtection
	open    map[string]bool // by path: the form is for people who are not signed in
}

// minKey is the minimum length of Key in bytes.
const minKey = 32

// New returns the handler of the pages. It handles every path; unknown ones get the
// page "not found".
func New(p Parts) (http.Handler, error) {
	app, err := url.Parse(p.AppURL)
	if err != nil || app.Scheme != "http" && app.Scheme != "https" || app.Host == "" {
		return nil, errors.New("sign-in pages: app_url is not an http or https URL")
	}
	if len(p.Key) < minKey {
		return nil, errors.New("sign-in pages: the key has fewer than 32 bytes")
	}
	s := &server{Parts: p, cookies: cookiesFor(app), origins: http.NewCrossOriginProtection(), open: map[string]bool{}}
	if err := s.origins.AddTrustedOrigin(app.Scheme + "://" + app.Host); err != nil {
		return nil, err
	}
	return s.handler(s.routes()), nil
}

// routes lists every page and form.
func (s *server) routes() []route {
	return []route{
		{"GET", "/style.css", nobody, styleFile.serve},
		{"GET", "/page.js", nobody, scriptFile.serve},
		{"GET", "/favicon.svg", nobody, iconFile.serve},
		{"GET", "/favicon.ico", nobody, iconFile.serve}, // requested by browsers that show a file of this service, not a page
		{"GET", "/{$}", nobody, s.home},

		{"GET", "/setup", anybody, s.setupForm},
		{"POST", "/setup", anybody, s.setup},
		{"GET", "/signup", anybody, s.signUpForm},
		{"POST", "/signup", anybody, s.signUp},
		{"GET", "/signin", anybody, s.signInForm},
		{"POST", "/signin", anybody, s.signIn},
		{"POST", "/signout", somebody, s.signOut},
		{"GET", "/oidc/start", anybody, s.startProvider},
		{"GET", "/oidc/callback", anybody, s.finishProvider},

		{"GET", "/verify", anybody, s.verifyForm},
		{"POST", "/verify", anybody, s.verify},
		{"GET", "/forgot", anybody, s.forgotForm},
		{"POST", "/forgot", anybody, s.forgot},
		{"GET", "/reset", anybody, s.resetForm},
		{"POST", "/reset", anybody, s.reset},
		{"GET", "/drop", anybody, s.dropForm},
		{"POST", "/drop", anybody, s.drop},

		{"GET", "/account", somebody, s.account},
		{"POST", "/account/verification", somebody, s.resendVerification},
		{"POST", "/account/export", somebody, s.exportData},
		{"GET", "/account/delete", somebody, s.deleteForm},
		{"POST", "/account/delete", somebody, s.deleteAccount},
		{"GET", "/password", somebody, s.passwordForm},
		{"POST", "/password", somebody, s.password},
		{"GET", "/devices", somebody, s.devices},
		{"POST", "/devices/revoke", somebody, s.revokeDevice},
		{"POST", "/devices/signout", somebody, s.endSession},
		{"POST", "/devices/signout-everywhere", somebody, s.signOutEverywhere},

		{"GET", "/tokens", somebody, s.tokens},
		{"POST", "/tokens", somebody, s.createToken},
		{"POST", "/tokens/regenerate", somebody, s.regenerateToken},
		{"POST", "/tokens/delete", somebody, s.deleteToken},
		{"GET", "/companies/{company_id}/tokens", somebody, s.companyTokens},
		{"POST", "/companies/{company_id}/tokens", somebody, s.createCompanyToken},
		{"POST", "/companies/{company_id}/tokens/regenerate", somebody, s.regenerateCompanyToken},
		{"POST", "/companies/{company_id}/tokens/delete", somebody, s.deleteCompanyToken},

		{"GET", "/device", somebody, s.deviceForm},
		{"POST", "/device", somebody, s.decideDevice},
		{"GET", "/invitation", anybody, s.invitationForm},
		{"POST", "/invitation", somebody, s.acceptInvitation},
	}
}

// home handles GET /.
func (s *server) home(v *visit) error { return v.to(home) }
