// Package idtoken signs and verifies ID tokens: JWTs with Ed25519 signatures
// (RFC 7519, RFC 8037, RFC 8725). It accepts no other signature algorithm.
//
// A token identifies a person and either a device or, for the pages of the
// service itself, a browser session. It does not prove that the device or the
// session is still signed in: callers read that from the database at every
// request.
//
// The keys are stored in the database, their private parts encrypted. One key
// signs tokens. A replaced key verifies tokens until all tokens that it signed
// have expired:
//
//	signs ──RotateKey──▶ verifies ──Lifetime──▶ ignored ──DeleteExpiredKeys──▶ deleted
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

// Box encrypts private keys. The parameter about names the row to which the
// encrypted data belongs, so that it cannot be moved to another row.
type Box interface {
	Seal(plain []byte, about string) string
	Open(sealed, about string) ([]byte, error)
}

// Options are the settings and dependencies of an Issuer, except the database.
type Options struct {
	Box      Box
	Issuer   string        // base URL of the service; issuer and audience of the tokens
	Lifetime time.Duration // lifetime of a device's token, at least one second
	// WebLifetime is the lifetime of a browser session's token, at least one
	// second and at most Lifetime.
	WebLifetime time.Duration
	Now         func() time.Time
}

// Claims are the ids of the person and of the device or the browser session in
// a token. Exactly one of DeviceID and SessionID is set.
type Claims struct {
	PersonID  string
	DeviceID  string
	SessionID string
}

// use returns the value of the claim token_use: what the token is for.
func (c Claims) use() string {
	if c.SessionID != "" {
		return useWeb
	}
	return useID
}

// isValid reports whether all ids are well-formed and exactly one of DeviceID
// and SessionID is set.
func (c Claims) isValid() bool {
	if c.SessionID != "" {
		return ids.Valid(c.PersonID) && ids.Valid(c.SessionID) && c.DeviceID == ""
	}
	return ids.Valid(c.PersonID) && ids.Valid(c.DeviceID)
}

// Issuer signs and verifies the tokens of an installation. It is safe for
// concurrent use.
type Issuer struct {
	o  Options
	db *sqldb.DB

	signing atomic.Pointer[signingKey] // the signing key that was used last
	known   atomic.Pointer[keySet]     // public keys that verify tokens
	looking singleflight.Group         // merges concurrent reads of the keys from the database
	lookups *rate.Limiter              // limits database queries for unknown key ids
	seen    cache
}

// New returns an issuer that stores its keys in db.
func New(db *sqldb.DB, o Options) *Issuer {
	i := &Issuer{o: o, db: db, lookups: rate.NewLimiter(lookupsPerSecond, lookupsPerSecond)}
	i.known.Store(&keySet{})
	return i
}

const (
	// lookupsPerSecond is the maximum number of database queries per second on
	// a node that tokens with unknown key ids cause.
	lookupsPerSecond = 10
	// keyCacheTime is how long a node uses a cached key before it checks in the
	// database whether the key still verifies tokens. Genuine tokens expire
	// before their key does. A token forged with a stolen key can have any
	// expiry, and must be refused once the key is.
	keyCacheTime = time.Minute
	// maxLength is the maximum length of a token, in bytes. Tokens of this
	// service have about 500 bytes.
	maxLength = 4096
	// maxClockSkew is how far the clock of the signing node may be ahead of
	// this node's clock.
	maxClockSkew = time.Minute
	// useID and useWeb are the values of the claim token_use: tokens of devices
	// and of browser sessions. The claim distinguishes them from other kinds
	// of tokens that might be signed with the same keys.
	useID  = "id"
	useWeb = "web"
)

// private contains the claims of a token that RFC 7519 does not register
// (section 4.3).
type private struct {
	DeviceID  string `json:"device_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Use       string `json:"token_use"`
}

// SignToken signs a token with the current key, and creates the first key if
// there is none. It reads the key in tx. The result expires is the expiry time
// in the token.
func (i *Issuer) SignToken(ctx context.Context, tx *sqldb.Tx, c Claims) (token string, expires time.Time, err error) {
	signer, err := i.currentSigner(ctx, tx)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign ID token: %w", err)
	}
	lifetime := i.o.Lifetime
	if c.SessionID != "" {
		lifetime = min(i.o.WebLifetime, lifetime)
	}
	expires = tx.Now.Add(lifetime).Truncate(time.Second)
	token, err = jwt.Signed(signer).Claims(jwt.Claims{
		Issuer:   i.o.Issuer,
		Audience: jwt.Audience{i.o.Issuer},
		Subject:  c.PersonID,
		IssuedAt: jwt.NewNumericDate(tx.Now),
		Expiry:   jwt.NewNumericDate(expires),
		ID:       ids.New(),
	}).Claims(private{c.DeviceID, c.SessionID, c.use()}).Serialize()
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign ID token: %w", err)
	}
	return token, expires, nil
}

// errInvalid is returned for every invalid token, whatever is wrong with it.
var errInvalid = fault.New(fault.Unauthenticated, "A valid credential is required.")

// VerifyToken returns the claims of a token that this installation signed and
// that has not expired. For every other token it returns a
// fault.Unauthenticated.
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
	c := Claims{PersonID: public.Subject, DeviceID: own.DeviceID, SessionID: own.SessionID}
	issued := public.IssuedAt.Time()
	expires := public.Expiry.Time()
	switch {
	case public.Issuer != i.o.Issuer,
		len(public.Audience) != 1 || public.Audience[0] != i.o.Issuer,
		own.Use != c.use(),
		public.IssuedAt == nil || issued.After(now.Add(maxClockSkew)),
		public.Expiry == nil || !expires.After(now) || !expires.After(issued),
		!c.isValid(), !ids.Valid(public.ID):
		return Claims{}, errInvalid
	}
	until := now.Add(keyCacheTime)
	if expires.Before(until) {
		until = expires
	}
	i.seen.putClaims(sum, verified{c, until})
	return c, nil
}

// beforeKeyID and afterKeyID surround the key id in the header of a token.
// Headers that SignToken writes differ only in the key id.
const (
	beforeKeyID = `{"alg":"EdDSA","kid":"`
	afterKeyID  = `","typ":"JWT"}`
)

// keyID returns the key id of a token whose header has exactly the form that
// SignToken writes. Refusing all other headers prevents attacks with another
// algorithm, the URL or certificate of a key, or a critical extension. Refusing
// non-canonical base64 ensures that two different strings are never the same
// token; the JWT library would ignore line breaks and unused bits.
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
