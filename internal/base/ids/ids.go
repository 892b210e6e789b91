// Package ids generates the random ids of API objects, and computes the hashes
// that secrets are stored as.
package ids

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// Length is the length of an id in characters.
const Length = 20

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// New returns a random id of Length letters and digits, with about 119 bits of
// entropy.
func New() string { return Text(Length) }

// Text returns a random string of n letters and digits.
func Text(n int) string {
	out := make([]byte, 0, n)
	var buf [64]byte
	for {
		rand.Read(buf[:])
		for _, b := range buf {
			// 248 is the largest multiple of 62 in a byte; using higher values
			// would make the first characters of the alphabet more likely.
			if b >= 248 {
				continue
			}
			if out = append(out, alphabet[b%62]); len(out) == n {
				return string(out)
			}
		}
	}
}

// Valid reports whether s has the form of an id. It does not check whether an
// object with this id exists.
func Valid(s string) bool {
	return len(s) == Length && Alphanumeric(s)
}

// Alphanumeric reports whether s is not empty and contains only ASCII letters
// and digits.
func Alphanumeric(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

// Hash returns the SHA-256 of an unguessable secret in hexadecimal. The
// database stores only this hash, so that someone who can read the database
// cannot use the secret.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
