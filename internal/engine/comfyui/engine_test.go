package comfyui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

func TestValuesReachTheirInputs(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := job(t)
	j.With = with(t, portrait(), dict{
		"prompt": []string{"6.text", "7.text"}, "size.width": []string{"5.width"}, "size.height": []string{"5.height"},
		"cfg": []string{"3.cfg"}, "steps": []string{"3.steps"}, "tidy": []string{"9.tidy"},
	})
	j.Values = dict{"prompt": "a fox", "size": dict{"width": int64(32), "height": float64(24)}, "cfg": 4.25, "steps": float64(3), "tidy": true}
	out := r.results(t, j)
	if got := size(t, out.Outputs()[0]); got != "png 32x24" {
		t.Errorf("picture = %s, want png 32x24", got)
	}
	g := r.sent(t, 0)
	for ref, want := range map[[2]string]any{
		{"6", "text"}: "a fox", {"7", "text"}: "a fox", {"5", "width"}: json.Number("32"), {"5", "height"}: json.Number("24"),
		{"3", "cfg"}: json.Number("4.25"), {"3", "steps"}: json.Number("3"), {"9", "tidy"}: true,
		// What is not bound stays to the last digit.
		{"3", "seed"}: json.Number("18446744073709551615"), {"4", "ckpt_name"}: "dreamscape_xl.safetensors",
	} {
		if got := inputs(g, ref[0])[ref[1]]; got != want {
			t.Errorf("%s.%s = %v, want %v", ref[0], ref[1], got, want)
		}
	}
}

func TestWhatIsLeftOutStaysAsTheWorkflowHasIt(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := job(t)
	j.Values = nil
	out := r.results(t, j)
	if got := size(t, out.Outputs()[0]); got != "png 64x48" {
		t.Errorf("picture = %s, want png 64x48", got)
	}
	if got := inputs(r.sent(t, 0), "6")["text"]; got != "a lighthouse" {
		t.Errorf("text = %v", got)
	}
}

func TestSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	for name, w := range map[string]string{
		"nothing":              "{}",
		"no JSON":              "{",
		"an unknown setting":   `{"workflow":{"1":{"class_type":"A","inputs":{}}},"extra":1}`,
		"the editor's format":  `{"workflow":{"nodes":{"a":[]}}}`,
		"no such node":         with(t, portrait(), dict{"prompt": []string{"99.text"}}),
		"no input":             with(t, portrait(), dict{"prompt": []string{"6"}}),
		"an empty input":       with(t, portrait(), dict{"prompt": []string{"6."}}),
		"no such output":       with(t, portrait(), bound, "99"),
		"a binding to a list":  with(t, portrait(), dict{"prompt": "6.text"}),
		"inputs are no object": `{"workflow":{"1":{"class_type":"A","inputs":[]}}}`,
	} {
		j := job(t)
		j.With = w
		if e := r.refusal(t, j); e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "not configured correctly") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if n := len(r.server.Calls()); n != 0 {
		t.Errorf("calls = %d, want none", n)
	}
}

func TestFilesAreUploaded(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := reworking(t)
	g := reworked()
	g["12"] = graphNode("LoadImage", dict{"image": "example.png"})
	g["13"] = graphNode("PreviewImage", dict{"images": link("12", 0)})
	j.With = with(t, g, dict{"picture": []string{"10.image", "12.image"}, "seed": []string{"3.seed"}})
	j.NumResults = 2
	out := r.results(t, j)
	if got := size(t, out.Outputs()[0]); got != "png 20x12" {
		t.Errorf("picture = %s, want the file's size", got)
	}
	if n := r.called("POST", "/upload/image"); n != 1 {
		t.Errorf("uploads = %d, want 1 for all results", n)
	}
	name, _ := inputs(r.sent(t, 0), "10")["image"].(string)
	if !strings.HasPrefix(name, "atelier/") || !strings.HasSuffix(name, ".png") || inputs(r.sent(t, 0), "12")["image"] != name {
		t.Errorf("image = %q, want the upload in both", name)
	}
	if !slices.Contains(r.server.Files(), "input/"+name) {
		t.Errorf("files = %v, want input/%s among them", r.server.Files(), name)
	}

	j.Files["picture"] = []engine.File{enginetest.FileFromBytes("image/png", drawn(20, 12)), enginetest.FileFromBytes("image/jpeg", drawn(8, 8))}
	r.results(t, j)
	g = r.sent(t, len(r.server.Prompts())-1)
	if a, b := inputs(g, "10")["image"], inputs(g, "12")["image"]; a == b || !strings.HasSuffix(b.(string), ".jpg") {
		t.Errorf("images = %v and %v, want a file for each input", a, b)
	}
	j.Files["picture"] = append(j.Files["picture"], enginetest.FileFromBytes("image/png", drawn(2, 2)))
	if e := r.refusal(t, j); !strings.Contains(e.Message, "at most 2") {
		t.Errorf("failure = %+v", e)
	}
}

