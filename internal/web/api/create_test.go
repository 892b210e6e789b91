package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/wire"
)

func TestCreateIsAccepted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, keepSettings)
		a := m.create(m.body("wide", `,"num_results":3,"plugin":"blender","metadata":null,"inputs":null,"webhook_url":null,"unknown":[1]`))
		a.checkStatus(t, "create", 202, "")
		got := decodeAnswer[wire.GenerationCreated](t, a)
		if want := "https://atelier.example/api/v2/generate/" + got.RequestID; got.StatusURL != want || got.Status != "pending" {
			t.Errorf("answer = %s", a.body)
		}
		if a.Header.Get("Retry-After") != "2" || got.RetryAfterSeconds != 2 || got.EstimatedSeconds != nil {
			t.Errorf("Retry-After is %q in %s", a.Header.Get("Retry-After"), a.body)
		}
		if p := a.Header.Get("RateLimit-Policy"); p != `"minute";q=10;w=60, "hour";q=100;w=3600` {
			t.Errorf("RateLimit-Policy is %q", p)
		}
		poll := m.sendRequest("GET", "/api/v2/generate/"+got.RequestID).checkStatus(t, "poll", 200, "")
		rec := decodeAnswer[wire.Generation](t, poll)
		if poll.Header.Get("Retry-After") != "2" || rec.RetryAfterSeconds != 2 {
			t.Errorf("pending with Retry-After %q: %s", poll.Header.Get("Retry-After"), poll.body)
		}
		if rec.TokensHeld != 9 || rec.NumResults != 3 || rec.Stage == nil || *rec.Stage != "queued" || string(rec.Metadata) != "null" {
			t.Errorf("record = %+v", rec)
		}
	})
}

// refusal is a way to be refused, in the order in which they are found.
type refusal struct {
	name, tool, more string
	query, kind      string
	header           []string
	status           int
	code, detail     string
	retry            bool
}

func (m *runFixture) refusals() []refusal {
	const j = "application/json"
	return []refusal{
		{"no credential", "one", "", "", j, []string{"Authorization", ""}, 401, "UNAUTHENTICATED", "", false},
		{"two teams", "one", "", "?team_id=a,b", j, nil, 400, "ACCOUNT_SELECTION_INVALID", "several", false},
		{"a team with a personal token", "one", "", "?team_id=" + ids.New(), j, nil, 400, "ACCOUNT_SELECTION_INVALID", "team_not_allowed", false},
		{"a broken query", "one", "", "?x=%zz", j, nil, 400, "INVALID_REQUEST", "query", false},
		{"an empty key", "one", "", "", j, []string{"Idempotency-Key", ""}, 400, "INVALID_REQUEST", "Idempotency-Key", false},
		{"another type", "one", "", "", "text/plain", nil, 415, "UNSUPPORTED_MEDIA_TYPE", "", false},
		{"no type", "one", "", "", "", nil, 415, "UNSUPPORTED_MEDIA_TYPE", "", false},
		{"a broken type", "one", "", "", "application/json; charset", nil, 415, "UNSUPPORTED_MEDIA_TYPE", "", false},
		{"a name twice", "one", `,"tool_id":"x"`, "", j, nil, 400, "INVALID_REQUEST", "body", false},
		{"a wrong type inside", "one", `,"inputs":[]`, "", j, nil, 400, "INVALID_REQUEST", "inputs", false},
		{"a wrong number of results", "one", `,"num_results":"2"`, "", j, nil, 400, "INVALID_REQUEST", "num_results", false},
		{"no such tool", "-unknown", "", "", j, nil, 404, "NOT_FOUND", "", false},
		{"a hidden tool", "-hidden", "", "", j, nil, 404, "NOT_FOUND", "", false},
		{"a stale hash", "-stale", "", "", j, nil, 409, "TOOL_SCHEMA_STALE", m.made["one"].ToolFieldsHash, false},
		{"an unknown input", "one", `,"inputs":{"Prompt":"x"}`, "", j, nil, 400, "INVALID_REQUEST", "inputs.Prompt", false},
		{"a missing input", "asks", `,"inputs":{"prompt":"x"}`, "", j, nil, 400, "INVALID_REQUEST", "inputs.picture", false},
		{"a foreign upload", "one", `,"inputs":{"picture":{"kind":"UPLOAD_REF","id":"` + ids.New() + `"}}`, "", j, nil, 400, "INVALID_REQUEST", "inputs.picture", false},
		{"a file that is not there", "one", `,"inputs":{"picture":{"kind":"MULTIPART","file_index":0}}`, "", j, nil, 400, "INVALID_REQUEST", "inputs.picture", false},
		{"a receiver without TLS", "one", `,"webhook_url":"http://example.com/"`, "", j, nil, 400, "INVALID_REQUEST", "webhook_url", false},
		{"a long plugin", "one", `,"plugin":"` + strings.Repeat("p", 65) + `"`, "", j, nil, 400, "INVALID_REQUEST", "plugin", false},
		{"too many results", "many", `,"num_results":5`, "", j, nil, 400, "NUM_RESULTS_LIMIT", `"max":4`, false},
		{"too few results", "many", `,"num_results":1`, "", j, nil, 400, "NUM_RESULTS_LIMIT", `"min":2`, false},
		{"a forbidden prompt", "one", `,"inputs":{"prompt":"L0lic0n, please"}`, "", j, nil, 422, "CONTENT_POLICY_VIOLATION", `"field":"inputs.prompt"`, false},
	}
}

