package identity

import (
	"context"
	"strconv"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/notify/mail"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// Application is what somebody signs up with.
type Application struct {
	Email, Password string
	// Invitation is the secret of an invitation, Setup that of the first start;
	// either lets people in where sign-up is not open to all.
	Invitation, Setup string
	Visitor           Visitor
}

// verifyLifetime is how long a person has to verify an address.
const verifyLifetime = 72 * time.Hour

// SignUp makes a person and signs them in. Where addresses must be verified
// first nobody is signed in and the cookie is "": the answer is then the same
// for an address that is known already.
func (d *Desk) SignUp(ctx context.Context, a Application) (Entered, error) {
	err := d.DB.Write(ctx, func(tx *sqldb.Tx) error { return paceNetwork(ctx, tx, "signup", a.Visitor, signupsOfNetwork) })
	if err != nil {
		return Entered{}, err
	}
	if err := person.CheckEmail(a.Email); err != nil {
		return Entered{}, err
	}
	if err := person.CheckNewPassword(a.Password, a.Email); err != nil {
		return Entered{}, err
	}
	if err := d.DB.Read(ctx, func(tx *sqldb.Tx) error { return d.maySignUp(ctx, tx, a) }); err != nil { // before the slow part
		return Entered{}, err
	}
	hash, err := person.HashPassword(ctx, a.Password)
	if err != nil {
		return Entered{}, err
	}
	var in Entered
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		in = Entered{}
		setsUp, err := d.setsUp(ctx, tx, a)
		verified := setsUp
		if err == nil && !verified {
			verified, err = provesAddress(ctx, tx, a)
		}
		if err != nil {
			return err
		}
		p, err := person.Create(ctx, tx, person.Draft{Email: a.Email, EmailVerified: verified, PasswordHash: hash})
		if fault.Is(err, fault.Invalid) && d.Settings.RequireVerified { // somebody has the address
			return d.remind(ctx, tx, a.Email)
		}
		if err != nil {
			return err
		}
		if err := d.welcome(ctx, tx, p); err != nil {
			return err
		}
		if verified {
			err = joined(ctx, tx, p, a.Visitor.Address)
		} else {
			err = d.sendVerification(ctx, tx, p)
		}
		if err != nil {
			return err
		}
		if a.Invitation != "" {
			if _, err := accept(ctx, tx, p, a.Invitation, a.Visitor.Address); err != nil {
				return err
			}
		}
		if err := act(ctx, tx, audit.PersonCreated, p.ID, a.Visitor.Address, nil); err != nil {
			return err
		}
		if setsUp {
			if err := d.equip(ctx, tx, p, a.Visitor); err != nil {
				return err
			}
		}
		if d.Settings.RequireVerified && !verified {
			return nil
		}
		in, err = d.enter(ctx, tx, p, person.Password, a.Visitor)
		return err
	})
	return in, err
}

// setsUp uses the set-up token of an application, which shows that the operator
// is at work. Of several who come with one at once it is good for the first; the
// others need what everybody needs.
func (d *Desk) setsUp(ctx context.Context, tx *sqldb.Tx, a Application) (bool, error) {
	if a.Setup == "" {
		return false, nil
	}
	ok, err := person.UseSetup(ctx, tx, a.Setup)
	if ok || err != nil {
		return ok, err
	}
	a.Setup = ""
	return false, d.maySignUp(ctx, tx, a)
}

// equip gives tokens to whoever sets the service up, so that they can use it. A
// set-up token is good once, and none is offered when there is somebody.
func (d *Desk) equip(ctx context.Context, tx *sqldb.Tx, p person.Person, v Visitor) error {
	tokens := d.Settings.SetupGrant
	if tokens == 0 {
		return nil
	}
	const note = "set-up"
	balance, err := ledger.Grant(ctx, tx, p.ID, tokens, ledger.Granted, note)
	if err != nil {
		return err
	}
	e := audit.Entry{
		Act:      audit.TokensGranted,
		ActorID:  p.ID,
		PersonID: p.ID,
		Address:  v.Address,
		Details:  map[string]string{"account": p.ID, "tokens": strconv.FormatInt(tokens, 10), "note": note},
	}
	return audit.Add(ctx, tx, moved(e, tokens, balance))
}

