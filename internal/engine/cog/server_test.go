package cog_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/enginetest"
	"atelier/internal/testkit/watch"
)

// server does what no healthy Cog server does. Answers are taken from the
// front; the last one stays.
type server struct {
	*httptest.Server
	working atomic.Int64 // calls that are not answered yet
	streams bool         // the model's schema offers streaming responses

	mu      sync.Mutex
	answers []answer
	inputs  []map[string]any
	paths   []string
}

type answer = http.HandlerFunc

// serve starts a server whose predictions come out like that.
func serve(t testing.TB, answers ...answer) *server {
	t.Helper()
	return start(t, &server{answers: answers})
}

// start starts a server.
func start(t testing.TB, s *server) *server {
	t.Helper()
	m := http.NewServeMux()
	m.HandleFunc("PUT /predictions/{id}", s.predict)
	m.HandleFunc("POST /predictions/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		s.note(r, nil)
		io.WriteString(w, `{}`)
	})
	m.HandleFunc("GET /health-check", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"status":"READY"}`) })
	m.HandleFunc("GET /half", func(w http.ResponseWriter, _ *http.Request) { enginetest.SendTruncated(w, []byte("half of it")) })
	m.HandleFunc("GET /endless", func(w http.ResponseWriter, r *http.Request) { enginetest.SendEndless(w, r, "") })
	m.HandleFunc("GET /drips", func(w http.ResponseWriter, r *http.Request) { enginetest.SendSlowly(w, r, []byte(".")) })
	m.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		if !s.streams {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.WriteString(w, `{"paths":{"/predictions":{"post":{"x-cog-streaming":true}}}}`)
	})
	m.HandleFunc("GET /files/{id}/fox.png", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a fox") })
	m.HandleFunc("GET /fox.png", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a fox") })
	s.Server = httptest.NewServer(m)
	t.Cleanup(s.Close)
	return s
}

func (s *server) note(r *http.Request, in map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths = append(s.paths, r.Method+" "+r.URL.EscapedPath())
	if in != nil {
		s.inputs = append(s.inputs, in)
	}
}

func (s *server) predict(w http.ResponseWriter, r *http.Request) {
	s.working.Add(1)
	defer s.working.Add(-1)
	var body struct {
		Input map[string]any `json:"input"`
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(text, &body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.note(r, body.Input)
	s.mu.Lock()
	next := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	s.mu.Unlock()
	next(w, r)
}

// asked are the calls, and the inputs of the predictions among them.
func (s *server) asked() (paths []string, inputs []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths, s.inputs
}

func text(code int, body string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

// gives is a prediction with this output.
func gives(output string) answer {
	return text(http.StatusOK, `{"id":"x","status":"succeeded","output":`+output+`}`)
}

// hangs says nothing.
func hangs(w http.ResponseWriter, r *http.Request) { watch.Hang(w, r) }

// at gives a file of the server itself.
func at(path string) answer {
	return func(w http.ResponseWriter, r *http.Request) { gives(`"http://`+r.Host+path+`"`)(w, r) }
}

const fox = `"data:text/plain;base64,YSBmb3g="`

// Not parallel: the suite counts goroutines.
func TestFaults(t *testing.T) {
	trial := func(s *server) enginetest.Trial {
		c := client(t, s.URL)
		return enginetest.Trial{
			Engine: cog.New(c, cog.Options{}), Job: job(`{"seed":"seed","any_url":true}`, nil),
			Idle:   func() bool { return s.working.Load() == 0 },
			Settle: func() { c.Close(); s.CloseClientConnections() },
		}
	}
	goes := func(answers ...answer) func(t *testing.T) enginetest.Trial {
		return func(t *testing.T) enginetest.Trial { return trial(serve(t, answers...)) }
	}
	passes := func(answers ...answer) func(t *testing.T) enginetest.Trial {
		return func(t *testing.T) enginetest.Trial {
			tr := trial(serve(t, append(answers, gives(fox))...))
			tr.After = tr.Job
			return tr
		}
	}
	full := text(http.StatusConflict, `{"error":"At capacity - all prediction slots busy","status":"failed"}`)
	enginetest.CheckFaults(t, map[enginetest.Fault]func(t *testing.T) enginetest.Trial{
		enginetest.Refuses: goes(text(http.StatusUnprocessableEntity, `{"detail":[{"loc":["body","input","prompt"],"msg":"Field required","type":"value_error.missing"}]}`)),
		enginetest.Fails:   goes(text(http.StatusOK, `{"status":"failed","error":"CUDA out of memory in /src/predict.py at http://127.0.0.1:9"}`)),
		enginetest.Busy:    passes(full, full, full, full, full, full, full),
		enginetest.Away: func(t *testing.T) enginetest.Trial {
			s := serve(t, enginetest.DropConnection)
			s.Close()
			return trial(s)
		},
		enginetest.Loses:    passes(text(http.StatusOK, `{"status":"canceled"}`)),
		enginetest.Garbles:  passes(text(http.StatusOK, `<html>It works!</html>`)),
		enginetest.Breaks:   passes(at("/half")),
		enginetest.Floods:   goes(at("/endless")),
		enginetest.Drips:    goes(at("/drips")),
		enginetest.Hangs:    goes(hangs),
		enginetest.TimeIsUp: goes(hangs),
		enginetest.Restarts: passes(enginetest.DropConnection),
		enginetest.Fewer:    goes(gives(`[]`)),
	}, nil)
}

// TestOtherFaults are more ways in which answers go wrong.
func TestOtherFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer    answer
		code      engine.Code
		transient bool
	}{
		"starting up":             {text(503, `{"error":"Setup has not finished yet.","status":"failed"}`), engine.Unavailable, true},
		"still at it":             {text(202, `{"id":"x","status":"processing","input":{}}`), engine.Unavailable, true},
		"a proxy's page":          {text(502, `<html>`), engine.Unavailable, true},
		"not ours":                {text(401, `{}`), engine.Failed, false},
		"an old refusal":          {text(422, `{"detail":"no such input"}`), engine.Failed, false},
		"stopped by somebody":     {text(200, `{"status":"canceled"}`), engine.Failed, true},
		"half an answer":          {text(200, `{"status":"succeeded","output":["data:`), engine.Unavailable, true},
		"another state":           {text(200, `{"status":"delighted"}`), engine.Failed, false},
		"no state":                {text(200, `{}`), engine.Failed, false},
		"no output":               {text(200, `{"status":"succeeded"}`), engine.Invalid, false},
		"null":                    {gives(`null`), engine.Invalid, false},
		"no file":                 {gives(`"a fox"`), engine.Invalid, false},
		"numbers":                 {gives(`{"seed":7,"ok":true}`), engine.Invalid, false},
		"too deep":                {gives(strings.Repeat(`[`, 50) + strings.Repeat(`]`, 50)), engine.Invalid, false},
		"no base64":               {gives(`"data:image/png;base64,%%%%"`), engine.Invalid, false},
		"no data":                 {gives(`"data:image/png"`), engine.Failed, false},
		"another server's file":   {gives(`"http://127.0.0.1:1/fox.png"`), engine.Failed, false},
		"the machine's own":       {gives(`"http://169.254.169.254/latest/meta-data"`), engine.Failed, false},
		"a file of the disk":      {gives(`"file:///etc/passwd"`), engine.Invalid, false},
		"a file that is not here": {at("/nowhere.png"), engine.Failed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := failure(t, open(t, serve(t, tt.answer).URL), job(`{"any_url":true}`, nil))
			if f.Code != tt.code || f.Transient != tt.transient {
				t.Errorf("failure = %v, transient %v; want %s, %v", f, f.Transient, tt.code, tt.transient)
			}
		})
	}
}

func TestManifestProblems(t *testing.T) {
	t.Parallel()
	s := serve(t, gives(fox))
	for _, with := range []string{``, `[]`, `{"model":"x"}`, `{"seed":7}`} {
		if f := failure(t, open(t, s.URL), job(with, nil)); f.Code != engine.Failed || f.Transient {
			t.Errorf("with %s: %v", with, f)
		}
	}
	if paths, _ := s.asked(); len(paths) != 0 {
		t.Errorf("calls = %v, want none", paths)
	}
}
