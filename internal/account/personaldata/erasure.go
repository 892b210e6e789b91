package personaldata

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/file/library"
	"atelier/internal/file/quota"
	"atelier/internal/file/resumable"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/person"
	"atelier/internal/run/run"
	"atelier/internal/run/savedflow"
)

// EraseKind is the kind of the background jobs that erase the contents of
// deleted people.
const EraseKind = "person-erase"

// NewEraseHandler returns the handler of the background jobs that erase the
// contents of deleted people.
func NewEraseHandler(db *sqldb.DB) queue.Handler {
	return queue.Handler{
		Kind:    EraseKind,
		Timeout: 10 * time.Minute,
		Retry: []time.Duration{
			time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour,
			6 * time.Hour, 6 * time.Hour, 6 * time.Hour, 6 * time.Hour, 24 * time.Hour, 24 * time.Hour, 24 * time.Hour,
		},
		Do: func(ctx context.Context, w queue.Work) error {
			var personID string
			if err := json.Unmarshal(w.Args, &personID); err != nil {
				return queue.GiveUp(err)
			}
			return eraseContents(ctx, db, personID)
		},
	}
}

// ErasePerson erases the contents of a deleted person immediately, for commands
// that run without a background worker.
func (s *Service) ErasePerson(ctx context.Context, personID string) error {
	return eraseContents(ctx, s.DB, personID)
}

// Maximum numbers of rows that one transaction erases. They are small because
// SQLite permits one writer at a time, and all others wait. The number for
// boards is smaller because a board can have thousands of nodes.
const (
	rowsPerBatch   = 200
	boardsPerBatch = 5
)

// eraseContents erases the runs, uploads, unfinished uploads and boards of a deleted person. It can
// be called again after a failure; steps that are already complete cost little.
func eraseContents(ctx context.Context, db *sqldb.DB, personID string) error {
	if err := requireDeleted(ctx, db, personID); err != nil {
		return err
	}
	if err := eraseRuns(ctx, db, personID); err != nil {
		return fmt.Errorf("erase runs: %w", err)
	}
	if err := eraseUploads(ctx, db, personID); err != nil {
		return fmt.Errorf("erase uploads: %w", err)
	}
	if err := eraseResumable(ctx, db, personID); err != nil {
		return fmt.Errorf("erase unfinished uploads: %w", err)
	}
	if err := eraseBoards(ctx, db, personID); err != nil {
		return fmt.Errorf("erase boards: %w", err)
	}

	// Requests that were in progress during the deletion may have added rows
	// afterwards.
	return db.Write(ctx, func(tx *sqldb.Tx) error { return eraseSmallRows(ctx, tx, personID) })
}

// requireDeleted returns an error if the person is not deleted.
func requireDeleted(ctx context.Context, db *sqldb.DB, personID string) error {
	return db.Read(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByID(ctx, tx, personID)
		if err == nil && !p.Deleted {
			err = queue.GiveUp(fmt.Errorf("person %s was not deleted", personID))
		}
		return err
	})
}

func eraseRuns(ctx context.Context, db *sqldb.DB, personID string) error {
	var after run.Cursor
	for {
		var last run.Cursor
		var erased int
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			ids, end, err := run.ListIDs(ctx, tx, personID, after, rowsPerBatch)
			if err != nil {
				return err
			}
			last = end
			erased = len(ids)
			if err := run.Erase(ctx, tx, ids); err != nil {
				return err
			}
			if err := webhook.Erase(ctx, tx, ids); err != nil {
				return err
			}
			return library.EraseResults(ctx, tx, ids)
		})
		if err != nil || erased < rowsPerBatch {
			return err
		}
		after = last
	}
}

func eraseUploads(ctx context.Context, db *sqldb.DB, personID string) error {
	after := ""
	for {
		var last string
		err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			last, err = library.EraseUploads(ctx, tx, personID, after, rowsPerBatch)
			return err
		})
		if err != nil || last == "" {
			return err
		}
		after = last
	}
}

func eraseResumable(ctx context.Context, db *sqldb.DB, personID string) error {
	for {
		var more bool
		err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			more, err = resumable.EraseNext(ctx, tx, personID)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

func eraseBoards(ctx context.Context, db *sqldb.DB, personID string) error {
	for {
		var more bool
		err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			more, err = board.EraseSome(ctx, tx, personID, boardsPerBatch)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

// eraseSmallRows erases a person's saved flows, favorites, idempotency keys,
// webhook secret and storage counts.
func eraseSmallRows(ctx context.Context, tx *sqldb.Tx, personID string) error {
	if err := savedflow.Erase(ctx, tx, personID); err != nil {
		return err
	}
	if err := library.EraseFavorites(ctx, tx, personID); err != nil {
		return err
	}
	if err := run.ErasePerson(ctx, tx, personID); err != nil {
		return err
	}
	if err := webhook.EraseSecret(ctx, tx, personID); err != nil {
		return err
	}
	return quota.DeleteLimit(ctx, tx, personID)
}
