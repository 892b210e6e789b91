// Package session remembers the browsers that people signed in with.
//
// The cookie is 256 random bits that only the browser has; the table has its
// hash. Every page reads the row afresh, so a session that was ended is dead at
// the next click.
package session

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Session is a browser that is signed in.
type Session struct {
	ID       string
	PersonID string
	Provider string // how the person signed in
	Agent    string
	Address  string
	Created  time.Time
	LastUsed time.Time
}

// cookieChars makes 256 bits and a few more.
const cookieChars = 44

// maxAgent bounds what is kept of a browser's name for itself.
const maxAgent = 256

// Start signs a browser in. The cookie is always a new one: what a browser
// brought along is never taken up.
func Start(ctx context.Context, tx *sqldb.Tx, s Session, lifetime time.Duration) (started Session, cookie string, err error) {
	cookie = ids.Text(cookieChars)
	s.ID = ids.New()
	s.Agent = sanitize.Line(s.Agent, maxAgent)
	s.Created = tx.Now
	s.LastUsed = tx.Now
	return s, cookie, insertSession(ctx, tx, s, ids.Hash(cookie), tx.Now.Add(lifetime))
}

// ErrSignedOut is why a cookie is not good for anything.
var ErrSignedOut = fault.New(fault.Unauthenticated, "You are not signed in.")

// Find returns the session of a cookie. A person who was suspended has none. In a
// transaction the rows of the person and of the session are locked.
func Find(ctx context.Context, q sqldb.Querier, cookie string, now time.Time) (Session, error) {
	if !isCookie(cookie) {
		return Session{}, ErrSignedOut
	}
	return byHash(ctx, q, ids.Hash(cookie), now)
}

// End ends one session of a person and reports whether there was one.
func End(ctx context.Context, tx *sqldb.Tx, personID, id string) (bool, error) {
	if !ids.Valid(id) {
		return false, nil
	}
	return endSession(ctx, tx, personID, id)
}
