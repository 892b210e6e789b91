// Package idtoken signs and verifies ID tokens: JWTs with Ed25519 signatures
// and nothing else (RFC 7519, RFC 8037, RFC 8725).
//
// A token says who its bearer is and on which device. It does not say that the
// device still counts: callers ask the database for that at every request, and
// nothing here remembers it.
//
// The keys are in the database, their private halves sealed. One signs. One
// that was replaced verifies until the tokens it signed have expired:
//
//	signs ──Rotate──▶ verifies ──Lifetime──▶ ignored ──Sweep──▶ deleted
package idtoken

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Box seals private keys. about ties a sealed text to its row.
type Box interface {
	Seal(plain []byte, about string) string
	Open(sealed, about string) ([]byte, error)
}

// Options are what an Issuer needs besides the database.
type Options struct {
	Box      Box
	Issuer   string        // the base URL: who signs, and for whom
	Lifetime time.Duration // of a token, a second or more
	Now      func() time.Time
}

// Claims are what a token says.
type Claims struct {
	PersonID string
	DeviceID string
}

// Issuer signs and verifies the tokens of an installation. It is safe for
// concurrent use.
type Issuer struct {
	o  Options
	db *sqldb.DB

	signing atomic.Pointer[signingKey] // the one used last
	known   atomic.Pointer[keySet]     // to verify with
	looking singleflight.Group         // of those who read the keys
	lookups *rate.Limiter              // of keys that nobody here has heard of
	seen    cache
}

// New makes an issuer that keeps its keys in db.
func New(db *sqldb.DB, o Options) *Issuer {
	i := &Issuer{o: o, db: db, lookups: rate.NewLimiter(lookupsPerSecond, lookupsPerSecond)}
	i.known.Store(&keySet{})
	return i
}

const (
	// lookupsPerSecond bounds how often strange key ids make a node ask the
	// database.
	lookupsPerSecond = 10
	// keyCacheTime is how long a node goes on without asking the database whether a
	// key still verifies. Tokens of ours would not need that, since they expire
	// before their key does; those that somebody makes with a stolen key name
	// any time they like, and end with the key.
	keyCacheTime = time.Minute
	// maxLength of a token. Ours have some 500 bytes.
	maxLength = 4096
	// maxClockSkew is how far the clock of the node that signed may be before ours.
	maxClockSkew = time.Minute
	// use tells an ID token from other things that we might sign one day.
	use = "id"
)

// private are the claims that are not in the registry.
type private struct {
	DeviceID string `json:"device_id"`
	Use      string `json:"token_use"`
}

// SignToken makes a token with the key that is current in this transaction, and
// makes the first key where there is none. expires is what the token says.
func (i *Issuer) SignToken(ctx context.Context, tx *sqldb.Tx, c Claims) (token string, expires time.Time, err error) {
	signer, err := i.currentSigner(ctx, tx)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign ID token: %w", err)
	}
	expires = tx.Now.Add(i.o.Lifetime).Truncate(time.Second)
	token, err = jwt.Signed(signer).Claims(jwt.Claims{
		Issuer:   i.o.Issuer,
		Audience: jwt.Audience{i.o.Issuer},
		Subject:  c.PersonID,
		IssuedAt: jwt.NewNumericDate(tx.Now),
		Expiry:   jwt.NewNumericDate(expires),
		ID:       ids.New(),
	}).Claims(private{c.DeviceID, use}).Serialize()
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign ID token: %w", err)
	}
	return token, expires, nil
}

// errInvalid is the one answer for every token that is no good.
var errInvalid = fault.New(fault.Unauthenticated, "This call needs a valid credential.")

// VerifyToken reads a token that this installation signed and that has not expired.
// Everything else is fault.Unauthenticated.
func (i *Issuer) VerifyToken(ctx context.Context, token string) (Claims, error) {
	if len(token) > maxLength {
		return Claims{}, errInvalid
	}
	now := i.o.Now()
	sum := sha256.Sum256([]byte(token))
	if c, ok := i.seen.getClaims(sum, now); ok {
		return c, nil
	}
	kid, ok := keyID(token)
	if !ok {
		return Claims{}, errInvalid
	}
	key, err := i.publicKey(ctx, kid)
	if err != nil {
		return Claims{}, err
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return Claims{}, errInvalid
	}
	var public jwt.Claims
	var own private
	if err := parsed.Claims(key, &public, &own); err != nil {
		return Claims{}, errInvalid
	}
	c := Claims{PersonID: public.Subject, DeviceID: own.DeviceID}
	issued := public.IssuedAt.Time()
	expires := public.Expiry.Time()
	switch {
	case public.Issuer != i.o.Issuer,
		len(public.Audience) != 1 || public.Audience[0] != i.o.Issuer,
		own.Use != use,
		public.IssuedAt == nil || issued.After(now.Add(maxClockSkew)),
		public.Expiry == nil || !expires.After(now) || !expires.After(issued),
		!ids.Valid(c.PersonID), !ids.Valid(c.DeviceID), !ids.Valid(public.ID):
		return Claims{}, errInvalid
	}
	until := now.Add(keyCacheTime)
	if expires.Before(until) {
		until = expires
	}
	i.seen.putClaims(sum, verified{c, until})
	return c, nil
}

// The header that Sign writes has only one part that differs.
const (
	beforeKeyID = `{"alg":"EdDSA","kid":"`
	afterKeyID  = `","typ":"JWT"}`
)

// keyID returns the key id of a token in the one form that Sign writes. Taking
// no other header leaves nothing to be talked into: no algorithm, no address or
// certificate of a key, no critical extension. Taking no other base64 makes
// tokens that differ in any byte different tokens; the library would ignore
// line ends and unused bits.
func keyID(token string) (string, bool) {
	part := strings.Split(token, ".")
	if len(part) != 3 {
		return "", false
	}
	var header string
	for n, p := range part {
		raw, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil || base64.RawURLEncoding.EncodeToString(raw) != p {
			return "", false
		}
		if n == 0 {
			header = string(raw)
		}
	}
	rest, before := strings.CutPrefix(header, beforeKeyID)
	kid, after := strings.CutSuffix(rest, afterKeyID)
	return kid, before && after && ids.Valid(kid)
}
