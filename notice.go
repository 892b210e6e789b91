// Package atelier has what goes wherever the program goes.
package atelier

import _ "embed" // for Notice

// Notice names the people whose work the picture model learned from and whose
// work is part of the studio, with the licences of the latter.
//
//go:embed NOTICE
var Notice string
