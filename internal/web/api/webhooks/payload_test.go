package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"atelier/internal/file/library"
	"atelier/internal/money/report"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/wire"
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
		text, err := json.Marshal([]any{playing(d), asCount(report.Count{Took: d}).GenerationSeconds})
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
		if got := spent(d); got != want {
			t.Fatalf("%v is %s in a table, want %s", d, got, want)
		}
	}
	for thousandths := range int64(1001) {
		text, err := json.Marshal(asProgress(&thousandths))
		if err != nil || len(text) > len("0.001") {
			t.Fatalf("progress of %d is %s, %v", thousandths, text, err)
		}
	}
}

// TestFailedRunsSayWhetherToRetry looks at every code in the document.
func TestFailedRunsSayWhetherToRetry(t *testing.T) {
	t.Parallel()
	for code, want := range map[wire.GenerationErrorCode]bool{
		wire.GenerationErrorCodeENGINEFAILED:           false,
		wire.GenerationErrorCodeENGINEUNAVAILABLE:      true,
		wire.GenerationErrorCodeTIMEDOUT:               true,
		wire.GenerationErrorCodeCONTENTPOLICYVIOLATION: false,
		wire.GenerationErrorCodeOUTPUTINVALID:          true,
		wire.GenerationErrorCodeSTORAGEQUOTAEXCEEDED:   false,
	} {
		rec := generation.Record{Run: run.Run{State: run.Failed, ErrorCode: string(code), ErrorText: "It failed."}}
		event, err := EventBody(library.Links{}, rec)
		if err != nil {
			t.Fatal(err)
		}
		if part := fmt.Sprintf(`"error":{"code":%q,"details":{},"message":"It failed.","retryable":%v}`, code, want); !strings.Contains(string(event), part) {
			t.Errorf("the event is %s, want %s in it", event, part)
		}
	}
}
