// Package flow holds the parts that several account flows share: audit entries
// of people about themselves, notices by mail, rate limits on attempts, and the
// end of all sign-ins of a person.
//
// Every action of a flow is one transaction with its audit entry. Mail is
// queued in the same transaction, so a link exists exactly if its action was
// committed.
package flow

import (
	"context"
	"net/url"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// RecordOwnAct writes the audit entry of a person's action on their own
// account.
func RecordOwnAct(ctx context.Context, tx *sqldb.Tx, act audit.Act, personID, address string, details map[string]string) error {
	return audit.Add(ctx, tx, audit.Entry{
		Act:      act,
		ActorID:  personID,
		PersonID: personID,
		Address:  address,
		Details:  details,
	})
}

// Mailer sends mail with links to the sign-in pages.
type Mailer struct {
	Queue  mailqueue.Outbox
	AppURL string
}

// Notice is a message about a person's account.
type Notice struct {
	Kind    string // shown on the account page
	Subject string // of the mail
	Text    string // on the account page and in the mail
	// MailText follows only in the mail: it may contain a link.
	MailText string
}

// NotifyPerson puts a notice on the person's account page and mails it.
func (m Mailer) NotifyPerson(ctx context.Context, tx *sqldb.Tx, p person.Person, n Notice) error {
	if err := person.Notify(ctx, tx, p.ID, n.Kind, n.Text); err != nil {
		return err
	}
	return m.Queue.QueueMessage(ctx, tx, mail.Message{To: p.Email, Subject: n.Subject, Text: n.Text + "\n\n" + n.MailText})
}

// LinkURL returns the address of a sign-in page with a one-time secret.
func (m Mailer) LinkURL(path, secret string) string {
	return m.AppURL + path + "?" + url.Values{"token": {secret}}.Encode()
}

// LockActivePerson returns a person who may sign in. Their row is locked until tx
// ends.
func LockActivePerson(ctx context.Context, tx *sqldb.Tx, id string) (person.Person, error) {
	if err := person.Lock(ctx, tx, id); err != nil {
		return person.Person{}, err
	}
	p, err := person.ByID(ctx, tx, id)
	if err == nil && p.Suspended {
		err = fault.New(fault.Forbidden, "This account is suspended. Ask the operator.").With("reason", "suspended")
	}
	return p, err
}

// RequireSession refuses a request whose session has ended. The caller has locked
// the person's row, so the session cannot end before tx does.
func RequireSession(ctx context.Context, tx *sqldb.Tx, sessionID string) error {
	live, err := session.IsLive(ctx, tx, sessionID)
	if err == nil && !live {
		err = session.ErrSignedOut
	}
	return err
}

// EndSignIns ends all browser sessions and devices of a person. Access tokens
// stay valid.
func EndSignIns(ctx context.Context, tx *sqldb.Tx, devices *device.Devices, personID string) error {
	if _, err := devices.RevokeAll(ctx, tx, personID, "signed out everywhere"); err != nil {
		return err
	}
	_, err := session.EndAll(ctx, tx, personID)
	return err
}
