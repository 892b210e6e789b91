// Package backup copies a running installation with a SQLite database into an
// archive, and extracts an archive into a new folder.
//
//	live database ──online copy──▶ FILE.part.db ──checked──┐
//	live files, protected from sweeps ─────────────────────┼─▶ FILE.part ──read back──▶ FILE
//	the installation's secret ─────────────────────────────┘
//
// An archive is an uncompressed tar file, because media files do not compress
// and the archive can be piped through other programs. Its entries have a fixed
// order:
//
//	atelier.json     version of the program and time of the backup (Header)
//	atelier.db       the database as of one moment
//	secret           the installation's secret, unless its settings have it
//	files/KEY        every file that the database names, by its blob key
//	manifest.jsonl   the name, size and SHA-256 of every entry before it
//
// Someone who has the archive can impersonate the installation, so only the
// user that runs the service can read it. An archive gets its final name only
// when it is complete and verified. A killed process leaves a file whose name
// ends in .part; the next backup to the same path overwrites it.
package backup

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/osfile"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/file/resumable"
)

// format is the version of the archive format.
const format = 1

// The names of the entries in an archive.
const (
	headerName   = "atelier.json"
	databaseName = "atelier.db"
	secretName   = "secret"
	filesPrefix  = "files/"
	manifestName = "manifest.jsonl"
)

// Header is the first entry of an archive. It describes the backup.
type Header struct {
	Format  int       `json:"format"`
	Made    time.Time `json:"made"`    // when the database was copied
	Version string    `json:"version"` // version of the program that made the backup
	Schema  int64     `json:"schema"`  // schema version of the database
	// HasSecret reports whether the archive contains the installation's secret.
	// It is false if the secret was in the settings.
	HasSecret bool `json:"has_secret"`
}

// line is the line of the manifest for one entry.
type line struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Source is the installation to back up.
type Source struct {
	DB      *sqldb.DB // the SQLite database
	Blobs   blob.Store
	Secret  []byte // content of the file with the secret; nil if the secret is in the settings
	Version string // version of this program
	// Check examines the copy of the database and returns the problems that it
	// finds.
	Check func(ctx context.Context, copied *sqldb.DB) (problems []string, err error)
	Now   func() time.Time
}

// Report is the summary of a backup.
type Report struct {
	Header
	Files int   // number of media files and pictures of tools
	Bytes int64 // total size of the entries
	// Problems lists problems of the installation itself, at most maxProblems.
	// The archive is a copy of the installation with these problems.
	Problems []string
}

// maxProblems is the maximum number of problems in a report. The limit keeps
// the report short if, for example, a whole folder is missing.
const maxProblems = 1000

func (r *Report) addProblem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Create writes an archive of the installation to path, which must not exist.
// The file appears at path only after the archive was read back and verified.
func Create(ctx context.Context, s Source, path string) (r Report, err error) {
	if err := checkSystem(); err != nil {
		return r, err
	}
	if _, err := os.Lstat(path); err == nil {
		return r, fmt.Errorf("%s already exists; choose another file name for the backup", path)
	}
	part, err := openPart(path + ".part")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	copied := part.Name() + ".db"
	if err := removeDatabase(copied); err != nil {
		return r, err
	}
	defer func() {
		err = errors.Join(err, removeDatabase(copied))
		if err != nil {
			err = errors.Join(err, removeFile(part.Name()))
		}
	}()

	spool, err := newSpool(filepath.Dir(path))
	if err != nil {
		return r, err
	}
	defer spool.Close()
	if r, err = writeArchive(ctx, s, part, copied, spool); err != nil {
		return r, err
	}
	if err := part.Sync(); err != nil {
		return r, err
	}
	failpoint.Hit("backup.after_write")
	if err := verifyArchive(ctx, part); err != nil {
		return r, fmt.Errorf("verify the written archive: %w", err)
	}

	if _, err := os.Lstat(path); err == nil {
		return r, fmt.Errorf("%s was created by another program during the backup; choose another file name", path)
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return r, err
	}
	return r, syncFolder(filepath.Dir(path))
}

// Stream writes an archive of the installation to w. It cannot verify the
// archive by reading it back; Extract verifies it. folder is for temporary
// files and needs space for a copy of the database.
func Stream(ctx context.Context, s Source, w io.Writer, folder string) (r Report, err error) {
	if err := checkSystem(); err != nil {
		return r, err
	}
	work, err := os.MkdirTemp(folder, "atelier-backup-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	spool, err := newSpool(work)
	if err != nil {
		return r, err
	}
	defer spool.Close()
	return writeArchive(ctx, s, w, filepath.Join(work, databaseName), spool)
}

// openPart opens and locks the temporary file for an archive. If another backup
// to the same path is running, it returns an error. If a killed process left
// the file behind, openPart truncates it.
func openPart(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|osfile.NoFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := osfile.TryLock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("another backup is writing to %s", name), f.Close())
	}
	if err := errors.Join(f.Chmod(0o600), f.Truncate(0)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// newSpool returns a temporary file without a name, which the system deletes
// when the process ends.
func newSpool(folder string) (*os.File, error) {
	return osfile.CreateUnnamed(folder, ".atelier-manifest-")
}

// removeDatabase deletes a SQLite database and the files that SQLite creates
// next to it.
func removeDatabase(path string) error {
	var all error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		all = errors.Join(all, removeFile(path+suffix))
	}
	return all
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(osfile.SyncFolder(f), f.Close())
}

