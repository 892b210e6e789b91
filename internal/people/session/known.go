package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// A known browser is one that a person signed in with before. Its cookie (a
// "device cookie") outlives the session and signs nobody in: limits on guessing
// treat such a browser by itself, so that what strangers do elsewhere does not
// keep the person out of it. Browsers have several people, so the cookie is a
// list of secrets, one for each person, newest first.

const (
	// maxPeople bounds the secrets in a cookie, maxKnown the browsers that a
	// person is known in. The oldest go first.
	maxPeople = 5
	maxKnown  = 50

	between = "."
)

// RememberBrowser makes a browser known to a person and returns its new cookie. The
// secret that it had for the same person is good for nothing any more.
func RememberBrowser(ctx context.Context, tx *sqldb.Tx, personID, cookie string, lifetime time.Duration) (fresh string, err error) {
	others := secretsIn(cookie)
	for i, secret := range others {
		had, err := dropKnown(ctx, tx, personID, ids.Hash(secret))
		if err != nil {
			return "", err
		}
		if had {
			others = slices.Delete(others, i, i+1)
			break
		}
	}

	secret := ids.Text(cookieChars)
	if err := insertKnown(ctx, tx, ids.New(), personID, ids.Hash(secret), tx.Now.Add(lifetime)); err != nil {
		return "", err
	}
	if err := trimKnown(ctx, tx, personID, maxKnown); err != nil {
		return "", err
	}
	return strings.Join(append([]string{secret}, others[:min(len(others), maxPeople-1)]...), between), nil
}

// KnownBrowserID returns the id under which a browser with this cookie is known to a
// person, "" where it is not.
func KnownBrowserID(ctx context.Context, tx *sqldb.Tx, personID, cookie string) (id string, err error) {
	for _, secret := range secretsIn(cookie) {
		if id, err = knownID(ctx, tx, personID, ids.Hash(secret)); err != nil || id != "" {
			return id, err
		}
	}
	return "", nil
}

// secretsIn returns what can be secrets in a cookie, which anybody may have
// written.
func secretsIn(cookie string) []string {
	all := strings.SplitN(cookie, between, maxPeople+1)
	all = slices.DeleteFunc(all, func(s string) bool { return !isCookie(s) })
	return all[:min(len(all), maxPeople)]
}

func isCookie(s string) bool { return len(s) == cookieChars && ids.Alphanumeric(s) }
