package openai_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/openai/openaitest"
	"atelier/internal/file/media"
)

func TestParameters(t *testing.T) {
	t.Parallel()
	size := map[string]any{"width": int64(512), "height": 256.0}
	for _, tt := range []struct {
		name    string
		dialect openaitest.Dialect
		with    map[string]any
		values  map[string]any
		want    map[string]any
	}{
		{
			"fields go by their names", openaitest.VLLMOmni, map[string]any{"call": "images", "seed": "seed"},
			map[string]any{"prompt": "a fox", "size": size, "steps": 8.0, "cfg": 4.5, "seed": int64(3), "negative_prompt": ""},
			map[string]any{"prompt": "a fox", "size": "512x256", "num_inference_steps": 8.0, "guidance_scale": 4.5, "seed": 7.0, "n": 1.0},
		},
		{
			"other names, sides apart, nowhere", openaitest.VLLMOmni,
			map[string]any{"call": "images", "model": "m", "rename": map[string]any{"what": "prompt", "size.width": "width", "size.height": "height", "mood": "-"}},
			map[string]any{"what": "a fox", "size": size, "mood": "calm"},
			map[string]any{"model": "m", "prompt": "a fox", "width": 512.0, "height": 256.0, "n": 1.0},
		},
		{
			"fixed ones win, null takes away", openaitest.VLLMOmni,
			map[string]any{"call": "images", "model": "m", "response_format": "b64_json", "fixed": map[string]any{"n": nil, "prompt": "a hen", "extra": map[string]any{"a": 1}}},
			map[string]any{"prompt": "a fox"},
			map[string]any{"model": "m", "prompt": "a hen", "response_format": "b64_json", "extra": map[string]any{"a": 1.0}},
		},
		{
			"forms hold text", openaitest.VLLMOmni,
			map[string]any{"call": "videos", "seed": "seed", "fixed": map[string]any{"extra_params": map[string]any{"a": 1}, "generate_sound": true}},
			map[string]any{"prompt": "a fox", "seconds": 4.0, "size": size, "fps": int64(24)},
			map[string]any{"prompt": "a fox", "seconds": "4", "size": "512x256", "fps": "24", "seed": "7", "extra_params": `{"a":1}`, "generate_sound": "true"},
		},
		{
			"seconds are text in JSON too", openaitest.SGLang,
			map[string]any{"call": "videos", "json": true}, map[string]any{"prompt": "a fox", "seconds": int64(4)},
			map[string]any{"prompt": "a fox", "seconds": "4"},
		},
		{
			"a prompt is spoken", openaitest.OpenAI,
			map[string]any{"call": "speech", "model": "tts-1"}, map[string]any{"prompt": "Hello.", "voice": "alloy"},
			map[string]any{"model": "tts-1", "input": "Hello.", "voice": "alloy"},
		},
		{
			"LocalAI's own names", openaitest.LocalAI,
			map[string]any{"call": "video-sync", "model": "m"}, map[string]any{"prompt": "a fox", "size": size, "cfg": 2.0},
			map[string]any{"model": "m", "prompt": "a fox", "width": 512.0, "height": 256.0, "cfg_scale": 2.0},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, openaitest.Options{Dialect: tt.dialect})
			w.run(t, job(t, tt.with, tt.values, 1))
			if got := w.Requests()[0].Values; fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("parameters = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFilesGoWhereTheyBelong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		with  map[string]any
		files map[string]int
		want  map[string][]string
	}{
		{"one picture", map[string]any{"call": "edits"}, map[string]int{"picture": 1}, map[string][]string{"image": {"image.png"}}},
		{"several and a mask", map[string]any{"call": "edits"}, map[string]int{"pictures": 2, "mask": 1}, map[string][]string{"image[]": {"image.png", "image.png"}, "mask": {"mask.png"}}},
		{"always a list", map[string]any{"call": "edits", "rename": map[string]any{"photo": "image[]"}}, map[string]int{"photo": 1}, map[string][]string{"image[]": {"image.png"}}},
		{"a video's first picture", map[string]any{"call": "videos"}, map[string]int{"picture": 1}, map[string][]string{"input_reference": {"input_reference.png"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, openaitest.Options{Dialect: openaitest.SGLang})
			j := job(t, tt.with, map[string]any{"prompt": "a fox", "size": square}, 1)
			j.Files = map[string][]engine.File{}
			for key, n := range tt.files {
				j.Files[key] = slices.Repeat([]engine.File{picture()}, n)
			}
			w.run(t, j)
			if got := w.Requests()[0].Files; !maps.EqualFunc(got, tt.want, slices.Equal[[]string]) {
				t.Errorf("files = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestResultsAreRealFiles(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.LocalAI})
	lab := media.NewAnalyzer(media.Limits{})
	for _, tt := range []struct {
		call, format string
		want         string
	}{
		{"images", "", "image/png"}, {"speech", "", "audio/mpeg"}, {"speech", "wav", "audio/wav"}, {"video-sync", "", "video/mp4"}, {"video-sync", "b64_json", "video/mp4"},
	} {
		out := w.run(t, job(t, map[string]any{"call": tt.call, "model": "m", "response_format": tt.format}, map[string]any{"prompt": "a fox", "size": square}, 1)).Outputs()
		f, ok := media.Sniff(out[0])
		if !ok || f.MimeType != tt.want {
			t.Errorf("%s %s gave %v, want %s", tt.call, tt.format, f, tt.want)
			continue
		}
		facts, err := lab.AnalyzeFile(t.Context(), media.DecodeRequest{}, f, bytes.NewReader(out[0]), int64(len(out[0])))
		if err != nil || tt.call == "images" && (facts.Width != 256 || facts.Height != 256) {
			t.Errorf("%s %s: %dx%d, %v", tt.call, tt.format, facts.Width, facts.Height, err)
		}
	}
}

func TestManyResultsComeInBatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		batch, most   int
		results       int
		asked, seeded []float64
	}{
		{"ten at once", 0, 0, 12, []float64{10, 2}, []float64{7, 17}},
		{"as many as the manifest says", 2, 0, 5, []float64{2, 2, 1}, []float64{7, 9, 11}},
		{"a server that gives fewer is asked again", 0, 2, 5, []float64{5, 3, 1}, []float64{7, 9, 11}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, openaitest.Options{Dialect: openaitest.VLLMOmni, Most: tt.most})
			out := w.run(t, job(t, map[string]any{"call": "images", "seed": "seed", "batch": tt.batch}, map[string]any{"prompt": "a fox", "size": square}, tt.results)).Outputs()
			var asked, seeds []float64
			for _, q := range w.Requests() {
				asked, seeds = append(asked, q.Values["n"].(float64)), append(seeds, q.Values["seed"].(float64))
			}
			if !slices.Equal(asked, tt.asked) || !slices.Equal(seeds, tt.seeded) {
				t.Errorf("asked for %v with seeds %v, want %v with %v", asked, seeds, tt.asked, tt.seeded)
			}
			different := map[string]bool{}
			for _, b := range out {
				different[string(b)] = true
			}
			if len(different) != tt.results {
				t.Errorf("different results = %d, want %d", len(different), tt.results)
			}
		})
	}
}

func TestOtherHostsGetNoCredentials(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Elsewhere: true})
	w.run(t, job(t, map[string]any{"call": "images", "model": "dall-e-3"}, map[string]any{"prompt": "a fox"}, 1))
	visits := w.Visits()
	if len(visits) != 1 {
		t.Fatalf("visits = %d, want 1", len(visits))
	}
	for name, values := range visits[0] {
		if strings.Contains(strings.Join(values, " "), key) {
			t.Errorf("header %s went to another host", name)
		}
	}
}

