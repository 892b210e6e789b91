// Package session stores the browsers in which people are signed in.
//
// The session cookie contains 256 random bits, of which only a hash is stored.
// Every request for a page reads the session's row, so a session that was ended
// is refused at the next request.
package session

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Session is a browser in which a person is signed in.
type Session struct {
	ID       string
	PersonID string
	Provider string // how the person signed in: "password" or the name of an OpenID provider
	Agent    string
	Address  string
	Created  time.Time
	LastUsed time.Time
}

// cookieChars is the length of a cookie in characters, enough for 256 random
// bits.
const cookieChars = 44

// maxAgent is the maximum length in bytes of a stored User-Agent header.
const maxAgent = 256

// Start creates a session and returns it with its cookie. The cookie is always
// new: a value that the browser sent is never reused, which prevents session
// fixation.
func Start(ctx context.Context, tx *sqldb.Tx, s Session, lifetime time.Duration) (started Session, cookie string, err error) {
	cookie = ids.Text(cookieChars)
	s.ID = ids.New()
	s.Agent = sanitize.Line(s.Agent, maxAgent)
	s.Created = tx.Now
	s.LastUsed = tx.Now
	return s, cookie, insertSession(ctx, tx, s, ids.Hash(cookie), tx.Now.Add(lifetime))
}

// ErrSignedOut is returned for a cookie that belongs to no live session.
var ErrSignedOut = fault.New(fault.Unauthenticated, "You are not signed in.")

// Find returns the live session with the given cookie. It returns ErrSignedOut
// for suspended people. In a transaction it locks the rows of the person and
// the session.
func Find(ctx context.Context, q sqldb.Querier, cookie string, now time.Time) (Session, error) {
	if !isCookie(cookie) {
		return Session{}, ErrSignedOut
	}
	return byHash(ctx, q, ids.Hash(cookie), now)
}

// End ends one session of a person and reports whether it existed.
func End(ctx context.Context, tx *sqldb.Tx, personID, id string) (bool, error) {
	if !ids.Valid(id) {
		return false, nil
	}
	return endSession(ctx, tx, personID, id)
}
