package backup

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll writes everything on the file system of a folder to disk. One call is
// faster than a call for each of many files, which would wait for the disk each
// time.
func syncAll(folder *os.File) error {
	if err := unix.Syncfs(int(folder.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", folder.Name(), err)
	}
	return nil
}
