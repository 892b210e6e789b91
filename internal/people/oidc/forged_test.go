package oidc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"atelier/internal/people/oidc"
)

// forger is a provider that lies: no real one can be made to.
type forger struct {
	*httptest.Server
	document map[string]any // what it publishes about itself
	keys     jose.JSONWebKeySet
	claims   map[string]any // of its ID tokens
	info     map[string]any // of its userinfo
	// sign makes the ID token of the claims; nil leaves it out.
	sign func(claims []byte) string
	// answer, when set, takes over a path.
	answer map[string]http.HandlerFunc
	calls  atomic.Int64 // of the token endpoint

	mu   sync.Mutex
	last *http.Request // to the token endpoint, its form parsed
}

var (
	trusted = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	foreign = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	curved  = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// by signs with a key.
func by(algorithm jose.SignatureAlgorithm, key any) func([]byte) string {
	return func(claims []byte) string {
		signer := must(jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil))
		return must(must(signer.Sign(claims)).CompactSerialize())
	}
}

// unsigned is a token with the algorithm none.
func unsigned(claims []byte) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims) + "."
}

const (
	forgedID     = "client"
	forgedSecret = "a client secret of more than 32 bytes"
)

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{
		sign:   by(jose.RS256, trusted()),
		keys:   jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: trusted().Public(), KeyID: "k"}, {Key: curved().Public(), KeyID: "k"}}},
		answer: map[string]http.HandlerFunc{},
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			f.calls.Add(1)
			r.ParseForm()
			f.mu.Lock()
			f.last = r
			f.mu.Unlock()
		}
		if h := f.answer[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			json.NewEncoder(w).Encode(f.document)
		case "/keys":
			json.NewEncoder(w).Encode(f.keys)
		case "/token":
			answer := map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 60}
			if f.sign != nil {
				answer["id_token"] = f.sign(must(json.Marshal(f.claims)))
			}
			json.NewEncoder(w).Encode(answer)
		case "/me":
			json.NewEncoder(w).Encode(f.info)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(f.Close)
	f.document = map[string]any{
		"issuer": f.URL, "authorization_endpoint": f.URL + "/authorize", "token_endpoint": f.URL + "/token",
		"jwks_uri": f.URL + "/keys", "userinfo_endpoint": f.URL + "/me",
		"id_token_signing_alg_values_supported": []string{"none", "HS256", "RS256"},
	}
	f.claims = map[string]any{
		"iss": f.URL, "aud": forgedID, "sub": "42", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
		"nonce": "nonce", "email": "anna@studio.example", "email_verified": true,
	}
	f.info = map[string]any{"sub": "42", "email": "info@studio.example", "email_verified": true}
	return f
}

// provider is the forger as we see it.
func (f *forger) provider() *oidc.Provider {
	return oidc.New(oidc.Settings{
		Name: "Studio", Issuer: f.URL, ClientID: forgedID, ClientSecret: forgedSecret, RedirectURL: callback, Timeout: 5 * time.Second, Now: time.Now,
	})
}

