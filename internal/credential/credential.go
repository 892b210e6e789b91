// Package credential makes and checks what a caller proves itself with.
//
// An access token is a prefix that tells its kind, 256 random bits and a
// checksum, so that scanners can recognise one without asking us. Only its
// SHA-256 is kept. Every request reads the record afresh: a token that was
// deleted is dead at the next one.
package credential

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"atelier/internal/fault"
	"atelier/internal/ident"
	"atelier/internal/sqldb"
)

// Kind is what sort of credential speaks.
type Kind string

// PersonalToken acts as its owner on the personal account.
const PersonalToken Kind = "personal_token"

// Caller is who is asking.
type Caller struct {
	PersonID string
	Kind     Kind
	TokenID  string
}

// Token is an access token as its owner sees it later.
type Token struct {
	ID      string
	Name    string
	Hint    string // its last characters
	Created time.Time
}

const (
	personalPrefix = "atl_p_"
	secretChars    = 43 // 256 bits in base 62
	checkChars     = 6  // a CRC-32 in base 62
	hintChars      = 4
	maxName        = 100
)

// Create makes a personal token for a person. The second result is the token
// itself, which exists nowhere else.
func Create(ctx context.Context, tx *sqldb.Tx, personID, name string) (Token, string, error) {
	if n := utf8.RuneCountInString(name); n < 1 || n > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return Token{}, "", fault.New(fault.Invalid, "A token's name has 1 to 100 characters.").On("name")
	}
	secret := mint(personalPrefix)
	t := Token{ID: ident.New(), Name: name, Hint: secret[len(secret)-hintChars:], Created: tx.Now}
	if err := insert(ctx, tx, t, personID, hash(secret)); err != nil {
		return Token{}, "", err
	}
	return t, secret, nil
}

// errUnknown is the one answer for every credential that is no good: the
// caller learns nothing about which part was wrong.
var errUnknown = fault.New(fault.Unauthenticated, "This call needs a valid access token.")

// Authenticate finds who presents the value of an Authorization header.
func Authenticate(ctx context.Context, db *sqldb.DB, header string) (Caller, error) {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || !wellFormed(token) {
		return Caller{}, errUnknown
	}
	h := hash(token)
	c, stored, err := byHash(ctx, db, h)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Caller{}, errUnknown
	}
	if err != nil {
		return Caller{}, err
	}
	if subtle.ConstantTimeCompare([]byte(h), []byte(stored)) != 1 {
		return Caller{}, errUnknown
	}
	return c, nil
}

// mint makes a token: prefix, random part, checksum.
func mint(prefix string) string {
	random := make([]byte, 32)
	rand.Read(random)
	body := prefix + base62(new(big.Int).SetBytes(random), secretChars)
	return body + checksum(body)
}

// wellFormed tells whether the text can be a token of ours at all. It saves
// the database from most nonsense.
func wellFormed(token string) bool {
	body, ok := strings.CutPrefix(token, personalPrefix)
	if !ok || len(body) != secretChars+checkChars || !ident.Alphanumeric(body) {
		return false
	}
	end := len(token) - checkChars
	return checksum(token[:end]) == token[end:]
}

func checksum(body string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), checkChars)
}

// base62 writes n with digits and letters, zeros in front.
func base62(n *big.Int, width int) string {
	s := n.Text(62)
	return strings.Repeat("0", width-len(s)) + s
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
