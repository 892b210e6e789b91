// Package atelier has what goes wherever the program goes.
package atelier

import _ "embed" // for Notice

// Notice names those whose work the picture model learned from.
//
//go:embed NOTICE
var Notice string
