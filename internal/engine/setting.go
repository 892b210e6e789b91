package engine

import (
	"encoding/json"
	"strings"
)

// ErrMisconfigured is the failure for a manifest or settings that the engine
// cannot use.
var ErrMisconfigured = Fail(Failed, "This tool is not configured correctly. Contact the operator.")

// DecodeSetting decodes the engine.with section of a manifest into the
// variable that into points to. It refuses unknown keys. Numbers become a
// json.Number where into does not determine their type.
func DecodeSetting(with string, into any) error {
	d := json.NewDecoder(strings.NewReader(with))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return ErrMisconfigured.WithCause(err)
	}
	return nil
}
