package pages

import (
	"encoding/json"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/people/oidc"
)

// away is the state of a sign-in at the OpenID provider. It is stored sealed in a
// cookie of the browser.
type away struct {
	Pending oidc.Pending
	Next    string
	Until   time.Time
}

const (
	// providerPath is the path of the cookie.
	providerPath = "/oidc"
	// providerTime is the time that a person has to sign in at the provider.
	providerTime = 10 * time.Minute
	// sealedAs ties sealed data to this purpose.
	sealedAs = "sign-in at the provider"
)

// startProvider handles GET /oidc/start: it redirects to the OpenID provider. It is a
// GET because the Content-Security-Policy restricts forms to this site, redirects
// included.
func (s *server) startProvider(v *visit) error {
	if s.Provider == nil {
		return fault.New(fault.NotFound, "Signing in with an OpenID provider is not set up here.")
	}
	address, pending, err := s.Provider.Begin(v.r.Context())
	if err != nil {
		return err
	}
	plain, err := json.Marshal(away{pending, destination(v.query("next")), s.Now().Add(providerTime)})
	if err != nil {
		return err
	}
	v.keep(s.cookies.provider, s.Box.Seal(plain, sealedAs), providerPath, providerTime)
	return v.to(address)
}

// finishProvider handles GET /oidc/callback, to which the provider redirects. The
// state in the cookie is deleted, so it works once, successful or not.
func (s *server) finishProvider(v *visit) error {
	if s.Provider == nil {
		return fault.New(fault.NotFound, "Signing in with an OpenID provider is not set up here.")
	}
	a, ok := s.back(v)
	v.drop(s.cookies.provider, providerPath)
	if !ok {
		return fault.New(fault.Forbidden, "This sign-in took too long or was started in another browser. Try again.").With("reason", "provider")
	}
	// A provider that refuses sends an error and no code, and FinishSignIn fails.
	// The provider's message is not shown, because anyone can write such a link.
	in, err := s.Accounts.OpenID.FinishSignIn(v.r.Context(), a.Pending, v.query("state"), v.query("code"), v.client())
	if err != nil {
		return err
	}
	return v.enter(in, a.Next)
}

func (s *server) back(v *visit) (a away, ok bool) {
	plain, err := s.Box.Open(v.brought(s.cookies.provider), sealedAs)
	if err != nil || json.Unmarshal(plain, &a) != nil {
		return away{}, false
	}
	return a, s.Now().Before(a.Until)
}
