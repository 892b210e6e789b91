// Package keyring loads the secret of an installation and derives all keys from
// it.
//
// The secret comes from the settings or, by default, from a file that is
// created at the first start. All nodes that use one database need the same
// secret, because otherwise cursors and links from one node would be invalid on
// another: ConfirmSecret compares the secret's fingerprint with the one in the
// database and fails if they differ.
package keyring

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"atelier/internal/base/sqldb"
)

const secretLength = 32

// Ring derives keys for named purposes from the installation's secret.
type Ring struct{ secret []byte }

// New returns a Ring for a secret of at least 32 bytes in base64.
func New(secret string) (Ring, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	if err != nil || len(b) < secretLength {
		return Ring{}, fmt.Errorf("the secret must be at least %d random bytes in base64 (openssl rand -base64 %d)", secretLength, secretLength)
	}
	return Ring{b}, nil
}

// Load reads the secret from the file at path, and creates the file with a new
// secret if it does not exist.
func Load(path string) (Ring, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createSecret(path); err != nil {
			return Ring{}, fmt.Errorf("create secret: %w", err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return Ring{}, fmt.Errorf("read secret: %w", err)
	}
	ring, err := New(string(text))
	if err != nil {
		return Ring{}, fmt.Errorf("%s: %w", path, err)
	}
	return ring, nil
}

// createSecret atomically creates the file at path with a new random secret. If
// another process created the file first, it is left unchanged.
func createSecret(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".secret-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	secret := make([]byte, secretLength)
	rand.Read(secret)
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(secret) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// DeriveKey returns the 32-byte key for a purpose. Keys for different purposes
// are independent.
func (r Ring) DeriveKey(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, r.secret, nil, "atelier "+purpose, 32)
	if err != nil {
		panic(err) // fails only if the requested key is too long
	}
	return key
}

// ConfirmSecret returns an error if the database belongs to an installation
// with another secret. If the database has no fingerprint yet, it stores the
// fingerprint of this secret.
func (r Ring) ConfirmSecret(ctx context.Context, tx *sqldb.Tx) error {
	mine := hex.EncodeToString(r.DeriveKey("fingerprint"))
	theirs, err := settleFingerprint(ctx, tx, mine)
	if err != nil {
		return fmt.Errorf("check secret: %w", err)
	}
	return compareFingerprints(mine, theirs)
}

// HasFingerprint reports whether the database contains the fingerprint of a
// secret.
func HasFingerprint(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	_, err := readFingerprint(ctx, tx)
	if errors.Is(err, sqldb.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// RecognizeSecret is like ConfirmSecret but writes nothing, and accepts any
// secret if the database has no fingerprint yet.
func (r Ring) RecognizeSecret(ctx context.Context, tx *sqldb.Tx) error {
	theirs, err := readFingerprint(ctx, tx)
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check secret: %w", err)
	}
	return compareFingerprints(hex.EncodeToString(r.DeriveKey("fingerprint")), theirs)
}

func compareFingerprints(mine, theirs string) error {
	if subtle.ConstantTimeCompare([]byte(mine), []byte(theirs)) != 1 {
		return errors.New("this node's secret differs from the secret that the database was set up with; set the same ATELIER_SECRET on every node")
	}
	return nil
}