// try sends the request of a refusal.
func (m *runFixture) try(x refusal) answer {
	m.t.Helper()
	body := ""
	switch x.tool {
	case "-unknown":
		body = fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":"v1:x","inputs":{"unknown":1}}`, ids.New())
	case "-hidden":
		var id string
		if err := m.db.QueryRow(m.t.Context(), `SELECT id FROM tool WHERE slug = 'gone'`).Scan(&id); err != nil {
			m.t.Fatal(err)
		}
		body = fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":"v1:x"}`, id)
	case "-stale":
		body = fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":"v1:x","inputs":{"unknown":1},"num_results":99}`, m.made["one"].ID)
	default:
		body = m.body(x.tool, x.more)
	}
	s := m.service
	if len(x.header) > 0 && x.header[0] == "Authorization" {
		s = m.as("nobody").service
		x.header = nil
	}
	return s.send("POST", "/api/v2/generate"+x.query, x.kind, strings.NewReader(body), x.header...)
}

func TestEveryRefusalOfCreateLeavesNoTrace(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		for _, x := range m.refusals() {
			m.unchanged(x.name, func() {
				a := m.try(x).checkStatus(t, x.name, x.status, x.code)
				if e := a.readError(t); e.Retryable != x.retry {
					t.Errorf("%s: retryable is %v", x.name, e.Retryable)
				}
				if !strings.Contains(string(a.body), x.detail) {
					t.Errorf("%s = %s, want %s", x.name, a.body, x.detail)
				}
				if x.status != 401 && x.code != "ACCOUNT_SELECTION_INVALID" && a.Header.Get("RateLimit-Policy") == "" {
					t.Errorf("%s is answered without RateLimit-Policy", x.name)
				}
			})
		}
		m.unchanged("all problems at once", func() {
			a := m.create(m.body("asks", `,"inputs":{"x":1},"webhook_url":"ftp://x","plugin":"a\nb","metadata":{"a":"`+strings.Repeat("a", 9000)+`"},"num_results":0`))
			if n := strings.Count(string(a.body), `"path"`); a.StatusCode != 400 || n != 6 {
				t.Errorf("six problems give %d: %s", n, a.body)
			}
			a = m.create(`{"tool_id":1,"inputs":"x","metadata":[],"num_results":1.5,"plugin":{},"webhook_url":true}`)
			if n := strings.Count(string(a.body), `"path"`); a.StatusCode != 400 || n != 7 {
				t.Errorf("seven problems with the shape give %d: %s", n, a.body)
			}
		})
	})
}

