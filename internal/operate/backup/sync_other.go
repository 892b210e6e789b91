//go:build unix && !linux

package backup

import (
	"os"
	"syscall"
)

// syncAll flushes all file systems to disk.
func syncAll(*os.File) error {
	syscall.Sync()
	return nil
}
