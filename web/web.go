// Package web embeds the studio: the files that "make studio" builds, and the
// style sheets and fonts that the studio shares with the pages for signing in.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

//go:embed src/styles/tokens.css src/styles/fonts.css src/styles/fonts/*.woff2
var styles embed.FS

// Dist returns the built studio: index.html, assets/, and the files that have
// fixed addresses, such as the web app manifest and the icons.
func Dist() fs.FS { return subfolder(dist, "dist") }

// Styles returns tokens.css with the colours and sizes of the studio, and
// fonts.css with the fonts in fonts/.
func Styles() fs.FS { return subfolder(styles, "src/styles") }

// subfolder returns a folder of embedded files.
func subfolder(files embed.FS, name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the name is a valid constant
	}
	return sub
}