// finish signs in.
func (f *forger) finish(t *testing.T) (oidc.Identity, error) {
	t.Helper()
	return f.provider().FinishSignIn(t.Context(), oidc.Pending{State: "state", Nonce: "nonce", Verifier: "verifier"}, "state", "code")
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func atHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func TestHonestAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		change   func(f *forger)
		email    string
		verified bool
	}{
		{"all in the token", func(f *forger) {}, "anna@studio.example", true},
		{"verified as text", func(f *forger) { f.claims["email_verified"] = "true" }, "anna@studio.example", true},
		{"not verified", func(f *forger) { f.claims["email_verified"] = false }, "anna@studio.example", false},
		{"not verified as text", func(f *forger) { f.claims["email_verified"] = "false" }, "anna@studio.example", false},
		{"verified as something else", func(f *forger) { f.claims["email_verified"] = 1 }, "anna@studio.example", false},
		{"nothing about verified", func(f *forger) { delete(f.claims, "email_verified") }, "anna@studio.example", false},
		{"verified is not mixed", func(f *forger) { delete(f.claims, "email"); f.info["email_verified"] = false }, "info@studio.example", false},
		{"the address from userinfo", func(f *forger) { delete(f.claims, "email") }, "info@studio.example", true},
		{"no address anywhere", func(f *forger) { delete(f.claims, "email"); delete(f.info, "email") }, "", false},
		{"no userinfo", func(f *forger) { delete(f.claims, "email"); delete(f.document, "userinfo_endpoint") }, "", false},
		{"several audiences", func(f *forger) { f.claims["aud"] = []string{"other", forgedID}; f.claims["azp"] = forgedID }, "anna@studio.example", true},
		{"the access token's hash", func(f *forger) { f.claims["at_hash"] = atHash("access") }, "anna@studio.example", true},
		{"another algorithm of its list", func(f *forger) {
			f.document["id_token_signing_alg_values_supported"] = []string{"RS256", "ES256"}
			f.sign = by(jose.ES256, curved())
		}, "anna@studio.example", true},
		{"no list of algorithms", func(f *forger) { delete(f.document, "id_token_signing_alg_values_supported") }, "anna@studio.example", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForger(t)
			tt.change(f)
			got, err := f.finish(t)
			if err != nil {
				t.Fatal(err)
			}
			if want := (oidc.Identity{Issuer: f.URL, Subject: "42", Email: tt.email, EmailVerified: tt.verified}); got != want {
				t.Errorf("identity = %+v, want %+v", got, want)
			}
		})
	}
}

func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(f *forger)
	}{
		{"no token", func(f *forger) { f.sign = nil }},
		{"no signature", func(f *forger) { f.sign = unsigned }},
		{"signed with our secret", func(f *forger) { f.sign = by(jose.HS256, []byte(forgedSecret)) }},
		{"signed with the public key as a secret", func(f *forger) { f.sign = by(jose.HS256, must(x509.MarshalPKIXPublicKey(trusted().Public()))) }},
		{"signed with a secret that it publishes", func(f *forger) {
			f.keys.Keys = append(f.keys.Keys, jose.JSONWebKey{Key: []byte(forgedSecret), KeyID: "k"})
			f.sign = by(jose.HS256, []byte(forgedSecret))
		}},
		{"signed by somebody else", func(f *forger) { f.sign = by(jose.RS256, foreign()) }},
		{"an algorithm that is not listed", func(f *forger) { f.sign = by(jose.ES256, curved()) }},
		{"no token at all but text", func(f *forger) { f.sign = func([]byte) string { return "token" } }},
		{"another issuer", func(f *forger) { f.claims["iss"] = "https://id.example" }},
		{"another audience", func(f *forger) { f.claims["aud"] = "other" }},
		{"several audiences and nobody named", func(f *forger) { f.claims["aud"] = []string{forgedID, "other"} }},
		{"made for another client", func(f *forger) { f.claims["azp"] = "other" }},
		{"expired", func(f *forger) { f.claims["exp"] = time.Now().Add(-time.Minute).Unix() }},
		{"no end", func(f *forger) { delete(f.claims, "exp") }},
		{"another nonce", func(f *forger) { f.claims["nonce"] = "other" }},
		{"no nonce", func(f *forger) { delete(f.claims, "nonce") }},
		{"another access token", func(f *forger) { f.claims["at_hash"] = atHash("other") }},
		{"no subject", func(f *forger) { delete(f.claims, "sub") }},
		{"a long subject", func(f *forger) { f.claims["sub"] = strings.Repeat("4", 256) }},
		{"a subject that no database takes", func(f *forger) { f.claims["sub"] = "4\x002" }},
		{"an address that no database takes", func(f *forger) { f.claims["email"] = "anna@studio.example\x00" }},
		{"an address that is no text", func(f *forger) { f.claims["email"] = 42 }},
		{"userinfo of somebody else", func(f *forger) { delete(f.claims, "email"); f.info["sub"] = "43" }},
		{"userinfo of nobody", func(f *forger) { delete(f.claims, "email"); delete(f.info, "sub") }},
		{"the provider says no", func(f *forger) { f.answer["/token"] = status(403, `{"error":"access_denied"}`) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForger(t)
			tt.change(f)
			_, err := f.finish(t)
			wantRefused(t, err)
		})
	}
}

