package wire

//go:generate go tool -modfile=../../../../build/tools/go.mod oapi-codegen -config oapi.yaml ../../../../api/openapi.yaml

import "encoding/json"

// OrNull is a string that JSON encodes as null if it is empty. It is for
// members that can also be omitted.
type OrNull string

// MarshalJSON encodes the string, or null if it is empty.
func (o OrNull) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}
