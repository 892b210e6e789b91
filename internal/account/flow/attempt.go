package flow

import (
	"context"
	"strings"
	"time"

	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
)

// WaitMessage is the error message for attempts that exceed a rate limit.
const WaitMessage = "Too many attempts. Try again later."

// Attempt counts one attempt, such as entering a password, against several rate
// limits. After a success the count is undone (ReturnUnits), so that only
// failed attempts count.
//
// An attacker who uses up a limit must not lock other people out. Therefore
// wrong passwords count per pair of person and network, and a browser in which
// the person has signed in before has a separate limit. While a network or an
// account is under attack, other people wait only seconds at first, and longer
// with each further failed attempt of their own.
type Attempt struct{ units []string }

// TakeWindow counts the attempt under a key with fixed windows. If a window is
// full, it counts nothing and returns the refusal.
func (a *Attempt) TakeWindow(ctx context.Context, tx *sqldb.Tx, key ratelimit.Key, windows ...ratelimit.Window) (ratelimit.Refusal, error) {
	unit, full, err := ratelimit.Take(ctx, tx, key, windows...)
	a.addUnit(unit)
	return full, err
}

// TakeBackoff counts the attempt under a key with a waiting time that grows
// with each attempt. During the waiting time it counts nothing and returns the
// refusal.
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

// ReturnUnits undoes the counting of the attempt after a success.
func (a *Attempt) ReturnUnits(ctx context.Context, tx *sqldb.Tx) error {
	for _, unit := range a.units {
		if err := ratelimit.ReturnEvent(ctx, tx, unit); err != nil {
			return err
		}
	}
	return nil
}

// RefuseFull returns an error with the message if a limit has been reached,
// otherwise nil. The error makes the caller's transaction roll back, so a
// refused attempt does not count.
func RefuseFull(full ratelimit.Refusal, message string) error {
	if full.Wait > 0 {
		return full.Fault(message)
	}
	return nil
}

// StartAttempt counts an attempt under a key with fixed windows, in a new
// transaction.
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

// PersonKey returns the rate-limit key of a person for a purpose. The key's
// data is erased when the person is deleted.
func PersonKey(purpose, personID string) ratelimit.Key {
	return ratelimit.Key{Name: purpose + "/person/" + personID, Subject: personID}
}

// EmailKey returns the rate-limit key of an e-mail address for a purpose. The
// key's data is erased when the person with the address is deleted.
func EmailKey(purpose, email string) ratelimit.Key {
	email = strings.ToLower(email)
	return ratelimit.Key{Name: purpose + "/person/" + email, Subject: email}
}

// NetworkKey returns the rate-limit key of a network for a purpose.
func NetworkKey(purpose, network string) ratelimit.Key {
	return ratelimit.Key{Name: purpose + "/address/" + network}
}

// perMinute is the rate limit per network for requests of people who are not
// signed in.
var perMinute = ratelimit.Window{Max: 20, Span: time.Minute}

// LimitNetwork counts a request from a network by a person who is not signed
// in. It refuses requests above the limit perMinute, and requires growing
// waiting times under sustained use.
func LimitNetwork(ctx context.Context, tx *sqldb.Tx, act, network string, b ratelimit.Backoff) error {
	_, full, err := ratelimit.TakeWithBackoff(ctx, tx, NetworkKey(act, network), b, perMinute)
	if err != nil {
		return err
	}
	return RefuseFull(full, WaitMessage)
}

// MailsToPerson limits the mail to a person that any visitor can request. The
// longest waiting time is much shorter than the lifetime of a link, so a person
// who gets no further mail still has a valid link.
var MailsToPerson = ratelimit.Backoff{Free: 1, Span: 24 * time.Hour, First: time.Minute, MaxWait: 30 * time.Minute}
