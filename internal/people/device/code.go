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
	secretChars   = 43 // 256 bits in base 62
)

// newSecret makes a secret that nobody guesses.
func newSecret(prefix string) string { return prefix + ids.Text(secretChars) }

// wellFormed reports whether the text can be a secret of ours at all. It saves
// the database from most nonsense.
func wellFormed(prefix, secret string) bool {
	body, ok := strings.CutPrefix(secret, prefix)
	return ok && len(body) == secretChars && ids.Alphanumeric(body)
}

// successorToken is the token that follows another. Whoever asks twice gets the
// same, and without the key nobody can tell.
func (d *Devices) successorToken(token string, generation int64) string {
	n := new(big.Int).SetBytes(d.computeMAC("refresh token", token, strconv.FormatInt(generation, 10)))
	s := n.Text(62)
	return refreshPrefix + strings.Repeat("0", secretChars-len(s)) + s
}

// computeMAC keys parts that hold no spaces.
func (d *Devices) computeMAC(purpose string, part ...string) []byte {
	m := hmac.New(sha256.New, d.o.Key)
	m.Write([]byte(purpose + " " + strings.Join(part, " ")))
	return m.Sum(nil)
}

const (
	// userAlphabet has no vowels, so that codes spell nothing, and no letters
	// and digits that look alike (RFC 8628 section 6.1).
	userAlphabet = "BCDFGHJKLMNPQRSTVWXZ"
	userChars    = 8
	// maxTyped bounds what is read as a user code.
	maxTyped = 64
)

// newUserCode draws a user code without the dash: 2.56e10 of them.
func newUserCode() string {
	code := make([]byte, 0, userChars)
	var b [1]byte
	for len(code) < userChars {
		rand.Read(b[:])
		// 240 = 12 * 20: what is above would favour the first letters.
		if b[0] < 240 {
			code = append(code, userAlphabet[b[0]%20])
		}
	}
	return string(code)
}

func showUserCode(code string) string { return code[:userChars/2] + "-" + code[userChars/2:] }

// readUserCode takes a code as people type it.
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
