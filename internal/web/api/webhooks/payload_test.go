package webhooks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/wire"
)

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
		event, err := json.Marshal(rec.EventJSON(library.URLSigner{}))
		if err != nil {
			t.Fatal(err)
		}
		if part := fmt.Sprintf(`"error":{"code":%q,"details":{},"message":"It failed.","retryable":%v}`, code, want); !strings.Contains(string(event), part) {
			t.Errorf("the event is %s, want %s in it", event, part)
		}
	}
}
