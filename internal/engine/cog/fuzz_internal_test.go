package cog

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzListResults proves that only strings which are URLs count as files, and
// that the parts of one text are put together in order.
func FuzzListResults(f *testing.F) {
	for _, output := range []string{`"https://a/b.png"`, `["https://a", "data:,x", 7, null]`, `{"image": "https://a", "seed": 5}`, `["a", "b", ""]`, `[[[[[[[[[["https://a"]]]]]]]]]]`, `null`, `""`, `true`, `{"a": {"b": ["http://c"]}}`} {
		f.Add([]byte(output))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		if !json.Valid(output) {
			return // outputs are parts of responses that were decoded
		}
		files, err := outputShape{files: true}.listResults(output)
		for _, one := range files {
			if !isFileURL(one) {
				t.Errorf("%q has the file %q", output, one)
			}
		}
		parts, same := outputShape{}.listResults(output)
		if (err == nil) != (same == nil) || len(files) > len(parts) {
			t.Errorf("%q has %d files, %v, and %d parts, %v", output, len(files), err, len(parts), same)
		}
		whole, err := outputShape{whole: true}.listResults(output)
		if err == nil && strings.Join(whole, "") != strings.Join(parts, "") || len(whole) > 1 {
			t.Errorf("%q = %q, in parts %q", output, whole, parts)
		}
	})
}
