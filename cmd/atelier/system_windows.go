package main

import (
	"errors"
	"io/fs"
	"os"
)

// hasFileModes is false, because Windows has access lists instead of file
// modes: new files inherit the list of their folder.
const hasFileModes = false

func makePrivate() {}

// windowsFiles is the number of files that the service uses at most. Windows
// itself allows a process millions of them.
const windowsFiles = 32 << 10

func fileLimit() int { return windowsFiles }

// checkAccess returns an error unless this process may write to an existing
// file or folder. It tries, because access lists cannot be evaluated reliably.
func checkAccess(path string, info fs.FileInfo) error {
	if info.IsDir() {
		f, err := os.CreateTemp(path, ".atelier-check-")
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
