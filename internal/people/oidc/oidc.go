// Package oidc signs people in with an OpenID provider: the authorization code
// flow with PKCE, state and nonce (OpenID Connect Core 1.0, RFC 7636).
//
// The provider may be unavailable at any time. Its metadata is fetched on first
// use and then cached; a failed fetch is not cached. If the provider refuses a
// request or its response is invalid, the error is a fault.Forbidden; if there
// is no response, it is a fault.Unavailable.
package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"atelier/internal/base/fault"
)

// Settings are the provider's name and issuer URL, and the client's
// registration at the provider.
type Settings struct {
	// Name is the display name of the provider.
	Name string
	// Issuer is the provider's issuer URL, exactly as the provider publishes
	// it.
	Issuer                 string
	ClientID, ClientSecret string
	// RedirectURL is the URL to which the provider redirects the browser after
	// a sign-in.
	RedirectURL string
	// Scopes default to openid, email, profile and offline_access.
	Scopes []string
	// Timeout limits each method call; the default is 10 s.
	Timeout time.Duration
	Now     func() time.Time
}

// Provider is an OpenID provider. It is safe for concurrent use.
type Provider struct {
	settings Settings
	client   *http.Client
	found    atomic.Pointer[metadata]
}

// New returns a provider without connecting to it.
func New(s Settings) *Provider {
	s.Timeout = cmp.Or(s.Timeout, 10*time.Second)
	return &Provider{settings: s, client: &http.Client{
		Transport: limitedTransport{&http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			ForceAttemptHTTP2: true,
			MaxIdleConns:      4,
			IdleConnTimeout:   10 * time.Second,
		}},
		// All waiting requests share one download of the keys. Therefore the
		// download does not use the context of any one request and needs its
		// own timeout.
		Timeout: s.Timeout,
		// Redirects are not followed, so that secrets are sent only to the URLs
		// in the provider's metadata.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// maxAnswer is the maximum size of a response from the provider, in bytes.
// Valid responses are much smaller.
const maxAnswer = 1 << 20

// limitedTransport truncates response bodies to maxAnswer bytes.
type limitedTransport struct{ http.RoundTripper }

func (b limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// DisplayName returns the display name of the provider.
func (p *Provider) DisplayName() string { return p.settings.Name }

// IssuerURL returns the provider's issuer URL.
func (p *Provider) IssuerURL() string { return p.settings.Issuer }

// Pending is the state of a sign-in that has begun. It must be given only to
// the browser that began the sign-in, because anyone who has it can finish the
// sign-in.
type Pending struct {
	State, Nonce, Verifier string
}

// Identity is a person's identity as the provider reports it.
type Identity struct {
	// Issuer and Subject together identify a person permanently. The provider
	// never assigns them to another person.
	Issuer, Subject string
	// Email is empty if the provider does not report an e-mail address.
	Email         string
	EmailVerified bool
	// Refresh is the refresh token for ConfirmPerson, empty if the provider
	// issues none.
	Refresh string
}

// BeginSignIn returns the URL to which the browser must be redirected, and the
// state that FinishSignIn needs when the browser returns.
func (p *Provider) BeginSignIn(ctx context.Context) (address string, pending Pending, err error) {
	ctx, cancel := p.withTimeout(ctx)
	defer cancel()
	f, err := p.loadMetadata(ctx)
	if err != nil {
		return "", Pending{}, err
	}
	pending = Pending{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	options := []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("nonce", pending.Nonce), oauth2.S256ChallengeOption(pending.Verifier)}
	if !slices.Contains(f.oauth.Scopes, offline) {
		options = append(options, oauth2.AccessTypeOffline) // Google uses access_type=offline instead of the scope offline_access
	}
	return f.oauth.AuthCodeURL(pending.State, options...), pending, nil
}

// FinishSignIn exchanges the authorization code, with which the provider
// redirected the browser back, for the person's identity. An empty code means
// that the provider or the person refused the sign-in. A code can be used once.
func (p *Provider) FinishSignIn(ctx context.Context, pending Pending, state, code string) (Identity, error) {
	ctx, cancel := p.withTimeout(ctx)
	defer cancel()
	if pending.State == "" || subtle.ConstantTimeCompare([]byte(pending.State), []byte(state)) != 1 {
		return Identity{}, p.refusedError("This sign-in was not started in this browser. Start again.", errors.New("the state parameter does not match"))
	}
	if code == "" {
		return Identity{}, p.refusedError(p.DisplayName()+" did not sign you in.", errors.New("the authorization code is missing"))
	}
	f, err := p.loadMetadata(ctx)
	if err != nil {
		return Identity{}, err
	}
	token, err := f.oauth.Exchange(ctx, code, oauth2.VerifierOption(pending.Verifier))
	if err != nil {
		return Identity{}, p.classifyError("exchange code", err)
	}
	return p.verifyIdentity(ctx, f, token, pending.Nonce)
}

// ErrUnknownPerson is returned by ConfirmPerson for a person whose refresh
// token the provider no longer accepts.
var ErrUnknownPerson = errors.New("the identity provider no longer accepts the person's refresh token")

// ConfirmPerson checks whether the provider still accepts the person's refresh
// token. It returns the refresh token for the next call, because the provider
// may have invalidated the old one. Every error other than ErrUnknownPerson is
// a fault.Unavailable and does not mean that the person is unknown.
//
// The call continues after ctx is cancelled, because the next refresh token
// would be lost otherwise.
func (p *Provider) ConfirmPerson(ctx context.Context, refresh string) (next string, err error) {
	ctx, cancel := p.withTimeout(context.WithoutCancel(ctx))
	defer cancel()
	f, err := p.loadMetadata(ctx)
	if err != nil {
		return "", err
	}
	token, err := f.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refusal.ErrorCode == "invalid_grant" && refusal.Response.StatusCode < http.StatusInternalServerError {
		return "", ErrUnknownPerson
	}
	if err != nil {
		return "", p.unavailableError("refresh", err)
	}
	return token.RefreshToken, nil
}

// withTimeout returns a context with the provider's HTTP client and timeout.
func (p *Provider) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, p.client), p.settings.Timeout)
}

