package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atelier/internal/base/config"
	"atelier/internal/base/sqldb"
	"atelier/internal/cli/term"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/file/resumable"
	"atelier/internal/operate/move"
	"atelier/internal/run/node"
)

type moveCmd struct {
	jsonFlag
	From []string `sep:"none" placeholder:"PLACE" help:"Where the installation is: a data folder, a database or a file store (default: the settings)."`
	To   []string `sep:"none" required:"" placeholder:"PLACE" help:"Where it goes: a new data folder, postgres://…, sqlite:///path, file:///dir or s3://bucket?endpoint=…; repeat for the database and the files."`
}

var errProblemsMoved = errors.New("the installation was moved, but it has problems")

// Run copies this installation to other places. The parts for which --to names
// no place stay where they are.
func (c moveCmd) Run(p *program) (err error) {
	source, target, err := c.readPlaces(p.installation)
	if err != nil {
		return usageError{err}
	}
	if err := checkStopped(p.ctx, source, nil); err != nil {
		return err
	}
	db, err := source.openForReading(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := source.openSealKey(p.ctx, db); err != nil {
		return err
	}
	if err := copySecret(source.cfg, target.cfg); err != nil {
		return err
	}

	m := move.Move{
		Source:       db,
		CheckStopped: func(ctx context.Context) error { return checkStopped(ctx, source, db) },
		Report:       c.showProgress(p),
		Now:          time.Now,
	}
	if source.cfg.DatabaseURL() != target.cfg.DatabaseURL() {
		if m.Target, err = target.openDatabase(p.ctx); err != nil {
			return err
		}
		defer m.Target.Close()
	}
	if m.SourceFiles, err = source.openBlobsForReading(p.ctx); err != nil {
		return err
	}
	defer m.SourceFiles.Close()
	files := m.SourceFiles
	if source.cfg.BlobsURL() != target.cfg.BlobsURL() {
		if m.TargetFiles, err = target.openBlobs(p.ctx); err != nil {
			return err
		}
		defer m.TargetFiles.Close()
		files = m.TargetFiles
	}
	m.Check = func(ctx context.Context) ([]string, error) {
		if m.Target == nil {
			return checkMovedInstallation(ctx, source, db, files)
		}
		return checkMovedInstallation(ctx, target, m.Target, files)
	}

	began := time.Now()
	r, err := m.Run(p.ctx)
	if err != nil {
		return err
	}
	return c.printReport(p, r, target.cfg, time.Since(began))
}

// readPlaces returns the installations that --from and --to describe.
func (c moveCmd) readPlaces(in installation) (source, target *installation, err error) {
	from := *in.cfg
	if err := applyPlaces(&from, c.From); err != nil {
		return nil, nil, fmt.Errorf("--from: %w", err)
	}
	to := from
	if err := applyPlaces(&to, c.To); err != nil {
		return nil, nil, fmt.Errorf("--to: %w", err)
	}
	if from.DatabaseURL() == to.DatabaseURL() && from.BlobsURL() == to.BlobsURL() {
		return nil, nil, errors.New("--to names the place where the installation is already")
	}
	return &installation{streams: in.streams, cfg: &from}, &installation{streams: in.streams, cfg: &to}, nil
}

// applyPlaces changes the settings data, database and blobs to the given
// places. A data folder has the database and the files, unless other places
// name these.
func applyPlaces(cfg *config.Config, places []string) error {
	var folder, database, files string
	for _, place := range places {
		into := &folder
		switch scheme, _, isURL := strings.Cut(place, "://"); {
		case !isURL && place == "":
			return errors.New("a place is empty")
		case !isURL:
		case scheme == "sqlite" || scheme == "postgres" || scheme == "postgresql":
			into = &database
		case scheme == "file" || scheme == "s3":
			into = &files
		default:
			return fmt.Errorf("a place must be a data folder, or begin with sqlite://, postgres://, file:// or s3://, not with %s://", scheme)
		}
		if *into != "" {
			return errors.New("two places are of the same kind")
		}
		*into = place
	}
	if folder != "" {
		cfg.Data = folder
		cfg.Database = ""
		cfg.Blobs = ""
	}
	if database != "" {
		cfg.Database = database
	}
	if files != "" {
		cfg.Blobs = files
	}
	return nil
}

// checkStopped returns an error if a process of the installation runs. db is
// nil before the database is open. An embedded database is only checked then:
// while it is open for reading, sqldb notices other processes itself.
func checkStopped(ctx context.Context, in *installation, db *sqldb.DB) error {
	_, embedded, err := in.databaseFile()
	if err != nil {
		return err
	}
	if embedded {
		if db != nil {
			return nil
		}
		used, err := sqldb.IsFileInUse(in.cfg.DatabaseURL())
		if err == nil && used {
			err = errors.New("another process uses the database: stop the service first")
		}
		return err
	}
	if db == nil {
		return nil
	}
	return db.Read(ctx, func(tx *sqldb.Tx) error {
		nodes, err := node.List(ctx, tx)
		for _, n := range nodes {
			if err == nil && n.IsLive(tx.Now) {
				err = fmt.Errorf("the node %s runs (its newest report is of %s): stop all nodes first; a node that was killed counts as running for %s",
					n.ID, formatTime(n.Seen), node.LiveFor)
			}
		}
		return err
	})
}

// copySecret copies the file with the secret into the data folder of the
// target, if that is another folder.
func copySecret(from, to *config.Config) error {
	if from.Secret != "" || from.SecretFile() == to.SecretFile() {
		return nil
	}
	secret, err := os.ReadFile(from.SecretFile())
	if errors.Is(err, fs.ErrNotExist) { // the installation has never been started
		return nil
	}
	if err != nil {
		return err
	}
	has, err := os.ReadFile(to.SecretFile())
	switch {
	case err == nil && bytes.Equal(has, secret):
		return nil
	case err == nil:
		return fmt.Errorf("%s exists and has another secret: move into a new folder", to.SecretFile())
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	makePrivate()
	folder := filepath.Dir(to.SecretFile())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	part, err := os.CreateTemp(folder, ".secret-")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	_, err = part.Write(secret)
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), to.SecretFile())
}

