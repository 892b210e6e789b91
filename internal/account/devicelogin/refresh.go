package devicelogin

import (
	"context"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// RefreshTokens returns a new ID token and the next refresh token in exchange
// for a refresh token.
func (s *Service) RefreshTokens(ctx context.Context, refreshToken string, c session.Client) (t Tokens, err error) {
	if err := s.OpenID.ConfirmRefresh(ctx, refreshToken); err != nil {
		return t, err
	}
	reused := false
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		r, err := s.Devices.RefreshToken(ctx, tx, refreshToken)
		if err != nil {
			return err
		}
		if reused = r.Reused; reused { // the device has just been revoked
			return audit.Add(ctx, tx, audit.Entry{Act: audit.RefreshReused, PersonID: r.Device.PersonID, Address: c.Address, Details: map[string]string{"device": r.Device.ID}})
		}
		p, err := person.ByID(ctx, tx, r.Device.PersonID)
		if err != nil {
			return err
		}
		if p.Suspended {
			return device.ErrTokenInvalid
		}
		id, expires, err := s.Tokens.SignToken(ctx, tx, idtoken.Claims{PersonID: r.Device.PersonID, DeviceID: r.Device.ID})
		t = Tokens{id, r.Token, expires}
		return err
	})
	if err != nil {
		return Tokens{}, err
	}
	failpoint.Hit("refresh.after_commit_before_reply")
	if reused {
		return Tokens{}, device.ErrTokenInvalid
	}
	return t, nil
}

// RotateKeys creates a new key, which signs all further ID tokens, and returns
// its id. Only the operator's commands use it.
func (s *Service) RotateKeys(ctx context.Context) (kid string, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if kid, err = s.Tokens.RotateKey(ctx, tx); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.KeysRotated, Details: map[string]string{"kid": kid}})
	})
	return kid, err
}
