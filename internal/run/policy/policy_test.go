package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/run/policy"
	"atelier/internal/testkit/watch"
)

// endpoint is a moderator's other side.
func endpoint(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s
}

func moderator(t *testing.T, o policy.Options) *policy.Moderator {
	t.Helper()
	m, err := policy.NewModerator(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// TestRefusalsAreAlike compares all of them: they differ in the field alone.
func TestRefusalsAreAlike(t *testing.T) {
	t.Parallel()
	flags := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Input []string }
		json.NewDecoder(r.Body).Decode(&q)
		results := make([]string, len(q.Input))
		for i, s := range q.Input {
			results[i] = fmt.Sprintf(`{"flagged": %v, "categories": {"violence": true}}`, strings.Contains(s, "judge"))
		}
		fmt.Fprintf(w, `{"id": "x", "model": "m", "results": [%s]}`, strings.Join(results, ", "))
	})
	c := policy.Checker{Rules: parse(t, "pipe bomb", `/napalm\b/`), Moderator: moderator(t, policy.Options{URL: flags.URL})}
	var first *fault.Error
	for _, text := range []string{"pipe bomb", "a p1pe b.o.m.b", "napalm", "judge this", strings.Repeat("x", 1<<20)} {
		err := c.Check(t.Context(), []policy.Text{{"inputs.style", "oil"}, {"inputs.prompt", text}})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.ContentPolicyViolation {
			t.Fatalf("%.20q: check = %v, want a refusal", text, err)
		}
		if first == nil {
			first = f
		}
		if !reflect.DeepEqual(f, first) || !reflect.DeepEqual(f.Details, map[string]any{"field": "inputs.prompt"}) || strings.Contains(f.Error(), "bomb") {
			t.Errorf("%.20q: check = %#v, want %#v", text, f, first)
		}
	}
	for _, c := range []policy.Checker{c, {}, {Rules: c.Rules}, {Moderator: c.Moderator}} {
		if err := c.Check(t.Context(), prompt("a cat")); err != nil {
			t.Errorf("check = %v", err)
		}
	}
	if err := (&policy.Checker{}).Check(t.Context(), prompt(strings.Repeat("x", 1<<20+1))); !fault.Is(err, fault.ContentPolicyViolation) {
		t.Errorf("check = %v, want a refusal of what is too long", err)
	}
}

func TestWhatTheModeratorIsAsked(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	for _, c := range []struct {
		key, model, authorization, body string
	}{
		{"k3y", "omni", "Bearer k3y", `{"input":["a \u003ccat\u003e","ein Hündchen"],"model":"omni"}`},
		{"", "", "", `{"input":["a \u003ccat\u003e","ein Hündchen"]}`},
	} {
		s := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			body, _ := io.ReadAll(r.Body)
			if r.Method != http.MethodPost || r.URL.Path != "/v1/moderations" || r.Header.Get("Authorization") != c.authorization ||
				r.Header.Get("Content-Type") != "application/json" || string(body) != c.body {
				t.Errorf("%s %s %v %s, want %+v", r.Method, r.URL, r.Header, body, c)
			}
			io.WriteString(w, `{"results": [{"flagged": false}, {"flagged": true}]}`)
		})
		check := policy.Checker{Moderator: moderator(t, policy.Options{URL: s.URL + "/v1/moderations", Key: c.key, Model: c.model})}
		err := check.Check(t.Context(), []policy.Text{{"empty", ""}, {"one", "a <cat>"}, {"blank", " \n"}, {"two", "ein Hündchen"}})
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Details["field"] != "two" {
			t.Errorf("check = %#v, want the second text refused", err)
		}
		for _, texts := range [][]policy.Text{nil, prompt(""), prompt("\t ")} {
			if err := check.Check(t.Context(), texts); err != nil {
				t.Errorf("check of nothing = %v", err)
			}
		}
	}
	if asked.Load() != 2 {
		t.Errorf("asked %d times, want 2: there is nothing to ask about blank texts", asked.Load())
	}
}

// TestRulesComeFirst keeps what is plainly forbidden from the moderator.
func TestRulesComeFirst(t *testing.T) {
	t.Parallel()
	s := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("the moderator was asked") })
	c := policy.Checker{Rules: parse(t, "pipe bomb"), Moderator: moderator(t, policy.Options{URL: s.URL})}
	if err := c.Check(t.Context(), prompt("a pipe bomb")); !fault.Is(err, fault.ContentPolicyViolation) {
		t.Errorf("check = %v, want a refusal", err)
	}
}

