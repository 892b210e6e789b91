// Package oidc signs people in with an OpenID provider: the authorization code
// flow with PKCE, state and nonce (OpenID Connect Core 1.0, RFC 7636).
//
// The provider may be down whenever it likes. What it publishes about itself is
// read when it is first needed and kept; a failed try is forgotten. What it
// refuses, and every answer that is not what it should be, is a
// fault.Forbidden; no answer is a fault.Unavailable.
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

// Settings are how a provider knows us and we it.
type Settings struct {
	// Name is what people know the provider by.
	Name string
	// Issuer is its address, exactly as it calls itself.
	Issuer                 string
	ClientID, ClientSecret string
	// RedirectURL is where it sends people back to.
	RedirectURL string
	// Scopes are openid, email, profile and offline_access unless set.
	Scopes []string
	// Timeout bounds each call of a method: 10 s.
	Timeout time.Duration
	Now     func() time.Time
}

// Provider is an OpenID provider. It is safe for concurrent use.
type Provider struct {
	settings Settings
	client   *http.Client
	found    atomic.Pointer[metadata]
}

// New makes a provider without talking to it.
func New(s Settings) *Provider {
	s.Timeout = cmp.Or(s.Timeout, 10*time.Second)
	return &Provider{settings: s, client: &http.Client{
		Transport: limitedTransport{&http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			ForceAttemptHTTP2: true,
			MaxIdleConns:      4,
			IdleConnTimeout:   10 * time.Second,
		}},
		// Keys are fetched for all who wait, and so outside anybody's context.
		Timeout: s.Timeout,
		// Secrets go where the provider's own document says, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// maxAnswer is more than any provider has to say.
const maxAnswer = 1 << 20

// limitedTransport cuts answers off.
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

// DisplayName is what people know the provider by.
func (p *Provider) DisplayName() string { return p.settings.Name }

// IssuerURL is the provider's address as it calls itself.
func (p *Provider) IssuerURL() string { return p.settings.Issuer }

// Pending is a sign-in that was begun. Whoever has it can finish it, so it
// stays with the browser that began it.
type Pending struct {
	State, Nonce, Verifier string
}

// Identity is who the provider says somebody is.
type Identity struct {
	// Issuer and Subject together never change and are never given to anybody
	// else.
	Issuer, Subject string
	// Email is empty where the provider does not tell it.
	Email         string
	EmailVerified bool
	// Refresh is for Confirm. It is empty where the provider gives none.
	Refresh string
}

// BeginSignIn returns the address to send the browser to, and what Finish needs when
// it comes back.
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
		options = append(options, oauth2.AccessTypeOffline) // what Google has instead
	}
	return f.oauth.AuthCodeURL(pending.State, options...), pending, nil
}

// FinishSignIn takes the state and the code that the browser brought back, and asks
// the provider who came. Without a code the provider, or the person there, has
// refused. A code works once.
func (p *Provider) FinishSignIn(ctx context.Context, pending Pending, state, code string) (Identity, error) {
	ctx, cancel := p.withTimeout(ctx)
	defer cancel()
	if pending.State == "" || subtle.ConstantTimeCompare([]byte(pending.State), []byte(state)) != 1 {
		return Identity{}, p.refusedError("This answer does not belong to a sign-in that began in this browser. Start again.", errors.New("the state differs"))
	}
	if code == "" {
		return Identity{}, p.refusedError(p.DisplayName()+" did not sign you in.", errors.New("there is no code"))
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

// ErrUnknownPerson is what Confirm returns when the provider no longer stands by
// somebody.
var ErrUnknownPerson = errors.New("the provider no longer stands by the person")

// ConfirmPerson asks the provider whether it still stands by the person that the
// refresh token was given for. It returns the token to ask with the next time,
// the old one may be used up. Every other end than that and ErrGone is a
// fault.Unavailable and says nothing about the person.
//
// Once the provider was asked, a caller who leaves does not keep its answer
// from coming: the next token would be lost.
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

// withTimeout returns ctx our client and an end.
func (p *Provider) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, p.client), p.settings.Timeout)
}

// classifyError tells a refusal of the token endpoint from no answer. What it has
// against us rather than the code is for the operator, and no answer either.
func (p *Provider) classifyError(doing string, err error) error {
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	if ok && refusal.Response.StatusCode < http.StatusInternalServerError && slices.Contains([]string{"invalid_grant", "access_denied"}, refusal.ErrorCode) {
		return p.refusedError(p.DisplayName()+" did not confirm who you are. Start again.", fmt.Errorf("%s: %w", doing, shortenError(err)))
	}
	return p.unavailableError(doing, err)
}

// refusedError is the answer to somebody who cannot be signed in.
func (p *Provider) refusedError(message string, cause error) error {
	return fault.New(fault.Forbidden, message).With("reason", "provider").Because(fmt.Errorf("sign in with %s: %w", p.IssuerURL(), cause))
}

// unavailableError is the answer while the provider gives none.
func (p *Provider) unavailableError(doing string, cause error) error {
	return fault.New(fault.Unavailable, p.DisplayName()+" does not answer. Try again shortly.").
		Because(fmt.Errorf("sign in with %s: %s: %w", p.IssuerURL(), doing, shortenError(cause)))
}

// shortenError is an error without the page that a provider's proxy sends along.
func shortenError(err error) error {
	const enough = 300
	text := err.Error()
	if len(text) <= enough {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:enough], "") + "…")
}
