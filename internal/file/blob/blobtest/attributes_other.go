//go:build !linux

package blobtest

// hasAttributes returns false: testing for extended attributes would need
// another package here, and the S3 server's alternative, sidecar files, works
// on every system.
func hasAttributes(string) bool { return false }