// remind tells somebody who has an account that it was asked for again, but not
// as often as strangers like.
func (d *Desk) remind(ctx context.Context, tx *sqldb.Tx, email string) error {
	p, err := person.ByEmail(ctx, tx, email)
	if err != nil {
		return err
	}
	if id, _, err := ratelimit.Pace(ctx, tx, personKey(ratelimit.Daily+"remind", p.ID), mailsToPerson); err != nil || id == "" {
		return err
	}
	return d.Post.Send(ctx, tx, mail.Message{To: p.Email, Subject: "You have an account already",
		Text: "Somebody, probably you, tried to sign up with this address. You have an account already.\n\nSign in at " + d.Settings.AppURL + "/signin"})
}

// CreatePerson makes a person for the operator, who may choose a password that
// people may not.
func (d *Desk) CreatePerson(ctx context.Context, email, password string, known bool) (p person.Person, err error) {
	hash, err := person.HashPassword(ctx, password)
	if err != nil {
		return p, err
	}
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if p, err = person.Create(ctx, tx, person.Draft{Email: email, EmailVerified: known, PasswordHash: hash}); err != nil {
			return err
		}
		if err := d.welcome(ctx, tx, p); err != nil {
			return err
		}
		if known {
			if err := joined(ctx, tx, p, ""); err != nil {
				return err
			}
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.PersonCreated, PersonID: p.ID})
	})
	return p, err
}

// maySignUp tells whether an application is one that the operator wants. It is
// asked again by what the transaction does with the invitation.
func (d *Desk) maySignUp(ctx context.Context, tx *sqldb.Tx, a Application) error {
	if a.Setup != "" {
		if ok, err := person.MaySetup(ctx, tx, a.Setup); ok || err != nil {
			return err
		}
	}
	if a.Invitation != "" && d.Settings.Signup != Nobody {
		return mayUse(ctx, tx, a)
	}
	switch d.Settings.Signup {
	case Anybody:
		return nil
	case Invited:
		return fault.New(fault.Forbidden, "Signing up needs an invitation.").With("reason", "invitation")
	default:
		return fault.New(fault.Forbidden, "New accounts are made by the operator here.").With("reason", "closed")
	}
}

// mayUse tells whether the invitation of an application is good for its
// address. Whoever holds the secret may know whom it is for.
func mayUse(ctx context.Context, tx *sqldb.Tx, a Application) error {
	inv, err := company.InvitationBySecret(ctx, tx, a.Invitation)
	if err != nil {
		return err
	}
	_, ok, err := company.MayJoin(ctx, tx, a.Invitation, a.Email)
	if err == nil && !ok {
		err = fault.New(fault.Invalid, "This invitation is for "+inv.Email+" only.").On("email")
	}
	return err
}

// MaySetup tells whether a token is one that the first start printed and
// nobody has come yet.
func (d *Desk) MaySetup(ctx context.Context, token string) (ok bool, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		ok, err = person.MaySetup(ctx, tx, token)
		return err
	})
	return ok, err
}

// provesAddress tells whether the application shows that the address is the
// applicant's: the invitation went there.
func provesAddress(ctx context.Context, tx *sqldb.Tx, a Application) (bool, error) {
	if a.Invitation == "" {
		return false, nil
	}
	inv, ok, err := company.MayJoin(ctx, tx, a.Invitation, a.Email)
	return ok && inv.Email != "", err
}

func (d *Desk) sendVerification(ctx context.Context, tx *sqldb.Tx, p person.Person) error {
	secret, err := person.OfferLink(ctx, tx, person.VerifyLink, person.Link{PersonID: p.ID, Target: p.Email}, verifyLifetime)
	if err != nil {
		return err
	}
	return d.Post.Send(ctx, tx, mail.Message{To: p.Email, Subject: "Verify your address",
		Text: "Open this link to show that this address is yours:\n\n" + d.link("/verify", secret) +
			"\n\nIt works once, for three days. If you did not sign up, do nothing."})
}

// ResendVerification sends the link again.
func (d *Desk) ResendVerification(ctx context.Context, personID string) error {
	if _, err := d.try(ctx, personKey("mail", personID), mailsOfPerson...); err != nil {
		return err
	}
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByID(ctx, tx, personID)
		if err != nil || p.EmailVerified {
			return err
		}
		return d.sendVerification(ctx, tx, p)
	})
}

// VerifyEmail uses the link of a verification mail.
func (d *Desk) VerifyEmail(ctx context.Context, secret string, v Visitor) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		l, err := person.UseLink(ctx, tx, person.VerifyLink, secret)
		if err != nil {
			return err
		}
		return verified(ctx, tx, l.PersonID, l.Target, v.Address)
	})
}

