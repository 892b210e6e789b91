package media

import (
	"bufio"
	"errors"
	"io"
	"unicode/utf8"

	"atelier/internal/base/fault"
)

const maxText = 1 << 20

// checkText checks that the file is UTF-8 without NUL characters.
func checkText(s *source) error {
	if s.size > maxText {
		return fault.New(fault.Invalid, "The text is longer than 1 MiB.")
	}
	r := bufio.NewReaderSize(s.newReader(), 4*maxPeek)
	for {
		switch c, n, err := r.ReadRune(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return readError(Text, err)
		case c == 0, c == utf8.RuneError && n == 1:
			return fault.New(fault.Invalid, "The text is not valid UTF-8.")
		}
	}
}
