package backup

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll flushes the whole file system that contains a folder to disk. One
// call is faster than syncing many files one by one, each of which would wait
// for the disk.
func syncAll(folder *os.File) error {
	if err := unix.Syncfs(int(folder.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", folder.Name(), err)
	}
	return nil
}
