package device

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"regexp"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Authorization is a person's permission for an app of a third party to act for
// them (OAuth 2.1, authorization code flow).
type Authorization struct {
	PersonID    string
	Provider    string // how the person signed in: "password" or the name of an OpenID provider
	ClientID    string
	RedirectURI string
	Challenge   string // SHA-256 of the code verifier (RFC 7636), in base64url
	PluginKind  string
	Agent       string // the name of the app
	Address     string
	Network     string // network of Address, for limits
}

// codeLifetime is how long an authorization code is valid. The app exchanges it
// as soon as the browser has brought it.
const codeLifetime = time.Minute

// ErrCodeInvalid is returned for authorization codes that are unknown, expired or
// used, or that belong to another request.
var ErrCodeInvalid = fault.New(fault.TokenInvalid, "This authorization code is not valid. Sign in again.")

// IsChallenge reports whether text can be the SHA-256 of a code verifier, in
// base64url.
func IsChallenge(text string) bool {
	sum, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

// CreateCode returns an authorization code. It is the secret of a grant that its
// person has approved already, so that a sign-out voids it like the approval of a
// device.
func (d *Devices) CreateCode(ctx context.Context, tx *sqldb.Tx, a Authorization) (string, error) {
	if err := lockPerson(ctx, tx, a.PersonID); err != nil {
		return "", err
	}
	network := sanitize.Line(a.Network, maxAddress)
	if err := d.makeRoom(ctx, tx, network); err != nil {
		return "", err
	}
	code := newSecret(codePrefix)
	g := grant{
		Grant: Grant{
			ID:         ids.New(),
			PluginKind: a.PluginKind,
			Agent:      sanitize.Line(a.Agent, maxAgent),
			Address:    sanitize.Line(a.Address, maxAddress),
			Created:    tx.Now,
			Expires:    tx.Now.Add(codeLifetime),
		},
		state:       Approved,
		network:     network,
		deviceHash:  ids.Hash(code),
		personID:    a.PersonID,
		provider:    a.Provider,
		clientID:    a.ClientID,
		redirectURI: a.RedirectURI,
		challenge:   a.Challenge,
	}
	// Nobody types a code, so the hash of the user code is of a random secret.
	_, err := insertGrant(ctx, tx, g, ids.Hash(newSecret(codePrefix)))
	return code, err
}

// CodeClaim is the request of an app to exchange an authorization code.
type CodeClaim struct {
	Code        string
	ClientID    string
	RedirectURI string
	Verifier    string // RFC 7636
}

var codeVerifier = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// ClaimCode exchanges an authorization code for a device: it calls claim with the
// device and its refresh token in the transaction that creates them. A code that
// is presented again long after that signs the device out.
func (d *Devices) ClaimCode(ctx context.Context, db *sqldb.DB, c CodeClaim, claim func(tx *sqldb.Tx, dev Device, refresh string) error) error {
	if !wellFormed(codePrefix, c.Code) {
		return ErrCodeInvalid
	}
	h := ids.Hash(c.Code)
	g, err := byDeviceHash(ctx, db, h)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return err
	}
	now := d.o.Now()
	switch {
	case subtle.ConstantTimeCompare([]byte(g.deviceHash), []byte(h)) != 1 || !g.matches(c):
		return ErrCodeInvalid
	case g.state == Claimed:
		err = d.answerReplay(ctx, db, g, now)
	case g.state != Approved || !g.Expires.After(now):
		return ErrCodeInvalid
	default:
		err = d.claimApproved(ctx, db, g, func(tx *sqldb.Tx, _ Grant, dev Device, refresh string) error { return claim(tx, dev, refresh) })
	}
	if errors.Is(err, errExpired) {
		return ErrCodeInvalid
	}
	return err
}

// matches reports whether a claim comes from the app that requested the code.
func (g grant) matches(c CodeClaim) bool {
	sum := sha256.Sum256([]byte(c.Verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	return g.clientID != "" && g.clientID == c.ClientID && g.redirectURI == c.RedirectURI && codeVerifier.MatchString(c.Verifier) &&
		subtle.ConstantTimeCompare([]byte(g.challenge), []byte(challenge)) == 1
}
