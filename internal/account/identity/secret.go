package identity

import (
	"context"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// lockOwner keeps the person whose account it is from being deleted meanwhile.
func lockOwner(ctx context.Context, tx *sqldb.Tx, p principal.Principal) error {
	if p.TeamID != "" {
		return nil
	}
	return person.Lock(ctx, tx, p.AccountID)
}

// WebhookSecret returns the secret that an account's events are signed with, and
// makes it where there is none.
func (d *Desk) WebhookSecret(ctx context.Context, p principal.Principal, secrets *webhook.Secrets) (s webhook.Secret, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := lockOwner(ctx, tx, p); err != nil {
			return err
		}
		if s, err = secrets.Get(ctx, tx, p.AccountID); err != nil || !s.Fresh {
			return err
		}
		return secretAct(ctx, tx, audit.WebhookSecretMade, p)
	})
	return s, err
}

// RotateWebhookSecret makes another secret sign an account's events.
func (d *Desk) RotateWebhookSecret(ctx context.Context, p principal.Principal, secrets *webhook.Secrets) (s webhook.Secret, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := lockOwner(ctx, tx, p); err != nil {
			return err
		}
		if s, err = secrets.Rotate(ctx, tx, p.AccountID); err != nil {
			return err
		}
		return secretAct(ctx, tx, audit.WebhookSecretRotated, p)
	})
	return s, err
}

// SecretMade records a webhook secret that an account got with its first event,
// before anybody had asked for it.
func SecretMade(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	of := principal.Principal{AccountID: accountID}
	t, err := company.TeamByID(ctx, tx, accountID)
	switch {
	case err == nil:
		of.TeamID = t.ID
		of.CompanyID = t.CompanyID
	case !fault.Is(err, fault.NotFound):
		return err
	default:
		// A team that was removed meanwhile has no owner any more.
		if err := person.Lock(ctx, tx, accountID); fault.Is(err, fault.NotFound) {
			of.TeamID = accountID
		} else if err != nil {
			return err
		}
	}
	return secretAct(ctx, tx, audit.WebhookSecretMade, of)
}

func secretAct(ctx context.Context, tx *sqldb.Tx, done audit.Act, p principal.Principal) error {
	e := audit.Entry{
		Act:       done,
		ActorID:   p.PersonID,
		CompanyID: p.CompanyID,
		Address:   p.Address,
		Details:   map[string]string{"account": p.AccountID},
	}
	if p.TeamID == "" {
		e.PersonID = p.AccountID
	}
	return audit.Add(ctx, tx, e)
}