func TestComplaints(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		code   engine.Code
		again  bool
		text   string // part of the message
	}{
		{400, `{"error":{"message":"No, and see https://a.example/b.","type":"x","param":null,"code":"content_policy_violation"}}`, engine.Refused, false, "No, and see"},
		{403, `{"error":{"message":"Blocked.","code":"moderation_blocked"}}`, engine.Refused, false, "Blocked."},
		{400, `{"error":{"message":"Invalid size.","type":"invalid_request_error","code":null}}`, engine.Failed, false, "Invalid size."},
		{400, `{"error":{"message":"Invalid size.","type":"BadRequestError","code":400}}`, engine.Failed, false, "Invalid size."},
		{422, `{"detail":[{"loc":["body","size"],"msg":"Field required"},{"loc":["body",0],"msg":"odd"}]}`, engine.Failed, false, "size: Field required; odd"},
		{400, `{"detail":"seconds must be whole"}`, engine.Failed, false, "seconds must be whole"},
		{500, `{"error":"out of memory"}`, engine.Failed, false, "out of memory"},
		{400, `{"object":"error","message":"too long"}`, engine.Failed, false, "too long"},
		{400, `<html>a proxy`, engine.Failed, false, "refused the request."},
		{429, `{"error":{"message":"You have no credits.","type":"insufficient_quota","code":"insufficient_quota"}}`, engine.Unavailable, true, "exhausted"},
		{429, `{"error":{"message":"x","type":"quota_exceeded","code":429}}`, engine.Unavailable, true, "exhausted"},
		{429, `{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}`, engine.Unavailable, true, "busy"},
		{503, `{"detail":"starting"}`, engine.Unavailable, true, "busy"},
		{401, `{"error":{"message":"Incorrect API key provided: sk-1234","code":"invalid_api_key"}}`, engine.Failed, false, "not configured correctly"},
		{404, `{"error":{"message":"The model 'x' does not exist","code":"model_not_found"}}`, engine.Failed, false, "not configured correctly"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		}))
		t.Cleanup(s.Close)
		w := fixture{Engine: openai.New(client(t, s.URL+"/v1", key), openai.Options{})}
		e := w.fail(t, job(t, map[string]any{"call": "speech"}, map[string]any{"prompt": "Hello."}, 1))
		if e.Code != tt.code || e.Transient != tt.again || !strings.Contains(e.Message, tt.text) || strings.Contains(e.Message, "://") || strings.Contains(e.Message, "sk-1234") {
			t.Errorf("%d %s: %s, transient %v, %q", tt.status, tt.body, e.Code, e.Transient, e.Message)
		}
	}
}

