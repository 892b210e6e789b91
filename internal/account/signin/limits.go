package signin

import (
	"context"
	"strings"
	"time"

	"atelier/internal/account/flow"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// Rate limits on guessing passwords and on mail that strangers can request.
// They apply to all nodes together. Successful attempts do not count.
var (
	// passwordsOfPair applies per pair of person and network, and per known
	// browser (one in which the person has signed in before).
	passwordsOfPair = ratelimit.Backoff{Free: 10, Span: 24 * time.Hour, First: 30 * time.Second, MaxWait: 15 * time.Minute}
	// passwordsOfPerson applies per person, in browsers that are not known.
	// When it is exceeded, passwordsDuringAttacks replaces passwordsOfPair.
	passwordsOfPerson      = ratelimit.Window{Max: 100, Span: time.Hour}
	passwordsDuringAttacks = ratelimit.Backoff{Free: 1, Span: 24 * time.Hour, First: 5 * time.Second, MaxWait: time.Hour}
	// passwordsOfNetwork applies per network, in browsers that are not known.
	passwordsOfNetwork = ratelimit.Backoff{Free: 100, Span: time.Hour, First: time.Second, MaxWait: 30 * time.Second}

	// passwordsOfSession applies per session to the old password that a person
	// enters in order to change it.
	passwordsOfSession = []ratelimit.Window{{Max: 10, Span: 5 * time.Minute}}

	// mailsOfNetwork applies per network to requests for password-reset mail.
	mailsOfNetwork = ratelimit.Backoff{Free: 30, Span: time.Hour, First: 2 * time.Second, MaxWait: time.Minute}
)

func pairKey(email string, c session.Client) ratelimit.Key {
	email = strings.ToLower(email)
	return ratelimit.Key{Name: ratelimit.Daily + "password/pair/" + email + "/" + c.Network(), Subject: email}
}

func resetKey(email string) ratelimit.Key { return flow.EmailKey(ratelimit.Daily+"reset", email) }

const tooManyPasswords = "Too many wrong passwords were entered from your network. Try again later, or use a browser in which you have signed in before." //nolint:gosec // a message

// knownBrowser returns the id of a browser in which the person with the given
// e-mail address signed in before, or "" for any other browser. It does the same
// database work whether or not an account with the address exists.
func knownBrowser(ctx context.Context, tx *sqldb.Tx, email string, c session.Client) (id string, err error) {
	if c.KnownBrowser == "" {
		return "", nil
	}
	p, err := person.ByEmail(ctx, tx, email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	return session.KnownBrowserID(ctx, tx, p.ID, c.KnownBrowser)
}

// tryPassword counts an attempt to sign in with a password. A known browser
// that has used up its own limit is treated like an unknown one, so that
// someone who stole its cookie gets no additional attempts and cannot lock the
// owner out.
func (s *Service) tryPassword(ctx context.Context, email string, c session.Client) (attempt flow.Attempt, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		attempt = flow.Attempt{}
		id, err := knownBrowser(ctx, tx, email, c)
		if err != nil {
			return err
		}
		if id != "" {
			full, err := attempt.TakeBackoff(ctx, tx, ratelimit.Key{Name: ratelimit.Daily + "password/browser/" + id}, passwordsOfPair)
			if err != nil || full.Wait == 0 {
				return err
			}
		}

		attack, err := attempt.TakeWindow(ctx, tx, flow.EmailKey("password", email), passwordsOfPerson)
		if err != nil {
			return err
		}
		backoff := passwordsOfPair
		if attack.Wait > 0 {
			backoff = passwordsDuringAttacks
		}
		full, err := attempt.TakeBackoff(ctx, tx, pairKey(email, c), backoff)
		if err != nil {
			return err
		}
		if err := flow.RefuseFull(full, tooManyPasswords); err != nil {
			return err
		}

		full, err = attempt.TakeBackoff(ctx, tx, flow.NetworkKey("password", c.Network()), passwordsOfNetwork)
		if err != nil {
			return err
		}
		return flow.RefuseFull(full, tooManyPasswords)
	})
	return attempt, err
}

// tryReset counts a request for a password-reset link, and reports whether to
// send a link. If the person was sent a link recently, it returns false,
// because that link is still valid. Only the limit of the network causes an
// error, so that the response does not reveal whether an account with the mail
// address exists.
func (s *Service) tryReset(ctx context.Context, email string, c session.Client) (send bool, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		var attempt flow.Attempt
		send = false
		id, err := knownBrowser(ctx, tx, email, c)
		if err != nil {
			return err
		}
		if id != "" {
			full, err := attempt.TakeBackoff(ctx, tx, ratelimit.Key{Name: ratelimit.Daily + "reset/browser/" + id}, flow.MailsToPerson)
			if err != nil {
				return err
			}
			if full.Wait == 0 {
				send = true
				return nil
			}
		}

		full, err := attempt.TakeBackoff(ctx, tx, resetKey(email), flow.MailsToPerson)
		if err != nil {
			return err
		}
		send = full.Wait == 0
		full, err = attempt.TakeBackoff(ctx, tx, flow.NetworkKey("reset", c.Network()), mailsOfNetwork)
		if err != nil {
			return err
		}
		return flow.RefuseFull(full, "Too many mails were requested from your network. Try again later.")
	})
	return send, err
}
