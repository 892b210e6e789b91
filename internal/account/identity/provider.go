package identity

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/oidc"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// FinishProvider signs a browser in with what an OpenID provider says about the
// person.
func (d *Desk) FinishProvider(ctx context.Context, pending oidc.Pending, state, code string, v session.Client) (Entered, error) {
	who, err := d.Provider.Finish(ctx, pending, state, code)
	if err != nil {
		return Entered{}, err
	}
	var in Entered
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := d.recognise(ctx, tx, who, v)
		if err != nil {
			return err
		}
		if p, err = locked(ctx, tx, p.ID); err != nil {
			return err
		}
		err = person.Recognise(ctx, tx, person.Identity{
			Issuer:   who.Issuer,
			Subject:  who.Subject,
			PersonID: p.ID,
			Provider: d.Provider.Name(),
			Refresh:  d.seal(who),
		})
		if err != nil {
			return err
		}
		in, err = d.enter(ctx, tx, p, d.Provider.Name(), v)
		return err
	})
	return in, err
}

// recognise finds the person that a provider speaks of, or makes them.
func (d *Desk) recognise(ctx context.Context, tx *sqldb.Tx, who oidc.Identity, v session.Client) (person.Person, error) {
	p, err := person.ByIdentity(ctx, tx, who.Issuer, who.Subject)
	if !fault.Is(err, fault.NotFound) {
		return p, err
	}
	p, err = person.ByEmail(ctx, tx, who.Email)
	if fault.Is(err, fault.NotFound) {
		return d.newcomer(ctx, tx, who, v)
	}
	if err != nil {
		return p, err
	}
	if !who.EmailVerified {
		return p, fault.New(fault.Forbidden, "Your provider has not verified your address, and it is in use here.").With("reason", "unverified")
	}
	var ended []credential.Token
	if !p.EmailVerified { // whoever signed up with it never showed that it is theirs
		if ended, err = d.takeOver(ctx, tx, p, ""); err != nil {
			return p, err
		}
		if err := verified(ctx, tx, p.ID, p.Email, v.Address); err != nil {
			return p, err
		}
	}
	if err := d.tell(ctx, tx, p, "provider", "A new way to sign in", "You can now sign in with "+d.Provider.Name()+".",
		"If this was not you, see your devices at "+d.Settings.AppURL+"/devices"); err != nil {
		return p, err
	}
	if err := tokensEnded(ctx, tx, principal.Principal{PersonID: p.ID, Address: v.Address}, ended); err != nil {
		return p, err
	}
	return p, act(ctx, tx, audit.IdentityLinked, p.ID, v.Address, map[string]string{"provider": d.Provider.Name()})
}

// newcomer makes a person that the provider sent and nobody here knows.
func (d *Desk) newcomer(ctx context.Context, tx *sqldb.Tx, who oidc.Identity, v session.Client) (person.Person, error) {
	invited, err := company.InvitationsFor(ctx, tx, who.Email)
	if err != nil {
		return person.Person{}, err
	}
	if d.Settings.Signup == Nobody || d.Settings.Signup == Invited && (len(invited) == 0 || !who.EmailVerified) {
		return person.Person{}, fault.New(fault.Forbidden, "Nobody here has this address, and signing up is not open.").With("reason", "closed")
	}
	p, err := person.Create(ctx, tx, person.Draft{Email: who.Email, EmailVerified: who.EmailVerified})
	if err != nil {
		return p, err
	}
	if err := d.welcome(ctx, tx, p); err != nil {
		return p, err
	}
	if who.EmailVerified {
		err = joined(ctx, tx, p, v.Address)
	} else {
		err = d.sendVerification(ctx, tx, p)
	}
	if err != nil {
		return p, err
	}
	return p, act(ctx, tx, audit.PersonCreated, p.ID, v.Address, map[string]string{"provider": d.Provider.Name()})
}

func (d *Desk) seal(who oidc.Identity) string {
	if who.Refresh == "" {
		return ""
	}
	return d.Box.Seal([]byte(who.Refresh), identityRow(who.Issuer, who.Subject))
}

func identityRow(issuer, subject string) string { return "person_identity " + issuer + " " + subject }

const (
	// askingTakes bounds how long one node may ask while others wait for its
	// answer.
	askingTakes = 15 * time.Second
	askingPause = 100 * time.Millisecond
)

// errAway is why a refresh cannot be answered now. The refresh token stays good.
var errAway = fault.New(fault.Unavailable, "Your identity provider does not answer. Try again.")

// confirm asks, before a refresh changes anything, whether the provider that the
// person signed in with still stands by them. Where it does not, the person is
// signed out by the time this returns.
func (d *Desk) confirm(ctx context.Context, refreshToken string) error {
	if d.Provider == nil {
		return nil
	}
	dev, found, err := d.Devices.ByRefresh(ctx, d.DB, refreshToken)
	if err != nil || !found || dev.Provider != d.Provider.Name() {
		return err
	}
	return d.stands(ctx, dev.PersonID)
}

// stands asks the provider about a person. A provider that gave us nothing to
// ask with is left alone. Of many who want to know at once one asks, and the
// others take its answer.
func (d *Desk) stands(ctx context.Context, personID string) error {
	for began := d.Now(); ; {
		var i person.Identity
		var mine, settled bool
		err := d.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
			mine = false
			i, settled, err = person.IdentityAt(ctx, tx, personID, d.Provider.Name())
			settled = !settled || i.Refresh == "" || i.Checked.After(began)
			if err == nil && !settled {
				mine, err = person.MayAsk(ctx, tx, i, askingTakes)
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case settled:
			return nil
		case mine:
			return d.ask(ctx, i)
		case d.Now().Sub(began) > askingTakes:
			return errAway
		}
		select { // another node asks; its answer will be in the row
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askingPause):
		}
	}
}

// ask asks the provider and records its answer.
func (d *Desk) ask(ctx context.Context, i person.Identity) error {
	refresh, err := d.Box.Open(i.Refresh, identityRow(i.Issuer, i.Subject))
	if err != nil {
		return err
	}
	next, err := d.Provider.Confirm(ctx, string(refresh))
	keep := context.WithoutCancel(ctx) // the provider has answered: that must not be forgotten
	switch {
	case errors.Is(err, oidc.ErrGone):
		return d.DB.Write(keep, func(tx *sqldb.Tx) error {
			if err := person.Lock(keep, tx, i.PersonID); err != nil {
				return err
			}
			if lost, err := person.Forget(keep, tx, i); err != nil || !lost { // they signed in there anew
				return err
			}
			if err := d.endAll(keep, tx, i.PersonID); err != nil {
				return err
			}
			return audit.Add(keep, tx, audit.Entry{Act: audit.IdentityLost, PersonID: i.PersonID, Details: map[string]string{"provider": i.Provider}})
		})
	case err != nil:
		if back := d.DB.Write(keep, func(tx *sqldb.Tx) error { return person.Unasked(keep, tx, i) }); back != nil {
			return back
		}
		return errAway.Because(err)
	}
	sealed := d.Box.Seal([]byte(next), identityRow(i.Issuer, i.Subject))
	return d.DB.Write(keep, func(tx *sqldb.Tx) error { return person.Stood(keep, tx, i, sealed) })
}