func TestWrongKeysAndManifestsAreTheOperatorsMatter(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{})
	fine := map[string]any{"call": "images", "model": "gpt-image-1"}
	values := map[string]any{"prompt": "a fox"}
	stranger := fixture{Engine: openai.New(client(t, w.URL, "other"), openai.Options{})}
	for name, e := range map[string]*engine.Error{
		"key":     stranger.fail(t, job(t, fine, values, 1)),
		"call":    w.fail(t, job(t, map[string]any{"call": "chat"}, values, 1)),
		"setting": w.fail(t, job(t, map[string]any{"call": "images", "colour": "red"}, values, 1)),
		"model":   w.fail(t, job(t, map[string]any{"call": "images", "model": "none"}, values, 1)),
		"probe":   engine.AsError(stranger.Probe(t.Context())),
	} {
		if e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "not configured correctly") {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestStreamsThatEndBadly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body  string
		code  engine.Code
		again bool
	}{
		{"event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"No.\",\"code\":\"moderation_blocked\"}}\n\n", engine.Refused, false},
		{"data: {\"type\":\"error\",\"error\":{\"message\":\"Broke.\"}}\n\n", engine.Failed, false},
		{": only a comment\n\ndata: [DONE]\n\n", engine.Unavailable, true},
		{"data: no JSON\n\n", engine.Failed, false},
		{"data: {\"type\":\"image_generation.completed\",\"b64_json\":\"%%%\"}\n\n", engine.Invalid, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, tt.body)
		}))
		t.Cleanup(s.Close)
		w := fixture{Engine: openai.New(client(t, s.URL+"/v1", key), openai.Options{})}
		e := w.fail(t, job(t, map[string]any{"call": "images", "stream": true}, map[string]any{"prompt": "a fox"}, 1))
		if e.Code != tt.code || e.Transient != tt.again {
			t.Errorf("%q: %v, transient %v", tt.body, e, e.Transient)
		}
	}
}

func TestAServerThatDoesNotStreamIsFine(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.VLLMOmni})
	w.run(t, job(t, map[string]any{"call": "images", "stream": true}, map[string]any{"prompt": "a fox", "size": square}, 2))
}

// ended returns a context that is cancelled at the first progress of a job.
func ended(t *testing.T, r *enginetest.Recorder) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r.OnProgress = func(float64) { cancel() }
	return ctx
}
