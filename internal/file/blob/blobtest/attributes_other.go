//go:build !linux

package blobtest

// hasAttributes returns false: on systems other than Linux, testing for
// extended attributes would need another package, and the S3 server's
// alternative, sidecar files, works on every system.
func hasAttributes(string) bool { return false }
