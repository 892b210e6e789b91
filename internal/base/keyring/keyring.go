// Package keyring holds the one secret of an installation and derives every
// other key from it.
//
// The secret comes from the settings or, by default, from a file that the first
// start creates. All nodes on one database need the same secret: ConfirmSecret
// compares its fingerprint with the one in the database and fails if they
// differ, because cursors and links of one node would be invalid on the other.
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

// Ring returns keys for named purposes.
type Ring struct{ secret []byte }

// New returns the ring of a secret in base64 with at least 32 bytes.
func New(secret string) (Ring, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	if err != nil || len(b) < secretLength {
		return Ring{}, fmt.Errorf("secret: want at least %d random bytes in base64 (openssl rand -base64 %d)", secretLength, secretLength)
	}
	return Ring{b}, nil
}

// Load reads the secret from the file at path, and creates the file if it is
// missing.
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

// createSecret writes a new secret to path, atomically. If another process has
// created the file first, that file stays.
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

// DeriveKey derives the key for a purpose. Keys of different purposes are independent.
func (r Ring) DeriveKey(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, r.secret, nil, "atelier "+purpose, 32)
	if err != nil {
		panic(err) // fails only for excessive lengths
	}
	return key
}

// ConfirmSecret fails if the database belongs to an installation with another secret.
// The first call stores the fingerprint of its secret.
func (r Ring) ConfirmSecret(ctx context.Context, tx *sqldb.Tx) error {
	mine := hex.EncodeToString(r.DeriveKey("fingerprint"))
	theirs, err := settleFingerprint(ctx, tx, mine)
	if err != nil {
		return fmt.Errorf("confirm secret: %w", err)
	}
	return compareFingerprints(mine, theirs)
}

// HasFingerprint reports whether the database has the fingerprint of a secret.
func HasFingerprint(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	_, err := readFingerprint(ctx, tx)
	if errors.Is(err, sqldb.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// RecognizeSecret is ConfirmSecret for read-only callers: it stores nothing, and
// accepts any secret if the database has no fingerprint yet.
func (r Ring) RecognizeSecret(ctx context.Context, tx *sqldb.Tx) error {
	theirs, err := readFingerprint(ctx, tx)
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("recognize secret: %w", err)
	}
	return compareFingerprints(hex.EncodeToString(r.DeriveKey("fingerprint")), theirs)
}

func compareFingerprints(mine, theirs string) error {
	if subtle.ConstantTimeCompare([]byte(mine), []byte(theirs)) != 1 {
		return errors.New("this node's secret is not the one the database was set up with: give every node the same ATELIER_SECRET")
	}
	return nil
}
