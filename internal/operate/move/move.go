// Package move copies an installation to another database, to another file
// store, or to both, and verifies the copy.
//
//	begin ──▶ copy tables ──▶ copy jobs ──▶ copy files ──▶ compare digests ──▶ check invariants ──▶ finish
//
// The source is only read, and no process may use it meanwhile. The target must
// be empty. It keeps the progress of the move, in the table sqldb.MoveTable or,
// if only files are moved, in the file markerKey. A batch of rows and the
// progress are one transaction, so a move that was killed continues where it
// stopped if the same move is run again. Until the move has finished, no other
// command opens the database of the target.
//
// The copy is exact: at the end every table has the same number of rows and the
// same digest in both databases, and every file has the same SHA-256 in both
// stores. There are two exceptions. Jobs are added to the queue of the target,
// because the two kinds of databases have different queues; a job that waited
// for another attempt starts at once. And the audit log of the target gets one
// entry about the move, after the comparison.
package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"atelier/internal/base/audit"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
)

// Move is a copy of an installation from one place to another.
type Move struct {
	Source *sqldb.DB // open for reading only
	Target *sqldb.DB // nil if the database is not moved

	SourceFiles blob.Store // open for reading only; nil if the files are not moved
	TargetFiles blob.Store // nil if the files are not moved

	// CheckStopped returns an error if a process uses the source.
	CheckStopped func(ctx context.Context) error
	// Check examines the copied installation and returns the problems that it
	// finds. It must set the key for seals of Target.
	Check func(ctx context.Context) (problems []string, err error)
	// Report is called after each step. It may be nil.
	Report func(Progress)
	Now    func() time.Time
}

// Progress describes a step of a move.
type Progress struct {
	Step  string // "copy", "compare" or "files"
	Table string // empty in the step "files"
	Rows  int64  // rows of the table so far
	Files int64  // files so far
}

// Report is the summary of a move.
type Report struct {
	Tables   int
	Rows     int64
	Jobs     int
	Files    int64
	Bytes    int64 // total size of the files
	Resumed  bool  // an earlier move of the same source was continued
	Problems []string
}

// rowLimit is the maximum time to read or write one batch of rows, or to read
// one table.
const rowLimit = 6 * time.Hour

// batchRows is the number of rows that are copied in one transaction.
const batchRows = 2000

var (
	errNotEmpty = errors.New("the database of the target is not empty: move into a new database")
	errNotSame  = errors.New("the target has a part of another installation, or the source has changed since the move began: " +
		"remove the database and the files of the target, and move again")
	errTwoMoves = errors.New("another atelier move into the same target is running")
)

// Run copies the installation and verifies the copy. If it returns an error,
// the target must not be used; the same move may be run again.
func (m Move) Run(ctx context.Context) (r Report, err error) {
	if err := m.CheckStopped(ctx); err != nil {
		return r, err
	}
	identity, err := m.identifySource(ctx)
	if err != nil {
		return r, err
	}

	if m.Target != nil {
		if r.Resumed, err = m.beginDatabase(ctx, identity); err != nil {
			return r, err
		}
		if err := m.copyDatabase(ctx, &r); err != nil {
			return r, err
		}
	}
	if m.TargetFiles != nil {
		resumed, err := m.beginFiles(ctx, identity)
		if err != nil {
			return r, err
		}
		r.Resumed = r.Resumed || resumed
		if err := m.copyFiles(ctx, &r); err != nil {
			return r, err
		}
	}
	if m.Target != nil {
		if err := m.compareDatabases(ctx, &r); err != nil {
			return r, err
		}
		if err := m.Target.Analyze(ctx); err != nil {
			return r, err
		}
	}

	if r.Problems, err = m.Check(ctx); err != nil {
		return r, err
	}
	if err := m.CheckStopped(ctx); err != nil {
		return r, err
	}
	return r, m.finish(ctx, r)
}

