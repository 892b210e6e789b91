package events

import (
	"maps"
	"testing"
)

// FuzzParsePlace proves that a position that is understood is written and read
// again without a change.
func FuzzParsePlace(f *testing.F) {
	for _, text := range []string{"0", "1794819600000000", "1794819600000000,PagW53lsaa2KiGgg5wR4:12", "1,a:1,b:2", "1,:1", "-1", "9223372036854775807,a:9223372036854775807", ",", "1,a:1,a:2", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parsePlace(text)
		if !ok {
			return
		}
		if len(p.boards) > maxBoards || p.at.UnixMicro() < 0 {
			t.Errorf("%+v", p)
		}
		again, ok := parsePlace(p.String())
		if !ok || !again.at.Equal(p.at) || !maps.Equal(again.boards, p.boards) {
			t.Errorf("%q is read as %v, which is read as %v, %v", text, p, again, ok)
		}
	})
}
