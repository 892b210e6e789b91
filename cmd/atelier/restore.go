package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/base/audit"
	"atelier/internal/base/dispatch"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/file/blob"
	"atelier/internal/operate/backup"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

type restoreCmd struct {
	jsonFlag
	File            string `arg:"" help:"Archive to restore; - reads standard input. Or the s3:// or file:// address of a continuous backup."`
	At              string `help:"Moment to restore from a continuous backup (default: the newest)." placeholder:"TIME"`
	SecretFile      string `help:"Copy of the file with the installation's secret, which a continuous backup does not have." placeholder:"FILE"`
	SignOutEveryone bool   `help:"End every browser, device, access token and directory's token: those that were ended after the backup would work again."`
}

// Run restores an archive or a continuous backup into the data folder, which
// must not exist. It writes into a temporary folder next to the data folder, and
// renames that folder at the end.
func (c restoreCmd) Run(p *program) (err error) {
	continuous := isStoreAddress(c.File)
	if p.cfg.Database != "" || p.cfg.Blobs != "" && !continuous {
		return usageError{errors.New("a backup can be restored only into a data folder: omit --database and --blobs")}
	}
	if (c.At != "" || c.SecretFile != "") && !continuous {
		return usageError{errors.New("--at and --secret-file are for continuous backups")}
	}
	var archive io.ReadCloser
	if !continuous {
		if archive, err = c.openArchive(); err != nil {
			return err
		}
		defer archive.Close()
	}
	target, err := filepath.Abs(p.cfg.Data)
	if err != nil {
		return err
	}
	makePrivate()
	stage, err := backup.NewStage(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()

	staged := *p
	cfg := *p.cfg
	cfg.Data = stage.FolderPath()
	cfg.Roles = []string{"api"} // the restored installation is opened without engines
	staged.cfg = &cfg
	var header backup.Header
	files := 0
	if continuous {
		header, err = c.restoreMoment(p.ctx, &staged.installation)
	} else {
		header, files, err = staged.extractArchive(p.ctx, archive)
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", c.File, err)
	}
	settled, err := staged.adoptRestored(p.ctx, header, c.SignOutEveryone)
	if err != nil {
		return fmt.Errorf("restore %s: %w", c.File, err)
	}
	if err := stage.Commit(); err != nil {
		return err
	}
	answer := map[string]any{
		"data": target, "files": files, "made": formatTime(header.Made), "requeued_runs": settled.requeued, "ended_runs": settled.ended, "signed_out_people": settled.signedOut,
	}
	text := fmt.Sprintf("%s: %d files, as of %s; %d runs were queued again, %d were ended", target, files, formatTime(header.Made), settled.requeued, settled.ended)
	if c.SignOutEveryone {
		text += fmt.Sprintf("; %d people were signed out everywhere", settled.signedOut)
	}
	if continuous && p.cfg.Blobs == "" {
		text += fmt.Sprintf("\nthe files are not in a continuous backup: copy them to %s, and run atelier check --files", filepath.Join(target, "blobs"))
	}
	return p.printResult(c.JSON, answer, text)
}

func (c restoreCmd) openArchive() (io.ReadCloser, error) {
	if c.File == "-" {
		return os.Stdin, nil
	}
	return os.Open(c.File)
}

// extractArchive extracts the archive into the data folder. It returns the
// header of the archive and the number of files.
func (p *program) extractArchive(ctx context.Context, archive io.Reader) (backup.Header, int, error) {
	blobs, err := blob.Open(ctx, p.cfg.BlobsURL(), blob.Options{Now: time.Now, SkipSync: true})
	if err != nil {
		return backup.Header{}, 0, err
	}
	defer blobs.Close()
	layout := backup.Layout{Folder: p.cfg.Data, Database: filepath.Join(p.cfg.Data, "atelier.db"), Secret: p.cfg.SecretFile(), Blobs: blobs}
	return backup.Extract(ctx, archive, layout, func(h backup.Header) error {
		switch {
		case h.HasSecret && p.cfg.Secret != "":
			return errors.New("the backup contains the installation's secret: unset ATELIER_SECRET")
		case !h.HasSecret && p.cfg.Secret == "":
			return errors.New("the backup does not contain the installation's secret: set ATELIER_SECRET to the value that the installation used")
		}
		return nil
	})
}

// settlement counts the runs that a restore returned to the queue or ended, and
// the people whom it signed out.
type settlement struct {
	requeued, ended, signedOut int
}

// adoptRestored handles the runs that were running when the backup was made: it
// returns them to the queue or ends them, because their workers belong to the
// original installation. If signOut is true, it also signs out everyone.
func (p *program) adoptRestored(ctx context.Context, h backup.Header, signOut bool) (s settlement, err error) {
	db, err := p.openMigrated(ctx)
	if err != nil {
		return s, err
	}
	defer db.Close()
	keys, err := p.openKeys(ctx, db)
	if err != nil {
		return s, err
	}
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		return audit.Add(ctx, tx, audit.Entry{Act: audit.BackupRestored, Details: map[string]string{"made": formatTime(h.Made), "version": h.Version}})
	})
	if err != nil {
		return s, err
	}

	jobs, err := queue.Open(db, queue.Options{Now: time.Now})
	if err != nil {
		return s, err
	}
	blobs, err := p.openBlobs(ctx)
	if err != nil {
		return s, err
	}
	defer blobs.Close()
	log := slog.New(slog.DiscardHandler)
	p.cfg.FillAddresses(p.cfg.Listen)
	events := dispatch.NewLoop()
	who := p.openPeople(db, keys, jobs, events.Wake)
	work, err := p.openRuns(runParts{
		db:      db,
		keys:    keys,
		blobs:   blobs,
		catalog: catalog.New(db, log),
		budgets: who.budgets,
		jobs:    jobs,
		events:  events,
		log:     log,
		metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		return s, err
	}
	if err := s.settleRuns(ctx, db, work.service, time.Duration(p.cfg.Runs.MaxWait)); err != nil {
		return s, fmt.Errorf("requeue runs: %w", err)
	}
	if !signOut {
		return s, nil
	}
	if err := who.companies.SCIMConnections.DisconnectAllProviders(ctx, principal.Operator()); err != nil {
		return s, err
	}
	s.signedOut, err = who.accounts.SignIn.SignOutEveryone(ctx)
	return s, err
}

