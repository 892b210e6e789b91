package replicate_test

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
	"atelier/internal/engine/replicate"
	"atelier/internal/engine/replicate/replicatetest"
)

func TestInputs(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	j := painting(official+`,"input":{"scheduler":"DDIM"}`, 2)
	j.Values["size"] = map[string]any{"width": int64(64), "height": int64(32)}
	j.Files = pictureOf(1000)
	w.results(t, j)
	in := w.Inputs()
	if len(in) != 2 || in[0]["seed"] != 7.0 || in[1]["seed"] != float64(j.SeedOf(1)) {
		t.Fatalf("inputs = %v, want two with seeds of their own", in)
	}
	if in[0]["scheduler"] != "DDIM" || in[0]["width"] != 64.0 || in[0]["guidance_scale"] != 7.0 || in[0]["picture"] != nil {
		t.Errorf("inputs = %v", in[0])
	}
	if ref, _ := in[0]["image"].(string); !strings.HasPrefix(ref, "data:image/png;base64,") {
		t.Errorf("small file = %.40q, want it inline", ref)
	}
}

func TestLargeFilesAreUploadedOnce(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	j := painting(official, 3)
	j.Files = pictureOf(300 << 10)
	w.results(t, j)
	refs := map[any]bool{}
	for _, in := range w.Inputs() {
		refs[in["image"]] = true
		if ref, _ := in["image"].(string); !strings.HasPrefix(ref, w.URL+"/files/") {
			t.Errorf("large file = %.40q, want an upload", ref)
		}
	}
	if len(refs) != 1 {
		t.Errorf("uploads = %d, want 1", len(refs))
	}
}

func TestAddressesInsteadOfUploads(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	w.engine = replicate.New(w.client, replicate.Options{PollInterval: 5 * time.Millisecond, SendURLs: true})
	j := painting(official, 1)
	j.Files = pictureOf(300 << 10)
	j.Files["picture"][0].Address = func() string { return "https://atelier.example/media/1?signature=x" }
	w.failure(t, j) // the stand-in reaches no such host
	if ref := w.Inputs()[0]["image"]; ref != "https://atelier.example/media/1?signature=x" {
		t.Errorf("input = %v, want our address", ref)
	}
}

func TestOutputsOfEveryForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ model, kind, want string }{
		{replicatetest.Film, "VID", "a film"},
		{replicatetest.Writer, "TEXT", "Once upon a time"},
	} {
		w := start(t, replicatetest.Options{Own: true})
		j := painting(`"model":"`+tt.model+`"`, 1)
		j.OutputType = tt.kind
		if got := string(w.results(t, j).Outputs()[0]); got != tt.want {
			t.Errorf("%s made %q, want %q", tt.model, got, tt.want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	for _, with := range []string{
		``, `{}`, `{"model":"painter"}`, `{"model":"../files"}`, `{"model":"acme/painter/predictions"}`, `{"deployment":"acme/.."}`,
		`{"model":"acme/painter","version":"x"}`, `{"model":"acme/painter","moddel":"x"}`, `{"model":"acme/nothing"}`,
	} {
		j := painting(official, 1)
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
		fault   replicatetest.Fault
		code    engine.Code
		again   bool
		message string
	}{
		{replicatetest.Unpaid, engine.Failed, false, "insufficient credit"},
		{replicatetest.Refuses, engine.Failed, false, "Expected: string"},
		{replicatetest.Busy, engine.Unavailable, true, "busy"},
		{replicatetest.Fails, engine.Failed, false, "CUDA out of memory"},
		{replicatetest.Flags, engine.Refused, false, "flagged as sensitive"},
		{replicatetest.Interrupts, engine.Failed, true, "could not run the job"},
		{replicatetest.Removes, engine.Failed, false, "deleted"},
	} {
		w := start(t, replicatetest.Options{})
		w.SetFault(tt.fault, 0)
		e, _ := w.failure(t, painting(official, 1))
		if e.Code != tt.code || e.Transient != tt.again || !strings.Contains(e.Message, tt.message) {
			t.Errorf("%s: %v, transient %v; want %s, %v, %q", tt.fault, e, e.Transient, tt.code, tt.again, tt.message)
		}
		if strings.Contains(e.Message, "replicate.com") || strings.Contains(e.Message, "/src") {
			t.Errorf("%s: message = %q names a place", tt.fault, e.Message)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	if err := w.engine.Probe(t.Context()); err != nil {
		t.Errorf("probe = %v", err)
	}
	wrong := replicate.New(call(t, w.URL, "r8_wrong"), replicate.Options{})
	if e := engine.AsError(wrong.Probe(t.Context())); e.Transient || strings.Contains(e.Error(), "r8_wrong") {
		t.Errorf("probe with a wrong token = %v", e)
	}
}

func TestTheProviderKnowsTheDeadline(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.engine.Run(ctx, painting(official, 1), &enginetest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	if got := w.Headers()[0].Get("Cancel-After"); got != "70s" {
		t.Errorf("Cancel-After = %q, want 70s", got)
	}
}

func TestEndedJobsAreCancelled(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]replicatetest.Fault{"while it works": "", "while it is created": replicatetest.Stalls} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, replicatetest.Options{Takes: time.Hour})
			w.SetFault(fault, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := w.engine.Run(ctx, painting(official, 1), &enginetest.Recorder{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("run = %v, want the deadline", err)
			}
			if w.Running() != 0 {
				t.Errorf("predictions that run on = %d", w.Running())
			}
			w.wantCreates(t, 1)
		})
	}
}

func TestProgressFollowsTheLogs(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{Takes: 2 * time.Second})
	f := w.results(t, painting(official, 1)).Fractions()
	if len(f) < 3 || !slices.IsSorted(f) || f[len(f)-1] != 1 {
		t.Errorf("progress = %v, want several steps up to 1", f)
	}
}

// TestFewerAreBetterThanNone has one of two predictions make nothing.
func TestFewerAreBetterThanNone(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	w.SetFault(replicatetest.Fewer, 1)
	if n := len(enginetest.MustSucceed(t, w.engine, painting(official, 2)).Outputs()); n != 1 {
		t.Errorf("results = %d, want the other one", n)
	}
	w.SetFault(replicatetest.Fewer, 2)
	if e, _ := w.failure(t, painting(official, 2)); e.Code != engine.Invalid {
		t.Errorf("failure = %v, want that there is no result", e)
	}
}

// TestEchoesAreNotFetched has a model repeat an address that a person wrote.
func TestEchoesAreNotFetched(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1/fox.png"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"id":"a","status":"succeeded","output":"`+address+`"}`)
	}))
	t.Cleanup(s.Close)
	e := replicate.New(call(t, s.URL, "r8"), replicate.Options{PollInterval: time.Millisecond})
	j := painting(official, 1)
	j.Values["prompt"] = address
	if f := enginetest.MustFail(t, e, j); f.Code != engine.Invalid {
		t.Errorf("failure = %v, want that there is no result", f)
	}
	j.OutputType = "TEXT"
	if got := enginetest.MustSucceed(t, e, j).Outputs(); len(got) != 1 || string(got[0]) != address {
		t.Errorf("results = %q, want the text that it is", got)
	}
}