// TestBrokenModerators lets nothing through.
func TestBrokenModerators(t *testing.T) {
	t.Parallel()
	elsewhere := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	const fine = `{"results": [{"flagged": false}]}`
	padded := func(length int) string { return fine + strings.Repeat(" ", length-len(fine)) }
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		works  bool
	}{
		"it works":                   {reply(200, fine), true},
		"more than is asked for":     {reply(200, `{"results": [{"flagged": false, "category_scores": {"x": 0.1}}], "more": 1}`), true},
		"one byte below the longest": {reply(200, padded(1<<20-1)), true},
		"the longest":                {reply(200, padded(1<<20)), true},
		"one byte above":             {reply(200, padded(1<<20+1)), false},
		"500":                        {reply(500, fine), false},
		"401":                        {reply(401, `{"error": {}}`), false},
		"429":                        {reply(429, fine), false},
		"204":                        {reply(204, ""), false},
		"201":                        {reply(201, fine), false},
		"a redirect":                 {http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, false},
		"nothing":                    {reply(200, ""), false},
		"no JSON":                    {reply(200, "<html>"), false},
		"half of it":                 {reply(200, fine[:len(fine)-1]), false},
		"more behind it":             {reply(200, fine+fine), false},
		"another shape":              {reply(200, `[]`), false},
		"null":                       {reply(200, `null`), false},
		"no results":                 {reply(200, `{}`), false},
		"empty results":              {reply(200, `{"results": []}`), false},
		"too many results":           {reply(200, `{"results": [{"flagged": false}, {"flagged": false}]}`), false},
		"results of another kind":    {reply(200, `{"results": {"flagged": false}}`), false},
		"a result without a flag":    {reply(200, `{"results": [{}]}`), false},
		"a flag that is null":        {reply(200, `{"results": [{"flagged": null}]}`), false},
		"a flag that is a word":      {reply(200, `{"results": [{"flagged": "false"}]}`), false},
		"a result that is null":      {reply(200, `{"results": [null]}`), false},
		"it hangs up":                {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
		"it hangs up halfway": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, fine)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c2 := policy.Checker{Moderator: moderator(t, policy.Options{URL: endpoint(t, c.answer).URL, Key: "s3cret", Timeout: 30 * time.Second})}
			err := c2.Check(t.Context(), prompt("a cat"))
			if c.works && err != nil || !c.works && !fault.Is(err, fault.Unavailable) {
				t.Errorf("check = %v, want it to work: %v", err, c.works)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("check = %v, which has the key", err)
			}
		})
	}
}

func TestAbsentModerators(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	slow := endpoint(t, watch.Hang)
	trickle := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"results": [{"flagged": `)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for name, o := range map[string]policy.Options{
		"closed":           {URL: closed.URL},
		"slow":             {URL: slow.URL, Timeout: 50 * time.Millisecond},
		"slow half of way": {URL: trickle.URL, Timeout: 50 * time.Millisecond},
	} {
		c := policy.Checker{Moderator: moderator(t, o)}
		if err := c.Check(t.Context(), prompt("a cat")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: check = %v, want %s", name, err, fault.Unavailable)
		}
	}
	c := policy.Checker{Moderator: moderator(t, policy.Options{URL: slow.URL})}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Check(ctx, prompt("a cat")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("check = %v, want %s when the caller's time is over", err, fault.Unavailable)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := c.Check(ctx, prompt("a cat")); !errors.Is(err, context.Canceled) || fault.Is(err, fault.Unavailable) {
		t.Errorf("check = %v, want the caller's own error when they left", err)
	}
}

func TestModeratorOptions(t *testing.T) {
	t.Parallel()
	const at = "https://example.com/v1/moderations"
	good := []policy.Options{{URL: at}, {URL: "http://127.0.0.1:8080/x"}, {URL: at, Key: "sk-1.2_3~", Timeout: time.Nanosecond}}
	bad := []policy.Options{
		{}, {URL: "example.com/x"}, {URL: "/v1"}, {URL: "ftp://example.com"}, {URL: "https://"}, {URL: "https://u:s3cret@example.com"}, {URL: "https://exa mple.com"}, {URL: "http://[::1"},
		{URL: at, Key: "a b"}, {URL: at, Key: "a\nb: c"}, {URL: at, Key: "ä"}, {URL: at, Timeout: -1},
	}
	for i, o := range slices.Concat(good, bad) {
		m, err := policy.NewModerator(o)
		if ok := i < len(good); (err == nil) != ok || (m != nil) != ok {
			t.Errorf("%+v = %v, %v", o, m, err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v has the password", err)
		}
	}
}