func TestAFileOfOursThatFailsIsNotTheServersFault(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := reworking(t)
	f := &j.Files["picture"][0]
	f.Open = func(context.Context) (rc readCloser, err error) { return nil, errGone }
	err := r.Run(t.Context(), j, &enginetest.Recorder{})
	if err == nil || !strings.Contains(err.Error(), errGone.Error()) || engine.AsError(err).Code == engine.Unavailable {
		t.Errorf("run = %v, want the file's own error", err)
	}
}

func TestAFileThatIsTooLargeForTheServer(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{MaxUpload: 1000})
	j := reworking(t)
	j.Files["picture"][0] = enginetest.FileFromBytes("image/png", make([]byte, 5000))
	if e := r.refusal(t, j); e.Message != "A file is too large for this tool." {
		t.Errorf("failure = %+v", e)
	}
}

func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := job(t)
	g := portrait()
	inputs(g, "4")["ckpt_name"] = "gone.safetensors"
	j.With = with(t, g, bound)
	if e := r.refusal(t, j); e.Transient || !strings.Contains(e.Message, "CheckpointLoaderSimple: Value not in list") {
		t.Errorf("failure = %+v", e)
	}
	delete(g, "9")
	j.With = with(t, g, bound)
	if e := r.refusal(t, j); e.Message != "The tool's server refused the request: Prompt has no outputs" {
		t.Errorf("message = %q", e.Message)
	}
	r.server.Change(func(f *comfyuitest.Faults) { f.Fail = "Allocation on device /dev/nvidia0 failed: out of memory" })
	e := r.refusal(t, job(t))
	if e.Code != engine.Failed || !strings.Contains(e.Message, "out of memory") || strings.Contains(e.Message, "/dev") {
		t.Errorf("message = %q", e.Message)
	}
}

func TestAPromptsStatusMayBeNull(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	r.server.Change(func(f *comfyuitest.Faults) { f.NoStatus = true })
	if n := len(r.results(t, job(t)).Outputs()); n != 1 {
		t.Errorf("results = %d, want 1", n)
	}
}

func TestAResultThatIsGone(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	r.server.Change(func(f *comfyuitest.Faults) { f.View = "missing" })
	if e := r.refusal(t, job(t)); e.Code != engine.Invalid {
		t.Errorf("failure = %+v", e)
	}
}

// A socket is for comfort: whatever it sends, the work is done.
func TestHostileSockets(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"garbage", "huge", "flood"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := start(t, comfyuitest.Options{})
			r.server.Change(func(f *comfyuitest.Faults) { f.Socket = kind })
			out := r.results(t, job(t))
			if len(out.Outputs()) != 1 {
				t.Errorf("results = %d, want 1", len(out.Outputs()))
			}
			for i, f := range out.Fractions() {
				if !(f >= 0 && f <= 1) || i > 0 && f < out.Fractions()[i-1] {
					t.Errorf("progress = %v", out.Fractions())
				}
			}
		})
	}
}

