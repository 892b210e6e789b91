package person

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"atelier/internal/base/sqldb"
)

// Minimum and maximum length of a password. The maximum serves only to limit
// the cost of hashing.
const (
	minPassword = 8
	maxPassword = 1024
)

// cost contains the parameters of the password hash function argon2id. They are
// stored with each hash, so that they can be increased later.
type cost struct {
	memory  uint32 // in KiB
	passes  uint32
	threads uint8
}

var current = cost{memory: 19 * 1024, passes: 2, threads: 1}

const (
	saltLength = 16
	hashLength = 32
)

// hashing limits the number of passwords that are hashed at the same time,
// because each hash needs 19 MiB of memory and one core.
var hashing = make(chan struct{}, 2)

// HashPassword returns the hash to store for a password. For a password that a
// person has chosen, the caller must call CheckNewPassword first.
func HashPassword(ctx context.Context, password string) (string, error) {
	if err := checkLength(password); err != nil {
		return "", err
	}
	salt := make([]byte, saltLength)
	rand.Read(salt)
	hash, err := deriveKey(ctx, password, salt, current)
	if err != nil {
		return "", err
	}
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		current.memory, current.passes, current.threads, b64(salt), b64(hash)), nil
}

// PasswordProof is the result of CheckSignIn. The check is slow and therefore
// runs outside of transactions; IsCurrent confirms the result inside one.
type PasswordProof struct {
	PersonID string
	stored   string
}

// CheckSignIn checks an e-mail address and a password. PersonID of the result is
// "" if no account has this e-mail address and this password. An unknown mail
// address takes as much time as a wrong password.
func CheckSignIn(ctx context.Context, db *sqldb.DB, email, password string) (PasswordProof, error) {
	id, stored, err := passwordOf(ctx, db, emailKey(email))
	if err != nil {
		return PasswordProof{}, err
	}
	known := stored != ""
	if !known {
		stored = noPassword
	}
	ok, err := CheckPassword(ctx, stored, password)
	if err != nil || !ok || !known {
		return PasswordProof{}, err
	}
	return PasswordProof{id, stored}, nil
}

// IsCurrent reports whether the password is unchanged since the check. The
// caller has locked the person's row.
func (p PasswordProof) IsCurrent(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	return hasPassword(ctx, tx, p.PersonID, p.stored)
}

// noPassword is the hash that CheckSignIn uses for unknown people and people
// without a password. No password matches it, because its salt and hash do not
// result from any password.
var noPassword = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, current.memory, current.passes, current.threads,
	strings.Repeat("A", base64.RawStdEncoding.EncodedLen(saltLength)), strings.Repeat("A", base64.RawStdEncoding.EncodedLen(hashLength)))

// CheckPassword reports whether the password matches a stored hash.
func CheckPassword(ctx context.Context, stored, password string) (bool, error) {
	if len(password) > maxPassword {
		return false, nil
	}
	part := strings.Split(stored, "$")
	if len(part) != 6 || part[1] != "argon2id" {
		return false, fmt.Errorf("check password: unknown hash format")
	}
	var c cost
	if _, err := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &c.memory, &c.passes, &c.threads); err != nil {
		return false, fmt.Errorf("check password: %w", err)
	}
	salt, err := base64.RawStdEncoding.DecodeString(part[4])
	if err != nil {
		return false, fmt.Errorf("check password: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(part[5])
	if err != nil {
		return false, fmt.Errorf("check password: %w", err)
	}
	got, err := deriveKey(ctx, password, salt, c)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

func deriveKey(ctx context.Context, password string, salt []byte, c cost) ([]byte, error) {
	select {
	case hashing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-hashing }()
	return argon2.IDKey([]byte(password), salt, c.passes, c.memory, c.threads, hashLength), nil
}
