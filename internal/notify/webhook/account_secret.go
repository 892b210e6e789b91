package webhook

import (
	"context"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

// GetFor returns the webhook secret of the principal's account, and creates the
// secret if there is none.
func (s *Secrets) GetFor(ctx context.Context, db *sqldb.DB, p principal.Principal) (secret Secret, err error) {
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := p.LockOwner(ctx, tx); err != nil {
			return err
		}
		secret, err = s.GetSecret(ctx, tx, p.AccountID)
		if err != nil || !secret.Fresh {
			return err
		}
		return recordSecret(ctx, tx, audit.WebhookSecretMade, p)
	})
	return secret, err
}

// RotateFor replaces the webhook secret of the principal's account.
func (s *Secrets) RotateFor(ctx context.Context, db *sqldb.DB, p principal.Principal) (secret Secret, err error) {
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := p.LockOwner(ctx, tx); err != nil {
			return err
		}
		if secret, err = s.RotateSecret(ctx, tx, p.AccountID); err != nil {
			return err
		}
		return recordSecret(ctx, tx, audit.WebhookSecretRotated, p)
	})
	return secret, err
}

// RecordFirstSecret adds an audit log entry about a secret that was created to
// sign the first event of an account, before anyone had requested the secret.
func RecordFirstSecret(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	p, err := principal.ForAccount(ctx, tx, accountID)
	if err != nil {
		return err
	}
	return recordSecret(ctx, tx, audit.WebhookSecretMade, p)
}

func recordSecret(ctx context.Context, tx *sqldb.Tx, act audit.Act, p principal.Principal) error {
	e := p.AccountEntry(act)
	e.Details = map[string]string{"account": p.AccountID}
	return audit.Add(ctx, tx, e)
}
