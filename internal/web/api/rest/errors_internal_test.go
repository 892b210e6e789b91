package rest

import (
	"fmt"
	"strings"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/web/httpd"
)

// TestCodesOfTheDecisions is the table of the interface, typed anew.
func TestCodesOfTheDecisions(t *testing.T) {
	t.Parallel()
	table := `UNAUTHENTICATED 401 no|TOKEN_INVALID 401 no|AUTHORIZATION_PENDING 428 yes|SLOW_DOWN 400 yes|DEVICE_CODE_EXPIRED 410 no
UPSTREAM_UNAVAILABLE 503 yes|RATE_LIMITED 429 yes|ACTIVE_RUN_CAP 429 yes|PLUGIN_NOT_ALLOWED 403 no|FORBIDDEN 403 no|EMAIL_NOT_VERIFIED 403 no
ACCOUNT_SELECTION_INVALID 400 no|INVALID_REQUEST 400 no|NOT_FOUND 404 no|TOOL_SCHEMA_STALE 409 no|IDEMPOTENCY_KEY_CONFLICT 409 no
INSUFFICIENT_BALANCE 402 no|NUM_RESULTS_LIMIT 400 no|CONTENT_POLICY_VIOLATION 422 no|TOO_MANY_INPUT_FILES 413 no|UPLOAD_TOO_LARGE 413 no
UPLOAD_OFFSET_CONFLICT 409 no|UPLOAD_CHECKSUM_MISMATCH 460 yes
PAYLOAD_TOO_LARGE 413 no|UNSUPPORTED_MEDIA_TYPE 415 no|METHOD_NOT_ALLOWED 405 no|INTERNAL 500 yes|CONFLICT 412 no`
	for row := range strings.FieldsFuncSeq(table, func(r rune) bool { return r == '|' || r == '\n' }) {
		var code, again string
		var want int
		fmt.Sscan(row, &code, &want, &again)
		if got := httpd.Status[fault.Code(code)]; got != want {
			t.Errorf("%s = %d, want %d", code, got, want)
		}
		if got := retryable[fault.Code(code)]; got != (again == "yes") {
			t.Errorf("%s retryable = %v, want %s", code, got, again)
		}
	}
}
