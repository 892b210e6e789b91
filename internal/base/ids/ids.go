// Package ids makes the opaque ids that callers see, and the hashes under which
// secrets are stored.
package ids

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// Length is the number of characters of an id.
const Length = 20

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// New returns a random id of Length letters and digits, about 119 bits.
func New() string { return Text(Length) }

// Text returns n random letters and digits.
func Text(n int) string {
	out := make([]byte, 0, n)
	var buf [64]byte
	for {
		rand.Read(buf[:])
		for _, b := range buf {
			// 248 = 4 * 62: bytes above it would favour the first characters.
			if b >= 248 {
				continue
			}
			if out = append(out, alphabet[b%62]); len(out) == n {
				return string(out)
			}
		}
	}
}

// Valid reports whether s has the form of an id. It does not check whether the
// id is in use.
func Valid(s string) bool {
	return len(s) == Length && Alphanumeric(s)
}

// Alphanumeric reports whether s contains only letters and digits.
func Alphanumeric(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

// Hash returns the form in which an unguessable secret is stored: its SHA-256,
// so that a reader of the database cannot present the secret.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
