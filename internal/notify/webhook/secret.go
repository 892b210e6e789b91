package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

const (
	secretPrefix = "whsec_"
	secretLength = 32 // in bytes; Standard Webhooks requires 24 to 64
)

// Box encrypts stored values; keyring.Box implements it. Open must be called
// with the same value of about as Seal.
type Box interface {
	Seal(plain []byte, about string) string
	Open(sealed, about string) ([]byte, error)
}

// Secret is the secret that signs the events of an account.
type Secret struct {
	Value              string // begins with whsec_
	Created            time.Time
	PreviousValidUntil time.Time // end of the time in which the previous secret also signs; zero if it no longer signs
	Fresh              bool      // GetSecret has just created the secret
}

// Secrets manages the webhook secrets of all accounts, which are stored
// encrypted.
type Secrets struct {
	box     Box
	overlap time.Duration
}

// NewSecrets returns a Secrets that encrypts with box. After a rotation, the
// old secret continues to sign events for the duration overlap.
func NewSecrets(box Box, overlap time.Duration) *Secrets { return &Secrets{box, overlap} }

// GetSecret returns the secret of an account, and creates it if there is none.
// Therefore tx must not be read-only.
func (s *Secrets) GetSecret(ctx context.Context, tx *sqldb.Tx, accountID string) (Secret, error) {
	fresh, err := insertSecret(ctx, tx, accountID, s.generateSecret(accountID))
	if err != nil {
		return Secret{}, fmt.Errorf("webhook secret: %w", err)
	}
	secret, err := s.readSecret(ctx, tx, accountID)
	secret.Fresh = fresh
	return secret, err
}

// RotateSecret replaces the secret of an account. The replaced secret continues
// to sign events for the duration of the overlap. Any older secret stops
// signing immediately.
func (s *Secrets) RotateSecret(ctx context.Context, tx *sqldb.Tx, accountID string) (Secret, error) {
	if err := replaceSecret(ctx, tx, accountID, s.generateSecret(accountID), tx.Now.Add(s.overlap)); err != nil {
		return Secret{}, fmt.Errorf("rotate webhook secret: %w", err)
	}
	return s.readSecret(ctx, tx, accountID)
}

// generateSecret returns a new random secret for an account, encrypted.
func (s *Secrets) generateSecret(accountID string) string {
	key := make([]byte, secretLength)
	rand.Read(key)
	return s.box.Seal([]byte(secretPrefix+base64.StdEncoding.EncodeToString(key)), sealContext(accountID))
}

func sealContext(accountID string) string { return "webhook " + accountID }

func (s *Secrets) readSecret(ctx context.Context, tx *sqldb.Tx, accountID string) (Secret, error) {
	kept, err := findSecret(ctx, tx, accountID)
	if err != nil {
		return Secret{}, fmt.Errorf("webhook secret: %w", err)
	}
	value, err := s.box.Open(kept.secret, sealContext(accountID))
	if err != nil {
		return Secret{}, fmt.Errorf("webhook secret: %w", err)
	}
	out := Secret{Value: string(value), Created: kept.created}
	if kept.previous != "" && kept.previousUntil.After(tx.Now) {
		out.PreviousValidUntil = kept.previousUntil
	}
	return out, nil
}

// signingSecrets returns the secrets that currently sign events of an account:
// the current secret and, during the overlap, the previous one. If the account
// has no secret yet, it creates one and calls the function made.
func (s *Secrets) signingSecrets(ctx context.Context, db *sqldb.DB, accountID string, made func(context.Context, *sqldb.Tx, string) error) (values []string, err error) {
	read := func(tx *sqldb.Tx) error {
		kept, err := findSecret(ctx, tx, accountID)
		if err != nil {
			return err
		}
		sealed := []string{kept.secret}
		if kept.previous != "" && kept.previousUntil.After(tx.Now) {
			sealed = append(sealed, kept.previous)
		}
		values = nil
		for _, one := range sealed {
			value, err := s.box.Open(one, sealContext(accountID))
			if err != nil {
				return err
			}
			values = append(values, string(value))
		}
		return nil
	}
	err = db.Read(ctx, read)
	if errors.Is(err, sqldb.ErrNoRows) { // this is the account's first event, and nobody has requested the secret yet
		err = db.Write(ctx, func(tx *sqldb.Tx) error {
			fresh, err := insertSecret(ctx, tx, accountID, s.generateSecret(accountID))
			if err != nil {
				return err
			}
			if err := read(tx); err != nil || !fresh || made == nil {
				return err
			}
			return made(ctx, tx, accountID)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("webhook secret: %w", err)
	}
	return values, nil
}
