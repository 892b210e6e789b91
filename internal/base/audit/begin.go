package audit

import (
	"context"
	"fmt"

	"atelier/internal/base/sqldb"
)

// Sealed reports whether the head or any row of the log has a seal.
func Sealed(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	_, seal, _, err := readEnds(ctx, tx)
	if err != nil || seal != "" {
		return seal != "", err
	}
	return hasSeals(ctx, tx)
}

// BeginSeals introduces seals (keyed hashes of rows) in an installation that is
// older than this feature. It calls old, which seals the existing rows of other
// packages and returns the details for the log entry, or none if there was
// nothing to seal. If the log already has seals, BeginSeals does nothing, so
// that rows inserted by an attacker are not sealed later.
func BeginSeals(ctx context.Context, tx *sqldb.Tx, old func() (map[string]string, error)) error {
	head, _, err := lockHead(ctx, tx) // the lock ensures that only one node at a time introduces seals
	if err != nil {
		return fmt.Errorf("start sealing rows: %w", err)
	}
	kept, err := Sealed(ctx, tx)
	if err != nil || kept {
		return err
	}
	details, err := old()
	if err != nil {
		return fmt.Errorf("start sealing rows: %w", err)
	}
	if head.Seq == 0 && len(details) == 0 {
		return putHead(ctx, tx, head)
	}
	return addEntry(ctx, tx, Entry{Act: SealsBegun, Details: details}, head, true)
}
