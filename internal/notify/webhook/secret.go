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
	secretLength = 32 // bytes; Standard Webhooks wants 24 to 64
)

// Box seals what is kept and read again; keyring.Box is one. A sealed text
// opens for the same about only.
type Box interface {
	Seal(plain []byte, about string) string
	Open(sealed, about string) ([]byte, error)
}

// Secret is what the events of an account are signed with.
type Secret struct {
	Value              string // whsec_…
	Created            time.Time
	PreviousValidUntil time.Time // zero: no older one signs along
	Fresh              bool      // Get made it just now
}

// Secrets are the secrets of all accounts, kept sealed.
type Secrets struct {
	box     Box
	overlap time.Duration
}

// NewSecrets keeps secrets in a box. A secret that was replaced signs along for
// overlap.
func NewSecrets(box Box, overlap time.Duration) *Secrets { return &Secrets{box, overlap} }

// Get gives the secret of an account, and makes it where there is none: tx must
// be one that may write.
func (s *Secrets) Get(ctx context.Context, tx *sqldb.Tx, accountID string) (Secret, error) {
	fresh, err := insertSecret(ctx, tx, accountID, s.generateSecret(accountID))
	if err != nil {
		return Secret{}, fmt.Errorf("webhook secret: %w", err)
	}
	secret, err := s.readSecret(ctx, tx, accountID)
	secret.Fresh = fresh
	return secret, err
}

// Rotate replaces the secret of an account. The old one signs along for the
// overlap; one that it had replaced itself a short while ago no longer does.
func (s *Secrets) Rotate(ctx context.Context, tx *sqldb.Tx, accountID string) (Secret, error) {
	if err := replaceSecret(ctx, tx, accountID, s.generateSecret(accountID), tx.Now.Add(s.overlap)); err != nil {
		return Secret{}, fmt.Errorf("rotate webhook secret: %w", err)
	}
	return s.readSecret(ctx, tx, accountID)
}

// generateSecret makes a secret, sealed.
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

// signingSecrets gives the secrets that sign for an account now, the current one
// first. made hears of one that had to be made.
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
	if errors.Is(err, sqldb.ErrNoRows) { // the account's first event, before anybody asked for the secret
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
