//go:build unix

package backup

import "syscall"

// checkSystem returns nil, because every Unix can back up and restore.
func checkSystem() error { return nil }

// renameFolder renames a folder. Unlike os.Rename it replaces an empty folder.
func renameFolder(from, to string) error { return syscall.Rename(from, to) }
