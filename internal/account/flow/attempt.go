package flow

import (
	"context"
	"strings"
	"time"

	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
)

// WaitMessage is the error message for attempts over a limit.
const WaitMessage = "Too many tries. Wait a little."

// Attempt counts one attempt against several rate limits. After a success the
// units that the attempt took are returned, so that only failures count.
//
// A limit that a stranger can use up must not lock other people out. So wrong
// passwords count by the pair of person and network, and browsers that a person
// signed in with before have a limit of their own. If a network or a person is
// attacked, other people wait for seconds, and longer with each further attempt
// of their own.
type Attempt struct{ units []string }

// TakeWindow takes a unit of windows.
func (a *Attempt) TakeWindow(ctx context.Context, tx *sqldb.Tx, key ratelimit.Key, windows ...ratelimit.Window) (ratelimit.Refusal, error) {
	unit, full, err := ratelimit.Take(ctx, tx, key, windows...)
	a.addUnit(unit)
	return full, err
}

// TakeBackoff takes a unit of a limit whose waits grow.
func (a *Attempt) TakeBackoff(ctx context.Context, tx *sqldb.Tx, key ratelimit.Key, b ratelimit.Backoff) (ratelimit.Refusal, error) {
	unit, full, err := ratelimit.TakeWithBackoff(ctx, tx, key, b)
	a.addUnit(unit)
	return full, err
}

func (a *Attempt) addUnit(unit string) {
	if unit != "" {
		a.units = append(a.units, unit)
	}
}

// ReturnUnits undoes the count after a success.
func (a *Attempt) ReturnUnits(ctx context.Context, tx *sqldb.Tx) error {
	for _, unit := range a.units {
		if err := ratelimit.ReturnEvent(ctx, tx, unit); err != nil {
			return err
		}
	}
	return nil
}

// RefuseFull returns the error of an attempt whose limit is reached, nil if it
// is not. A refused attempt takes no units: its transaction is rolled back.
func RefuseFull(full ratelimit.Refusal, message string) error {
	if full.Wait > 0 {
		return full.Fault(message)
	}
	return nil
}

// StartAttempt takes a unit of windows, in a transaction of its own.
func StartAttempt(ctx context.Context, db *sqldb.DB, key ratelimit.Key, windows ...ratelimit.Window) (a Attempt, err error) {
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		a = Attempt{}
		full, err := a.TakeWindow(ctx, tx, key, windows...)
		if err != nil {
			return err
		}
		return RefuseFull(full, WaitMessage)
	})
	return a, err
}

// PersonKey returns the rate-limit key of a person. Deleting the account erases it.
func PersonKey(purpose, personID string) ratelimit.Key {
	return ratelimit.Key{Name: purpose + "/person/" + personID, Subject: personID}
}

// EmailKey returns the rate-limit key of a mail address. Deleting the account
// erases it.
func EmailKey(purpose, email string) ratelimit.Key {
	email = strings.ToLower(email)
	return ratelimit.Key{Name: purpose + "/person/" + email, Subject: email}
}

// NetworkKey returns the rate-limit key of a network.
func NetworkKey(purpose, network string) ratelimit.Key {
	return ratelimit.Key{Name: purpose + "/address/" + network}
}

// perMinute limits actions of a network without a person.
var perMinute = ratelimit.Window{Max: 20, Span: time.Minute}

// LimitNetwork counts an action of a network without a person: at most
// perMinute, with growing waits under sustained use.
func LimitNetwork(ctx context.Context, tx *sqldb.Tx, act, network string, b ratelimit.Backoff) error {
	_, full, err := ratelimit.TakeWithBackoff(ctx, tx, NetworkKey(act, network), b, perMinute)
	if err != nil {
		return err
	}
	return RefuseFull(full, WaitMessage)
}

// MailsToPerson limits mail to a person that any visitor can request. The
// longest wait is well below the lifetime of a link: a person who gets no
// further mail has a link that works.
var MailsToPerson = ratelimit.Backoff{Free: 1, Span: 24 * time.Hour, First: time.Minute, MaxWait: 30 * time.Minute}
