// Package tools holds the manifests that ship inside the binary.
package tools

import "embed"

//go:generate go run ../build/avatars

// Files are the manifests, at the root, and the pictures that they name.
//
//go:embed *.yaml avatars/*.png
var Files embed.FS
