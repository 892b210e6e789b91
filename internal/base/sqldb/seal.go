package sqldb

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// SetSealKey sets the key for row seals (see package seal). Without a key,
// SealTexts returns "". SetSealKey must be called before other goroutines use
// the database.
func (db *DB) SetSealKey(key []byte) { db.sealKey = key }

// CanSeal reports whether a key for row seals was set.
func (tx *Tx) CanSeal() bool { return len(tx.sealKey) > 0 }

// SealTexts returns a keyed hash of the given strings. The first string is the
// purpose, such as the name of a table. An attacker who can write to the
// database, but does not have the installation's secret, cannot compute the
// hash.
func (tx *Tx) SealTexts(texts ...string) string {
	if len(tx.sealKey) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, tx.sealKey)
	var length [binary.MaxVarintLen64]byte
	for _, text := range texts { // the length comes first, so that moving characters from one string to the next changes the hash
		mac.Write(length[:binary.PutUvarint(length[:], uint64(len(text)))])
		mac.Write([]byte(text))
	}
	return hex.EncodeToString(mac.Sum(nil))
}
