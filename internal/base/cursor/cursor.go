// Package cursor signs the cursors of paginated lists, so that a client can
// send a cursor back but can neither forge one nor use it with another list.
//
// A cursor contains the sort key of the last item and a keyed hash of the sort
// key and the scope: the list, the caller and the filters. It is invalid in any
// other scope.
package cursor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"atelier/internal/base/fault"
)

// maxLength is the maximum length of a cursor in bytes. Open rejects longer
// ones.
const maxLength = 2048

const sealLength = 16

// Sealer creates and verifies cursors.
type Sealer struct{ key []byte }

// New returns a sealer that signs with key.
func New(key []byte) Sealer { return Sealer{key} }

// Scope joins the parts of a scope (list, caller, filters) into one string.
// Different parts never give the same string.
func Scope(parts ...string) string { return string(packTexts(nil, parts)) }

// SealKey returns a cursor for the sort key of the last item of a page.
func (s Sealer) SealKey(scope string, key ...string) string {
	sealed := packTexts(make([]byte, sealLength, 128), key)
	copy(sealed, s.sealFor(scope, sealed[sealLength:]))
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open returns the sort key, which must have the given number of parts, from a
// cursor that SealKey returned for the same scope. It returns an Invalid fault
// for any other cursor.
func (s Sealer) Open(scope, cursor string, parts int) ([]string, error) {
	refused := fault.New(fault.Invalid, "This cursor does not belong to this list. Start again without a cursor.").On("cursor")
	if len(cursor) > maxLength || strings.ContainsAny(cursor, "\r\n") {
		return nil, refused
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) < sealLength {
		return nil, refused
	}
	payload := raw[sealLength:]
	if !hmac.Equal(raw[:sealLength], s.sealFor(scope, payload)) {
		return nil, refused
	}
	key, ok := unpackTexts(payload)
	if !ok || len(key) != parts {
		return nil, refused
	}
	return key, nil
}

// packTexts appends parts to b, each preceded by its length.
func packTexts(b []byte, parts []string) []byte {
	for _, p := range parts {
		b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
	}
	return b
}

// unpackTexts decodes the bytes that packTexts appended. ok is false for invalid
// input.
func unpackTexts(b []byte) (parts []string, ok bool) {
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, false
		}
		end := size + int(n)
		parts = append(parts, string(b[size:end]))
		b = b[end:]
	}
	return parts, true
}

func (s Sealer) sealFor(scope string, payload []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write(packTexts(nil, []string{scope}))
	m.Write(payload)
	return m.Sum(nil)[:sealLength]
}
