package sqldb

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// SetSealKey sets the key for row seals. Without a key SealTexts returns "".
// Call it before the database is used by more than one goroutine.
func (db *DB) SetSealKey(key []byte) { db.sealKey = key }

// CanSeal reports whether there is a seal key.
func (tx *Tx) CanSeal() bool { return len(tx.sealKey) > 0 }

// SealTexts returns a keyed hash of texts in their order; the first text is the
// purpose. An attacker who can write the database, but does not have the
// installation's secret, cannot make such a hash.
func (tx *Tx) SealTexts(texts ...string) string {
	if len(tx.sealKey) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, tx.sealKey)
	var length [binary.MaxVarintLen64]byte
	for _, text := range texts { // each after its length: characters cannot be moved from one text to the next
		mac.Write(length[:binary.PutUvarint(length[:], uint64(len(text)))])
		mac.Write([]byte(text))
	}
	return hex.EncodeToString(mac.Sum(nil))
}
