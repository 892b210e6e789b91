package watch

import (
	"testing"
	"time"
)

// LateAttribute is the attribute of a test in which something took too long.
const LateAttribute = "late"

// Took fails the test if something took longer than most. Beside other tests,
// and on a machine that is busy elsewhere, everything takes longer: test/report
// runs a test that failed in this way again, alone, when all others have ended,
// and then the limit must hold.
func Took(t testing.TB, what string, took, most time.Duration) {
	t.Helper()
	if took > most {
		t.Attr(LateAttribute, "true")
		t.Errorf("%s took %v, want at most %v", what, took, most)
	}
}
