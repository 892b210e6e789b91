//go:build !linux

package blobtest

// hasAttributes would need another package; sidecar files work everywhere.
func hasAttributes(string) bool { return false }