func TestNothingWasBegun(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	f.claims["nonce"] = ""
	for _, pending := range []oidc.Pending{{}, {State: "state"}} {
		_, err := f.provider().FinishSignIn(t.Context(), pending, pending.State, "code")
		wantRefused(t, err)
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the code was sent %d times, want once: not without a state", n)
	}
}

func TestNoAnswers(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	tests := []struct {
		name   string
		change func(f *forger)
	}{
		{"another issuer", func(f *forger) { f.document["issuer"] = "https://id.example" }},
		{"an address of another kind", func(f *forger) { f.document["authorization_endpoint"] = "javascript:alert(1)" }},
		{"no address for tokens", func(f *forger) { delete(f.document, "token_endpoint") }},
		{"no address for keys", func(f *forger) { delete(f.document, "jwks_uri") }},
		{"a file for userinfo", func(f *forger) { f.document["userinfo_endpoint"] = "file:///etc/passwd" }},
		{"a document elsewhere", func(f *forger) {
			f.answer["/.well-known/openid-configuration"] = http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP
		}},
		{"a document without end", func(f *forger) { f.document["padding"] = strings.Repeat("x", 1<<20) }},
		{"no document", func(f *forger) { f.answer["/.well-known/openid-configuration"] = status(404, `{}`) }},
		{"tokens fail", func(f *forger) { f.answer["/token"] = status(500, `{}`) }},
		{"tokens fail with a refusal", func(f *forger) { f.answer["/token"] = status(500, `{"error":"invalid_grant"}`) }},
		{"too many calls", func(f *forger) { f.answer["/token"] = status(429, `{"error":"slow_down"}`) }},
		{"we are unknown", func(f *forger) { f.answer["/token"] = status(401, `{"error":"invalid_client"}`) }},
		{"a page instead of tokens", func(f *forger) { f.answer["/token"] = status(200, `<html>`) }},
		{"a long page instead of tokens", func(f *forger) { f.answer["/token"] = status(502, `<html>`+strings.Repeat("é", 5000)) }},
		{"tokens elsewhere", func(f *forger) {
			f.answer["/token"] = http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP
		}},
		{"keys fail", func(f *forger) { f.answer["/keys"] = status(500, ``) }},
		{"a page instead of keys", func(f *forger) { f.answer["/keys"] = status(200, `<html>`) }},
		{"userinfo fails", func(f *forger) { delete(f.claims, "email"); f.answer["/me"] = status(500, ``) }},
		{"userinfo elsewhere", func(f *forger) {
			delete(f.claims, "email")
			f.answer["/me"] = http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForger(t)
			tt.change(f)
			_, err := f.finish(t)
			wantAway(t, err)
			if n := f.calls.Load(); n > 1 {
				t.Errorf("the code was sent %d times", n)
			}
			if len(err.Error()) > 600 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestConfirmTellsRefusalsFromFailures(t *testing.T) {
	t.Parallel()
	const tokens = `{"access_token":"a","token_type":"Bearer"`
	tests := []struct {
		name   string
		answer http.HandlerFunc
		next   string // empty: an error
		gone   bool
	}{
		{"the same token goes on", status(200, tokens+`}`), "old", false},
		{"a new one", status(200, tokens+`,"refresh_token":"new"}`), "new", false},
		{"gone", status(400, `{"error":"invalid_grant"}`), "", true},
		{"gone, with another status", status(401, `{"error":"invalid_grant"}`), "", true},
		{"a proxy that is in trouble", status(502, `<html>invalid_grant</html>`), "", false},
		{"a failure that looks like a refusal", status(503, `{"error":"invalid_grant"}`), "", false},
		{"too many calls", status(429, `{"error":"temporarily_unavailable"}`), "", false},
		{"we are unknown", status(401, `{"error":"invalid_client"}`), "", false},
		{"nonsense", status(200, `{}`), "", false},
		{"a page", status(200, `<html>`), "", false},
		{"a page of a bad request", status(400, `<html>`), "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForger(t)
			f.answer["/token"] = tt.answer
			next, err := f.provider().ConfirmPerson(t.Context(), "old")
			switch {
			case tt.next != "":
				if next != tt.next || err != nil {
					t.Errorf("confirm = %q, %v, want %q", next, err, tt.next)
				}
			case tt.gone:
				if !errors.Is(err, oidc.ErrUnknownPerson) {
					t.Errorf("confirm = %v, want ErrGone", err)
				}
			default:
				wantAway(t, err)
			}
			if n := f.calls.Load(); n != 1 {
				t.Errorf("the token was sent %d times", n)
			}
		})
	}
}

func TestConfirmSurvivesItsCaller(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	ctx, leave := context.WithCancel(t.Context())
	f.answer["/token"] = func(w http.ResponseWriter, r *http.Request) {
		leave()
		status(200, `{"access_token":"a","token_type":"Bearer","refresh_token":"new"}`)(w, r)
	}
	if next, err := f.provider().ConfirmPerson(ctx, "old"); next != "new" || err != nil {
		t.Errorf("confirm = %q, %v, want the new token", next, err)
	}
}

func TestKeysComeBack(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	hang := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(hang) }) }
	defer release()
	var stuck atomic.Bool
	stuck.Store(true)
	f.answer["/keys"] = func(w http.ResponseWriter, r *http.Request) {
		if stuck.Load() {
			<-hang
		}
		json.NewEncoder(w).Encode(f.keys)
	}
	p := oidc.New(oidc.Settings{Name: "Studio", Issuer: f.URL, ClientID: forgedID, RedirectURL: callback, Timeout: 200 * time.Millisecond, Now: time.Now})
	pending := oidc.Pending{State: "state", Nonce: "nonce", Verifier: "verifier"}
	_, err := p.FinishSignIn(t.Context(), pending, "state", "code")
	wantAway(t, err)
	stuck.Store(false)
	// The request that hangs ends by itself; nobody lets it go.
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, err = p.FinishSignIn(t.Context(), pending, "state", "code"); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Errorf("finish = %v, want keys again", err)
	}
}

