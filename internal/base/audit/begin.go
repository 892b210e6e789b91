package audit

import (
	"context"
	"fmt"

	"atelier/internal/base/sqldb"
)

// Sealed reports whether seals are kept: the head has one, or a row does.
func Sealed(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	_, seal, _, err := readEnds(ctx, tx)
	if err != nil || seal != "" {
		return seal != "", err
	}
	return hasSeals(ctx, tx)
}

// BeginSeals has seals be kept from now on, once: others seal what they have in
// old, which gives the details of the entry, none where there was nothing. It
// does nothing where seals are kept already, so that nobody can have what they
// put in sealed later.
func BeginSeals(ctx context.Context, tx *sqldb.Tx, old func() (map[string]string, error)) error {
	head, _, err := lockHead(ctx, tx) // one node at a time
	if err != nil {
		return fmt.Errorf("begin seals: %w", err)
	}
	kept, err := Sealed(ctx, tx)
	if err != nil || kept {
		return err
	}
	details, err := old()
	if err != nil {
		return fmt.Errorf("begin seals: %w", err)
	}
	if head.Seq == 0 && len(details) == 0 {
		return putHead(ctx, tx, head)
	}
	return addEntry(ctx, tx, Entry{Act: SealsBegun, Details: details}, head, true)
}
