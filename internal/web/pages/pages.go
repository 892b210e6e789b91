// Package pages serves the pages on which people sign up and in, look after
// their account, devices and access tokens, and approve a device that wants to
// be signed in as them.
//
// The pages are plain HTML and need no script. One small file (page.js) shows
// times by the browser's clock and copies secrets; the policy of a page lets it
// in only where it has something to do, and never lets in a script that stands
// in the page. A GET shows and a POST does, since links in mails are opened by
// machines too. Every form carries a token that is bound to the browser and to
// the form's address.
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

// Parts are what the pages are made of.
type Parts struct {
	Accounts *account.Services
	Dossier  *dossier.Dossier
	// Provider is where people can sign in besides here; nil for nowhere.
	Provider *oidc.Provider
	// Box seals a sign-in at the provider that is under way.
	Box keyring.Box
	// Key makes the tokens of forms.
	Key []byte
	// AppURL is where these pages are, BaseURL where the API is.
	AppURL, BaseURL string
	Now             func() time.Time
	// Wall is the clock of connections, where Now is that of the database.
	Wall func() time.Time
}

type server struct {
	Parts
	cookies cookies
	origins *http.CrossOriginProtection
	open    map[string]bool // forms for people who are not signed in, by address
}

// minKey is how many bytes make a key that nobody guesses.
const minKey = 32

// New makes the handler of the pages. It answers every path, most of them with
// a page that says that there is nothing.
func New(p Parts) (http.Handler, error) {
	app, err := url.Parse(p.AppURL)
	if err != nil || app.Scheme != "http" && app.Scheme != "https" || app.Host == "" {
		return nil, errors.New("sign-in pages: the address of the app is not one")
	}
	if len(p.Key) < minKey {
		return nil, errors.New("sign-in pages: the key is too short")
	}
	s := &server{Parts: p, cookies: cookiesFor(app), origins: http.NewCrossOriginProtection(), open: map[string]bool{}}
	if err := s.origins.AddTrustedOrigin(app.Scheme + "://" + app.Host); err != nil {
		return nil, err
	}
	return s.handler(s.routes()), nil
}

// routes lists all that is served.
func (s *server) routes() []route {
	return []route{
		{"GET", "/style.css", nobody, styleFile.serve},
		{"GET", "/page.js", nobody, scriptFile.serve},
		{"GET", "/favicon.svg", nobody, iconFile.serve},
		{"GET", "/favicon.ico", nobody, iconFile.serve}, // asked for by browsers that show no page of ours
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

func (s *server) home(v *visit) error { return v.to(home) }