func TestHowWeSignIn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		methods []string
		secret  string
		header  bool
	}{
		{"nothing said", nil, forgedSecret, true},
		{"basic", []string{"client_secret_post", "client_secret_basic"}, forgedSecret, true},
		{"post only", []string{"client_secret_post", "private_key_jwt"}, forgedSecret, false},
		{"no secret", []string{"client_secret_basic", "none"}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForger(t)
			if tt.methods != nil {
				f.document["token_endpoint_auth_methods_supported"] = tt.methods
			}
			p := oidc.New(oidc.Settings{Name: "Studio", Issuer: f.URL, ClientID: forgedID, ClientSecret: tt.secret, RedirectURL: callback})
			if _, err := p.FinishSignIn(t.Context(), oidc.Pending{State: "s", Nonce: "nonce", Verifier: "verifier"}, "s", "code"); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			form := f.last.PostForm
			if _, _, header := f.last.BasicAuth(); header != tt.header || (form.Get("client_id") == "") != tt.header || !tt.header && form.Get("client_secret") != tt.secret {
				t.Errorf("header = %t, form = %v", header, form)
			}
			if form.Get("code_verifier") != "verifier" || form.Get("code") != "code" || form.Get("redirect_uri") != callback {
				t.Errorf("form = %v", form)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		offered, asked []string
		want, access   string
	}{
		{"nothing said", nil, nil, "openid email profile offline_access", ""},
		{"all of them", []string{"openid", "email", "profile", "offline_access"}, nil, "openid email profile offline_access", ""},
		{"Google's way", []string{"openid", "email", "profile"}, nil, "openid email profile", "offline"},
		{"our own", []string{"openid"}, []string{"email", "offline_access"}, "email offline_access openid", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForger(t)
			if tt.offered != nil {
				f.document["scopes_supported"] = tt.offered
			}
			p := oidc.New(oidc.Settings{Name: "Studio", Issuer: f.URL, ClientID: forgedID, RedirectURL: callback, Scopes: tt.asked})
			address, _, err := p.BeginSignIn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			q := must(url.Parse(address)).Query()
			if q.Get("scope") != tt.want || q.Get("access_type") != tt.access {
				t.Errorf("scope = %q, access type = %q", q.Get("scope"), q.Get("access_type"))
			}
		})
	}
}
