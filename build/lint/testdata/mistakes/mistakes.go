// Package mistakes has one mistake for each linter, named at the end of its
// line.
package mistakes

import (
	"crypto/md5" // want gosec
	"database/sql"
	"errors"
	"io"
	"os"
)

// Color is a color.
type Color int

// The colors.
const (
	Red Color = iota
	Green
)

func All(db *sql.DB, err error, c Color) int { // want exported
	os.Chdir("/")           // want errcheck
	os.Chdir("/tmp")        //nolint:errcheck // permitted
	_ = errors.New("other") //nolint // want nolint
	if err == io.EOF {      // want errorlint
		return 1
	}
	switch c { // want exhaustive
	case Red:
	}
	x := 1 // want ineffassign wastedassign
	x = 2
	y := int(x)                     // want unconvert
	_ = md5.New()                   // want gosec
	rows, _ := db.Query("select 1") // want rowserrcheck
	for rows.Next() {
	}
	// We recieve one. // want misspell
	return y
}
