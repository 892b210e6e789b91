package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// A known browser is a browser in which a person has signed in before. Its
// cookie (a "device cookie") outlives the session and does not sign anybody in.
// Rate limits on password guessing count a known browser separately, so that
// guesses from other browsers cannot block the person in this one. Several
// people can use the same browser, so the cookie is a list of secrets, one for
// each person, newest first.

const (
	// maxPeople is the maximum number of secrets in a cookie; maxKnown is the
	// maximum number of known browsers per person. The oldest are removed
	// first.
	maxPeople = 5
	maxKnown  = 50

	between = "."
)

// RememberBrowser makes a browser a known browser of a person and returns the
// browser's new cookie. The browser's previous secret for the same person
// becomes invalid.
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

// KnownBrowserID returns the id of the person's known browser with the given
// cookie, or "" if there is none.
func KnownBrowserID(ctx context.Context, tx *sqldb.Tx, personID, cookie string) (id string, err error) {
	for _, secret := range secretsIn(cookie) {
		if id, err = knownID(ctx, tx, personID, ids.Hash(secret)); err != nil || id != "" {
			return id, err
		}
	}
	return "", nil
}

// secretsIn returns the well-formed secrets in a cookie, at most maxPeople of
// them. The content of the cookie is untrusted.
func secretsIn(cookie string) []string {
	all := strings.SplitN(cookie, between, maxPeople+1)
	all = slices.DeleteFunc(all, func(s string) bool { return !isCookie(s) })
	return all[:min(len(all), maxPeople)]
}

func isCookie(s string) bool { return len(s) == cookieChars && ids.Alphanumeric(s) }
