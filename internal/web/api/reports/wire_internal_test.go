package reports

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"atelier/internal/money/report"
	"atelier/internal/web/api/rest"
)

// TestSecondsHaveNoNoise writes every number of milliseconds up to a hundred seconds,
// and looks for digits that nobody measured.
func TestSecondsHaveNoNoise(t *testing.T) {
	t.Parallel()
	for ms := range 100_000 {
		d := time.Duration(ms) * time.Millisecond
		want := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%03d", ms/1000, ms%1000), "0"), ".")
		if ms == 0 {
			want = "0"
		}
		text, err := json.Marshal([]any{rest.SecondsOrNull(d), asCount(report.Count{Took: d}).GenerationSeconds})
		if err != nil {
			t.Fatal(err)
		}
		played := want
		if ms == 0 {
			played = "null"
		}
		if got := string(text); got != "["+played+","+want+"]" {
			t.Fatalf("%v is %s in JSON, want %s", d, got, want)
		}
		if got := formatSeconds(d); got != want {
			t.Fatalf("%v is %s in a table, want %s", d, got, want)
		}
	}
}
