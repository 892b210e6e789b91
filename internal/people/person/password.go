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

// Lengths of a password. The upper one only bounds the work of hashing.
const (
	minPassword = 8
	maxPassword = 1024
)

// cost is argon2id's, stored with each hash so that it can be raised later.
type cost struct {
	memory  uint32 // KiB
	passes  uint32
	threads uint8
}

var current = cost{memory: 19 * 1024, passes: 2, threads: 1}

const (
	saltLength = 16
	hashLength = 32
)

// hashing lets two at a time hash: each takes 19 MiB and a core.
var hashing = make(chan struct{}, 2)

// HashPassword makes the text to store for a password. CheckNewPassword comes
// first for one that a person chose.
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

// PasswordProof is a password that was found right, outside of any transaction since
// that is slow.
type PasswordProof struct {
	PersonID string
	stored   string
}

// CheckSignIn returns the person with this address and password; PersonID is "" where
// there is no such person. An address that nobody has costs as much time as a
// wrong password.
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

// IsCurrent reports whether the password was not changed since. The person's row is
// locked.
func (p PasswordProof) IsCurrent(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	return hasPassword(ctx, tx, p.PersonID, p.stored)
}

// noPassword is the password of people who have none. It fits no text: its salt and
// hash are not of any derivation.
var noPassword = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, current.memory, current.passes, current.threads,
	strings.Repeat("A", base64.RawStdEncoding.EncodedLen(saltLength)), strings.Repeat("A", base64.RawStdEncoding.EncodedLen(hashLength)))

// CheckPassword reports whether the stored text is of this password.
func CheckPassword(ctx context.Context, stored, password string) (bool, error) {
	if len(password) > maxPassword {
		return false, nil
	}
	part := strings.Split(stored, "$")
	if len(part) != 6 || part[1] != "argon2id" {
		return false, fmt.Errorf("check password: unknown form of hash")
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
