package provisioning

import (
	"context"
	"fmt"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// notifyAddressChange notifies a user about the new e-mail address of their
// account, on their account page and by mail to both addresses.
func (s *Service) notifyAddressChange(ctx context.Context, tx *sqldb.Tx, before User, email string) error {
	text := "Your company's identity provider has changed the address of your account from " +
		companyadmin.PrintableText(before.Name) + " to " + companyadmin.PrintableText(email) + "."
	if err := person.Notify(ctx, tx, before.ID, "email", text); err != nil {
		return err
	}

	for _, to := range []string{before.Name, email} {
		m := mail.Message{To: to, Subject: "Your address was changed", Text: text + "\n\nIf you did not expect this change, contact the admins of your company.\n"}
		if err := s.sendMail(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}

// mailReturn is mailMembership for a user who already has an account.
func (s *Service) mailReturn(ctx context.Context, tx *sqldb.Tx, client Client, id string) error {
	p, err := person.ByID(ctx, tx, id)
	if err != nil {
		return err
	}
	return s.mailMembership(ctx, tx, client, p, false)
}

// mailMembership mails a person that they are now a member of the company. If
// their account was just created, the mail explains how to sign in.
func (s *Service) mailMembership(ctx context.Context, tx *sqldb.Tx, client Client, p person.Person, created bool) error {
	c, err := company.ByID(ctx, tx, client.companyID)
	if err != nil {
		return err
	}

	name := companyadmin.PrintableText(c.Name)
	m := mail.Message{
		To:      p.Email,
		Subject: "You are a member of a company",
		Text:    fmt.Sprintf("You are now a member of the company “%s”.\n\nSign in at %s/signin\n", name, s.AppURL),
	}
	if created {
		m.Subject = "You have an account"
		m.Text = fmt.Sprintf("The company “%s” has created an account for you.\n\nSign in with your company at %s/signin or choose a password at %s/forgot\n", name, s.AppURL, s.AppURL)
	}
	return s.sendMail(ctx, tx, m)
}

// sendMail queues a mail. It returns an error if mail cannot be sent to the
// address.
func (s *Service) sendMail(ctx context.Context, tx *sqldb.Tx, m mail.Message) error {
	if err := m.CheckMessage(); err != nil {
		return fault.New(fault.Invalid, "Mail cannot be sent to this address.").On("userName").Because(err)
	}
	return s.Mail.QueueMessage(ctx, tx, m)
}
