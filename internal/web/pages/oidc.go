package pages

import (
	"encoding/json"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/people/oidc"
)

// away is a browser that was sent to the provider to sign in. It takes this
// along, sealed.
type away struct {
	Pending oidc.Pending
	Next    string
	Until   time.Time
}

const (
	// providerPath is where the browser shows it again.
	providerPath = "/oidc"
	// providerTime is how long people may take at the provider.
	providerTime = 10 * time.Minute
	// sealedAs keeps what was sealed here from being opened elsewhere.
	sealedAs = "sign-in at the provider"
)

// startProvider sends a browser to the provider. It is a link and no form: the
// policy of our pages has forms end here.
func (s *server) startProvider(v *visit) error {
	if s.Provider == nil {
		return fault.New(fault.NotFound, "Nobody can sign in this way here.")
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

// finishProvider takes a browser up that comes back from the provider. What it
// took along works once, whatever comes of it.
func (s *server) finishProvider(v *visit) error {
	if s.Provider == nil {
		return fault.New(fault.NotFound, "Nobody can sign in this way here.")
	}
	a, ok := s.back(v)
	v.drop(s.cookies.provider, providerPath)
	if !ok {
		return fault.New(fault.Forbidden, "This sign-in took too long or was begun in another browser. Try again.").With("reason", "provider")
	}
	// A provider that refused sends no code, which is refused in turn. The words
	// it sends instead are not shown: anybody can write such a link.
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
