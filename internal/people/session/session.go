// Package session stores the browsers in which people are signed in.
//
// The cookie has 256 random bits; the table has only its hash. Every page reads
// the row again, so a session that has ended is refused at the next request.
package session

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Session is a signed-in browser.
type Session struct {
	ID       string
	PersonID string
	Provider string // how the person signed in
	Agent    string
	Address  string
	Created  time.Time
	LastUsed time.Time
}

// cookieChars is the length of a cookie: slightly more than 256 bits.
const cookieChars = 44

// maxAgent limits the stored part of a User-Agent header.
const maxAgent = 256

// Start starts a session. The cookie is always new: a cookie that the browser
// sent is never reused, which prevents session fixation.
func Start(ctx context.Context, tx *sqldb.Tx, s Session, lifetime time.Duration) (started Session, cookie string, err error) {
	cookie = ids.Text(cookieChars)
	s.ID = ids.New()
	s.Agent = sanitize.Line(s.Agent, maxAgent)
	s.Created = tx.Now
	s.LastUsed = tx.Now
	return s, cookie, insertSession(ctx, tx, s, ids.Hash(cookie), tx.Now.Add(lifetime))
}

// ErrSignedOut is the error for a cookie without a session.
var ErrSignedOut = fault.New(fault.Unauthenticated, "You are not signed in.")

// Find returns the session of a cookie. Suspended people have no sessions. In a
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