// TestOrderOfChecks sends requests with two faults each, of which the earlier
// one is told.
func TestOrderOfChecks(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		const bad = `,"inputs":{"prompt":"lolicon","x":1}`
		for _, x := range []struct {
			name, query, kind, body, code string
			status                        int
		}{
			{"selection before type", "?team_id=-", "text/plain", "{", "ACCOUNT_SELECTION_INVALID", 400},
			{"type before shape", "", "text/plain", "{", "UNSUPPORTED_MEDIA_TYPE", 415},
			{"shape before tool", "", "application/json", fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":"x","inputs":1}`, ids.New()), "INVALID_REQUEST", 400},
			{"tool before hash", "", "application/json", fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":"x"}`, ids.New()), "NOT_FOUND", 404},
			{"hash before inputs", "", "application/json", fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":"x","inputs":{"x":1}}`, m.made["one"].ID), "TOOL_SCHEMA_STALE", 409},
			{"inputs before policy", "", "application/json", m.body("one", bad), "INVALID_REQUEST", 400},
			{"results before policy", "", "application/json", m.body("many", `,"num_results":9,"inputs":{"prompt":"lolicon"}`), "NUM_RESULTS_LIMIT", 400},
		} {
			m.send("POST", "/api/v2/generate"+x.query, x.kind, strings.NewReader(x.body)).checkStatus(t, x.name, x.status, x.code)
		}
	})
}

// TestWhatIsCountedIsCheckedLast uses up the rate, the active runs and the
// balance, and watches who comes first.
func TestWhatIsCountedIsCheckedLast(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(c *generation.Settings) { c.CreatePerMinute, c.ActiveRuns = 3, 2 })
		m.grant("anna@example.com", "", -994) // 6 are left
		good := m.body("one", "")
		m.create(good).checkStatus(t, "the first", 202, "")
		m.unchanged("too poor", func() {
			a := m.create(m.body("wide", `,"num_results":2`)).checkStatus(t, "too poor", 402, "INSUFFICIENT_BALANCE")
			if e := a.readError(t); e.Retryable || e.Details["required"] != 6.0 || e.Details["available"] != 3.0 {
				t.Errorf("too poor = %s", a.body)
			}
		})
		m.create(good).checkStatus(t, "the second", 202, "")
		m.unchanged("too many at once", func() {
			a := m.create(good).checkStatus(t, "too many at once, and too poor", 429, "ACTIVE_RUN_CAP")
			if e := a.readError(t); !e.Retryable || e.Details["active"] != 2.0 || e.Details["limit"] != 2.0 || a.Header.Get("Retry-After") == "" {
				t.Errorf("too many at once = %s", a.body)
			}
		})
		id := getJSON[wire.GenerationList](m.service, "/api/v2/generations").Data[0].RequestID
		m.send("POST", "/api/v2/generate/"+id+"/cancel", "", nil).checkStatus(t, "cancel", 202, "")
		m.create(good).checkStatus(t, "the third", 202, "")
		m.unchanged("too fast", func() {
			a := m.create(good).checkStatus(t, "too fast, too many and too poor", 429, "RATE_LIMITED")
			wait := a.Header.Get("Retry-After")
			if e := a.readError(t); !e.Retryable || wait == "" || len(wait) > 2 || a.Header.Get("RateLimit") != `"minute";r=0;t=`+wait {
				t.Errorf("too fast = %s, RateLimit %q, Retry-After %q", a.body, a.Header.Get("RateLimit"), wait)
			}
		})
		m.create(m.body("one", `,"inputs":{"prompt":"lolicon"}`)).checkStatus(t, "policy before rate", 422, "CONTENT_POLICY_VIOLATION")
	})
}

func TestRateLimitHeadersCount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(c *generation.Settings) { c.ActiveRuns = 100 })
		for i := range 10 {
			a := m.create(m.body("one", "")).checkStatus(t, "create", 202, "")
			var left [2]int
			var reset [2]int
			if _, err := fmt.Sscanf(a.Header.Get("RateLimit"), `"minute";r=%d;t=%d, "hour";r=%d;t=%d`, &left[0], &reset[0], &left[1], &reset[1]); err != nil {
				t.Fatalf("RateLimit is %q: %v", a.Header.Get("RateLimit"), err)
			}
			if left != [2]int{9 - i, 99 - i} || reset[0] < 1 || reset[0] > 60 || reset[1] < 3500 || reset[1] > 3600 {
				t.Errorf("after %d creates RateLimit is %q", i+1, a.Header.Get("RateLimit"))
			}
		}
		m.create(m.body("one", "")).checkStatus(t, "the eleventh", 429, "RATE_LIMITED")
	})
}

