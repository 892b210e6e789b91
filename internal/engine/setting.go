package engine

import (
	"encoding/json"
	"strings"
)

// ErrSetup is for a manifest or settings that the engine cannot work with.
var ErrSetup = Fail(Failed, "This tool is not set up rightly. Tell the operator.")

// Setting decodes an engine's part of a manifest, and refuses what it does not
// know. Numbers stay as they are written where into leaves their type open.
func Setting(with string, into any) error {
	d := json.NewDecoder(strings.NewReader(with))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return ErrSetup.Because(err)
	}
	return nil
}
