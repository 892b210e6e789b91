// Package pages serves the HTML pages on which people sign up and sign in,
// manage their account, devices and access tokens, and approve devices (RFC
// 8628) and apps (OAuth 2.1). To signed-in people it also serves the studio.
//
// The pages are plain HTML and need no script. One small file, page.js, shows
// times in the browser's time zone and copies secrets; the
// Content-Security-Policy allows it only on pages that use it, and never
// allows inline scripts. Only POST requests change anything, because mail
// programs may open the links in e-mails. Every form has a CSRF token that is
// bound to the browser and to the form's path.
package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/personaldata"
	"atelier/internal/base/keyring"
	"atelier/internal/people/oidc"
	"atelier/internal/web/studio"
)

// Parts are the dependencies and settings of the pages.
type Parts struct {
	Accounts     *account.Services
	PersonalData *personaldata.Service
	// Provider is the OpenID provider with which people can sign in. It is nil
	// if none is configured.
	Provider *oidc.Provider
	// Studio has the files of the studio, which signed-in people get.
	Studio *studio.Site
	// Box encrypts the state of a sign-in at the OpenID provider.
	Box keyring.Box
	// Key is the HMAC key of CSRF tokens.
	Key []byte
	// AppURL is the public URL of these pages, and BaseURL is the public URL of
	// the API.
	AppURL, BaseURL string
	// HasOAuth says that people can sign in to apps of third parties.
	HasOAuth bool
	Now      func() time.Time
	// WallClock is the clock for the deadlines of connections. Now is the
	// database's clock.
	WallClock func() time.Time
}

type server struct {
	Parts
	cookies   cookies
	origins   *http.CrossOriginProtection
	openForms map[string]bool // for each URL path, whether the form is for people who are not signed in
}

// The handlers of the pages, grouped by purpose.
type (
	signInPages  struct{ *server } // signing in, signing up and creating the first account
	linkPages    struct{ *server } // links in e-mails, and invitations
	accountPages struct{ *server } // a person's account, devices and data
	tokenPages   struct{ *server } // access tokens
)

// minKeyBytes is the minimum length of Key in bytes.
const minKeyBytes = 32

// New returns the handler of the pages. It handles every path; unknown paths
// get a "not found" page.
func New(p Parts) (http.Handler, error) {
	app, err := url.Parse(p.AppURL)
	if err != nil || app.Scheme != "http" && app.Scheme != "https" || app.Host == "" {
		return nil, errors.New("sign-in pages: app_url is not an http or https URL")
	}
	if len(p.Key) < minKeyBytes {
		return nil, errors.New("sign-in pages: the key has fewer than 32 bytes")
	}
	if p.Studio == nil {
		return nil, errors.New("sign-in pages: the studio is missing")
	}
	s := &server{Parts: p, cookies: cookiesFor(app), origins: http.NewCrossOriginProtection(), openForms: map[string]bool{}}
	if err := s.origins.AddTrustedOrigin(app.Scheme + "://" + app.Host); err != nil {
		return nil, err
	}
	pages() // parsed now and not during the first request
	return s.newHandler(s.listRoutes()), nil
}

// listRoutes returns all routes.
func (s *server) listRoutes() []route {
	return slices.Concat(s.pageRoutes(), s.fileRoutes(), s.studioRoutes())
}

// pageRoutes returns the routes of all pages and forms.
func (s *server) pageRoutes() []route {
	signIn := signInPages{s}
	links := linkPages{s}
	accounts := accountPages{s}
	tokens := tokenPages{s}

	return []route{
		{"GET", "/setup", sessionOptional, signIn.setupForm},
		{"POST", "/setup", sessionOptional, signIn.createFirstAccount},
		{"GET", "/signup", sessionOptional, signIn.signUpForm},
		{"POST", "/signup", sessionOptional, signIn.signUp},
		{"GET", "/signin", sessionOptional, signIn.signInForm},
		{"POST", "/signin", sessionOptional, signIn.signIn},
		{"POST", signOutPath, sessionRequired, signIn.signOut},
		{"GET", "/oidc/start", sessionOptional, signIn.startProvider},
		{"GET", "/oidc/callback", sessionOptional, signIn.finishProvider},

		{"GET", "/verify", sessionOptional, links.verifyForm},
		{"POST", "/verify", sessionOptional, links.verifyEmail},
		{"GET", "/forgot", sessionOptional, links.requestResetForm},
		{"POST", "/forgot", sessionOptional, links.requestPasswordReset},
		{"GET", "/reset", sessionOptional, links.resetForm},
		{"POST", "/reset", sessionOptional, links.resetPassword},
		{"GET", "/drop", sessionOptional, links.mailedDeviceForm},
		{"POST", "/drop", sessionOptional, links.signOutMailedDevice},

		{"GET", "/account", sessionRequired, accounts.showAccount},
		{"POST", "/account/verification", sessionRequired, accounts.resendVerification},
		{"POST", "/account/export", sessionRequired, accounts.exportData},
		{"GET", "/account/delete", sessionRequired, accounts.deleteForm},
		{"POST", "/account/delete", sessionRequired, accounts.deleteAccount},
		{"GET", "/password", sessionRequired, accounts.passwordForm},
		{"POST", "/password", sessionRequired, accounts.changePassword},
		{"GET", "/devices", sessionRequired, accounts.showDevices},
		{"POST", "/devices/revoke", sessionRequired, accounts.revokeDevice},
		{"POST", "/devices/signout", sessionRequired, accounts.endSession},
		{"POST", "/devices/signout-everywhere", sessionRequired, accounts.signOutEverywhere},

		{"GET", authorizePath, sessionRequired, accounts.appForm},
		{"POST", authorizePath, sessionRequired, accounts.decideApp},

		{"GET", "/tokens", sessionRequired, tokens.showTokens},
		{"POST", "/tokens", sessionRequired, tokens.createToken},
		{"POST", "/tokens/regenerate", sessionRequired, tokens.regenerateToken},
		{"POST", "/tokens/delete", sessionRequired, tokens.deleteToken},
		{"GET", "/companies/{company_id}/tokens", sessionRequired, tokens.showCompanyTokens},
		{"POST", "/companies/{company_id}/tokens", sessionRequired, tokens.createCompanyToken},
		{"POST", "/companies/{company_id}/tokens/regenerate", sessionRequired, tokens.regenerateCompanyToken},
		{"POST", "/companies/{company_id}/tokens/delete", sessionRequired, tokens.deleteCompanyToken},

		{"GET", "/device", sessionRequired, accounts.deviceForm},
		{"POST", "/device", sessionRequired, accounts.decideDevice},
		{"GET", "/invitation", sessionOptional, links.invitationForm},
		{"POST", "/invitation", sessionRequired, links.acceptInvitation},
	}
}
