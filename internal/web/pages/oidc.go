package pages

import (
	"encoding/json"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/people/oidc"
)

// providerState is the state of a sign-in at the OpenID provider. It is stored
// encrypted in a cookie of the browser.
type providerState struct {
	Pending oidc.Pending
	Next    string
	Until   time.Time
}

const (
	// providerCookiePath is the URL path that the cookie is restricted to.
	providerCookiePath = "/oidc"
	// providerTimeout is the time that a person has to sign in at the OpenID
	// provider.
	providerTimeout = 10 * time.Minute
	// sealLabel is the label with which the state is encrypted. Data encrypted
	// for another purpose cannot be decrypted with it.
	sealLabel = "sign-in at the provider"
)

// startProvider handles GET /oidc/start: it redirects to the OpenID provider.
// It is a GET because the Content-Security-Policy allows forms to be submitted
// to this site only, and also blocks redirects to other sites.
func (s signInPages) startProvider(v *pageRequest) error {
	if s.Provider == nil {
		return fault.New(fault.NotFound, "Signing in with an OpenID provider is not set up here.")
	}
	address, pending, err := s.Provider.BeginSignIn(v.r.Context())
	if err != nil {
		return err
	}
	plain, err := json.Marshal(providerState{pending, safeDestination(v.queryValue("next")), s.Now().Add(providerTimeout)})
	if err != nil {
		return err
	}
	v.setCookie(s.cookies.provider, s.Box.Seal(plain, sealLabel), providerCookiePath, providerTimeout)
	return v.redirectTo(address)
}

// finishProvider handles GET /oidc/callback, to which the OpenID provider
// redirects. It deletes the cookie with the state, which can therefore be used
// only once.
func (s signInPages) finishProvider(v *pageRequest) error {
	if s.Provider == nil {
		return fault.New(fault.NotFound, "Signing in with an OpenID provider is not set up here.")
	}
	a, ok := s.openProviderState(v)
	v.deleteCookie(s.cookies.provider, providerCookiePath)
	if !ok {
		return fault.New(fault.Forbidden, "This sign-in took too long or was started in another browser. Try again.").With("reason", "provider")
	}
	// A provider that refuses the sign-in sends an error instead of a code,
	// and FinishSignIn fails. The provider's message is not shown, because
	// anyone can write a link with such a message.
	in, err := s.Accounts.OpenID.FinishSignIn(v.r.Context(), a.Pending, v.queryValue("state"), v.queryValue("code"), v.requestClient())
	if err != nil {
		return err
	}
	return v.startSession(in, a.Next)
}

func (s signInPages) openProviderState(v *pageRequest) (a providerState, ok bool) {
	plain, err := s.Box.Open(v.cookieValue(s.cookies.provider), sealLabel)
	if err != nil || json.Unmarshal(plain, &a) != nil {
		return providerState{}, false
	}
	return a, s.Now().Before(a.Until)
}
