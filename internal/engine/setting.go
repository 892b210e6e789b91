package engine

import (
	"encoding/json"
	"strings"
)

// ErrMisconfigured is the failure for a manifest or settings that the engine cannot work with.
var ErrMisconfigured = Fail(Failed, "This tool is not configured correctly. Contact the operator.")

// DecodeSetting decodes an engine's part of a manifest and refuses unknown keys. Numbers keep their
// notation if into does not determine their type.
func DecodeSetting(with string, into any) error {
	d := json.NewDecoder(strings.NewReader(with))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return ErrMisconfigured.WithCause(err)
	}
	return nil
}
