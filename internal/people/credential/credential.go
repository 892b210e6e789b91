// Package credential stores access tokens: secrets that authenticate a person
// without a session or device.
//
// A token consists of a prefix for its kind, 256 random bits and a checksum, so
// that secret scanners can recognise it without contacting this service. Only
// its SHA-256 hash is stored. Tokens are not cached: every request reads the
// token's row, so a deleted token is refused at the next request.
//
// The SCIM tokens of companies (directory.go) have the same form, but
// authenticate an identity provider instead of a person.
package credential

import (
	"context"
	"crypto/rand"
	"hash/crc32"
	"math/big"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Token describes an access token, without its value.
type Token struct {
	ID        string
	PersonID  string // the person for whom the token acts
	CompanyID string // "" for a personal token
	MintedBy  string // id of the person who created it, "" for the operator
	Name      string
	Hint      string // the last four characters of the value
	Created   time.Time
	LastUsed  time.Time // zero before the first use
}

const (
	personalPrefix = "atl_p_"
	companyPrefix  = "atl_c_"
	secretChars    = 43 // base 62 digits of 256 bits
	checkChars     = 6  // base 62 digits of a CRC-32
	hintChars      = 4
	maxName        = 100
)

// Draft contains the values of a new token.
type Draft struct {
	PersonID  string
	CompanyID string // "" for a personal token
	MintedBy  string
	Name      string
}

// Create creates a token. The second result is the token's value, which is not
// stored.
func Create(ctx context.Context, tx *sqldb.Tx, d Draft) (Token, string, error) {
	if n := utf8.RuneCountInString(d.Name); n < 1 || n > maxName || !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, unicode.IsControl) {
		return Token{}, "", fault.New(fault.Invalid, "The name of a token must have 1 to 100 characters.").On("name")
	}
	secret := newSecret(prefixOf(d.CompanyID))
	t := Token{
		ID:        ids.New(),
		PersonID:  d.PersonID,
		CompanyID: d.CompanyID,
		MintedBy:  d.MintedBy,
		Name:      d.Name,
		Hint:      hintOf(secret),
		Created:   tx.Now,
	}
	if err := insertToken(ctx, tx, t, ids.Hash(secret)); err != nil {
		return Token{}, "", err
	}
	return t, secret, nil
}

// Holder is the owner whose tokens are listed or changed: a company, which has
// access to its own tokens, or a person, who has access to every token that
// acts for them.
type Holder struct {
	PersonID  string
	CompanyID string
}

// After is the position after which a page of tokens begins: the last token of
// the previous page.
type After struct {
	Created time.Time
	ID      string
}

// errUnknownToken is returned both for unknown tokens and for tokens of other
// owners.
var errUnknownToken = fault.New(fault.NotFound, "There is no such access token.")

// Regenerate replaces the value of a token and returns the new value. The old
// value is refused after tx commits. A person cannot regenerate a company's
// token that acts for them, because only the company's admins may learn its
// value.
func Regenerate(ctx context.Context, tx *sqldb.Tx, h Holder, id string) (Token, string, error) {
	t, err := byID(ctx, tx, h, id)
	if err != nil {
		return Token{}, "", err
	}
	if t.CompanyID != h.CompanyID {
		return Token{}, "", fault.New(fault.Forbidden, "This token belongs to a company and only its admins can change it. You can delete it.").With("reason", "company_token")
	}
	secret := newSecret(prefixOf(t.CompanyID))
	t.Hint = hintOf(secret)
	t.LastUsed = time.Time{}
	return t, secret, replaceSecret(ctx, tx, t, ids.Hash(secret))
}

// Delete deletes a token of the holder and returns its description.
func Delete(ctx context.Context, tx *sqldb.Tx, h Holder, id string) (Token, error) {
	t, err := byID(ctx, tx, h, id)
	if err != nil {
		return Token{}, err
	}
	return t, deleteToken(ctx, tx, id)
}

// DeleteValue deletes the token with the given value, regardless of its owner.
func DeleteValue(ctx context.Context, tx *sqldb.Tx, value string) (Token, error) {
	if !WellFormed(value) {
		return Token{}, errUnknownToken
	}
	return deleteByHash(ctx, tx, ids.Hash(value))
}

// CheckedToken is a valid token that a request has presented.
type CheckedToken struct {
	Token
	EmailVerified bool // the e-mail address of the token's person is verified
}

// ErrInvalid is returned for every invalid credential, so that the response
// does not reveal what is wrong with it.
var ErrInvalid = fault.New(fault.Unauthenticated, "A valid credential is required.")

// Check returns the token with the given value, or ErrInvalid.
func Check(ctx context.Context, q sqldb.Querier, token string) (CheckedToken, error) {
	if !WellFormed(token) {
		return CheckedToken{}, ErrInvalid
	}
	return byHash(ctx, q, ids.Hash(token))
}

func prefixOf(companyID string) string {
	if companyID == "" {
		return personalPrefix
	}
	return companyPrefix
}

func hintOf(secret string) string { return secret[len(secret)-hintChars:] }

// newSecret generates a token's value: the prefix, a random part and a
// checksum.
func newSecret(prefix string) string {
	random := make([]byte, 32)
	rand.Read(random)
	body := prefix + encodeBase62(new(big.Int).SetBytes(random), secretChars)
	return body + secretChecksum(body)
}

// WellFormed reports whether token has the form of an access token with a
// correct checksum. The check avoids a database query for most invalid values.
func WellFormed(token string) bool {
	return wellFormed(token, personalPrefix) || wellFormed(token, companyPrefix)
}

func wellFormed(token, prefix string) bool {
	body, ok := strings.CutPrefix(token, prefix)
	if !ok || len(body) != secretChars+checkChars || !ids.Alphanumeric(body) {
		return false
	}
	end := len(token) - checkChars
	return secretChecksum(token[:end]) == token[end:]
}

func secretChecksum(body string) string {
	return encodeBase62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), checkChars)
}

// encodeBase62 returns n in base 62, padded with leading zeros to the given
// width.
func encodeBase62(n *big.Int, width int) string {
	s := n.Text(62)
	return strings.Repeat("0", width-len(s)) + s
}
