package wire

//go:generate go tool -modfile=../../../../build/tools/go.mod oapi-codegen -config oapi.yaml ../../../../api/openapi.yaml

import "encoding/json"

// OrNull is a text that is null if it is empty, for members that may also be
// left out.
type OrNull string

// MarshalJSON writes the text or null.
func (o OrNull) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}
