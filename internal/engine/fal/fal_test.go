package fal_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
)

func TestInputs(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	j := painting(painter+`,"input":{"enable_safety_checker":true}`, 2)
	j.Files = pictureOf(1000)
	w.results(t, j)
	in := w.Inputs()
	if len(in) != 2 || in[0]["seed"] != 7.0 || in[1]["seed"] != float64(j.SeedOf(1)) {
		t.Fatalf("inputs = %v, want two with seeds of their own", in)
	}
	if in[0]["enable_safety_checker"] != true || in[0]["guidance_scale"] != 3.5 || in[0]["picture"] != nil {
		t.Errorf("inputs = %v", in[0])
	}
	if ref, _ := in[0]["image_url"].(string); !strings.HasPrefix(ref, "data:image/png;base64,") {
		t.Errorf("small file = %.40q, want it inline", ref)
	}
}

func TestLargeFilesAreUploadedOnce(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	j := painting(painter, 3)
	j.Files = pictureOf(300 << 10)
	w.results(t, j)
	refs := map[any]bool{}
	for _, in := range w.Inputs() {
		refs[in["image_url"]] = true
		if ref, _ := in["image_url"].(string); !strings.Contains(ref, "/uploads/") {
			t.Errorf("large file = %.40q, want an upload", ref)
		}
	}
	if len(refs) != 1 {
		t.Errorf("uploads = %d, want 1", len(refs))
	}
	if w.Leaks() != 0 {
		t.Error("the key went to the host of files")
	}
}

func TestWithoutAStorageFilesGoInside(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	w.engine = fal.New(call(t, w.URL, w.Key), fal.Options{PollInterval: 5 * time.Millisecond})
	j := painting(painter, 1)
	j.Files = pictureOf(300 << 10)
	w.results(t, j)
}

func TestAddressesInsteadOfUploads(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	w.engine = w.with(t, w.URL, fal.Options{SendURLs: true})
	j := painting(painter, 1)
	j.Files = pictureOf(300 << 10)
	j.Files["picture"][0].Address = func() string { return "https://atelier.example/media/1?signature=x" }
	w.failure(t, j) // the stand-in reaches no such host
	if ref := w.Inputs()[0]["image_url"]; ref != "https://atelier.example/media/1?signature=x" {
		t.Errorf("input = %v, want our address", ref)
	}
}

func TestOutputsOfEveryForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ endpoint, kind, want string }{
		{faltest.Film, "VID", "a film"},
		{faltest.Writer, "TEXT", "Once upon a time"},
	} {
		w := start(t, faltest.Options{Own: true})
		j := painting(`"endpoint":"`+tt.endpoint+`"`, 1)
		j.OutputType = tt.kind
		if got := string(w.results(t, j).Outputs()[0]); got != tt.want {
			t.Errorf("%s made %q, want %q", tt.endpoint, got, tt.want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	for _, with := range []string{
		``, `{}`, `{"endpoint":"painter"}`, `{"endpoint":"../files"}`, `{"endpoint":"fal-ai/painter/../x"}`, `{"endpoint":"fal-ai/painter?x=1"}`,
		`{"endpoint":"https://queue.example/fal-ai/painter"}`, `{"endpoint":"fal-ai/painter/dev","end":1}`, `{"endpoint":"fal-ai/nothing"}`,
	} {
		j := painting(painter, 1)
		j.With = with
		if e, _ := w.failure(t, j); e.Transient || !strings.Contains(e.Message, "not configured correctly") {
			t.Errorf("with %s: %v", with, e)
		}
	}
	w.wantCreates(t, 0)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault   faltest.Fault
		code    engine.Code
		again   bool
		message string
	}{
		{faltest.Locked, engine.Failed, false, "Contact the operator"},
		{faltest.Busy, engine.Unavailable, true, "busy"},
		{faltest.Refuses, engine.Failed, false, "less than or equal to 50"},
		{faltest.Flags, engine.Refused, false, "flagged by a content checker"},
		{faltest.Blackens, engine.Refused, false, "refused the content"},
		{faltest.Fails, engine.Failed, false, "CUDA out of memory"},
		{faltest.Interrupts, engine.Failed, true, "could not run the job"},
		{faltest.Fewer, engine.Invalid, false, "no result"},
	} {
		w := start(t, faltest.Options{})
		w.SetFault(tt.fault, 0)
		e, _ := w.failure(t, painting(painter, 1))
		if e.Code != tt.code || e.Transient != tt.again || !strings.Contains(e.Message, tt.message) {
			t.Errorf("%s: %v, transient %v; want %s, %v, %q", tt.fault, e, e.Transient, tt.code, tt.again, tt.message)
		}
		if strings.Contains(e.Message, "example") || strings.Contains(e.Message, "/app") {
			t.Errorf("%s: message = %q names a place", tt.fault, e.Message)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	if err := w.engine.Probe(t.Context()); err != nil {
		t.Errorf("probe = %v", err)
	}
	wrong := fal.New(call(t, w.URL, "wrong"), fal.Options{})
	if e := engine.AsError(wrong.Probe(t.Context())); e.Transient || strings.Contains(e.Error(), "Key ") {
		t.Errorf("probe with a wrong key = %v", e)
	}
}

func TestTheProviderKnowsTheDeadline(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.engine.Run(ctx, painting(painter, 1), &enginetest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	if got := w.Headers()[0].Get("X-Fal-Request-Timeout"); got != "60" {
		t.Errorf("timeout = %q, want 60", got)
	}
}

// TestOtherHostsAreNotFollowed has a queue that says to look elsewhere, which
// would get the key.
func TestOtherHostsAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	w.SetFault(faltest.Strays, 0)
	w.results(t, painting(painter, 1))
	if w.Leaks() != 0 {
		t.Error("the key went to another host")
	}
}

func TestEndedJobsAreCancelled(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{Takes: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := w.engine.Run(ctx, painting(painter, 2), &enginetest.Recorder{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run = %v, want the deadline", err)
	}
	if w.Running() != 0 {
		t.Errorf("requests that run on = %d", w.Running())
	}
}

func TestProgressFollowsTheLogs(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{Takes: 2 * time.Second})
	f := w.results(t, painting(painter, 1)).Fractions()
	if len(f) < 3 || !slices.IsSorted(f) || f[len(f)-1] != 1 {
		t.Errorf("progress = %v, want several steps up to 1", f)
	}
}

// TestFewerAreBetterThanNone has one of two requests make nothing.
func TestFewerAreBetterThanNone(t *testing.T) {
	t.Parallel()
	for fault, code := range map[faltest.Fault]engine.Code{faltest.Fewer: engine.Invalid, faltest.Blackens: engine.Refused} {
		w := start(t, faltest.Options{})
		w.SetFault(fault, 1)
		if n := len(enginetest.MustSucceed(t, w.engine, painting(painter, 2)).Outputs()); n != 1 {
			t.Errorf("%s: %d results, want the other one", fault, n)
		}
		w.SetFault(fault, 2)
		if e, _ := w.failure(t, painting(painter, 2)); e.Code != code {
			t.Errorf("%s: %v, want %s without any", fault, e, code)
		}
	}
}

// TestEchoesAreNotFetched has a model repeat an address that a person wrote.
func TestEchoesAreNotFetched(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1/fox.png"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			io.WriteString(w, `{"request_id":"a"}`)
		case strings.HasSuffix(r.URL.Path, "/status"):
			io.WriteString(w, `{"status":"COMPLETED"}`)
		default:
			io.WriteString(w, `{"prompt":"`+address+`"}`)
		}
	}))
	t.Cleanup(s.Close)
	e := fal.New(call(t, s.URL, "key"), fal.Options{PollInterval: time.Millisecond})
	j := painting(painter, 1)
	j.Values["prompt"] = "a fox like " + address
	if f := enginetest.MustFail(t, e, j); f.Code != engine.Invalid {
		t.Errorf("failure = %v, want that there is no result", f)
	}
}
