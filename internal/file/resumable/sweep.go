package resumable

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
)

// SweepExpired deletes expired uploads and their parts, and parts without a
// row. It can run on several nodes at the same time and can be killed at any
// time; the next run continues. A part that cannot be deleted does not stop it.
func (s *Service) SweepExpired(ctx context.Context) error {
	for {
		var expired []string
		err := s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			expired, err = expiredUploads(ctx, tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("sweep unfinished uploads: %w", err)
		}
		if len(expired) == 0 {
			break
		}
		for _, id := range expired {
			if err := s.deleteExpired(ctx, id); err != nil {
				return fmt.Errorf("sweep unfinished uploads: %w", err)
			}
		}
	}
	if err := s.sweepOrphans(ctx); err != nil {
		return fmt.Errorf("sweep parts of uploads: %w", err)
	}
	return nil
}

// deleteExpired deletes an upload, unless a request has changed its expiry
// meanwhile.
func (s *Service) deleteExpired(ctx context.Context, id string) error {
	var removed []string
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		removed = nil
		u, err := byID(ctx, tx, id, tx.Dialect.ForUpdate)
		if errors.Is(err, sqldb.ErrNoRows) {
			return nil
		}
		if err != nil || u.Expires.After(tx.Now) {
			return err
		}
		removed, err = removeUpload(ctx, tx, u)
		return err
	})
	if err != nil {
		return err
	}
	s.deleteBlobs(ctx, removed)
	return nil
}

// sweepOrphans deletes old parts without a row. It returns the first error of a
// deletion at its end.
func (s *Service) sweepOrphans(ctx context.Context) error {
	before := s.DB.Now().Add(-s.Settings.OrphanAge)
	var first error
	var old []string
	sweep := func() error {
		if len(old) == 0 {
			return nil
		}

		var known []string
		err := s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			known, err = knownKeys(ctx, tx, old)
			return err
		})
		if err != nil {
			return err
		}

		for _, key := range old {
			if slices.Contains(known, key) {
				continue
			}
			err := s.Intake.Blobs.Delete(ctx, key)
			if err != nil && (ctx.Err() != nil || fault.Is(err, fault.Unavailable)) {
				return err
			}
			if first == nil {
				first = err
			}
		}
		old = old[:0]
		return nil
	}

	for item, err := range s.Intake.Blobs.List(ctx, Folder) {
		if err != nil {
			return err
		}
		if !item.Modified.Before(before) {
			continue
		}
		if old = append(old, item.Key); len(old) == batch {
			if err := sweep(); err != nil {
				return err
			}
		}
	}
	if err := sweep(); err != nil {
		return err
	}
	return first
}

// EraseNext deletes one upload of a person, finished or not. It returns false if
// the person has none. SweepExpired deletes the parts later. One transaction
// must not call it twice, because of the order of locks on storage counts.
func EraseNext(ctx context.Context, tx *sqldb.Tx, personID string) (bool, error) {
	u, err := firstOf(ctx, tx, personID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = removeUpload(ctx, tx, u)
	return true, err
}

// DeleteUnfinished deletes all unfinished uploads from a copy of a database,
// because the copies of an installation do not contain their parts.
func DeleteUnfinished(ctx context.Context, tx *sqldb.Tx) error {
	for {
		some, err := uploadsAfter(ctx, tx, "")
		if err != nil || len(some) == 0 {
			return err
		}
		for _, id := range some {
			u, err := byID(ctx, tx, id, "")
			if err != nil {
				return err
			}
			if _, err := removeUpload(ctx, tx, u); err != nil {
				return err
			}
		}
	}
}

// VerifyParts reports each part of an unfinished upload that is missing from
// the blob store or has another size than its row says.
func VerifyParts(ctx context.Context, db *sqldb.DB, blobs blob.Store, report func(problem string)) error {
	for last := ""; ; {
		var uploads []string
		err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
			uploads, err = uploadsAfter(ctx, tx, last)
			return err
		})
		if err != nil || len(uploads) == 0 {
			return err
		}

		for _, id := range uploads {
			last = id
			if err := verifyUpload(ctx, db, blobs, id, report); err != nil {
				return err
			}
		}
	}
}

func verifyUpload(ctx context.Context, db *sqldb.DB, blobs blob.Store, id string, report func(problem string)) error {
	var parts []part
	err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		parts, err = partsOf(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}

	for _, one := range parts {
		info, err := blobs.Stat(ctx, one.blob)
		problem := ""
		switch {
		case errors.Is(err, blob.ErrNotFound):
			problem = "missing part " + one.blob
		case fault.Is(err, fault.Unavailable) || ctx.Err() != nil:
			return err
		case err != nil:
			problem = err.Error()
		case info.Size != one.size:
			problem = fmt.Sprintf("the part %s has %d bytes, want %d", one.blob, info.Size, one.size)
		}
		if problem != "" && isKnown(ctx, db, one.blob) { // the upload may have ended meanwhile
			report("resumable_upload " + id + ": " + problem)
		}
	}
	return nil
}

// isKnown reports whether a row refers to a part.
func isKnown(ctx context.Context, db *sqldb.DB, key string) (known bool) {
	err := db.Read(ctx, func(tx *sqldb.Tx) error {
		found, err := knownKeys(ctx, tx, []string{key})
		known = len(found) > 0
		return err
	})
	return err == nil && known
}
