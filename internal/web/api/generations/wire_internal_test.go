package generations

import (
	"encoding/json"
	"testing"

	"atelier/internal/run/run"
)

func TestProgressHasAtMostThreeDecimals(t *testing.T) {
	t.Parallel()
	for thousandths := range int64(1001) {
		text, err := json.Marshal(run.Run{Progress: &thousandths}.ProgressFraction())
		if err != nil || len(text) > len("0.001") {
			t.Fatalf("progress of %d is %s, %v", thousandths, text, err)
		}
	}
}
