// Package tools holds the manifests that ship inside the binary.
package tools

import "embed"

// Files are the manifests, at the root.
//
//go:embed *.yaml
var Files embed.FS
