package devicelogin

import (
	"context"

	"atelier/internal/account/flow"
	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// RevokeDevice signs a person out on one of their devices.
func (s *Service) RevokeDevice(ctx context.Context, p principal.Principal, personID, deviceID string) error {
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := s.Devices.RevokeDevice(ctx, tx, personID, deviceID, "revoked"); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{
			Act:      audit.DeviceRevoked,
			ActorID:  p.PersonID,
			PersonID: personID,
			Address:  p.Address,
			Details:  map[string]string{"device": deviceID},
		})
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// EndDeviceByLink signs a device out with the link in the mail about the
// device.
func (s *Service) EndDeviceByLink(ctx context.Context, secret string, c session.Client) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		l, err := person.UseLink(ctx, tx, person.EndDeviceLink, secret)
		if err != nil {
			return err
		}
		if err := s.Devices.RevokeDevice(ctx, tx, l.PersonID, l.Target, "revoked by link"); err != nil {
			return err
		}
		return flow.RecordOwnAct(ctx, tx, audit.DeviceRevoked, l.PersonID, c.Address, map[string]string{"device": l.Target})
	})
}

// CheckEndLink returns an error if a link for signing a device out is not
// valid.
func (s *Service) CheckEndLink(ctx context.Context, secret string) error {
	return s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		_, err := person.FindLink(ctx, tx, person.EndDeviceLink, secret)
		return err
	})
}

// RevokeDeviceOf signs the person with the given e-mail address out on a device.
// If deviceID is empty, it signs them out on all devices and in all browsers.
// Only the operator's commands use it.
func (s *Service) RevokeDeviceOf(ctx context.Context, email, deviceID string) error {
	var p person.Person
	err := s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { p, err = person.ByEmail(ctx, tx, email); return err })
	if err != nil {
		return err
	}
	if deviceID == "" {
		return s.SignIn.SignOutEverywhere(ctx, principal.Operator(), p.ID)
	}
	return s.RevokeDevice(ctx, principal.Operator(), p.ID, deviceID)
}
