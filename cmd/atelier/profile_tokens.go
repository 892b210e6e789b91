package main

import (
	"context"
	"errors"

	"atelier/client"
	"atelier/internal/cli/profile"
)

// profileTokens is a client.TokenStore that keeps the tokens of a profile where
// the profile says.
type profileTokens struct{ credentials profile.Credentials }

// Load implements client.TokenStore.
func (s profileTokens) Load(context.Context) (client.Tokens, error) {
	found, err := s.credentials.Load()
	if errors.Is(err, profile.ErrNoCredential) || err == nil && found.RefreshToken == "" {
		return client.Tokens{}, client.ErrSignedOut
	}
	return client.Tokens{IDToken: found.IDToken, RefreshToken: found.RefreshToken, ExpiresAt: found.ExpiresAt}, err
}

// Save implements client.TokenStore.
func (s profileTokens) Save(_ context.Context, t client.Tokens) error {
	return s.credentials.Save(profile.Credential{IDToken: t.IDToken, RefreshToken: t.RefreshToken, ExpiresAt: t.ExpiresAt})
}

// Lock implements client.TokenStore.
func (s profileTokens) Lock(ctx context.Context) (func(), error) { return s.credentials.Lock(ctx) }
