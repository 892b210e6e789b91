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
	cookies   cookies
	origins   *http.CrossOriginProtection
	openForms map[string]bool // by path: the form is for people who are not signed in
}

// minKeyBytes is the minimum length of Key in bytes.
const minKeyBytes = 32

// New returns the handler of the pages. It handles every path; unknown ones get the
// page "not found".
func New(p Parts) (http.Handler, error) {
	app, err := url.Parse(p.AppURL)
	if err != nil || app.Scheme != "http" && app.Scheme != "https" || app.Host == "" {
		return nil, errors.New("sign-in pages: app_url is not an http or https URL")
	}
	if len(p.Key) < minKeyBytes {
		return nil, errors.New("sign-in pages: the key has fewer than 32 bytes")
	}
	s := &server{Parts: p, cookies: cookiesFor(app), origins: http.NewCrossOriginProtection(), openForms: map[string]bool{}}
	if err := s.origins.AddTrustedOrigin(app.Scheme + "://" + app.Host); err != nil {
		return nil, err
	}
	return s.newHandler(s.listRoutes()), nil
}

// listRoutes lists every page and form.
func (s *server) listRoutes() []route {
	return []route{
		{"GET", "/style.css", sessionIgnored, styleFile.serveFile},
		{"GET", "/page.js", sessionIgnored, scriptFile.serveFile},
		{"GET", "/favicon.svg", sessionIgnored, iconFile.serveFile},
		{"GET", "/favicon.ico", sessionIgnored, iconFile.serveFile}, // requested by browsers that show a file of this service, not a page
		{"GET", "/{$}", sessionIgnored, s.redirectHome},

		{"GET", "/setup", sessionOptional, s.setupForm},
		{"POST", "/setup", sessionOptional, s.createFirstAccount},
		{"GET", "/signup", sessionOptional, s.signUpForm},
		{"POST", "/signup", sessionOptional, s.signUp},
		{"GET", "/signin", sessionOptional, s.signInForm},
		{"POST", "/signin", sessionOptional, s.signIn},
		{"POST", "/signout", sessionRequired, s.signOut},
		{"GET", "/oidc/start", sessionOptional, s.startProvider},
		{"GET", "/oidc/callback", sessionOptional, s.finishProvider},

		{"GET", "/verify", sessionOptional, s.verifyForm},
		{"POST", "/verify", sessionOptional, s.verifyEmail},
		{"GET", "/forgot", sessionOptional, s.requestResetForm},
		{"POST", "/forgot", sessionOptional, s.requestPasswordReset},
		{"GET", "/reset", sessionOptional, s.resetForm},
		{"POST", "/reset", sessionOptional, s.resetPassword},
		{"GET", "/drop", sessionOptional, s.mailedDeviceForm},
		{"POST", "/drop", sessionOptional, s.signOutMailedDevice},

		{"GET", "/account", sessionRequired, s.showAccount},
		{"POST", "/account/verification", sessionRequired, s.resendVerification},
		{"POST", "/account/export", sessionRequired, s.exportData},
		{"GET", "/account/delete", sessionRequired, s.deleteForm},
		{"POST", "/account/delete", sessionRequired, s.deleteAccount},
		{"GET", "/password", sessionRequired, s.passwordForm},
		{"POST", "/password", sessionRequired, s.changePassword},
		{"GET", "/devices", sessionRequired, s.showDevices},
		{"POST", "/devices/revoke", sessionRequired, s.revokeDevice},
		{"POST", "/devices/signout", sessionRequired, s.endSession},
		{"POST", "/devices/signout-everywhere", sessionRequired, s.signOutEverywhere},

		{"GET", "/tokens", sessionRequired, s.showTokens},
		{"POST", "/tokens", sessionRequired, s.createToken},
		{"POST", "/tokens/regenerate", sessionRequired, s.regenerateToken},
		{"POST", "/tokens/delete", sessionRequired, s.deleteToken},
		{"GET", "/companies/{company_id}/tokens", sessionRequired, s.showCompanyTokens},
		{"POST", "/companies/{company_id}/tokens", sessionRequired, s.createCompanyToken},
		{"POST", "/companies/{company_id}/tokens/regenerate", sessionRequired, s.regenerateCompanyToken},
		{"POST", "/companies/{company_id}/tokens/delete", sessionRequired, s.deleteCompanyToken},

		{"GET", "/device", sessionRequired, s.deviceForm},
		{"POST", "/device", sessionRequired, s.decideDevice},
		{"GET", "/invitation", sessionOptional, s.invitationForm},
		{"POST", "/invitation", sessionRequired, s.acceptInvitation},
	}
}

// redirectHome handles GET /.
func (s *server) redirectHome(v *pageRequest) error { return v.redirectTo(homePath) }
