// Package idtoken signs and verifies ID tokens: JWTs with Ed25519 signatures
// (RFC 7519, RFC 8037, RFC 8725). It accepts no other signature algorithm.
//
// A token identifies a person and either a device or, for the pages of the
// service itself, a browser session. It does not prove that the device or the
// session is still signed in: callers check this in the database at every
// request.
//
// The keys are stored in the database, the private keys encrypted. One key
// signs tokens. After it is replaced, it verifies tokens until all tokens that
// it signed have expired:
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

// Box encrypts private keys. The parameter about identifies the database row of
// the encrypted data, so that data moved to another row cannot be decrypted.
type Box interface {
	Seal(plain []byte, about string) string
	Open(sealed, about string) ([]byte, error)
}

// Options are the settings and dependencies of an Issuer, except the database.
type Options struct {
	Box      Box
	Issuer   string        // base URL of the service; both issuer and audience of the tokens
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

	signing atomic.Pointer[signingKey] // the most recently used signing key
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
	// lookupsPerSecond is the maximum number of database queries per second
	// that tokens with unknown key ids can cause on a node.
	lookupsPerSecond = 10
	// keyCacheTime is how long a node uses a cached key before it checks in the
	// database that the key may still verify tokens. Genuine tokens expire
	// before their key does. A token forged with a stolen key can have any
	// expiry time, and must be refused when the key is no longer valid.
	keyCacheTime = time.Minute
	// maxLength is the maximum length of a token, in bytes. Tokens of this
	// service are about 500 bytes long.
	maxLength = 4096
	// maxClockSkew is the maximum time by which the signing node's clock may be
	// ahead of this node's clock.
	maxClockSkew = time.Minute
	// useID and useWeb are the values of the claim token_use: tokens of devices
	// and of browser sessions. The claim distinguishes them from other kinds
	// of tokens that might be signed with the same keys.
	useID  = "id"
	useWeb = "web"
)

// private contains the private claims of a token, which RFC 7519 does not
// register (section 4.3).
type private struct {
	DeviceID  string `json:"device_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Use       string `json:"token_use"`
}

// SignToken signs a token with the current key, and creates the first key if
// none exists. It reads the key in tx. expires is the expiry time of the token.
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

// errInvalid is returned for every invalid token, regardless of the reason.
var errInvalid = fault.New(fault.Unauthenticated, "A valid credential is required.")

// VerifyToken returns the claims of a token that this installation signed and
// that has not expired. For every other token it returns an error with the code
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

// beforeKeyID and afterKeyID are the text before and after the key id in the
// header of a token. Headers that SignToken writes differ only in the key id.
const (
	beforeKeyID = `{"alg":"EdDSA","kid":"`
	afterKeyID  = `","typ":"JWT"}`
)

// keyID returns the key id of a token. It accepts only headers of exactly the
// form that SignToken writes, which prevents attacks with another algorithm,
// with the URL or certificate of a key, or with a critical extension. It also
// refuses non-canonical base64, because the JWT library ignores line breaks and
// unused bits, so that different strings would be the same token.
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