// classifyError returns a refusal if the token endpoint refused the
// authorization code, otherwise a fault.Unavailable. Errors about this service
// as a client, such as a wrong client secret, also count as unavailable,
// because only the operator can correct them.
func (p *Provider) classifyError(doing string, err error) error {
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	if ok && refusal.Response.StatusCode < http.StatusInternalServerError && slices.Contains([]string{"invalid_grant", "access_denied"}, refusal.ErrorCode) {
		return p.refusedError(p.DisplayName()+" did not confirm who you are. Start again.", fmt.Errorf("%s: %w", doing, shortenError(err)))
	}
	return p.unavailableError(doing, err)
}

// refusedError returns a fault.Forbidden for a person who cannot be signed in.
func (p *Provider) refusedError(message string, cause error) error {
	return fault.New(fault.Forbidden, message).With("reason", "provider").Because(fmt.Errorf("sign in with %s: %w", p.IssuerURL(), cause))
}

// unavailableError returns a fault.Unavailable for a provider that does not
// respond.
func (p *Provider) unavailableError(doing string, cause error) error {
	return fault.New(fault.Unavailable, p.DisplayName()+" does not respond. Try again shortly.").
		Because(fmt.Errorf("sign in with %s: %s: %w", p.IssuerURL(), doing, shortenError(cause)))
}

// shortenError truncates an error message to 300 bytes, because the message may
// contain an HTML page from the provider's proxy.
func shortenError(err error) error {
	const enough = 300
	text := err.Error()
	if len(text) <= enough {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:enough], "") + "…")
}
