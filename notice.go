// Package atelier has what goes wherever the program goes.
package atelier

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for the texts
	"io"
)

// Notice names the people whose work the picture model learned from and whose
// work is part of the studio, with the licences of the latter.
//
//go:embed NOTICE
var Notice string

// License is the licence of Atelier itself.
//
//go:embed LICENSE
var License string

//go:generate go run ./build/release -licences
//go:embed THIRD-PARTY-LICENSES.gz
var thirdPartyLicenses []byte

// ThirdPartyLicenses returns the licence texts of all works of others that are
// compiled into the program.
func ThirdPartyLicenses() string {
	r, err := gzip.NewReader(bytes.NewReader(thirdPartyLicenses))
	if err != nil {
		panic(err) // the file is part of the program
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}
