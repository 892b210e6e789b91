package device

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"unicode"

	"atelier/internal/base/ids"
)

const (
	devicePrefix  = "atl_d_"
	refreshPrefix = "atl_r_"
	codePrefix    = "atl_c_"
	secretChars   = 43 // base 62 digits of 256 bits
)

// newSecret generates a secret: the prefix and 256 random bits in base 62.
func newSecret(prefix string) string { return prefix + ids.Text(secretChars) }

// wellFormed reports whether secret consists of the prefix and the right number
// of characters. The check avoids a database query for most invalid values.
func wellFormed(prefix, secret string) bool {
	body, ok := strings.CutPrefix(secret, prefix)
	return ok && len(body) == secretChars && ids.Alphanumeric(body)
}

// successorToken derives the refresh token that replaces the given token. The
// result is always the same for the same token and generation, and cannot be
// computed without the installation's key.
func (d *Devices) successorToken(token string, generation int64) string {
	n := new(big.Int).SetBytes(d.computeMAC("refresh token", token, strconv.FormatInt(generation, 10)))
	s := n.Text(62)
	return refreshPrefix + strings.Repeat("0", secretChars-len(s)) + s
}

// computeMAC returns the HMAC of a purpose and the parts under the
// installation's key. The parts are joined with spaces and must not contain
// any.
func (d *Devices) computeMAC(purpose string, part ...string) []byte {
	m := hmac.New(sha256.New, d.o.Key)
	m.Write([]byte(purpose + " " + strings.Join(part, " ")))
	return m.Sum(nil)
}

const (
	// userAlphabet has no vowels, so that codes do not spell words, and no
	// letters or digits that look alike (RFC 8628 section 6.1).
	userAlphabet = "BCDFGHJKLMNPQRSTVWXZ"
	userChars    = 8
	// maxTyped is the maximum length in bytes of a user code as a person typed
	// it.
	maxTyped = 64
)

// newUserCode generates a random user code without the dash. There are 2.56e10
// possible codes.
func newUserCode() string {
	code := make([]byte, 0, userChars)
	var b [1]byte
	for len(code) < userChars {
		rand.Read(b[:])
		// Bytes of 240 and above are discarded: 256 is not a multiple of 20, so
		// they would make some letters more likely than others.
		if b[0] < 240 {
			code = append(code, userAlphabet[b[0]%20])
		}
	}
	return string(code)
}

func showUserCode(code string) string { return code[:userChars/2] + "-" + code[userChars/2:] }

// readUserCode converts a user code that a person typed to the form that
// newUserCode returns. It returns false if the code is malformed.
func readUserCode(typed string) (code string, ok bool) {
	if len(typed) > maxTyped {
		return "", false
	}
	out := make([]byte, 0, userChars)
	for _, r := range typed {
		switch {
		case r == '-' || unicode.IsSpace(r):
			continue
		case r >= 'a' && r <= 'z':
			r -= 'a' - 'A'
		}
		if !strings.ContainsRune(userAlphabet, r) {
			return "", false
		}
		out = append(out, byte(r))
	}
	return string(out), len(out) == userChars
}

func (d *Devices) userHash(code string) string {
	return hex.EncodeToString(d.computeMAC("user code", code))
}

const (
	maxAgent   = 256
	maxAddress = 64
)
