package certificate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"atelier/internal/base/sqldb"
)

// store implements autocert.Cache in the database. Each authority has its own
// rows, so that a certificate of a staging authority is not served after a
// change to another authority.
type store struct {
	db           *sqldb.DB
	box          Box
	directoryURL string
}

var _ autocert.Cache = (*store)(nil)

// httpChallenge is the suffix of the keys of http-01 challenges in autocert's
// cache.
const httpChallenge = "+http-01"

// Get returns the data stored under a cache key.
func (s *store) Get(ctx context.Context, name string) ([]byte, error) {
	row := s.rowName(name)
	var sealed string
	err := s.db.Read(ctx, func(tx *sqldb.Tx) error {
		return tx.QueryRow(ctx, `SELECT sealed FROM certificate WHERE name = $1`, row).Scan(&sealed)
	})
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil, autocert.ErrCacheMiss
	}
	if err != nil && strings.HasSuffix(name, httpChallenge) {
		return nil, autocert.ErrCacheMiss // otherwise autocert would send the error to the client
	}
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return s.box.Open(sealed, sealLabel(row))
}

// Put stores data under a cache key.
func (s *store) Put(ctx context.Context, name string, data []byte) error {
	row := s.rowName(name)
	sealed := s.box.Seal(data, sealLabel(row))
	err := s.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO certificate (name, sealed, changed) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, changed = excluded.changed`, row, sealed, sqldb.At(tx.Now))
		return err
	})
	if err != nil {
		return fmt.Errorf("store certificate: %w", err)
	}
	return nil
}

// Delete removes the data stored under a cache key.
func (s *store) Delete(ctx context.Context, name string) error {
	err := s.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM certificate WHERE name = $1`, s.rowName(name))
		return err
	})
	if err != nil {
		return fmt.Errorf("delete certificate: %w", err)
	}
	return nil
}

// claimDomain gives this node the exclusive right to obtain the certificate of
// a domain, until release is called or claimTimeout has passed. It returns
// errClaimed if another node has the right.
func (s *store) claimDomain(ctx context.Context, domain string) (release func(), err error) {
	row := s.rowName(domain)
	var until sqldb.Time
	err = s.db.Write(ctx, func(tx *sqldb.Tx) error {
		until = sqldb.At(tx.Now.Add(claimTimeout))
		n, err := tx.Exec(ctx, `
			INSERT INTO certificate_claim (name, until) VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET until = excluded.until WHERE certificate_claim.until <= $3`, row, until, sqldb.At(tx.Now))
		if err == nil && n == 0 {
			return errClaimed
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		_ = s.db.Write(ctx, func(tx *sqldb.Tx) error { // if this fails, the claim expires by itself
			_, err := tx.Exec(ctx, `DELETE FROM certificate_claim WHERE name = $1 AND until = $2`, row, until)
			return err
		})
	}, nil
}

const releaseTimeout = 2 * time.Second

// deleteOldChallenges deletes challenges older than a day, which nodes that
// crashed have left behind.
func (s *store) deleteOldChallenges(ctx context.Context) error {
	return s.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `
			DELETE FROM certificate WHERE changed < $1 AND (name LIKE '%+http-01' OR name LIKE '%+token')`, sqldb.At(tx.Now.Add(-24*time.Hour)))
		return err
	})
}

func (s *store) rowName(name string) string { return s.directoryURL + " " + name }

// sealLabel returns the label that ties encrypted data to its row (see Box).
func sealLabel(row string) string { return "certificate " + row }
