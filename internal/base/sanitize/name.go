package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"atelier/internal/base/fault"
)

// Name returns the trimmed name that a person has given something, or an error
// if it is empty, has more than maxLength characters or is not one line of
// text.
func Name(name string, maxLength int) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", fault.New(fault.Invalid, "A name is required.").On("name")
	case utf8.RuneCountInString(name) > maxLength:
		return "", fault.New(fault.Invalid, fmt.Sprintf("A name must have at most %d characters.", maxLength)).On("name")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "", fault.New(fault.Invalid, "A name must be one line of text.").On("name")
	}
	return name, nil
}
