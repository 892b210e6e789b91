package cog_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/testkit/watch"
)

// sends answers with events and ends the response.
func sends(events ...string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "text/event-stream" {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "event: start\ndata: {\"status\":\"processing\"}\n\n:keep-alive\n\n"+strings.Join(events, ""))
	}
}

// sendsThenHangs answers with events and leaves the response open.
func sendsThenHangs(events ...string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		sends(events...)(w, r)
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
		watch.Hang(w, r)
	}
}

func outputEvent(value string) string { return "event: output\ndata: {\"chunk\":" + value + "}\n\n" }

func endEvent(status, output string) string {
	return fmt.Sprintf("event: completed\ndata: {\"status\":%q,\"error\":\"out of paint\",\"output\":%s}\n\n", status, output)
}

// streaming starts a server with streaming responses.
func streaming(t *testing.T, answers ...answer) *server {
	t.Helper()
	return start(t, &server{answers: answers, streams: true})
}

func TestStreams(t *testing.T) {
	t.Parallel()
	a := outputEvent(`"data:,a"`)
	b := outputEvent(`"data:,b"`)
	for _, tt := range []struct {
		name    string
		answer  answer
		results int
		want    []string
	}{
		{"as they come", sends(a, b, endEvent("succeeded", `["data:,a","data:,b"]`)), 2, []string{"a", "b"}},
		{"only at the end", sends(endEvent("succeeded", `["data:,a","data:,b"]`)), 2, []string{"a", "b"}},
		{"lists in one event", sends(outputEvent(`["data:,a","data:,b"]`), endEvent("succeeded", `null`)), 2, []string{"a", "b"}},
		{"fewer than asked for", sends(a, endEvent("succeeded", `["data:,a"]`)), 2, []string{"a"}},
		{"more than asked for", sends(a, b, endEvent("succeeded", `["data:,a","data:,b"]`)), 1, []string{"a"}},
		{"without an end", sendsThenHangs(a, b), 1, []string{"a"}},
		{"the server does not stream", gives(`["data:,a"]`), 1, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := streaming(t, tt.answer)
			j := job(`{"several":true}`, nil)
			j.NumResults = tt.results
			var got []string
			for _, b := range results(t, open(t, s.URL), j) {
				got = append(got, string(b))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("results = %q, want %q", got, tt.want)
			}
			eventually(t, "the response ends", func() bool { return s.working.Load() == 0 })
		})
	}
}

func TestStreamFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer    answer
		code      engine.Code
		transient bool
	}{
		"the model fails":        {sends(endEvent("failed", `null`)), engine.Failed, false},
		"stopped by somebody":    {sends(endEvent("canceled", `null`)), engine.Failed, true},
		"broken off":             {sends(), engine.Unavailable, true},
		"events were lost":       {sends("event: error\ndata: {\"error\":\"SSE stream lagged\"}\n\n"), engine.Failed, true},
		"no JSON":                {sends("event: output\ndata: <html>\n\n"), engine.Invalid, false},
		"no JSON at the end":     {sends("event: completed\ndata: <html>\n\n"), engine.Invalid, false},
		"nothing":                {sends(endEvent("succeeded", `null`)), engine.Invalid, false},
		"a file of another run":  {sends(outputEvent(`"http://127.0.0.1:1/fox.png"`)), engine.Invalid, false},
		"the server has no slot": {text(409, `{"error":"At capacity"}`), engine.Unavailable, true},
		"not acceptable":         {text(406, `{}`), engine.Failed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := failure(t, open(t, streaming(t, tt.answer).URL), job(`{}`, nil))
			if f.Code != tt.code || f.Transient != tt.transient {
				t.Errorf("failure = %v, transient %v; want %s, %v", f, f.Transient, tt.code, tt.transient)
			}
		})
	}
}
