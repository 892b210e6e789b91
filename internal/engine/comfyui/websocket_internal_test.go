package comfyui

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

const smallJPEG = "\xff\xd8\xff\xe0 and so on"

// following returns a socket that follows prompt p, whose nodes 1 and 2 have
// equal weights that progress events do not change.
func following(r *enginetest.Recorder) *eventSocket {
	s := &eventSocket{out: r, hint: make(chan struct{}, 1)}
	s.followPrompt("p", map[string]float64{"1": 4, "2": 4}, engine.NewSpan(r))
	return s
}

func framed(kind uint32, head, rest string) []byte {
	b := binary.BigEndian.AppendUint32(nil, kind)
	if kind == taggedPreview {
		b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
		return append(append(b, head...), rest...)
	}
	return append(binary.BigEndian.AppendUint32(b, 1), rest...)
}

func TestPreviewsOfOthersAreNotShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		event   string // heard before
		message []byte
		want    int
	}{
		{"before ours runs", ``, framed(1, "", smallJPEG), 0},
		{"while ours runs", `{"type":"execution_start","data":{"prompt_id":"p"}}`, framed(1, "", smallJPEG), 1},
		{"while another runs", `{"type":"execution_start","data":{"prompt_id":"q"}}`, framed(1, "", smallJPEG), 0},
		{"after ours ran", `{"type":"executing","data":{"node":null,"prompt_id":"p"}}`, framed(1, "", smallJPEG), 0},
		{"said to be ours", ``, framed(4, `{"prompt_id":"p"}`, smallJPEG), 1},
		{"said to be another's", `{"type":"execution_start","data":{"prompt_id":"p"}}`, framed(4, `{"prompt_id":"q"}`, smallJPEG), 0},
		{"PNG", ``, framed(4, `{"prompt_id":"p"}`, "\x89PNG\r\n\x1a\n…"), 1},
		{"no picture", ``, framed(4, `{"prompt_id":"p"}`, "<svg>"), 0},
		{"too large", ``, framed(4, `{"prompt_id":"p"}`, smallJPEG+strings.Repeat("x", maxPreview)), 0},
		{"no JSON before it", ``, framed(4, `{`, smallJPEG), 0},
		{"a length beyond its end", ``, []byte("\x00\x00\x00\x04\xff\xff\xff\xff" + smallJPEG), 0},
		{"text", `{"type":"execution_start","data":{"prompt_id":"p"}}`, framed(3, "", smallJPEG), 0},
		{"short", ``, []byte("\x00\x00\x00\x01"), 0},
	} {
		var r enginetest.Recorder
		s := following(&r)
		s.handleText([]byte(tt.event))
		s.handleBinary(tt.message)
		if got := len(r.Previews()); got != tt.want {
			t.Errorf("%s: previews = %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestProgressOfNodes(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	s := following(&r)
	for _, step := range []struct {
		event string
		want  float64
	}{
		{`{"type":"executing","data":{"prompt_id":"p","node":"1"}}`, 0},
		{`{"type":"progress","data":{"prompt_id":"p","node":"1","value":1,"max":2}}`, 0.25},
		{`{"type":"progress","data":{"prompt_id":"p","node":"1","value":0,"max":0}}`, 0.25},
		{`{"type":"progress","data":{"prompt_id":"p","node":"1","value":-1,"max":2}}`, 0.25},
		{`{"type":"progress","data":{"prompt_id":"q","node":"1","value":2,"max":2}}`, 0.25},
		{`{"type":"progress","data":{"prompt_id":"p","node":"9","value":2,"max":2}}`, 0.25},
		{`{"type":"executing","data":{"prompt_id":"p","node":"2"}}`, 0.5},
		{`{"type":"progress_state","data":{"prompt_id":"p","nodes":{"1":{"value":0,"max":1,"state":"running"},"2":{"value":1,"max":4,"state":"running"}}}}`, 0.625},
		{`{"type":"progress_state","data":{"prompt_id":"p","nodes":{"2":{"value":2,"max":4,"state":"finished"}}}}`, 1},
	} {
		s.handleText([]byte(step.event))
		if got := s.steps.totalFraction(); got != step.want {
			t.Errorf("after %s: %v, want %v", step.event, got, step.want)
		}
	}
}

// TestProgressIsWeighed has a prompt with a sampler of 20 steps, a node that
// reports progress without having steps, and three nodes that are done at once.
func TestProgressIsWeighed(t *testing.T) {
	t.Parallel()
	g, err := parseGraph(`{"workflow":{
		"1":{"class_type":"CheckpointLoaderSimple","inputs":{"ckpt_name":"a"}},
		"2":{"class_type":"EmptyLatentImage","inputs":{"steps_unused":1}},
		"3":{"class_type":"KSampler","inputs":{"steps":20,"model":["1",0],"latent_image":["2",0]}},
		"4":{"class_type":"VAEDecodeTiled","inputs":{"samples":["3",0]}},
		"5":{"class_type":"SaveImage","inputs":{"images":["4",0]}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	var r enginetest.Recorder
	s := &eventSocket{out: &r, hint: make(chan struct{}, 1)}
	s.followPrompt("p", g.nodeWeights(), engine.NewSpan(&r))
	for _, step := range []struct {
		event       string
		done, total float64
	}{
		{`{"type":"execution_cached","data":{"prompt_id":"p","nodes":["1"]}}`, 0, 23},
		{`{"type":"executing","data":{"prompt_id":"p","node":"2"}}`, 0, 23},
		{`{"type":"executing","data":{"prompt_id":"p","node":"3"}}`, 1, 23},
		{`{"type":"progress","data":{"prompt_id":"p","node":"3","value":10,"max":20}}`, 11, 23},
		{`{"type":"progress_state","data":{"prompt_id":"p","nodes":{"3":{"value":20,"max":20,"state":"finished"},"4":{"value":0,"max":1,"state":"running"}}}}`, 21, 23},
		{`{"type":"executing","data":{"prompt_id":"p","node":"4"}}`, 21, 23},
		{`{"type":"progress_state","data":{"prompt_id":"p","nodes":{"4":{"value":3,"max":6,"state":"running"}}}}`, 24, 28},
		{`{"type":"executing","data":{"prompt_id":"p","node":"5"}}`, 27, 28},
		{`{"type":"executed","data":{"prompt_id":"p","node":"5"}}`, 28, 28},
	} {
		s.handleText([]byte(step.event))
		if got := s.steps.totalFraction(); math.Abs(got-step.done/step.total) > 1e-9 {
			t.Errorf("after %s: %v, want %v of %v", step.event, got, step.done, step.total)
		}
	}
}

func TestStepsOfSamplers(t *testing.T) {
	t.Parallel()
	for node, want := range map[string]float64{
		`{"class_type":"KSampler","inputs":{"steps":20}}`:                                                20,
		`{"class_type":"KSamplerAdvanced","inputs":{"steps":30,"start_at_step":10,"end_at_step":10000}}`: 20,
		`{"class_type":"KSamplerAdvanced","inputs":{"steps":30,"start_at_step":0,"end_at_step":12}}`:     12,
		`{"class_type":"SamplerCustomAdvanced","inputs":{"sigmas":["2",0]}}`:                             8,
		`{"class_type":"SamplerCustomAdvanced","inputs":{"sigmas":["3",1]}}`:                             8,
		`{"class_type":"SamplerCustomAdvanced","inputs":{"sigmas":["4",0]}}`:                             1,
		`{"class_type":"KSampler","inputs":{"steps":["2",0]}}`:                                           1,
		`{"class_type":"KSampler","inputs":{"steps":1e12}}`:                                              maxSteps,
		`{"class_type":"KSampler","inputs":{"steps":-3}}`:                                                1,
		`{"class_type":"KSamplerSelect","inputs":{"sampler_name":"euler"}}`:                              1,
	} {
		g, err := parseGraph(`{"workflow":{"1":` + node + `,
			"2":{"class_type":"BasicScheduler","inputs":{"steps":8}},
			"3":{"class_type":"SplitSigmas","inputs":{"sigmas":["2",0]}},
			"4":{"class_type":"SplitSigmas","inputs":{"sigmas":["4",0]}}}}`)
		if err != nil {
			t.Fatal(err)
		}
		weights := g.nodeWeights()
		if weights["1"] != want || weights["2"] != 1 {
			t.Errorf("%s: weight = %v, want %v, and 1 for the scheduler: %v", node, weights["1"], want, weights["2"])
		}
	}
}

// FuzzSocket has a server say anything.
func FuzzSocket(f *testing.F) {
	f.Add([]byte(`{"type":"progress","data":{"prompt_id":"p","node":"1","value":1e308,"max":1e-308}}`))
	f.Add([]byte(`{"type":"execution_cached","data":{"prompt_id":"p","nodes":["1","2"]}}`))
	f.Add([]byte(`{"type":"progress_state","data":{"prompt_id":"p","nodes":{"1":{"value":-1,"max":-1}}}}`))
	f.Add([]byte(`{"type":"executing","data":{"prompt_id":"p","node":null}}`))
	f.Add(framed(1, "", smallJPEG))
	f.Add(framed(4, `{"prompt_id":"p"}`, smallJPEG))
	f.Fuzz(func(t *testing.T, message []byte) {
		var r enginetest.Recorder
		s := following(&r)
		for range 2 {
			s.handleText(message)
			s.handleBinary(message)
		}
		last := 0.0
		for _, fraction := range r.Fractions() {
			if !(fraction >= last && fraction <= 1) {
				t.Errorf("progress = %v", r.Fractions())
			}
			last = fraction
		}
	})
}
