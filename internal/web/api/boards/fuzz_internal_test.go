package boards

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// FuzzParseIfMatch proves that a header which is understood is written in its
// canonical form and read again without a change.
func FuzzParseIfMatch(f *testing.F) {
	for _, text := range []string{`*`, `"12"`, `W/"12"`, `"1", "2"`, `,,"3" ,`, `"01"`, `"-1"`, `"a b"`, `"a,b"`, `12`, `""`, `"12" "13"`, ``, `"9223372036854775808"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseIfMatch(http.Header{"If-Match": {text}})
		if err != nil {
			return
		}
		if len(m.Revisions) > maxTags || len(m.Revisions) > strings.Count(text, `"`)/2 {
			t.Errorf("%q = %+v", text, m)
		}
		if !m.Strict {
			if strings.Trim(text, " \t") != "*" || m.Revisions != nil {
				t.Errorf("%q matches every board: %+v", text, m)
			}
			return
		}
		tags := []string{`"none"`}
		for _, n := range m.Revisions {
			tags = append(tags, revisionTag(n))
		}
		if len(tags) > maxTags {
			tags = tags[1:]
		}
		again, err := parseIfMatch(http.Header{"If-Match": {strings.Join(tags, ", ")}})
		if err != nil || !again.Strict || !slices.Equal(again.Revisions, m.Revisions) {
			t.Errorf("%q = %+v, which is read as %+v, %v", text, m, again, err)
		}
	})
}
