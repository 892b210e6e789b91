// Package osfile contains the file operations that differ between Unix and
// Windows: locks, temporary files without a name, and making file names
// durable.
package osfile

import "errors"

// ErrLocked is the error of TryLock for a file that another process, or another
// open file of this process, has locked.
var ErrLocked = errors.New("the file is locked by another process")
