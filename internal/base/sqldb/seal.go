package sqldb

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// SetSealKey sets the key that rows are sealed with. Without a key Seal returns "".
// Call it before the database is used by more than one goroutine.
func (db *DB) SetSealKey(key []byte) { db.sealKey = key }

// CanSeal reports whether there is a key to seal with.
func (tx *Tx) CanSeal() bool { return len(tx.sealKey) > 0 }

// SealTexts returns a keyed hash of texts in their order, of which the first names what
// they are. Whoever can write the database and does not have the installation's
// secret cannot make one.
func (tx *Tx) SealTexts(texts ...string) string {
	if len(tx.sealKey) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, tx.sealKey)
	var length [binary.MaxVarintLen64]byte
	for _, text := range texts { // each after its length: nothing can move from one to the next
		mac.Write(length[:binary.PutUvarint(length[:], uint64(len(text)))])
		mac.Write([]byte(text))
	}
	return hex.EncodeToString(mac.Sum(nil))
}
