package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"atelier/internal/base/fault"
)

// Read-only access to SQLite. A normal connection creates two files next to the
// database, the write-ahead log and its index. It repairs them after a crash,
// and empties the log when it closes. A read-only connection must do none of
// this, so the files that it reads depend on whether the service runs and
// whether there is a log:
//
//	the service runs       its log and index exist: use them, with its locks
//	no service, no log     the file is complete: read only the file, without locks
//	no service, a log      read both, and keep the index in memory
//
// A service that starts while the file is read without locks does not notice
// the reader. So every such read transaction ends with a check whether the
// service has started.

var (
	errReadOnly  = errors.New("the database is open for reading only")
	errDisturbed = fault.New(fault.Unavailable, "The service started while this command was reading the database. Try again.")
	errNoIndex   = errors.New("the write-ahead log of the database cannot be read, because its index (the file ending in -shm) is missing; run atelier migrate and try again")
)

// dmsByte is the offset of the byte that every process with an open index has
// locked. It is UNIX_SHM_DMS in SQLite's os_unix.c, and WIN_SHM_DMS in os_win.c:
// the byte after the 8 lock bytes that begin at (22+8)*4.
const dmsByte = 128

// openSQLiteReadOnly opens the database at path without changing any file.
func openSQLiteReadOnly(path string, conns int) (*sqlite, error) {
	still, err := readStill(path)
	if err != nil {
		return nil, err
	}
	running, err := inUse(path + "-shm")
	if err != nil {
		return nil, err
	}
	l := &sqlite{}
	mode := "immutable=1"
	switch {
	case running:
		mode = ""
	case still.logBytes > 0 && !still.hasIndex:
		return nil, errNoIndex
	case still.logBytes > 0:
		mode = "readonly_shm=1"
	default:
		l.files = &still
	}
	dsn := readOnlyDSN(path, mode)
	if l.readers, err = sql.Open("sqlite", dsn); err != nil {
		return nil, err
	}
	conns = max(conns, 2)
	l.readers.SetMaxOpenConns(conns)
	l.readers.SetMaxIdleConns(conns)
	if l.rows, err = openReaders(dsn, runtime.GOMAXPROCS(0)); err != nil {
		return nil, errors.Join(err, l.readers.Close())
	}
	return l, nil
}

func readOnlyDSN(path, mode string) string {
	dsn := fileDSN(path, "busy_timeout("+inMilliseconds(busyLimit)+")", "query_only(1)") + "&mode=ro"
	if mode != "" {
		dsn += "&" + mode
	}
	return dsn
}

// inUse reports whether another process has the index file open. It checks the
// lock on dmsByte.
func inUse(index string) (bool, error) {
	f, err := os.Open(index)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	locked, err := isLocked(f, dmsByte)
	if err != nil {
		return false, fmt.Errorf("check whether %s is locked: %w", index, err)
	}
	return locked, nil
}

// stillFiles describes the files of a database that no process has open.
type stillFiles struct {
	path     string
	database fs.FileInfo
	logBytes int64
	hasIndex bool
}

func readStill(path string) (s stillFiles, err error) {
	s.path = path
	if s.database, err = os.Stat(path); err != nil {
		return s, err
	}
	log, err := os.Stat(path + "-wal")
	if err == nil {
		s.logBytes = log.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	_, err = os.Stat(path + "-shm")
	s.hasIndex = err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	return s, nil
}

// haveChanged reports whether another process has opened or changed the
// database since s was read.
func (s stillFiles) haveChanged() bool {
	now, err := readStill(s.path)
	return err != nil || now.logBytes != s.logBytes || now.hasIndex != s.hasIndex ||
		now.database.Size() != s.database.Size() || !now.database.ModTime().Equal(s.database.ModTime())
}