// checkMovedInstallation runs the checks of atelier check on an installation
// that is not running.
func checkMovedInstallation(ctx context.Context, in *installation, db *sqldb.DB, files blob.Store) (problems []string, err error) {
	found, _, err := in.verifyDatabase(ctx, db, nil)
	if err != nil {
		return nil, err
	}
	for _, v := range found {
		problems = append(problems, v.Row+": "+v.Check)
	}
	report := func(problem string) { problems = append(problems, problem) }
	kept := library.Library{DB: db, Blobs: files}
	if err := kept.VerifySizes(ctx, report); err != nil {
		return nil, err
	}
	return problems, resumable.VerifyParts(ctx, db, files, report)
}

// progressEvery is the shortest time between two lines about the progress.
const progressEvery = 2 * time.Second

// showProgress returns a function that prints the progress on a terminal.
func (c moveCmd) showProgress(p *program) func(move.Progress) {
	if !term.IsTerminal(p.stderr) {
		return nil
	}
	var last time.Time
	return func(now move.Progress) {
		if time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		if now.Table == "" {
			fmt.Fprintf(p.stderr, "%s: %d\n", now.Step, now.Files)
			return
		}
		fmt.Fprintf(p.stderr, "%s %s: %d rows\n", now.Step, now.Table, now.Rows)
	}
}

func (c moveCmd) printReport(p *program, r move.Report, to *config.Config, took time.Duration) error {
	for _, problem := range r.Problems {
		fmt.Fprintln(p.stderr, problem)
	}
	answer := map[string]any{
		"tables":   r.Tables,
		"rows":     r.Rows,
		"jobs":     r.Jobs,
		"files":    r.Files,
		"bytes":    r.Bytes,
		"resumed":  r.Resumed,
		"seconds":  float64(took.Milliseconds()) / 1000,
		"problems": append([]string{}, r.Problems...),
	}
	text := fmt.Sprintf("moved %d rows in %d tables, %s, and %s with %d bytes in %s; every digest matches",
		r.Rows, r.Tables, countNoun(r.Jobs, "job", "jobs"), countNoun(int(r.Files), "file", "files"), r.Bytes, took.Round(time.Millisecond))
	text += "\nThe source is unchanged. Never run both installations: start only the new one, with these settings:"
	text += "\n  --data " + to.Data
	if to.Database != "" {
		text += "\n  --database with the address that you gave to --to"
	}
	if to.Blobs != "" {
		text += "\n  --blobs " + to.Blobs
	}
	if to.Secret != "" {
		text += "\n  ATELIER_SECRET with its present value"
	}
	if err := p.printResult(c.JSON, answer, text); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return errProblemsMoved
	}
	return nil
}
