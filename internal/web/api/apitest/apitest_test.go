package apitest_test

import (
	"net/http"
	"strings"
	"testing"

	"atelier/internal/web/api/apitest"
)

func header() http.Header {
	h := http.Header{}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "X-Trace-Id": strings.Repeat("a", 32),
	} {
		h.Set(name, value)
	}
	return h
}

func TestJudge(t *testing.T) {
	t.Parallel()
	c, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	trace := strings.Repeat("a", 32)
	missing := `{"error":{"code":"NOT_FOUND","message":"m","retryable":false,"details":{},"trace_id":"` + trace + `"}}`
	tool := `{"id":"abcdefghij0123456789","slug":"gradient","name":"n","description":null,"avatar_url":null,"average_gen_in_seconds":null,"tool_tags":[],"pricing_type":"FREE","tokens_per_result":0}`
	limited := strings.NewReplacer("NOT_FOUND", "RATE_LIMITED", `"details":{}`, `"details":{"limit":10,"window_seconds":60,"retry_after_seconds":7}`).Replace(missing)
	page := `{"data":[` + tool + `],"has_more":false,"next_cursor":null}`
	for _, x := range []struct {
		name, method, path string
		status             int
		body               string
		without            string // a header
		good               bool
	}{
		{"a page", "GET", "/api/v2/tools", 200, page, "", true},
		{"an error", "GET", "/api/v2/tools/x", 404, missing, "", true},
		{"an unknown path", "GET", "/api/v2/nowhere", 404, missing, "", true},
		{"not modified", "GET", "/api/v2/kits", 304, "", "", true},
		{"an undocumented status", "GET", "/api/v2/tools", 202, page, "", false},
		{"an error that is not named", "GET", "/api/v2/tools", 409, strings.Replace(missing, "NOT_FOUND", "CONFLICT", 1), "", false},
		{"success where nothing is", "GET", "/api/v2/nowhere", 200, page, "", false},
		{"no JSON", "GET", "/api/v2/tools", 200, "hello", "", false},
		{"a name missing", "GET", "/api/v2/tools", 200, `{"data":[],"has_more":false}`, "", false},
		{"a name too many", "GET", "/api/v2/tools", 200, strings.Replace(page, `"name"`, `"secret":1,"name"`, 1), "", false},
		{"a wrong type", "GET", "/api/v2/tools", 200, strings.Replace(page, `"tokens_per_result":0`, `"tokens_per_result":"0"`, 1), "", false},
		{"a wrong id", "GET", "/api/v2/tools", 200, strings.Replace(page, "0123456789", "01234567-9", 1), "", false},
		{"an unknown code", "GET", "/api/v2/tools/x", 404, strings.Replace(missing, "NOT_FOUND", "NOPE", 1), "", false},
		{"another trace", "GET", "/api/v2/tools/x", 404, strings.Replace(missing, trace, "b", 1), "", false},
		{"a body after not modified", "GET", "/api/v2/kits", 304, "x", "", false},
		{"cacheable", "GET", "/api/v2/tools", 200, page, "Cache-Control", false},
		{"untyped", "GET", "/api/v2/tools", 200, page, "Content-Type", false},
		{"401 without a challenge", "GET", "/api/v2/tools", 401, strings.Replace(missing, "NOT_FOUND", "UNAUTHENTICATED", 1), "", false},
		{"405 without methods", "POST", "/api/v2/tools", 405, strings.Replace(missing, "NOT_FOUND", "METHOD_NOT_ALLOWED", 1), "", false},
		{"a limit", "GET", "/api/v2/tools", 429, limited, "", true},
		{"a limit of nothing", "GET", "/api/v2/tools", 429, strings.Replace(limited, `"limit":10,`, "", 1), "", false},
		{"a limit without a window", "GET", "/api/v2/tools", 429, strings.Replace(limited, `"window_seconds":60`, `"window_seconds":null`, 1), "", false},
		{"a limit with part of a second", "GET", "/api/v2/tools", 429, strings.Replace(limited, `"window_seconds":60`, `"window_seconds":0.5`, 1), "", false},
		{"a limit that lasts differently", "GET", "/api/v2/tools", 429, strings.Replace(limited, `"retry_after_seconds":7`, `"retry_after_seconds":8`, 1), "", false},
	} {
		h := header()
		if x.status == http.StatusTooManyRequests {
			h.Set("Retry-After", "7")
		}
		h.Del(x.without)
		if err := c.CheckResponse(x.method, x.path, x.status, h, []byte(x.body)); (err == nil) != x.good {
			t.Errorf("%s: judged %v, want good %v", x.name, err, x.good)
		}
	}
}

func TestJudgeTables(t *testing.T) {
	t.Parallel()
	c, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, path, kind string
		good             bool
	}{
		{"a table", "/api/v2/reports/usage", "text/csv; charset=utf-8; header=present", true},
		{"one that does not say what it is", "/api/v2/reports/usage", "text/csv", false},
		{"one where none is", "/api/v2/tools", "text/csv; charset=utf-8; header=present", false},
	} {
		h := header()
		h.Set("Content-Type", x.kind)
		if err := c.CheckResponse("GET", x.path, 200, h, []byte("day,runs\r\n")); (err == nil) != x.good {
			t.Errorf("%s: judged %v, want good %v", x.name, err, x.good)
		}
	}
}
