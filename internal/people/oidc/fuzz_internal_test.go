package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	jose "github.com/go-jose/go-jose/v4"

	"atelier/internal/base/fault"
)

// fixedAnswers are the responses of a provider by URL. It records where requests
// are sent.
type fixedAnswers struct {
	bodies map[string]string
	sent   []string
}

func (a *fixedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.Scheme + "://" + r.URL.Host + r.URL.Path
	a.sent = append(a.sent, address)
	res := httptest.NewRecorder()
	res.Header().Set("Content-Type", "application/json")
	if body, ok := a.bodies[address]; ok {
		_, _ = io.WriteString(res, body) // a recorder takes everything
	} else {
		res.WriteHeader(http.StatusNotFound)
	}
	answer := res.Result()
	answer.Request = r
	return answer, nil
}

// FuzzProviderAnswers proves that whatever a provider answers, a sign-in ends
// with an identity that can be stored and whose ID token was meant for this
// service and this sign-in, or with a fault, and that no request goes to an
// address without TLS.
func FuzzProviderAnswers(f *testing.F) {
	const (
		issuer  = "https://id.example"
		client  = "client"
		nonce   = "nonce"
		good    = `{"issuer": "https://id.example", "authorization_endpoint": "https://id.example/authorize", "token_endpoint": "https://id.example/token", "jwks_uri": "https://id.example/keys", "userinfo_endpoint": "https://id.example/me", "id_token_signing_alg_values_supported": ["ES256"]}`
		token   = `{"access_token": "access", "token_type": "Bearer", "refresh_token": "r", "id_token": "ID"}`
		claimed = `{"iss": "https://id.example", "aud": "client", "sub": "42", "exp": 4000000000, "iat": 1000000000, "nonce": "nonce", "email": "anna@studio.example", "email_verified": true}`
		info    = `{"sub": "42", "email": "anna@studio.example", "email_verified": "true"}`
	)
	f.Add(good, token, claimed, info)
	f.Add(strings.Replace(good, "https://id.example/keys", "http://id.example/keys", 1), token, claimed, info)
	f.Add(strings.Replace(good, `"https://id.example/me"`, "7", 1), token, claimed, info)
	f.Add(good, `{"access_token": "access", "id_token": 7}`, claimed, info)
	f.Add(good, `access_token=a&id_token=ID`, claimed, info)
	f.Add(good, `{"access_token": "access", "expires_in": "60", "id_token": "a.b.c"}`, claimed, info)
	for _, claims := range []string{
		`{"iss": "https://id.example", "aud": ["client", "other"], "azp": "client", "sub": "42", "exp": 4000000000, "nonce": "nonce"}`,
		`{"iss": "https://id.example", "aud": ["client", "other"], "sub": "42", "exp": 4000000000, "nonce": "nonce"}`,
		`{"iss": "https://id.example", "aud": "client", "sub": "", "exp": 4e9, "nonce": "nonce", "email_verified": "true"}`,
		`{"iss": "https://id.example", "aud": "client", "sub": "4\u0000", "exp": 4000000000, "nonce": "nonce", "email": "a\nb"}`,
		`{"iss": "https://id.example", "aud": "client", "sub": 42, "exp": "x", "nonce": ["nonce"], "at_hash": "x", "email_verified": [true]}`,
		`[]`, `null`, `{`,
	} {
		f.Add(good, token, claims, info)
		f.Add(good, token, claims, `{"sub": "43"}`)
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}})
	if err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, document, token, claims, info string) {
		signed, err := signer.Sign([]byte(claims))
		if err != nil {
			t.Fatal(err)
		}
		id, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		answers := &fixedAnswers{bodies: map[string]string{
			issuer + "/.well-known/openid-configuration": document,
			issuer + "/keys":  string(keys),
			issuer + "/token": strings.ReplaceAll(token, "ID", id),
			issuer + "/me":    info,
		}}
		p := New(Settings{Name: "Studio", Issuer: issuer, ClientID: client, RedirectURL: "https://atelier.example/callback", Now: time.Now})
		p.client.Transport = limitedTransport{answers}
		who, err := p.FinishSignIn(t.Context(), Pending{State: "s", Nonce: nonce, Verifier: "v"}, "s", "code")

		for _, address := range answers.sent {
			if !strings.HasPrefix(address, "https://") {
				t.Errorf("a request was sent to %s", address)
			}
		}
		if err != nil {
			if !fault.Is(err, fault.Forbidden) && !fault.Is(err, fault.Unavailable) {
				t.Errorf("the error is %v", err)
			}
			if who != (Identity{}) {
				t.Errorf("%+v came with %v", who, err)
			}
			return
		}

		var said struct {
			Issuer   string `json:"iss"`
			Audience any    `json:"aud"`
			Subject  string `json:"sub"`
			Nonce    string `json:"nonce"`
		}
		if err := json.Unmarshal([]byte(claims), &said); err != nil {
			t.Fatalf("%q was taken: %v", claims, err)
		}
		list, _ := said.Audience.([]any)
		if said.Issuer != issuer || said.Nonce != nonce || said.Subject != who.Subject || said.Audience != client && !slices.Contains(list, any(client)) {
			t.Errorf("%q was taken", claims)
		}
		for _, text := range []string{who.Subject, who.Email} {
			if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 255 || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("the identity is %+v", who)
			}
		}
		if who.Issuer != issuer || who.Subject == "" || who.EmailVerified && who.Email == "" {
			t.Errorf("the identity is %+v", who)
		}
	})
}
