package rest

import (
	"fmt"
	"net/http"

	"atelier/internal/base/fault"
)

// ReadIdempotencyKey returns the value of the Idempotency-Key header, or "" if
// there is none.
func ReadIdempotencyKey(header http.Header, maxLength int) (string, error) {
	values := header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}

	key := values[0]
	isInvalid := len(values) > 1 || key == "" || len(key) > maxLength
	for i := 0; i < len(key) && !isInvalid; i++ {
		isInvalid = key[i] <= ' ' || key[i] > '~'
	}
	if isInvalid {
		return "", fault.New(fault.Invalid, fmt.Sprintf("An Idempotency-Key must have 1 to %d visible ASCII characters.", maxLength)).On("Idempotency-Key")
	}
	return key, nil
}
