package ledger

import (
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/hex"
	"fmt"

	"atelier/internal/base/sqldb"
)

// VerifySeals reports every ledger transaction whose seal (a keyed hash) does
// not match the transaction and its entries. Transactions from before the
// introduction of seals have none; old is the result of UnsealedDigest at that
// time, and their digest must still be the same.
func VerifySeals(ctx context.Context, tx *sqldb.Tx, old string, report func(problem string)) error {
	var unsealed unsealedSet
	err := eachMovement(ctx, tx, func(m movement, created int64, seal string) error {
		switch {
		case seal == "":
			unsealed.addSeal(m.sealedHash(tx, created))
		case !hmac.Equal([]byte(seal), []byte(m.sealedHash(tx, created))):
			report("ledger_transaction " + m.id + " does not match its seal")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify the seals of the ledger: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(unsealed.String()), []byte(old)) != 1 {
		report("ledger_transaction: the rows without a seal differ from the rows that existed before sealing started")
	}
	return nil
}

// UnsealedDigest returns a digest of the ledger transactions without a seal, or
// "" if there are none. These transactions cannot be sealed later, because the
// table rejects updates.
func UnsealedDigest(ctx context.Context, tx *sqldb.Tx) (string, error) {
	var unsealed unsealedSet
	err := eachMovement(ctx, tx, func(m movement, created int64, seal string) error {
		if seal == "" {
			unsealed.addSeal(m.sealedHash(tx, created))
		}
		return nil
	})
	return unsealed.String(), err
}

// Sum contains the number of tokens that the operator granted to an account,
// and the number of its free top-ups.
type Sum struct {
	Granted int64 // tokens granted by the operator, minus tokens taken back
	TopUps  int64 // number of free top-ups
}

// unsealedSet is a digest of a set of ledger transactions: their number and the
// XOR of their hashes, which does not depend on their order.
type unsealedSet struct {
	count int
	sum   [32]byte
}

func (l *unsealedSet) addSeal(seal string) {
	l.count++
	raw, _ := hex.DecodeString(seal) // Tx.SealTexts returns valid hexadecimal
	subtle.XORBytes(l.sum[:], l.sum[:], raw)
}

func (l *unsealedSet) String() string {
	if l.count == 0 {
		return ""
	}
	return fmt.Sprintf("%d %x", l.count, l.sum)
}
