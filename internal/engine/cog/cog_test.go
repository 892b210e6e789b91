package cog_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/enginetest"
)

func TestOutputs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, output string
		results      int
		want         []string
	}{
		{"one", fox, 1, []string{"a fox"}},
		{"a list", `["data:,a", "data:,b%20c", "data:;base64,ZA"]`, 3, []string{"a", "b c", "d"}},
		{"more than asked for", `["data:,a","data:,b","data:,c"]`, 2, []string{"a", "b"}},
		{"fewer than asked for", `["data:,a"]`, 3, []string{"a"}},
		{"an object in its order", `{"z":"data:,z","seed":7,"a":["data:,a",null],"note":"a text"}`, 4, []string{"z", "a"}},
		{"text beside files", `["done","data:,a"]`, 1, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, gives(tt.output))
			j := job(`{"results":"n"}`, nil)
			j.NumResults = tt.results
			var got []string
			for _, b := range results(t, open(t, s.URL), j) {
				got = append(got, string(b))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("results = %q, want %q", got, tt.want)
			}
			if paths, _ := s.asked(); !slices.Equal(paths, []string{"PUT /predictions/run-1-0-0"}) {
				t.Errorf("calls = %q, want one", paths)
			}
		})
	}
}

// TestEchoesAreNotFetched has a model repeat an address of its server that a
// person wrote.
func TestEchoesAreNotFetched(t *testing.T) {
	t.Parallel()
	s := serve(t, at("/fox.png"))
	e := open(t, s.URL)
	if f := failure(t, e, job(`{}`, values{"prompt": "a fox like " + s.URL + "/fox.png"})); f.Code != engine.Invalid {
		t.Errorf("failure = %v, want that there is no result", f)
	}
	if got := results(t, e, job(`{"any_url":true}`, nil)); len(got) != 1 {
		t.Errorf("results = %d, want the file that no person named", len(got))
	}
}

// TestURLsMustNameTheirPrediction has a server name files of several
// predictions. One person must not get another's result.
func TestURLsMustNameTheirPrediction(t *testing.T) {
	t.Parallel()
	s := serve(t, at("/files/another-1-0-0/fox.png"), at("/files/run-1-0-0/fox.png"))
	e := open(t, s.URL)
	if f := failure(t, e, job(`{}`, nil)); f.Code != engine.Invalid || f.Transient {
		t.Errorf("a file of another prediction: %v", f)
	}
	if got := results(t, e, job(`{}`, nil)); len(got) != 1 || string(got[0]) != "a fox" {
		t.Errorf("results = %q, want the file of this prediction", got)
	}
}

// TestFewerAreBetterThanNone has the second of three predictions make nothing.
func TestFewerAreBetterThanNone(t *testing.T) {
	t.Parallel()
	j := job(`{"seed":"seed"}`, nil)
	j.NumResults = 3
	if got := results(t, open(t, serve(t, gives(fox), gives(`[]`)).URL), j); len(got) != 1 {
		t.Errorf("results = %d, want the one that was made", len(got))
	}
}

