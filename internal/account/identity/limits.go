package identity

import (
	"context"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// Limits on guessing and on what strangers can have us do, each on all nodes
// together. What succeeds does not count.
//
// A limit that a stranger can use up must not shut anybody else out. So wrong
// passwords count by the pair of person and network, and browsers that a person
// signed in with before have a limit of their own. Where a network or a person
// is attacked others wait for seconds, and longer the more they try themselves.
var (
	// Of a pair, and of a known browser.
	passwordsOfPair = ratelimit.Backoff{Free: 10, Span: 24 * time.Hour, First: 30 * time.Second, Most: 15 * time.Minute}
	// Of a person, in unknown browsers: beyond it each pair is treated harder.
	passwordsOfPerson   = ratelimit.Window{Most: 100, Span: time.Hour}
	passwordsUnderSiege = ratelimit.Backoff{Free: 1, Span: 24 * time.Hour, First: 5 * time.Second, Most: time.Hour}
	// Of a network, in unknown browsers.
	passwordsOfNetwork = ratelimit.Backoff{Free: 100, Span: time.Hour, First: time.Second, Most: 30 * time.Second}

	// Of a session, for the old password of a change.
	passwordsOfSession = []ratelimit.Window{{Most: 10, Span: 5 * time.Minute}}

	codesOfPerson  = []ratelimit.Window{{Most: 10, Span: 10 * time.Minute}, {Most: 50, Span: time.Hour}}
	codesOfNetwork = ratelimit.Window{Most: 30, Span: time.Hour}
	// What each person has besides where the network has used up its own.
	codesBesides = ratelimit.Window{Most: 3, Span: 24 * time.Hour}

	perMinute        = ratelimit.Window{Most: 20, Span: time.Minute}
	startsOfNetwork  = ratelimit.Backoff{Free: 100, Span: time.Hour, First: time.Second, Most: 30 * time.Second}
	signupsOfNetwork = ratelimit.Backoff{Free: 100, Span: time.Hour, First: time.Second, Most: time.Minute}

	// Mails with links that a person asks for while they are signed in.
	mailsOfPerson = []ratelimit.Window{{Most: 5, Span: time.Hour}}
	// Mails to a person that anybody can ask for. The waits end well below the
	// lifetime of a link, so that somebody who gets no mail has one that works.
	mailsToPerson  = ratelimit.Backoff{Free: 1, Span: 24 * time.Hour, First: time.Minute, Most: 30 * time.Minute}
	mailsOfNetwork = ratelimit.Backoff{Free: 30, Span: time.Hour, First: 2 * time.Second, Most: time.Minute}
)

// The keys of rate limits. Deleting an account erases those whose subject is
// the person or the mail address.

func personKey(purpose, personID string) ratelimit.Key {
	return ratelimit.Key{Name: purpose + "/person/" + personID, Subject: personID}
}

func emailKey(purpose, email string) ratelimit.Key {
	email = strings.ToLower(email)
	return ratelimit.Key{Name: purpose + "/person/" + email, Subject: email}
}

func pairKey(email string, v Visitor) ratelimit.Key {
	email = strings.ToLower(email)
	return ratelimit.Key{Name: ratelimit.Daily + "password/pair/" + email + "/" + v.network(), Subject: email}
}

func resetKey(email string) ratelimit.Key { return emailKey(ratelimit.Daily+"reset", email) }

func networkKey(purpose string, v Visitor) ratelimit.Key {
	return ratelimit.Key{Name: purpose + "/address/" + v.network()}
}

// allowance is what a try took, to be given back after a success.
type allowance struct{ ids []string }

func (a *allowance) window(ctx context.Context, tx *sqldb.Tx, key ratelimit.Key, windows ...ratelimit.Window) (full ratelimit.Refusal, err error) {
	id, full, err := ratelimit.Take(ctx, tx, key, windows...)
	a.keep(id)
	return full, err
}

func (a *allowance) pace(ctx context.Context, tx *sqldb.Tx, key ratelimit.Key, b ratelimit.Backoff) (full ratelimit.Refusal, err error) {
	id, full, err := ratelimit.Pace(ctx, tx, key, b)
	a.keep(id)
	return full, err
}

func (a *allowance) keep(id string) {
	if id != "" {
		a.ids = append(a.ids, id)
	}
}

func (a *allowance) giveBack(ctx context.Context, tx *sqldb.Tx) error {
	for _, id := range a.ids {
		if err := ratelimit.Return(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// refuse ends a try whose limit is reached, if it is. The try takes nothing
// then: its transaction is undone.
func refuse(full ratelimit.Refusal, message string) error {
	if full.Wait > 0 {
		return full.Fault(message)
	}
	return nil
}

const (
	waitALittle = "Too many tries. Wait a little."
	waitHere    = "Too many wrong passwords from here. Wait a little, or use a browser that you have signed in with before."
)

// try takes from a key with windows, in a transaction of its own.
func (d *Desk) try(ctx context.Context, key ratelimit.Key, windows ...ratelimit.Window) (taken allowance, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		taken = allowance{}
		full, err := taken.window(ctx, tx, key, windows...)
		if err != nil {
			return err
		}
		return refuse(full, waitALittle)
	})
	return taken, err
}

// paceNetwork takes what one act without a person costs a network: at most
// perMinute, and fewer the longer it goes on.
func paceNetwork(ctx context.Context, tx *sqldb.Tx, act string, v Visitor, b ratelimit.Backoff) error {
	_, full, err := ratelimit.Pace(ctx, tx, networkKey(act, v), b, perMinute)
	if err != nil {
		return err
	}
	return refuse(full, waitALittle)
}

// known gives the id of a browser that is known to whoever has the mail
// address, "" for any other. It asks the database the same for everybody.
func known(ctx context.Context, tx *sqldb.Tx, email string, v Visitor) (id string, err error) {
	if v.Browser == "" {
		return "", nil
	}
	p, err := person.ByEmail(ctx, tx, email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	return session.Known(ctx, tx, p.ID, v.Browser)
}

// tryPassword takes what one try of a password costs. A known browser whose own
// limit is used up is treated like any other: who stole its cookie gets no more
// out of it, and does not shut out whom it was stolen from.
func (d *Desk) tryPassword(ctx context.Context, email string, v Visitor) (taken allowance, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		taken = allowance{}
		id, err := known(ctx, tx, email, v)
		if err != nil {
			return err
		}
		if id != "" {
			full, err := taken.pace(ctx, tx, ratelimit.Key{Name: ratelimit.Daily + "password/browser/" + id}, passwordsOfPair)
			if err != nil || full.Wait == 0 {
				return err
			}
		}

		siege, err := taken.window(ctx, tx, emailKey("password", email), passwordsOfPerson)
		if err != nil {
			return err
		}
		backoff := passwordsOfPair
		if siege.Wait > 0 {
			backoff = passwordsUnderSiege
		}
		full, err := taken.pace(ctx, tx, pairKey(email, v), backoff)
		if err != nil {
			return err
		}
		if err := refuse(full, waitHere); err != nil {
			return err
		}

		full, err = taken.pace(ctx, tx, networkKey("password", v), passwordsOfNetwork)
		if err != nil {
			return err
		}
		return refuse(full, waitHere)
	})
	return taken, err
}

// tryCode takes what one user code costs a person. Where others of the network
// have used up what it has, each person still has a few of their own.
func (d *Desk) tryCode(ctx context.Context, personID string, v Visitor) (taken allowance, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		taken = allowance{}
		full, err := taken.window(ctx, tx, personKey("code", personID), codesOfPerson...)
		if err != nil {
			return err
		}
		if err := refuse(full, waitALittle); err != nil {
			return err
		}

		full, err = taken.window(ctx, tx, networkKey("code", v), codesOfNetwork)
		if err != nil || full.Wait == 0 {
			return err
		}
		besides, err := taken.window(ctx, tx, personKey(ratelimit.Daily+"code", personID), codesBesides)
		if err != nil || besides.Wait == 0 {
			return err
		}
		if besides.Wait < full.Wait {
			full = besides
		}
		return refuse(full, "Too many wrong codes from this network. Wait a little.")
	})
	return taken, err
}

// tryReset takes what a link for a new password costs, and tells whether to
// send one. Where the person was sent one lately nothing is sent: that one still
// works. Only the network is ever told to wait, so that the answer is the same
// whoever is here.
func (d *Desk) tryReset(ctx context.Context, email string, v Visitor) (send bool, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		var taken allowance
		send = false
		id, err := known(ctx, tx, email, v)
		if err != nil {
			return err
		}
		if id != "" {
			full, err := taken.pace(ctx, tx, ratelimit.Key{Name: ratelimit.Daily + "reset/browser/" + id}, mailsToPerson)
			if err != nil {
				return err
			}
			if full.Wait == 0 {
				send = true
				return nil
			}
		}

		full, err := taken.pace(ctx, tx, resetKey(email), mailsToPerson)
		if err != nil {
			return err
		}
		send = full.Wait == 0
		full, err = taken.pace(ctx, tx, networkKey("reset", v), mailsOfNetwork)
		if err != nil {
			return err
		}
		return refuse(full, "Too many mails were asked for from here. Wait a little.")
	})
	return send, err
}
