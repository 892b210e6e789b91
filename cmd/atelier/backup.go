package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/cli/term"
	"atelier/internal/operate/backup"
)

type backupCmd struct {
	jsonFlag
	File       string        `arg:"" help:"File to write; must not exist. - writes to standard output."`
	Continuous bool          `help:"Copy every change of the embedded database to FILE, an s3:// or file:// address, until interrupted."`
	Keep       time.Duration `help:"How long the changes of a continuous backup are kept." default:"168h" placeholder:"TIME"`
}

var errProblemsSaved = errors.New("the backup was written, but the installation has problems")

// Advice for installations that this command cannot back up.
const (
	adviceBoth = `atelier backup cannot copy this installation, because it keeps its %s. Copy these parts, in this order:
  1. pg_dump --format=custom --file=atelier.dump DATABASE   (one consistent moment, while the service runs)
  2. the files: after the dump, so that every file that the dump refers to is copied
  3. the secret: ATELIER_SECRET, or the file keys/secret in the data folder; the dump cannot be used without the secret`
	advicePostgres = `
Copy the folder of files with rsync -a; the service may run meanwhile. No file may be swept between steps 1 and 2:
set retention.every to a longer time than the copy takes, or stop the service.`
	adviceS3 = `
Turn on versioning for the bucket, keep old versions for longer than you keep a dump, and copy the bucket with the tools of
its server. With versioning, a file that was deleted after the dump can be restored.`
)

func (c backupCmd) Run(p *program) error {
	if c.Continuous {
		return c.runContinuously(p)
	}
	if isStoreAddress(c.File) {
		return usageError{errors.New("a backup is one file; with --continuous, changes are copied to an address")}
	}
	if err := p.requireEmbedded(); err != nil {
		return err
	}
	if err := p.findDatabase(); err != nil {
		return err
	}
	db, err := p.openDatabase(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.CheckMigrated(p.ctx); err != nil {
		return err
	}
	source, err := p.backupSource(p.ctx, db)
	if err != nil {
		return err
	}
	defer source.Blobs.Close()
	err = db.Write(p.ctx, func(tx *sqldb.Tx) error { return audit.Add(p.ctx, tx, audit.Entry{Act: audit.BackupMade}) })
	if err != nil {
		return err
	}

	var made backup.Report
	began := time.Now()
	if c.File == "-" && term.IsTerminal(p.stdout) {
		return usageError{errors.New("standard output is a terminal: redirect the archive to a file or a program")}
	}
	if c.File == "-" {
		made, err = backup.Stream(p.ctx, source, p.stdout, os.TempDir())
	} else {
		made, err = backup.Create(p.ctx, source, c.File)
	}
	if err != nil {
		return err
	}
	return c.printReport(p, made, time.Since(began))
}

// printReport prints a summary of the backup. It goes to standard error if the
// archive goes to standard output.
func (c backupCmd) printReport(p *program, made backup.Report, took time.Duration) error {
	for _, problem := range made.Problems {
		fmt.Fprintln(p.stderr, problem)
	}
	text := fmt.Sprintf("%s: %d files, %d bytes, as of %s, in %s; verified", c.File, made.Files, made.Bytes, formatTime(made.Made), took.Round(time.Millisecond))
	if !made.HasSecret {
		text += "\nthe secret is not in the backup: keep ATELIER_SECRET, which is needed to restore it"
	}
	switch {
	case c.File == "-":
		fmt.Fprintln(p.stderr, strings.Replace(text, "; verified", "; atelier restore verifies it", 1))
	default:
		answer := map[string]any{
			"file": c.File, "files": made.Files, "bytes": made.Bytes, "made": formatTime(made.Made), "has_secret": made.HasSecret,
			"seconds": float64(took.Milliseconds()) / 1000, "problems": append([]string{}, made.Problems...),
		}
		if err := p.printResult(c.JSON, answer, text); err != nil {
			return err
		}
	}
	if len(made.Problems) > 0 {
		return errProblemsSaved
	}
	return nil
}

// requireEmbedded returns an error with advice unless the installation uses
// the embedded database and local files.
func (in *installation) requireEmbedded() error {
	inFile := strings.HasPrefix(in.cfg.DatabaseURL(), "sqlite://")
	inFolder := strings.HasPrefix(in.cfg.BlobsURL(), "file://")
	var advice string
	switch {
	case inFile && inFolder:
		return nil
	case inFolder:
		advice = fmt.Sprintf(adviceBoth, "database on a PostgreSQL server") + advicePostgres
	case inFile:
		advice = strings.Replace(adviceBoth, "pg_dump --format=custom --file=atelier.dump DATABASE", "sqlite3 DATA/atelier.db '.backup atelier.db'", 1)
		advice = fmt.Sprintf(advice, "files in a bucket") + adviceS3
	default:
		advice = fmt.Sprintf(adviceBoth, "database on a PostgreSQL server and its files in a bucket") + adviceS3
	}
	return errors.New(advice)
}

// backupSource returns the parts of this installation that a backup contains.
func (p *program) backupSource(ctx context.Context, db *sqldb.DB) (s backup.Source, err error) {
	found, err := p.openSealKey(ctx, db)
	if err == nil && !found {
		err = fmt.Errorf("the installation's secret is missing: there is no %s, and ATELIER_SECRET is not set", p.cfg.SecretFile())
	}
	if err != nil {
		return s, err
	}
	if p.cfg.Secret == "" {
		if s.Secret, err = os.ReadFile(p.cfg.SecretFile()); err != nil {
			return s, err
		}
	}
	if s.Blobs, err = p.openBlobsForReading(ctx); err != nil {
		return s, err
	}
	s.DB = db
	s.Version = buildVersion()
	s.Now = time.Now
	s.Check = func(ctx context.Context, copied *sqldb.DB) (problems []string, err error) {
		// Checks of deadlines and limits are omitted, because the service may
		// be stopped, and its settings may differ from those of this command.
		found, _, err := p.verifyDatabase(ctx, copied, nil)
		for _, v := range found {
			problems = append(problems, v.Row+": "+v.Check)
		}
		return problems, err
	}
	return s, nil
}