func TestTextOutputs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, schema, output string
		results              int
		want                 []string
	}{
		{"plain", `{"type":"string"}`, `"https://example.com/ is a place"`, 1, []string{"https://example.com/ is a place"}},
		{"pieces", `{"type":"array","items":{"type":"string"},"x-cog-array-display":"concatenate"}`, `["a","b"," c"]`, 1, []string{"ab c"}},
		{"a list", `{"type":"array","items":{"type":"string"}}`, `["a","b"]`, 2, []string{"a", "b"}},
		{"an object", `{"type":"object"}`, `{"b":"x","a":0.5}`, 2, []string{"x", "0.5"}},
		{"a file", `{"type":"string","format":"uri"}`, `"data:text/plain,a%20text"`, 1, []string{"a text"}},
		{"no schema", ``, `"data:,is text"`, 1, []string{"data:,is text"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := http.NewServeMux()
			if tt.schema != "" {
				m.HandleFunc("GET /openapi.json", text(200, `{"components":{"schemas":{"Output":`+tt.schema+`}}}`))
			}
			m.HandleFunc("PUT /predictions/{id}", gives(tt.output))
			s := httptest.NewServer(m)
			t.Cleanup(s.Close)
			j := job(`{"results":"n"}`, nil)
			j.OutputType, j.NumResults = "TEXT", tt.results
			var got []string
			for _, b := range results(t, open(t, s.URL), j) {
				got = append(got, string(b))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("results = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	s := serve(t, gives(fox))
	e := open(t, s.URL)
	j := job(`{"input":{"fixed":1.5,"safe":true},"rename":{"strength":"prompt_strength","pictures":"images[]","hidden":"-"},"seed":"seed","seed_max":99}`,
		values{"strength": 0.5, "count": 3.0, "hidden": "x", "size": values{"width": int64(8), "height": int64(9)}})
	j.Files = map[string][]engine.File{"pictures": {enginetest.FileFromBytes("image/png", []byte("one"))}, "mask": {enginetest.FileFromBytes("image/gif", []byte("two"))}}
	j.NumResults, j.Seed = 3, 1234
	results(t, e, j)
	paths, in := s.asked()
	if want := []string{"PUT /predictions/run-1-0-0", "PUT /predictions/run-1-0-1", "PUT /predictions/run-1-0-2"}; !slices.Equal(paths, want) {
		t.Errorf("calls = %q, want %q", paths, want)
	}
	seeds := map[any]bool{}
	for n, got := range in {
		seeds[got["seed"]] = true
		if n == 0 && got["seed"] != 34.0 {
			t.Errorf("first seed = %v, want the job's within its bound", got["seed"])
		}
		delete(got, "seed")
		want := values{
			"prompt": "a fox", "prompt_strength": 0.5, "count": 3.0, "width": 8.0, "height": 9.0, "fixed": 1.5, "safe": true,
			"images": []any{"data:image/png;base64,b25l"}, "mask": "data:image/gif;base64,dHdv",
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("inputs = %v, want %v", got, want)
		}
	}
	if len(seeds) != 3 {
		t.Errorf("seeds = %v, want three", seeds)
	}
}

func TestFixedSeedStays(t *testing.T) {
	t.Parallel()
	s := serve(t, gives(fox))
	j := job(`{"input":{"seed":7},"seed":"seed"}`, nil)
	j.NumResults = 2
	results(t, open(t, s.URL), j)
	for _, in := range s.inputs {
		if in["seed"] != 7.0 {
			t.Errorf("seed = %v, want the manifest's", in["seed"])
		}
	}
}

// TestSeveralOfOneRequest has a model make fewer results than requested, and
// its manifest say that one request makes all.
func TestSeveralOfOneRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, gives(`["data:,a","data:,b"]`))
	j := job(`{"several":true}`, nil)
	j.NumResults = 3
	if got := results(t, open(t, s.URL), j); len(got) != 2 {
		t.Errorf("results = %d, want the 2 of one prediction", len(got))
	}
	if paths, _ := s.asked(); len(paths) != 1 {
		t.Errorf("calls = %q, want one", paths)
	}
}

// TestModelGivesSeveral stops asking when there are enough.
func TestModelGivesSeveral(t *testing.T) {
	t.Parallel()
	s := serve(t, gives(`["data:,a","data:,b"]`), gives(`["data:,c","data:,d"]`))
	j := job(`{}`, nil)
	j.NumResults = 3
	if got := results(t, open(t, s.URL), j); len(got) != 3 {
		t.Errorf("results = %d, want 3", len(got))
	}
	if paths, _ := s.asked(); len(paths) != 2 {
		t.Errorf("calls = %q, want 2", paths)
	}
}

// TestCopiesAreDropped has a model without a seed repeat its result.
func TestCopiesAreDropped(t *testing.T) {
	t.Parallel()
	j := job(`{}`, nil)
	j.NumResults = 3
	if got := results(t, open(t, serve(t, gives(fox)).URL), j); len(got) != 1 {
		t.Errorf("results = %d, want 1 without its copies", len(got))
	}
}

func TestNamesAreEscaped(t *testing.T) {
	t.Parallel()
	s := serve(t, gives(fox))
	j := job(`{}`, nil)
	j.RunID = "a/../b c?"
	results(t, open(t, s.URL), j)
	if paths, _ := s.asked(); paths[0] != "PUT /predictions/a%2F..%2Fb%20c%3F-1-0-0" {
		t.Errorf("call = %q", paths[0])
	}
}

// TestFilesTogether counts what all files of a call have, in base64 and within
// what the server reads.
func TestFilesTogether(t *testing.T) {
	t.Parallel()
	s := serve(t, gives(fox))
	e := open(t, s.URL)
	half := enginetest.FileFromBytes("image/png", []byte("it says it is larger"))
	half.Size = 36 << 20
	j := job(`{}`, nil)
	j.Files = map[string][]engine.File{"pictures": {half, half}}
	results(t, e, j)
	j.Files["mask"] = []engine.File{enginetest.FileFromBytes("image/png", []byte("one more"))}
	if f := failure(t, e, j); f.Code != engine.Failed || f.Transient {
		t.Errorf("failure = %v", f)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	s := serve(t, gives(fox))
	e := cog.New(client(t, s.URL), cog.Options{SendURLs: true})
	there := enginetest.FileFromBytes("image/png", []byte("one"))
	there.Address = func() string { return "https://atelier.example/files/1?signature=x" }
	there.Open = func(context.Context) (io.ReadCloser, error) {
		t.Error("the file was read")
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	j := job(`{}`, nil)
	j.Files = map[string][]engine.File{"there": {there}, "here": {enginetest.FileFromBytes("image/png", []byte("one"))}}
	results(t, e, j)
	if in := s.inputs[0]; in["there"] != "https://atelier.example/files/1?signature=x" || in["here"] != "data:image/png;base64,b25l" {
		t.Errorf("inputs = %v", in)
	}
}

// TestCancelIsAsked holds for servers behind a proxy that keeps the end of a
// connection to itself.
func TestCancelIsAsked(t *testing.T) {
	t.Parallel()
	s := serve(t, hangs)
	stop, _ := begun(t, open(t, s.URL), job(`{}`, nil))
	eventually(t, "the call arrives", func() bool { return s.working.Load() == 1 })
	stop()
	paths, _ := s.asked() // it may ask more than once
	if !slices.Equal(slices.Compact(paths), []string{"PUT /predictions/run-1-0-0", "POST /predictions/run-1-0-0/cancel"}) {
		t.Errorf("calls = %q, want the last one to cancel", paths)
	}
}

func TestSlotThatIsFreeSoon(t *testing.T) {
	t.Parallel()
	full := text(http.StatusConflict, `{}`)
	s := serve(t, full, full, gives(fox))
	if got := results(t, open(t, s.URL), job(`{}`, nil)); string(got[0]) != "a fox" {
		t.Errorf("result = %q", got)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	for body, fine := range map[string]bool{
		`{"status":"READY","setup":{"status":"succeeded"},"version":{"coglet":"0.23.1"}}`: true,
		`{"status":"BUSY"}`: true,
		`{"status":"READY","setup":{"started_at":"2024-01-01","completed_at":null,"logs":""},"x":[]}`: true, // before 0.17
		`{"status":"STARTING"}`:                                    false,
		`{"status":"SETUP_FAILED"}`:                                false,
		`{"status":"DEFUNCT"}`:                                     false,
		`{"status":"UNHEALTHY","user_healthcheck_error":"no GPU"}`: false,
		`{"status":"UNKNOWN"}`:                                     false,
		`{}`:                                                       false,
		`<html>`:                                                   false,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/health-check" {
				t.Errorf("call = %s", r.URL.Path)
			}
			io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		err := open(t, s.URL).Probe(t.Context())
		if (err == nil) != fine {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestImportProblems(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`: "the schema has no Input",
		`{"components":{"schemas":{"Input":{"required":["key"],"properties":{"key":{"type":"string","format":"password"}}}}}}`: "key: it is a secret",
		`<html>`: "invalid",
	} {
		s := httptest.NewServer(text(200, body))
		t.Cleanup(s.Close)
		if _, err := open(t, s.URL).ImportTool(t.Context(), "x", "cog", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	s := httptest.NewServer(text(503, `{"error":"OpenAPI schema not available"}`))
	t.Cleanup(s.Close)
	if _, err := open(t, s.URL).ImportTool(t.Context(), "x", "cog", ""); err == nil {
		t.Error("import from a server that is not ready: no error")
	}
}
