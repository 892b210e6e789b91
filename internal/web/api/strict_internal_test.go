package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/account"
	"atelier/internal/base/fault"
	"atelier/internal/web/access"
	"atelier/internal/web/api/apitest"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// probe serves routes that only tests have, through everything that real ones
// go through.
func probe(t *testing.T, routes ...rest.Route) string {
	t.Helper()
	s, err := newServer(Parts{Accounts: &account.Services{}, Now: time.Now, Limits: Limits{JSONBytes: 1 << 20, JSONDepth: 64}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	server := httptest.NewServer(httpd.New(s.newHandler(routes), httpd.Options{Log: log, Metrics: prometheus.NewRegistry(), Health: &httpd.Health{Now: time.Now}, Now: time.Now}))
	t.Cleanup(server.Close)
	return server.URL
}

// body is what the probe's route reads.
type body struct {
	Name  string         `json:"name,omitempty"`
	Count int64          `json:"count,omitempty"`
	Meta  map[string]any `json:"meta,omitempty"`
	Parts *[]struct {
		Weight int64           `json:"weight"`
		Marks  map[string]bool `json:"marks,omitempty"`
	} `json:"parts,omitempty"`
}

func readBody(w http.ResponseWriter, r *http.Request) error {
	b, err := rest.Decode[body](w, r, rest.JSONLimits{Bytes: 1 << 20, Depth: 64})
	if err != nil {
		return err
	}
	w.Header().Set("X-Read", fmt.Sprintf("%s %d %v", b.Name, b.Count, b.Meta))
	return fault.New(fault.AuthorizationPending, "read") // any error that no refusal has
}

func TestStrictJSON(t *testing.T) {
	t.Parallel()
	url := probe(t, rest.Route{Method: "POST", Path: "/api/v2/probe", Rule: access.Open, Handle: readBody})
	deep := func(n int) string {
		return `{"meta":{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	const read, invalid = 428, 400
	for _, c := range []struct {
		name, body string
		status     int
		part       string // of the answer, or of what was read
	}{
		{"good", `{"name":"a","count":2,"meta":{"x":[1,"y",null]}}`, read, "a 2 map[x:[1 y <nil>]]"},
		{"empty object", `{}`, read, "0 map[]"},
		{"space around", " \n{\"name\":\"a\"}\t ", read, "a 0"},
		{"unknown name", `{"other":1,"name":"a"}`, read, "a 0"},
		{"another case is unknown", `{"Name":"a","COUNT":3}`, read, "0 map[]"},
		{"both cases", `{"name":"a","Name":"b"}`, read, "a 0"},
		{"escaped name", `{"n\u0061me":"a"}`, read, "a 0"},
		{"64 deep", deep(62), read, ""},
		{"65 deep", deep(63), invalid, "Nested more than 64 deep"},
		{"very deep", deep(400_000), invalid, "Nested more than 64 deep"},
		{"name twice", `{"name":"a","name":"b"}`, invalid, "twice"},
		{"name twice, escaped", `{"name":"a","n\u0061me":"b"}`, invalid, "twice"},
		{"name twice inside", `{"meta":{"x":[{"y":1,"y":2}]}}`, invalid, "twice"},
		{"NUL", `{"name":"a\u0000b"}`, invalid, "NUL"},
		{"NUL in a name", `{"a\u0000":1}`, invalid, "NUL"},
		{"raw NUL", "{\"name\":\"a\x00\"}", invalid, "Not valid JSON"},
		{"bad UTF-8", "{\"name\":\"\xff\"}", invalid, "Not valid JSON"},
		{"lone surrogate", `{"name":"\ud800"}`, invalid, "Not valid JSON"},
		{"BOM", "\xef\xbb\xbf{}", invalid, "Not valid JSON"},
		{"empty", ``, invalid, "empty"},
		{"spaces", `   `, invalid, ""},
		{"cut", `{"name":"a"`, invalid, "Not valid JSON"},
		{"unexpected data after", `{} {}`, invalid, "unexpected data after"},
		{"garbage after", `{}x`, invalid, "unexpected data after"},
		{"comment", `{/**/}`, invalid, "Not valid JSON"},
		{"trailing comma", `{"count":1,}`, invalid, "Not valid JSON"},
		{"single quotes", `{'name':'a'}`, invalid, "Not valid JSON"},
		{"NaN", `{"count":NaN}`, invalid, "Not valid JSON"},
		{"null", `null`, invalid, `"path":"body"`},
		{"null for what may be left out", `{"name":null,"count":null,"meta":null,"parts":null}`, read, "0 map[]"},
		{"a required field, deep", `{"parts":[{"weight":1},{}]}`, invalid, `"path":"parts.1.weight"`},
		{"null for a required field", `{"parts":[{"weight":null}]}`, invalid, `"path":"parts.0.weight"`},
		{"null in a list", `{"parts":[null]}`, invalid, `"path":"parts.0"`},
		{"null in a map", `{"parts":[{"weight":1,"marks":{"x":null}}]}`, invalid, `"path":"parts.0.marks.x"`},
		{"very many missing", `{"parts":[` + strings.Repeat("{},", 100_000) + `{}]}`, invalid, `"path":"parts.99.weight"`},
		{"a whole number with a point", `{"count":2.0}`, read, "2 map[]"},
		{"a whole number with an exponent", `{"count":2e3}`, read, "2000 map[]"},
		{"the largest number", `{"count":9223372036854775807}`, read, "9223372036854775807 map[]"},
		{"one more than the largest", `{"count":9223372036854775808}`, invalid, `"path":"count"`},
		{"a list", `[]`, invalid, `"path":"body"`},
		{"text", `"x"`, invalid, `"path":"body"`},
		{"wrong type", `{"count":"3"}`, invalid, `"path":"count"`},
		{"half a number", `{"count":1.5}`, invalid, `"path":"count"`},
		{"huge number", `{"count":1e400}`, invalid, `"path":"count"`},
		{"long number", `{"count":` + strings.Repeat("9", 100_000) + `}`, invalid, `"path":"count"`},
		{"exactly the limit", `{"name":"` + strings.Repeat("x", 1<<20-11) + `"}`, read, "xxx"},
		{"one byte more", `{"name":"` + strings.Repeat("x", 1<<20-10) + `"}`, 413, "PAYLOAD_TOO_LARGE"},
		{"much more", strings.Repeat(" ", 3<<20), 413, "PAYLOAD_TOO_LARGE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, err := apitest.Client(t).Post(url+"/api/v2/probe", "application/json; charset=utf-8", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || !strings.Contains(string(text)+res.Header.Get("X-Read"), c.part) {
				t.Errorf("= %d %s, read %q, want %d with %q", res.StatusCode, text, res.Header.Get("X-Read"), c.status, c.part)
			}
		})
	}
	for _, kind := range []string{"", "text/plain", "application/jsonx", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", ";"} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", url+"/api/v2/probe", strings.NewReader("{}"))
		r.Header.Set("Content-Type", kind)
		res, err := apitest.Client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != 415 {
			t.Errorf("content type %q = %d, want 415", kind, res.StatusCode)
		}
	}
}

// FuzzDecode holds the walk and the decoding to one opinion: what passes the
// walk never surprises the decoder with a syntax error.
func FuzzDecode(f *testing.F) {
	f.Add(`{"name":"a","count":1}`)
	f.Add(`{"meta":{"x":[1,2,{"y":null}]}}`)
	f.Add("[[[")
	f.Fuzz(func(t *testing.T, text string) {
		if httpd.CheckJSON([]byte(text), 64) != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Errorf("%q is well-formed here and not elsewhere", text)
		}
	})
}

func TestPanicsAreErrors(t *testing.T) {
	t.Parallel()
	url := probe(t,
		rest.Route{Method: "GET", Path: "/api/v2/panic", Rule: access.Open, Handle: func(http.ResponseWriter, *http.Request) error { panic("secret text") }},
		rest.Route{Method: "GET", Path: "/api/v2/nil", Rule: access.Open, Handle: func(http.ResponseWriter, *http.Request) error {
			var s *server
			return errors.New(s.origins[0])
		}},
		rest.Route{Method: "GET", Path: "/api/v2/accident", Rule: access.Open, Handle: func(http.ResponseWriter, *http.Request) error {
			return errors.New("SELECT secret text")
		}},
		rest.Route{Method: "GET", Path: "/api/v2/cause", Rule: access.Open, Handle: func(http.ResponseWriter, *http.Request) error {
			return fault.New(fault.NotFound, "Gone.").Because(errors.New("secret text"))
		}},
	)
	for path, want := range map[string]int{"panic": 500, "nil": 500, "accident": 500, "cause": 404} {
		for range 10 {
			res, err := apitest.Client(t).Get(url + "/api/v2/" + path)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != want || strings.Contains(string(text), "secret") || strings.Contains(string(text), "goroutine") {
				t.Errorf("%s = %d %s, want %d and no cause", path, res.StatusCode, text, want)
			}
		}
	}
}

// TestBrokenOffAnswers holds that an answer which fails half-way is seen to be
// broken, and that no envelope is put behind its bytes.
func TestBrokenOffAnswers(t *testing.T) {
	t.Parallel()
	half := func(fail func() error) rest.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) error {
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
			return fail()
		}
	}
	url := probe(t,
		rest.Route{Method: "GET", Path: "/error", Rule: access.Open, Handle: half(func() error { return errors.New("broken") })},
		rest.Route{Method: "GET", Path: "/panic", Rule: access.Open, Handle: half(func() error { panic("broken") })},
	)
	for _, path := range []string{"/error", "/panic"} {
		res, err := http.Get(url + path)
		if err != nil {
			continue // cut off before the headers were sent
		}
		text, err := io.ReadAll(res.Body)
		if res.Body.Close(); err == nil || strings.Contains(string(text), "INTERNAL") {
			t.Errorf("%s = %q, %v, want it cut off", path, text, err)
		}
	}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	for _, c := range fault.Codes {
		if httpd.Status[c] == 0 {
			t.Errorf("%s has no status", c)
		}
	}
	if len(httpd.Status) != len(fault.Codes) {
		t.Errorf("%d statuses for %d codes", len(httpd.Status), len(fault.Codes))
	}
	contract, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range fault.Codes { // the document knows each of them
		rec := httptest.NewRecorder()
		for k, v := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "X-Trace-Id": strings.Repeat("0", 32), "Allow": "GET"} {
			rec.Header().Set(k, v)
		}
		failure := fault.New(c, "m").After(time.Millisecond)
		if c == fault.RateLimited {
			failure = fault.TooMany("m", 1, time.Minute, time.Millisecond)
		}
		rest.WriteError(rec, strings.Repeat("0", 32), failure)
		if err := contract.CheckResponse("GET", "/api/v2/nowhere", rec.Code, rec.Header(), rec.Body.Bytes()); err != nil {
			t.Errorf("%s: %v", c, err)
		}
		if got := rec.Header().Get("Retry-After"); got != "1" {
			t.Errorf("%s: Retry-After of a millisecond = %q, want 1", c, got)
		}
	}
}