// settlePage is the number of runs read in one transaction.
const settlePage = 100

// settleRuns returns running runs to the queue, and ends runs that were
// cancelled or have waited longer than maxWait.
func (s *settlement) settleRuns(ctx context.Context, db *sqldb.DB, runs *generation.Service, maxWait time.Duration) error {
	oldest := db.Now().Add(-maxWait)
	end := func(one run.Run) error {
		e := generation.Outcome{
			State:     run.Failed,
			ErrorCode: string(engine.Unavailable),
			ErrorText: "The run waited too long: the service was restored from a backup.",
		}
		if one.Cancel {
			e = generation.Outcome{State: run.Cancelled}
		}
		s.ended++
		return runs.EndRun(ctx, one, e)
	}
	for {
		var page []run.Run
		err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
			page, err = run.ListClaimed(ctx, tx, settlePage)
			return err
		})
		if err != nil || len(page) == 0 {
			if err != nil {
				return err
			}
			break
		}
		for _, one := range page {
			if one.Cancel || one.Created.Before(oldest) {
				err = end(one)
			} else {
				s.requeued++
				err = db.Write(ctx, func(tx *sqldb.Tx) error {
					_, err := run.Requeue(ctx, tx, run.Lease{ID: one.ID, Attempt: one.Attempt}, run.Returned)
					return err
				})
			}
			if err != nil {
				return err
			}
		}
	}
	for {
		var page []run.Run
		err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
			page, err = run.ListWaitingSince(ctx, tx, oldest, settlePage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, one := range page {
			if err := end(one); err != nil {
				return err
			}
		}
	}
}
