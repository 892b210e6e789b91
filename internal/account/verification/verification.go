// Package verification verifies that people own their e-mail addresses: it sends
// links, and marks an address as verified when its link is opened. A person
// with a verified e-mail address joins the company that owns the domain of the
// address.
package verification

import (
	"context"
	"time"

	"atelier/internal/account/flow"
	"atelier/internal/base/audit"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// linkLifetime is how long a verification link is valid.
const linkLifetime = 72 * time.Hour

// mailsOfPerson limits the verification mail that a signed-in person can
// request.
var mailsOfPerson = []ratelimit.Window{{Max: 5, Span: time.Hour}}

// Service verifies e-mail addresses. It is safe for concurrent use.
type Service struct {
	DB   *sqldb.DB
	Mail flow.Mailer
}

// SendLink mails a verification link to a person's e-mail address.
func (s *Service) SendLink(ctx context.Context, tx *sqldb.Tx, p person.Person) error {
	secret, err := person.CreateLink(ctx, tx, person.VerifyLink, person.Link{PersonID: p.ID, Target: p.Email}, linkLifetime)
	if err != nil {
		return err
	}
	return s.Mail.Queue.QueueMessage(ctx, tx, mail.Message{
		To:      p.Email,
		Subject: "Verify your address",
		Text: "Open this link to confirm that this e-mail address is yours:\n\n" + s.Mail.LinkURL("/verify", secret) +
			"\n\nThe link works once, within three days. If you did not sign up, ignore this mail.",
	})
}

// ResendLink mails a new verification link to the caller, unless their mail
// address is verified.
func (s *Service) ResendLink(ctx context.Context, p principal.Principal) error {
	if _, err := flow.StartAttempt(ctx, s.DB, flow.PersonKey("mail", p.PersonID), mailsOfPerson...); err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		found, err := person.ByID(ctx, tx, p.PersonID)
		if err != nil || found.EmailVerified {
			return err
		}
		return s.SendLink(ctx, tx, found)
	})
}

// VerifyEmail marks an e-mail address as verified, given the secret of its
// verification link.
func (s *Service) VerifyEmail(ctx context.Context, secret string, c session.Client) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		l, err := person.UseLink(ctx, tx, person.VerifyLink, secret)
		if err != nil {
			return err
		}
		return MarkVerified(ctx, tx, l.PersonID, l.Target, c.Address)
	})
}

// OperatorLink returns a new verification link, for the operator to pass on to
// the person if the installation sends no mail.
func (s *Service) OperatorLink(ctx context.Context, email string) (link string, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		secret, err := person.CreateLink(ctx, tx, person.VerifyLink, person.Link{PersonID: p.ID, Target: p.Email}, linkLifetime)
		link = s.Mail.LinkURL("/verify", secret)
		return err
	})
	return link, err
}

// MarkVerified marks a person's e-mail address as verified, and adds the person
// to the company that owns the domain of the address. It does nothing if the
// address was already verified.
func MarkVerified(ctx context.Context, tx *sqldb.Tx, personID, email, address string) error {
	changed, err := person.SetVerified(ctx, tx, personID, email)
	if err != nil || !changed {
		return err
	}
	p, err := person.ByID(ctx, tx, personID)
	if err != nil {
		return err
	}
	if err := JoinByDomain(ctx, tx, p, address); err != nil {
		return err
	}
	return flow.RecordOwnAct(ctx, tx, audit.PersonVerified, p.ID, address, nil)
}

// JoinByDomain adds a person with a verified e-mail address to the company that
// owns the domain of the address, if there is one.
func JoinByDomain(ctx context.Context, tx *sqldb.Tx, p person.Person, address string) error {
	companyID, teams, err := company.JoinByDomain(ctx, tx, p.ID, p.Email)
	if err != nil || companyID == "" {
		return err
	}
	details := map[string]string{"how": string(company.ByDomain)}
	for _, t := range teams {
		details["team"] = t.ID
	}
	e := audit.Entry{
		Act:       audit.CompanyMemberSet,
		PersonID:  p.ID,
		CompanyID: companyID,
		Address:   address,
		Details:   details,
	}
	return audit.Add(ctx, tx, e.WithChange("", company.RoleMember))
}
