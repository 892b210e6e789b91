package backup

import (
	"errors"
	"os"
)

// errWindows is the error of backup and restore on Windows, where an open file
// or folder cannot be renamed.
var errWindows = errors.New("backup and restore are not available on Windows; stop the service and copy its data folder")

func checkSystem() error { return errWindows }

// renameFolder is never called, because checkSystem fails.
func renameFolder(from, to string) error { return os.Rename(from, to) }

// syncAll is never called, because checkSystem fails.
func syncAll(*os.File) error { return errWindows }
