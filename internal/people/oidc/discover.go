package oidc

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// metadata is the configuration that a provider publishes about itself, and
// values that are derived from it.
type metadata struct {
	provider   *gooidc.Provider
	oauth      oauth2.Config
	keys       gooidc.KeySet
	algorithms []string
}

const offline = "offline_access"

var defaultScopes = []string{gooidc.ScopeOpenID, "email", "profile", offline}

// signatures are the accepted signature algorithms of ID tokens. The algorithm
// "none" and algorithms with a shared secret are not accepted.
var signatures = []string{
	gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.ES256, gooidc.ES384, gooidc.ES512,
	gooidc.PS256, gooidc.PS384, gooidc.PS512, gooidc.EdDSA,
}

// loadMetadata returns the provider's metadata (OpenID Connect Discovery 1.0).
// After the first successful fetch it returns the cached result.
func (p *Provider) loadMetadata(ctx context.Context) (*metadata, error) {
	if f := p.found.Load(); f != nil {
		return f, nil
	}
	f, err := p.fetchMetadata(ctx)
	if err != nil {
		return nil, p.unavailableError("discover", err)
	}
	p.found.Store(f)
	return f, nil
}

func (p *Provider) fetchMetadata(ctx context.Context) (*metadata, error) {
	s := p.settings
	provider, err := gooidc.NewProvider(ctx, s.Issuer)
	if err != nil {
		return nil, err
	}
	var document struct {
		Authorize  string   `json:"authorization_endpoint"`
		Token      string   `json:"token_endpoint"`
		UserInfo   string   `json:"userinfo_endpoint"`
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
		Methods    []string `json:"token_endpoint_auth_methods_supported"`
		Scopes     []string `json:"scopes_supported"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, err
	}
	for _, address := range []string{document.Authorize, document.Token, document.Keys, cmp.Or(document.UserInfo, s.Issuer)} {
		if !isSafeURL(s.Issuer, address) {
			return nil, fmt.Errorf("the provider's metadata has an unsafe address: %q", address)
		}
	}
	f := &metadata{provider: provider, keys: gooidc.NewRemoteKeySet(gooidc.ClientContext(context.Background(), p.client), document.Keys)}
	for _, a := range document.Algorithms {
		if slices.Contains(signatures, a) {
			f.algorithms = append(f.algorithms, a)
		}
	}
	endpoint := provider.Endpoint()
	// To detect the authentication style, the library would try both styles,
	// and so send an authorization code or a refresh token twice. Providers
	// revoke the whole sign-in if a code or token is reused.
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if s.ClientSecret == "" || len(document.Methods) > 0 && !slices.Contains(document.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := slices.Clone(s.Scopes)
	if len(scopes) == 0 {
		scopes = slices.Clone(defaultScopes)
		if len(document.Scopes) > 0 && !slices.Contains(document.Scopes, offline) {
			scopes = slices.DeleteFunc(scopes, func(scope string) bool { return scope == offline })
		}
	}
	if !slices.Contains(scopes, gooidc.ScopeOpenID) {
		scopes = append(scopes, gooidc.ScopeOpenID)
	}
	f.oauth = oauth2.Config{
		ClientID:     s.ClientID,
		ClientSecret: s.ClientSecret,
		RedirectURL:  s.RedirectURL,
		Endpoint:     endpoint,
		Scopes:       scopes,
	}
	return f, nil
}

// isSafeURL reports whether the service may send secrets or redirect browsers
// to a URL from the provider's metadata. The URL must use HTTPS, or HTTP if the
// issuer URL itself uses HTTP.
func isSafeURL(issuer, address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(issuer, "http:"))
}