// TestFullHour has the hour used up before the minute is.
func TestFullHour(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(c *generation.Settings) { c.CreatePerHour = 1 })
		m.create(m.body("one", "")).checkStatus(t, "the only one", 202, "")
		a := m.create(m.body("one", "")).checkStatus(t, "another", 429, "RATE_LIMITED")
		if wait := a.Header.Get("Retry-After"); len(wait) != 4 || a.Header.Get("RateLimit") != `"hour";r=0;t=`+wait {
			t.Errorf("RateLimit is %q, Retry-After %q", a.Header.Get("RateLimit"), wait)
		}
	})
}

// TestNumResults is the table of T43: what is charged for is what is told.
func TestNumResults(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		const limit, shape = "NUM_RESULTS_LIMIT", "INVALID_REQUEST"
		for _, x := range []struct {
			value           string // "" for absent
			one, many, wide any    // how many results, or the code
		}{
			{"", 1, 2, 1}, {"null", 1, 2, 1}, {"0", 1, limit, limit}, {"-0", 1, limit, limit}, {"-1", 1, limit, limit}, {"1", 1, limit, 1}, {"2", 1, 2, 2}, {"4", 1, 4, 4}, {"5", 1, limit, 5},
			{"64", 1, limit, 64}, {"65", 1, limit, limit}, {"1e18", 1, limit, limit}, {"1e400", 1, limit, limit}, {"-1e400", 1, limit, limit}, {"9223372036854775807", 1, limit, limit},
			{"9223372036854775808", 1, limit, limit}, {"-9223372036854775809", 1, limit, limit}, {"18446744073709551617", 1, limit, limit}, {"4294967298", 1, limit, limit},
			{"2.0", 1, 2, 2}, {"2e0", 1, 2, 2}, {"20e-1", 1, 2, 2}, {"0.2E+1", 1, 2, 2}, {"1.5", shape, shape, shape}, {"1e-400", 1, limit, limit}, {"2.0000000001", shape, shape, shape},
			{`"2"`, shape, shape, shape}, {`""`, shape, shape, shape}, {"true", shape, shape, shape}, {"[2]", shape, shape, shape}, {"{}", shape, shape, shape},
		} {
			for tool, want := range map[string]any{"one": x.one, "many": x.many, "wide": x.wide} {
				more := ""
				if x.value != "" {
					more = `,"num_results":` + x.value
				}
				a := m.create(m.body(tool, more))
				if code, ok := want.(string); ok {
					a.checkStatus(t, tool+" with "+x.value, 400, code)
					continue
				}
				if a.StatusCode != 202 {
					t.Errorf("%s with %s = %d %s", tool, x.value, a.StatusCode, a.body)
					continue
				}
				rec := getJSON[wire.Generation](m.service, "/api/v2/generate/"+decodeAnswer[wire.GenerationCreated](t, a).RequestID)
				if rec.NumResults != int64(want.(int)) || rec.TokensHeld != 3*int64(want.(int)) {
					t.Errorf("%s with %s makes %d for %d tokens, want %d", tool, x.value, rec.NumResults, rec.TokensHeld, want)
				}
			}
		}
	})
}

// TestNumResultsLeftOut has a tool whose form begins with more than its least.
func TestNumResultsLeftOut(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		for _, more := range []string{"", `,"num_results":null`} {
			rec := getJSON[wire.Generation](m.service, "/api/v2/generate/"+m.run("", m.body("tones", more)))
			if rec.NumResults != 1 || rec.TokensHeld != 3 {
				t.Errorf("%q makes %d for %d tokens, want 1 for 3", more, rec.NumResults, rec.TokensHeld)
			}
		}
	})
}