// writeArchive writes an archive of the installation to out. It stores the copy
// of the database at the path copied, and the lines of the manifest in spool.
func writeArchive(ctx context.Context, s Source, out io.Writer, copied string, spool *os.File) (r Report, err error) {
	hold, err := library.HoldSweep(ctx, s.DB)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, hold.ReleaseHold(ctx)) }()
	r.Format = format
	r.Made = s.Now().UTC().Truncate(time.Second)
	r.Version = s.Version
	r.HasSecret = s.Secret != nil
	if err := s.DB.CopyTo(ctx, copied); err != nil {
		return r, err
	}
	failpoint.Hit("backup.after_copy")
	if err := s.prepareCopy(ctx, copied, &r); err != nil {
		return r, err
	}

	buffered := bufio.NewWriterSize(out, 1<<20)
	w := &writer{tar: tar.NewWriter(buffered), list: bufio.NewWriter(spool), made: r.Made}
	if err := w.addHeader(ctx, r.Header); err != nil {
		return r, err
	}
	if err := w.addDatabase(ctx, copied); err != nil {
		return r, err
	}
	if s.Secret != nil {
		if _, err := w.addEntry(ctx, secretName, int64(len(s.Secret)), strings.NewReader(string(s.Secret))); err != nil {
			return r, err
		}
	}
	if err := s.addFiles(ctx, w, copied, &r); err != nil {
		return r, err
	}
	if err := w.finishArchive(ctx, spool); err != nil {
		return r, err
	}
	r.Bytes = w.written
	return r, buffered.Flush()
}

// prepareCopy removes state of the running installation (running jobs, unfinished
// uploads and locks against file deletion) from the copy of the database, and checks the copy.
func (s Source) prepareCopy(ctx context.Context, copied string, r *Report) error {
	db, err := s.openCopy(ctx, copied)
	if err != nil {
		return err
	}
	defer db.Close()
	if r.Schema, err = db.Version(ctx); err != nil {
		return err
	}
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		return errors.Join(library.DeleteSweepHolds(ctx, tx), resumable.DeleteUnfinished(ctx, tx), queue.ReturnAll(ctx, tx))
	})
	if err != nil {
		return err
	}
	damage, err := db.CheckIntegrity(ctx)
	if err != nil {
		return fmt.Errorf("check the copy of the database: %w", err)
	}
	if len(damage) > 0 {
		return fmt.Errorf("the database is damaged: %s", strings.Join(damage, "; "))
	}
	found, err := s.Check(ctx, db)
	for _, problem := range found {
		r.addProblem("%s", problem)
	}
	return err
}

func (s Source) openCopy(ctx context.Context, path string) (*sqldb.DB, error) {
	return sqldb.Open(ctx, databaseURL(path), sqldb.Options{MaxConns: 2, Now: s.Now})
}

// addFiles adds all files to which the copy of the database refers, and the
// pictures of tools.
func (s Source) addFiles(ctx context.Context, w *writer, copied string, r *Report) error {
	db, err := s.openCopy(ctx, copied)
	if err != nil {
		return err
	}
	defer db.Close()
	named := library.Library{DB: db}
	err = named.EachFile(ctx, func(a asset.Asset) error {
		for _, one := range []struct {
			key    string
			sha256 string // "" if the database has no hash of the file
		}{{a.Blob, a.SHA256}, {a.Thumb, ""}, {a.Preview, ""}} {
			if one.key == "" {
				continue
			}
			if err := s.addFile(ctx, w, one.key, one.sha256, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for item, err := range s.Blobs.List(ctx, catalog.AssetFolder) {
		if err != nil {
			return err
		}
		if err := s.addFile(ctx, w, item.Key, "", r); err != nil {
			return err
		}
	}
	return nil
}

// addFile adds one file. want is its SHA-256 in hexadecimal, or "". A missing
// or changed file is reported as a problem and does not stop the backup.
func (s Source) addFile(ctx context.Context, w *writer, key, want string, r *Report) error {
	f, info, err := s.Blobs.Open(ctx, key, 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		r.addProblem("the file %s is missing", key)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	padded := &paddedReader{from: f, left: info.Size}
	sum, err := w.addEntry(ctx, filesPrefix+key, info.Size, padded)
	if err != nil {
		return err
	}
	r.Files++
	switch {
	case padded.err != nil:
		r.addProblem("the file %s could not be read to its end; the backup contains zero bytes instead of the unread part: %v", key, padded.err)
	case want != "" && sum != want:
		r.addProblem("the file %s was changed: its SHA-256 does not match", key)
	}
	return nil
}

// paddedReader returns exactly as many bytes as the file should have. It
// replaces bytes that cannot be read with zeros.
type paddedReader struct {
	from io.Reader
	left int64
	err  error // the first error while reading the file
}

func (p *paddedReader) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), p.left)]
	n := 0
	if p.err == nil {
		n, p.err = p.from.Read(b)
		switch {
		case errors.Is(p.err, io.EOF) && int64(n) == p.left:
			p.err = nil
		case errors.Is(p.err, io.EOF):
			p.err = io.ErrUnexpectedEOF
		}
	}
	if p.err != nil {
		clear(b[n:])
		n = len(b)
	}
	p.left -= int64(n)
	return n, nil
}
