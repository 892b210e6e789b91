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

// Status is the part of a session and its person that every request with a
// token of the session checks.
type Status struct {
	PersonID string
	Provider string
	LastUsed time.Time
	Email    string // the person's e-mail address
	Verified bool   // the person's e-mail address is verified
}

// Check returns the status of a live session. It returns ErrSignedOut if the
// session has ended or the person is suspended. The result is not cached: an
// ended session is refused at the next request on every node. In a transaction
// Check locks the rows of the person and the session.
func Check(ctx context.Context, q sqldb.Querier, id string, now time.Time) (Status, error) {
	if !ids.Valid(id) {
		return Status{}, ErrSignedOut
	}
	return readStatus(ctx, q, id, now)
}

// StudioHeader is the header of the studio's requests that act by the session
// cookie. A form of another site cannot send it, and a script of another site
// would need the permission of this service first.
const StudioHeader = "X-Atelier-Studio"

// CookieName returns the name of the session cookie. With TLS the prefix
// __Host- prevents other hosts of the domain and pages without TLS from setting
// it.
func CookieName(tls bool) string {
	if tls {
		return "__Host-atelier"
	}
	return "atelier_session"
}

// After is the position after which a page of sessions begins.
type After struct {
	Created time.Time
	ID      string
}

// End ends one session of a person and reports whether it existed.
func End(ctx context.Context, tx *sqldb.Tx, personID, id string) (bool, error) {
	if !ids.Valid(id) {
		return false, nil
	}
	return endSession(ctx, tx, personID, id)
}
