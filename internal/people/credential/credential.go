// Package credential keeps access tokens: secrets that stand for a person
// without a session or device behind them.
//
// A token is a prefix that tells its kind, 256 random bits and a checksum, so
// that scanners can recognise one without asking us. Only its SHA-256 is kept.
// Every request reads the record afresh: a token that was deleted is dead at
// the next one.
//
// The tokens of companies' directories (directory.go) look alike and stand for
// no person.
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

// Token is an access token as its owner sees it later.
type Token struct {
	ID        string
	PersonID  string // whom it stands for
	CompanyID string // "" for a personal token
	MintedBy  string // a person's id, "" for the operator
	Name      string
	Hint      string // its last characters
	Created   time.Time
	LastUsed  time.Time // zero before the first use
}

const (
	personalPrefix = "atl_p_"
	companyPrefix  = "atl_c_"
	secretChars    = 43 // 256 bits in base 62
	checkChars     = 6  // a CRC-32 in base 62
	hintChars      = 4
	maxName        = 100
)

// Draft is what a new token is made of.
type Draft struct {
	PersonID  string
	CompanyID string // "" for a personal token
	MintedBy  string
	Name      string
}

// Create makes a token. The second result is the token itself, which exists
// nowhere else.
func Create(ctx context.Context, tx *sqldb.Tx, d Draft) (Token, string, error) {
	if n := utf8.RuneCountInString(d.Name); n < 1 || n > maxName || !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, unicode.IsControl) {
		return Token{}, "", fault.New(fault.Invalid, "A token's name has 1 to 100 characters.").On("name")
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

// Holder is on whose behalf tokens are managed: a company, which sees its own,
// or else a person, who sees every token that stands for them.
type Holder struct {
	PersonID  string
	CompanyID string
}

// After is where a page of tokens begins.
type After struct {
	Created time.Time
	ID      string
}

// errUnknownToken is one answer for tokens of others and for those that never
// were.
var errUnknownToken = fault.New(fault.NotFound, "There is no such access token.")

// Regenerate returns a token a new value. The old one is dead once tx commits.
// A person cannot do that to the token of a company: its value is the admins'.
func Regenerate(ctx context.Context, tx *sqldb.Tx, h Holder, id string) (Token, string, error) {
	t, err := byID(ctx, tx, h, id)
	if err != nil {
		return Token{}, "", err
	}
	if t.CompanyID != h.CompanyID {
		return Token{}, "", fault.New(fault.Forbidden, "This token belongs to a company, whose admins manage it. You can delete it.").With("reason", "company_token")
	}
	secret := newSecret(prefixOf(t.CompanyID))
	t.Hint = hintOf(secret)
	t.LastUsed = time.Time{}
	return t, secret, replaceSecret(ctx, tx, t, ids.Hash(secret))
}

// Delete ends a token.
func Delete(ctx context.Context, tx *sqldb.Tx, h Holder, id string) (Token, error) {
	t, err := byID(ctx, tx, h, id)
	if err != nil {
		return Token{}, err
	}
	return t, deleteToken(ctx, tx, id)
}

// DeleteValue ends the token with this value, wherever it was found.
func DeleteValue(ctx context.Context, tx *sqldb.Tx, value string) (Token, error) {
	if !WellFormed(value) {
		return Token{}, errUnknownToken
	}
	return deleteByHash(ctx, tx, ids.Hash(value))
}

// CheckedToken is what a presented token proves.
type CheckedToken struct {
	Token
	EmailVerified bool // of the person
}

// ErrInvalid is the one answer for every credential that is no good: the caller
// learns nothing about which part was wrong.
var ErrInvalid = fault.New(fault.Unauthenticated, "This call needs a valid credential.")

// Check returns what a presented token stands for.
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

// newSecret makes a token: prefix, random part, checksum.
func newSecret(prefix string) string {
	random := make([]byte, 32)
	rand.Read(random)
	body := prefix + encodeBase62(new(big.Int).SetBytes(random), secretChars)
	return body + secretChecksum(body)
}

// WellFormed reports whether the text can be an access token of ours at all. It
// saves the database from most nonsense.
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

// encodeBase62 writes n with digits and letters, zeros in front.
func encodeBase62(n *big.Int, width int) string {
	s := n.Text(62)
	return strings.Repeat("0", width-len(s)) + s
}
