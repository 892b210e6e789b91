package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// claims are the claims of an ID token that this package reads, in addition to
// the claims that the library checks.
type claims struct {
	Party         string  `json:"azp"`
	Email         string  `json:"email"`
	EmailVerified laxBool `json:"email_verified"`
}

// laxBool is a boolean claim. Some providers send the string "true" instead of
// the JSON value true.
type laxBool bool

// UnmarshalJSON implements json.Unmarshaler. It reads every value other than
// true and "true" as false.
func (y *laxBool) UnmarshalJSON(b []byte) error {
	*y = string(b) == "true" || string(b) == `"true"`
	return nil
}

// verifyIdentity validates the token endpoint's response (OpenID Connect Core
// 1.0, section 3.1.3.7) and returns the identity in its ID token.
func (p *Provider) verifyIdentity(ctx context.Context, f *metadata, token *oauth2.Token, nonce string) (Identity, error) {
	forged := func(err error) (Identity, error) {
		return Identity{}, p.refusedError(p.DisplayName()+" sent a response that could not be verified. Start again.", shortenError(err))
	}
	raw, _ := token.Extra("id_token").(string)
	keys := &watchedKeys{KeySet: f.keys}
	signed, err := gooidc.NewVerifier(p.settings.Issuer, keys, &gooidc.Config{
		ClientID: p.settings.ClientID, SupportedSigningAlgs: f.algorithms, Now: p.settings.Now,
	}).Verify(ctx, raw)
	if keys.fetchErr != nil {
		return Identity{}, p.unavailableError("fetch keys", keys.fetchErr)
	}
	if err != nil {
		return forged(err)
	}
	var c claims
	if err := signed.Claims(&c); err != nil {
		return forged(err)
	}
	switch {
	case nonce == "" || subtle.ConstantTimeCompare([]byte(signed.Nonce), []byte(nonce)) != 1:
		return forged(errors.New("the nonce of the ID token does not match"))
	case c.Party != p.settings.ClientID && (c.Party != "" || len(signed.Audience) > 1):
		return forged(fmt.Errorf("the ID token was issued to another client: %q", c.Party))
	case signed.AccessTokenHash != "" && signed.VerifyAccessToken(token.AccessToken) != nil:
		return forged(errors.New("the access token does not match the ID token"))
	case !isShortText(signed.Subject) || signed.Subject == "":
		return forged(errors.New("the subject of the ID token is empty, too long or not text"))
	}
	who := Identity{
		Issuer:        p.settings.Issuer,
		Subject:       signed.Subject,
		Email:         c.Email,
		EmailVerified: bool(c.EmailVerified),
		Refresh:       token.RefreshToken,
	}
	if who.Email == "" && f.provider.UserInfoEndpoint() != "" {
		info, err := f.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return Identity{}, p.unavailableError("request user info", err)
		}
		if info.Subject != who.Subject { // OpenID Connect Core 1.0, section 5.3.2
			return forged(errors.New("the subject of the user info differs from the subject of the ID token"))
		}
		who.Email = info.Email
		who.EmailVerified = info.EmailVerified
	}
	who.EmailVerified = who.EmailVerified && who.Email != ""
	if !isShortText(who.Email) {
		return forged(errors.New("the e-mail address is too long or not text"))
	}
	return who, nil
}

// watchedKeys is a key set that records why a download of the keys failed.
type watchedKeys struct {
	gooidc.KeySet
	fetchErr error
}

// VerifySignature implements gooidc.KeySet. The library returns a wrapped error
// only if the download of the keys failed, so errors.Unwrap returns the
// download error or nil.
func (w *watchedKeys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := w.KeySet.VerifySignature(ctx, token)
	w.fetchErr = errors.Unwrap(err)
	return payload, err
}

// isShortText reports whether a claim can be stored: valid UTF-8 of at most 255
// characters without control characters. A subject has at most 255 characters
// (OpenID Connect Core 1.0, section 2), and e-mail addresses are shorter.
func isShortText(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= 255 && !strings.ContainsFunc(s, unicode.IsControl)
}
