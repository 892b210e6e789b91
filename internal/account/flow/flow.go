// Package flow contains functions that several account services share: audit
// log entries about people's actions on their own accounts, notices by mail,
// rate limits on attempts, and signing a person out everywhere.
//
// Every action of an account service is one transaction, including its audit
// log entry. Mail is queued in the same transaction, so a link is sent if and
// only if its action was committed.
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

// RecordOwnAct adds an audit log entry about a person's action on their own
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

// Mailer queues mail with links to the HTML pages.
type Mailer struct {
	Queue  mailqueue.Outbox
	AppURL string
}

// Notice is a message about a person's account, sent by mail and shown on their
// account page.
type Notice struct {
	Kind    string // category, shown on the account page
	Subject string // subject of the mail
	Text    string // shown on the account page and in the mail
	// MailText is included only in the mail, and may contain a link.
	MailText string
}

// NotifyPerson adds a notice to the person's account page and sends it by mail.
func (m Mailer) NotifyPerson(ctx context.Context, tx *sqldb.Tx, p person.Person, n Notice) error {
	if err := person.Notify(ctx, tx, p.ID, n.Kind, n.Text); err != nil {
		return err
	}
	return m.Queue.QueueMessage(ctx, tx, mail.Message{To: p.Email, Subject: n.Subject, Text: n.Text + "\n\n" + n.MailText})
}

// LinkURL returns the URL of an HTML page, with the secret of a one-time link
// in it.
func (m Mailer) LinkURL(path, secret string) string {
	return m.AppURL + path + "?" + url.Values{"token": {secret}}.Encode()
}

// LockActivePerson locks a person's row until tx ends and returns the person.
// It refuses suspended and deleted people.
func LockActivePerson(ctx context.Context, tx *sqldb.Tx, id string) (person.Person, error) {
	if err := person.Lock(ctx, tx, id); err != nil {
		return person.Person{}, err
	}
	p, err := person.ByID(ctx, tx, id)
	if err == nil && p.Suspended {
		err = fault.New(fault.Forbidden, "This account is suspended. Contact the operator of this service.").With("reason", "suspended")
	}
	return p, err
}

// RequireSession refuses a request whose browser session has ended. The caller
// has locked the person's row, so the session cannot be ended before tx ends.
func RequireSession(ctx context.Context, tx *sqldb.Tx, sessionID string) error {
	live, err := session.IsLive(ctx, tx, sessionID)
	if err == nil && !live {
		err = session.ErrSignedOut
	}
	return err
}

// EndSignIns ends all browser sessions of a person and revokes all their
// devices. Access tokens stay valid.
func EndSignIns(ctx context.Context, tx *sqldb.Tx, devices *device.Devices, personID string) error {
	if _, err := devices.RevokeAll(ctx, tx, personID, "signed out everywhere"); err != nil {
		return err
	}
	_, err := session.EndAll(ctx, tx, personID)
	return err
}