func TestASocketThatBreaksIsMissedByNobody(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: 30 * time.Millisecond})
	var out enginetest.Recorder
	out.OnProgress = func(f float64) {
		if f > 0 {
			r.server.Hangup()
		}
	}
	if err := r.Run(t.Context(), job(t), &out); err != nil || len(out.Outputs()) != 1 {
		t.Errorf("run = %v with %d results", err, len(out.Outputs()))
	}
}

func TestProgressCountsWhatIsNotCached(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	r.results(t, job(t))
	j := job(t)
	j.Seed++
	out := r.results(t, j)
	// Only the sampler, the decoder and the saver are run again.
	if got := out.Fractions(); len(got) < 5 || got[1] > 0.2 || got[len(got)-1] != 1 {
		t.Errorf("progress = %v, want all of it", got)
	}
}

func TestTheServersCredentials(t *testing.T) {
	t.Parallel()
	s := comfyuitest.Start(t, comfyuitest.Options{Wanted: [2]string{"Authorization", "Bearer x"}})
	c, err := backend.New(backend.Options{URL: s.URL + "/api/", Header: http.Header{"Authorization": {"Bearer x"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := rig{comfyui.New(c, comfyui.Options{}), s, c}
	if len(r.results(t, job(t)).Previews()) == 0 {
		t.Error("there was no preview: the socket was refused")
	}
	if e := connect(t, s).refusal(t, job(t)); !strings.Contains(e.Message, "not configured correctly") {
		t.Errorf("without them: %+v", e)
	}
}

func TestCancelTakesThePromptBack(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]comfyuitest.Options{
		"now":      {},
		"no jobs":  {NoJobs: true},
		"long ago": {NoJobs: true, GlobalInterrupt: true, OwnIDs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Step = time.Minute
			r := start(t, o)
			running := uuid.NewString()
			r.cancelled(t, job(t), func() bool { return !r.server.Idle() })
			eventually(t, "a running prompt ends", r.server.Idle)

			// One that waits goes, and the other that runs stays.
			r.send(t, portrait(), "somebody", running)
			eventually(t, "the other runs", func() bool { return !r.server.Idle() })
			before := r.called("POST", "/interrupt")
			r.cancelled(t, job(t), func() bool { return len(r.server.Prompts()) == 3 })
			_, queue := r.call(t, "GET", "/queue", "")
			if ids := strings.Count(queue, `"client_id":`); ids != 1 || !strings.Contains(queue, "somebody") {
				t.Errorf("queue = %s, want only the other", queue)
			}
			if n := r.called("POST", "/interrupt") - before; n != 0 {
				t.Errorf("interrupts = %d, want none: what ran was somebody else's", n)
			}
		})
	}
}

func TestCancelWhileThePromptIsBeingSent(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: time.Minute})
	r.server.Change(func(f *comfyuitest.Faults) { f.Slow = 250 * time.Millisecond })
	r.cancelled(t, job(t), func() bool { return r.called("POST", "/prompt") == 1 })
	eventually(t, "the prompt has come", func() bool { return len(r.server.Prompts()) == 1 })
	eventually(t, "it is taken back", r.server.Idle)
}

func TestCancelDoesNotWaitForADeafServer(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: time.Minute})
	r.cancelled(t, job(t), func() bool {
		if r.server.Idle() {
			return false
		}
		r.server.Change(func(f *comfyuitest.Faults) { f.Deaf = true })
		return true
	})
}

func TestProbe(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	if err := r.Probe(t.Context()); err != nil {
		t.Errorf("probe = %v", err)
	}
	r.server.Stop()
	if e := engine.AsError(r.Probe(t.Context())); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("stopped: probe = %+v", e)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }))
	defer other.Close()
	if e := engine.AsError(rig{}.to(t, other.URL).Probe(t.Context())); e.Transient || !strings.Contains(e.Message, "not configured correctly") {
		t.Errorf("another server: probe = %+v", e)
	}
}

func TestSeedsDecideAsElsewhere(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := job(t)
	one := r.results(t, j).Outputs()
	j.NumResults = 3
	if many := r.results(t, j).Outputs(); !bytes.Equal(one[0], many[0]) {
		t.Error("the first of three is another than the only one")
	}
}