func TestWebhookURLsAndPlugins(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		long := "https://example.com/" + strings.Repeat("a", 2028)
		for _, x := range []struct {
			url string
			ok  bool
		}{
			{"https://example.com/hook?x=1", true}, {"https://example.com:8443/", true}, {"https://8.8.8.8/", true}, {long, true}, {"", true},
			{long + "a", false}, {"http://example.com/", false}, {"https://u:p@example.com/", false}, {"https://example.com:80/", false}, {"https://example.com:1023/", false},
			{"https://127.0.0.1/", false}, {"https://10.0.0.1/", false}, {"https://[::1]/", false}, {"https://[::ffff:10.0.0.1]/", false}, {"https://2130706433/", false},
			{"https://localhost/", false}, {"https://169.254.169.254/latest", false}, {"https:///x", false}, {"//example.com", false}, {"javascript:alert(1)", false}, {"https://exämple.com/", false},
		} {
			text, _ := json.Marshal(x.url)
			if a := m.create(m.body("one", `,"webhook_url":`+string(text))); (a.StatusCode == 202) != x.ok || !x.ok && !strings.Contains(string(a.body), "webhook_url") {
				t.Errorf("%s = %d %s", x.url, a.StatusCode, a.body)
			}
		}
		for plugin, ok := range map[string]bool{
			"": true, "b": true, strings.Repeat("p", 64): true, strings.Repeat("ü", 64): true, strings.Repeat("p", 65): false, strings.Repeat("ü", 65): false, "a\nb": false, "a\x7f": false,
		} {
			text, _ := json.Marshal(plugin)
			if a := m.create(m.body("one", `,"plugin":`+string(text))); (a.StatusCode == http.StatusAccepted) != ok {
				t.Errorf("plugin %q = %d %s", plugin, a.StatusCode, a.body)
			}
		}
	})
}

// TestMetadata measures metadata as it is when written without spaces and
// escapes, and gives it back as it came.
func TestMetadata(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		const most = 8192
		// Each gives an object that has n bytes when it is compact.
		shapes := map[string]func(n int) string{
			"plain":   func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` },
			"spaces":  func(n int) string { return "{ \n\t\"a\" :  \"" + strings.Repeat("x", n-8) + "\"\r\n}" },
			"escapes": func(n int) string { return `{"a":"` + strings.Repeat(`\u0078`, n-8) + `"}` },
			"surrogate pairs": func(n int) string {
				return `{"a":"` + strings.Repeat(`\ud83c\udfa8`, (n-8)/4) + strings.Repeat("x", (n-8)%4) + `"}`
			},
			"escaped names": func(n int) string { return `{"` + strings.Repeat(`\u006e`, n-6) + `":1}` },
			"slashes":       func(n int) string { return `{"a":"` + strings.Repeat(`\/`, n-8) + `"}` },
		}
		for name, shape := range shapes {
			for n, ok := range map[int]bool{most - 1: true, most: true, most + 1: false} {
				a := m.create(m.body("one", `,"metadata":`+shape(n)))
				if (a.StatusCode == 202) != ok || !ok && !strings.Contains(string(a.body), `"path":"metadata"`) {
					t.Errorf("%s of %d bytes = %d %.200s", name, n, a.StatusCode, a.body)
				}
			}
		}
		for _, text := range []string{
			`{}`, `{"n":12345678901234567890.10,"e":1E+5,"z":-0.0,"big":1e999}`, `{"__proto__":{"admin":true},"constructor":null}`,
			`{"b":1,"a":2,"<script>":"</script>&\u2028"}`, `{"":{"":[[],{},null,true,"\ud83c\udfa8\\\"\b"]}}`, `{"TENANT":"ü"}`,
		} {
			id := m.run("", m.body("one", `,"metadata":`+text))
			got := getJSON[wire.Generation](m.service, "/api/v2/generate/"+id).Metadata
			if !sameJSON(t, got, []byte(text)) {
				t.Errorf("metadata %s comes back as %s", text, got)
			}
			for _, number := range []string{"12345678901234567890.10", "1E+5", "-0.0", "1e999"} {
				if strings.Contains(text, number) && !strings.Contains(string(got), number) {
					t.Errorf("%s is not in %s", number, got)
				}
			}
		}
		for _, text := range []string{`[]`, `"{}"`, `1`, `true`} {
			m.create(m.body("one", `,"metadata":`+text)).checkStatus(t, "metadata "+text, 400, "INVALID_REQUEST")
		}
	})
}

// sameJSON tells whether two texts are one value, numbers as they are written.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var v [2]any
	for i, text := range [][]byte{a, b} {
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		if err := d.Decode(&v[i]); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(v[0], v[1])
}
