package sqldb

import "context"

// MigrateTo takes the steps up to a version, as a release that ended there did.
func (db *DB) MigrateTo(ctx context.Context, version int64) error {
	p, conn, err := migrationProvider(db, db.pool)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = p.UpTo(ctx, version)
	return err
}
