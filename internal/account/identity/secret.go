package identity

import (
	"context"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// Owner is the account that a secret belongs to.
type Owner struct {
	ID                string
	TeamID, CompanyID string // empty for a personal account
}

// hold keeps the person whose account it is from being deleted meanwhile.
func (o Owner) hold(ctx context.Context, tx *sqldb.Tx) error {
	if o.TeamID != "" {
		return nil
	}
	return person.Lock(ctx, tx, o.ID)
}

// WebhookSecret gives what an account's events are signed with, and makes it
// where there is none.
func (d *Desk) WebhookSecret(ctx context.Context, a Actor, secrets *webhook.Secrets, of Owner) (s webhook.Secret, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := of.hold(ctx, tx); err != nil {
			return err
		}
		if s, err = secrets.Get(ctx, tx, of.ID); err != nil || !s.Fresh {
			return err
		}
		return secretAct(ctx, tx, audit.WebhookSecretMade, a, of)
	})
	return s, err
}

// RotateWebhookSecret has another secret sign an account's events.
func (d *Desk) RotateWebhookSecret(ctx context.Context, a Actor, secrets *webhook.Secrets, of Owner) (s webhook.Secret, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := of.hold(ctx, tx); err != nil {
			return err
		}
		if s, err = secrets.Rotate(ctx, tx, of.ID); err != nil {
			return err
		}
		return secretAct(ctx, tx, audit.WebhookSecretRotated, a, of)
	})
	return s, err
}

// SecretMade records a webhook secret that an account got with its first event,
// before anybody had asked for it.
func SecretMade(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	of := Owner{ID: accountID}
	t, err := company.TeamByID(ctx, tx, accountID)
	switch {
	case err == nil:
		of.TeamID = t.ID
		of.CompanyID = t.CompanyID
	case !fault.Is(err, fault.NotFound):
		return err
	default:
		// A team that was removed meanwhile is nobody's any more.
		if err := person.Lock(ctx, tx, accountID); fault.Is(err, fault.NotFound) {
			of.TeamID = accountID
		} else if err != nil {
			return err
		}
	}
	return secretAct(ctx, tx, audit.WebhookSecretMade, Actor{}, of)
}

func secretAct(ctx context.Context, tx *sqldb.Tx, done audit.Act, a Actor, of Owner) error {
	e := audit.Entry{
		Act:       done,
		ActorID:   a.PersonID,
		CompanyID: of.CompanyID,
		Address:   a.Address,
		Details:   map[string]string{"account": of.ID},
	}
	if of.TeamID == "" {
		e.PersonID = of.ID
	}
	return audit.Add(ctx, tx, e)
}
