package identity

import (
	"context"
	"errors"
	"strconv"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/quota"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// Grant gives tokens to the personal account of the person with an address, or
// to a team; below zero it takes them back.
func (d *Desk) Grant(ctx context.Context, email, teamID string, tokens int64, note string) (balance int64, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		account, entry, err := payee(ctx, tx, email, teamID)
		if err != nil {
			return err
		}
		if balance, err = ledger.Grant(ctx, tx, account, tokens, ledger.Granted, note); err != nil {
			return err
		}
		entry.Act = audit.TokensGranted
		entry.Details = map[string]string{"account": account, "tokens": strconv.FormatInt(tokens, 10), "note": note}
		return audit.Add(ctx, tx, moved(entry, tokens, balance))
	})
	return balance, err
}

// StorageOf tells what the personal account of the person with an address, or a
// team, stores.
func (d *Desk) StorageOf(ctx context.Context, email, teamID string) (u quota.Usage, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		account, _, err := payee(ctx, tx, email, teamID)
		if err != nil {
			return err
		}
		u, err = d.Settings.Storage.Of(ctx, tx, account)
		return err
	})
	return u, err
}

// SetStorageLimit gives the personal account of the person with an address, or a
// team, a limit of its own on what it stores; nil goes by the setting again.
func (d *Desk) SetStorageLimit(ctx context.Context, email, teamID string, limit *int64) (u quota.Usage, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		account, entry, err := payee(ctx, tx, email, teamID)
		if err != nil {
			return err
		}
		before, err := quota.SetLimit(ctx, tx, account, limit)
		if err != nil {
			return err
		}
		u, err = d.Settings.Storage.Of(ctx, tx, account)
		if err != nil {
			return err
		}
		entry.Act = audit.StorageLimitSet
		entry.Details = map[string]string{"account": account, "from": limitText(before), "to": limitText(limit)}
		return audit.Add(ctx, tx, entry)
	})
	return u, err
}

// limitText is a limit in the audit log: bytes, or default for none of its own.
func limitText(limit *int64) string {
	if limit == nil {
		return "default"
	}
	return strconv.FormatInt(*limit, 10)
}

// moved is the entry of a movement that left an account with a balance.
func moved(e audit.Entry, tokens, balance int64) audit.Entry {
	return e.Changing(strconv.FormatInt(balance-tokens, 10), strconv.FormatInt(balance, 10))
}

// payee finds the account that a grant goes to, and whom it concerns.
func payee(ctx context.Context, tx *sqldb.Tx, email, teamID string) (account string, e audit.Entry, err error) {
	if teamID != "" {
		t, err := company.TeamByID(ctx, tx, teamID)
		return t.ID, audit.Entry{CompanyID: t.CompanyID}, err
	}
	p, err := person.ByEmail(ctx, tx, email)
	if err == nil {
		err = person.Lock(ctx, tx, p.ID)
	}
	return p.ID, audit.Entry{PersonID: p.ID}, err
}

// DevicesOf gives the devices of the person with an address.
func (d *Desk) DevicesOf(ctx context.Context, email string) (all []device.Device, err error) {
	p, err := d.byEmail(ctx, email)
	if err != nil {
		return nil, err
	}
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = d.Devices.List(ctx, tx, p.ID)
		return err
	})
	return all, err
}

// RevokeDeviceOf ends a device of the person with an address, or all of them
// and every browser for "".
func (d *Desk) RevokeDeviceOf(ctx context.Context, email, deviceID string) error {
	p, err := d.byEmail(ctx, email)
	if err != nil {
		return err
	}
	if deviceID == "" {
		return d.SignOutEverywhere(ctx, principal.Operator(), p.ID)
	}
	return d.RevokeDevice(ctx, principal.Operator(), p.ID, deviceID)
}

// SignOutEveryone ends every browser, device and access token of all people, and
// says of how many.
func (d *Desk) SignOutEveryone(ctx context.Context) (people int, err error) {
	const page = 100
	for last := ""; ; {
		var ids []string
		err := d.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { ids, err = person.IDs(ctx, tx, last, page); return err })
		if err != nil || len(ids) == 0 {
			return people, err
		}
		for _, id := range ids {
			last = id
			err := d.endCredentials(ctx, id)
			if errors.Is(err, person.ErrDeleted) { // meanwhile
				continue
			}
			if err != nil {
				return people, err
			}
			people++
		}
	}
}

// endCredentials ends everything by which a person is known without signing in.
func (d *Desk) endCredentials(ctx context.Context, personID string) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		if err := d.endAll(ctx, tx, personID); err != nil {
			return err
		}
		tokens, err := credential.DeleteAll(ctx, tx, personID)
		if err != nil {
			return err
		}
		if err := tokensEnded(ctx, tx, principal.Operator(), tokens); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.SessionSignedOutEverywhere, PersonID: personID})
	})
}

// RotateKeys has another key sign ID tokens from now on.
func (d *Desk) RotateKeys(ctx context.Context) (kid string, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if kid, err = d.Tokens.Rotate(ctx, tx); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.KeysRotated, Details: map[string]string{"kid": kid}})
	})
	return kid, err
}