// verified records that an address is the person's, with what follows.
func verified(ctx context.Context, tx *sqldb.Tx, personID, email, address string) error {
	news, err := person.SetVerified(ctx, tx, personID, email)
	if err != nil || !news {
		return err
	}
	p, err := person.ByID(ctx, tx, personID)
	if err != nil {
		return err
	}
	if err := joined(ctx, tx, p, address); err != nil {
		return err
	}
	return act(ctx, tx, audit.PersonVerified, p.ID, address, nil)
}

// VerificationLink and ResetLink make a fresh link for the operator to hand
// over, where no mail goes out.
func (d *Desk) VerificationLink(ctx context.Context, email string) (link string, err error) {
	return d.operatorLink(ctx, email, person.VerifyLink, verifyLifetime, "/verify")
}

// ResetLink: see VerificationLink.
func (d *Desk) ResetLink(ctx context.Context, email string) (link string, err error) {
	return d.operatorLink(ctx, email, person.ResetLink, resetLifetime, "/reset")
}

func (d *Desk) operatorLink(ctx context.Context, email string, kind person.LinkKind, lifetime time.Duration, path string) (link string, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		secret, err := person.OfferLink(ctx, tx, kind, person.Link{PersonID: p.ID, Target: p.Email}, lifetime)
		if link = d.link(path, secret); err != nil || kind != person.ResetLink {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.PersonResetRequested, PersonID: p.ID})
	})
	return link, err
}

// accept uses an invitation for a person who holds its secret.
func accept(ctx context.Context, tx *sqldb.Tx, p person.Person, secret, address string) (company.Invitation, error) {
	inv, fresh, err := company.AcceptSecret(ctx, tx, secret, p.ID, p.Email)
	if err != nil || !fresh {
		return inv, err
	}
	return inv, accepted(ctx, tx, p.ID, inv, address)
}

func accepted(ctx context.Context, tx *sqldb.Tx, personID string, inv company.Invitation, address string) error {
	e := audit.Entry{
		Act:       audit.InvitationAccepted,
		ActorID:   personID,
		PersonID:  personID,
		CompanyID: inv.CompanyID,
		Address:   address,
		Details:   map[string]string{"invitation": inv.ID, "team": inv.TeamID},
	}
	to := inv.CompanyRole
	if inv.TeamID != "" {
		to = inv.TeamRole // whoever is in the company already keeps their role there
	}
	return audit.Add(ctx, tx, e.Changing("", to))
}

// AcceptInvitation uses the link of an invitation. One that went to the
// person's address by mail proves that address.
func (d *Desk) AcceptInvitation(ctx context.Context, personID, secret string, v Visitor) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		p, err := person.ByID(ctx, tx, personID)
		if err != nil {
			return err
		}
		inv, err := accept(ctx, tx, p, secret, v.Address)
		if err != nil || inv.Email == "" {
			return err
		}
		return verified(ctx, tx, p.ID, p.Email, v.Address)
	})
}

// AcceptInvitationByID uses an invitation that a person with a verified address
// sees in their list.
func (d *Desk) AcceptInvitationByID(ctx context.Context, personID, id string, v Visitor) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		p, err := person.ByID(ctx, tx, personID)
		if err != nil {
			return err
		}
		inv, fresh, err := company.AcceptByID(ctx, tx, id, p.ID, p.Email, p.EmailVerified)
		if err != nil || !fresh {
			return err
		}
		return accepted(ctx, tx, p.ID, inv, v.Address)
	})
}

// Invitation is what the holder of an invitation's secret is told before they
// accept.
type Invitation struct {
	Company, Team string // names; no team for the company alone
	Email         string // whom it went to, "" for whoever has the link
}

// Invitation looks an invitation up by its secret.
func (d *Desk) Invitation(ctx context.Context, secret string) (shown Invitation, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		inv, err := company.InvitationBySecret(ctx, tx, secret)
		if err != nil {
			return err
		}
		c, err := company.ByID(ctx, tx, inv.CompanyID)
		if err != nil {
			return err
		}
		shown = Invitation{Company: c.Name, Email: inv.Email}
		if inv.TeamID != "" {
			t, err := company.TeamByID(ctx, tx, inv.TeamID)
			if err != nil {
				return err
			}
			shown.Team = t.Name
		}
		return nil
	})
	return shown, err
}