// identifySource returns a hash that is the same as long as the source is the
// same installation and its audit log has no new entries.
func (m Move) identifySource(ctx context.Context) (string, error) {
	tables, err := m.Source.Tables(ctx)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	err = m.Source.Read(ctx, func(tx *sqldb.Tx) error {
		hash.Reset()
		for _, t := range tables {
			if t.Name != "deployment" && t.Name != "audit_head" {
				continue
			}
			d, err := tx.DigestTable(ctx, t)
			if err != nil {
				return err
			}
			fmt.Fprintln(hash, t.Name, d)
		}
		return nil
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// beginDatabase prepares an empty target, or finds that the target has a part
// of the same source.
func (m Move) beginDatabase(ctx context.Context, identity string) (resumed bool, err error) {
	if resumed, err = m.Target.IsMoveTarget(ctx); err != nil {
		return false, err
	}
	if resumed {
		began, err := readState(ctx, m.Target, stateSource)
		if err == nil && began != identity {
			err = errNotSame
		}
		if err != nil {
			return false, err
		}
	} else {
		filled, err := m.Target.HasTables(ctx)
		if err == nil && filled {
			err = errNotEmpty
		}
		if err == nil {
			err = createState(ctx, m.Target, identity)
		}
		if err != nil {
			return false, err
		}
	}
	return resumed, m.Target.MigrateMoveTarget(ctx)
}

// copyDatabase copies all tables and the jobs.
func (m Move) copyDatabase(ctx context.Context, r *Report) error {
	tables, err := m.matchTables(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := m.copyTable(ctx, t); err != nil {
			return err
		}
	}
	r.Tables = len(tables)
	r.Jobs, err = m.copyJobs(ctx)
	return err
}

// matchTables returns the tables of the source. It returns an error if the
// target has other tables or columns.
func (m Move) matchTables(ctx context.Context) ([]sqldb.Table, error) {
	from, err := m.Source.Tables(ctx)
	if err != nil {
		return nil, err
	}
	to, err := m.Target.Tables(ctx)
	if err != nil {
		return nil, err
	}
	if fmt.Sprint(from) != fmt.Sprint(to) {
		return nil, errors.New("the tables of the source and of the target differ")
	}
	return from, nil
}

// copyTable copies the rows of a table that the target does not have yet.
func (m Move) copyTable(ctx context.Context, t sqldb.Table) error {
	ctx = sqldb.WithLimit(ctx, rowLimit)
	have, err := readTableState(ctx, m.Target, t)
	if err != nil {
		return err
	}
	for !have.Done {
		var rows []sqldb.TableRow
		err := m.Source.Read(ctx, func(tx *sqldb.Tx) (err error) {
			rows, err = tx.ReadRows(ctx, t, have.after, batchRows)
			return err
		})
		if err != nil {
			return err
		}
		next := have.advance(t, rows)
		next.Done = len(rows) < batchRows
		err = m.Target.Write(ctx, func(tx *sqldb.Tx) error {
			if err := changeTableState(ctx, tx, t, have, &next); err != nil {
				return err
			}
			if !have.Begun { // migrations and triggers have added rows
				if err := tx.ClearTable(ctx, t); err != nil {
					return err
				}
			}
			return tx.InsertRows(ctx, t, rows)
		})
		if err != nil {
			return err
		}
		have = next
		m.report(Progress{Step: "copy", Table: t.Name, Rows: have.Rows})
	}
	return nil
}

// copyJobs adds the unfinished jobs to the queue of the target.
func (m Move) copyJobs(ctx context.Context) (n int, err error) {
	ctx = sqldb.WithLimit(ctx, rowLimit)
	to, err := queue.Open(m.Target, queue.Options{Now: m.Now})
	if err != nil {
		return 0, err
	}
	var jobs []queue.Job
	err = m.Source.Read(ctx, func(tx *sqldb.Tx) (err error) {
		jobs, err = queue.ListUnfinished(ctx, tx)
		return err
	})
	if err != nil {
		return 0, err
	}
	done, err := readState(ctx, m.Target, stateJobs)
	if err != nil || done != "" {
		return len(jobs), err
	}
	return len(jobs), m.Target.Write(ctx, func(tx *sqldb.Tx) error {
		for _, j := range jobs {
			if _, err := to.Add(ctx, tx, j); err != nil {
				return err
			}
		}
		return changeState(ctx, tx, stateJobs, "", "done")
	})
}

// compareDatabases returns an error unless every table has the same content in
// the source and in the target.
func (m Move) compareDatabases(ctx context.Context, r *Report) error {
	tables, err := m.matchTables(ctx)
	if err != nil {
		return err
	}
	r.Rows = 0
	for _, t := range tables {
		var from, to sqldb.TableDigest
		var both errgroup.Group
		both.Go(func() (err error) { from, err = digestTable(ctx, m.Source, t); return err })
		both.Go(func() (err error) { to, err = digestTable(ctx, m.Target, t); return err })
		if err := both.Wait(); err != nil {
			return err
		}
		if from != to {
			return fmt.Errorf("the table %s differs: the source has %d rows with the digest %s, the target has %d rows with the digest %s; "+
				"the source may have changed during the move: remove the target and move again", t.Name, from.Rows, from, to.Rows, to)
		}
		r.Rows += from.Rows
		m.report(Progress{Step: "compare", Table: t.Name, Rows: from.Rows})
	}
	return nil
}

func digestTable(ctx context.Context, db *sqldb.DB, t sqldb.Table) (d sqldb.TableDigest, err error) {
	ctx = sqldb.WithLimit(ctx, rowLimit)
	err = db.Read(ctx, func(tx *sqldb.Tx) error {
		d, err = tx.DigestTable(ctx, t)
		return err
	})
	return d, err
}

// finish records the move in the audit log and makes the target usable.
func (m Move) finish(ctx context.Context, r Report) error {
	if m.Target == nil {
		return m.TargetFiles.Delete(ctx, markerKey)
	}
	return m.Target.Write(ctx, func(tx *sqldb.Tx) error {
		details := map[string]string{
			"from": m.Source.Dialect.Name,
			"to":   m.Target.Dialect.Name,
			"rows": fmt.Sprint(r.Rows),
		}
		if err := audit.Add(ctx, tx, audit.Entry{Act: audit.InstallationMoved, Details: details}); err != nil {
			return err
		}
		return dropState(ctx, tx)
	})
}

func (m Move) report(p Progress) {
	if m.Report != nil {
		m.Report(p)
	}
}

// describeKeys joins up to a few keys for an error message.
func describeKeys(keys []string) string {
	const shown = 3
	if len(keys) > shown {
		return strings.Join(keys[:shown], ", ") + fmt.Sprintf(" and %d more", len(keys)-shown)
	}
	return strings.Join(keys, ", ")
}
