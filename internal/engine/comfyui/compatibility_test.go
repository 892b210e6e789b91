package comfyui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"atelier/internal/engine"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
	"atelier/internal/testkit/watch"
)

// send puts a prompt into the server's queue as somebody else does.
func (r rig) send(t *testing.T, g dict, clientID, id string) {
	t.Helper()
	body := dict{"prompt": g, "prompt_id": id}
	if clientID != "" {
		body["client_id"] = clientID
	}
	if status, answer := r.call(t, "POST", "/prompt", text(t, body)); status != 200 {
		t.Fatalf("prompt = %d %s", status, answer)
	}
}

func (r rig) call(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// The numbers are those of the list of what surprises people about the server.

func TestGotcha1SomeOutputsDropped(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: time.Second})
	g := portrait()
	g["12"] = graphNode("CreateVideo", dict{"images": link("8", 0)}) // no fps
	g["13"] = graphNode("SaveVideo", dict{"video": link("12", 0), "filename_prefix": "v", "format": "auto", "codec": "auto"})
	j := job(t)
	j.With = with(t, g, bound)
	e := r.refusal(t, j)
	if e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "CreateVideo: Required input is missing fps") {
		t.Errorf("failure = %+v", e)
	}
	if len(r.server.Prompts()) != 1 {
		t.Error("the server did not take the prompt, so this proves nothing")
	}
	eventually(t, "what was taken is cancelled", r.server.Idle)
}

func TestGotcha2LostWhenTheServerRestarts(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: time.Minute})
	restarted := make(chan error, 1)
	go func() {
		eventually(t, "it runs", func() bool { return r.called("GET", "/queue") > 0 })
		restarted <- r.server.Restart()
	}()
	e := r.refusal(t, job(t))
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if e.Code != engine.Failed || !e.Transient {
		t.Errorf("failure = %+v, want one that is worth another try, but not any number of them", e)
	}
}

func TestGotcha3EventsOfOthers(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: 10 * time.Millisecond})
	foreign := portrait()
	inputs(foreign, "3")["steps"] = 20
	r.send(t, foreign, "", uuid.NewString()) // its previews go to everybody
	eventually(t, "it runs", func() bool { return !r.server.Idle() })
	out := r.results(t, job(t))
	if n := len(out.Previews()); n == 0 || n > 4 {
		t.Errorf("previews = %d, want those of our 4 steps at most", n)
	}
	r.results(t, job(t))
	all := r.server.Prompts()
	if a, b := all[1].ClientID, all[2].ClientID; a == "" || a == b {
		t.Errorf("client ids = %q and %q, want one for each job", a, b)
	}
}

func TestGotcha3ASecondSocketTakesTheEvents(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: 30 * time.Millisecond})
	go func() {
		eventually(t, "a prompt comes", func() bool { return len(r.server.Prompts()) > 0 })
		id := r.server.Prompts()[0].ClientID
		conn, _, err := websocket.Dial(t.Context(), r.server.URL+"/ws?clientId="+id, nil)
		if err != nil {
			t.Errorf("dial: %v", err)
			return
		}
		defer conn.CloseNow()
		for {
			if _, _, err := conn.Read(t.Context()); err != nil {
				return
			}
		}
	}()
	if n := len(r.results(t, job(t)).Outputs()); n != 1 {
		t.Errorf("results = %d, want 1", n)
	}
}

func TestGotcha4WhereFilesAppear(t *testing.T) {
	t.Parallel()
	g := portrait()
	g["20"] = graphNode("CreateVideo", dict{"images": link("8", 0), "fps": 24})
	g["21"] = graphNode("SaveVideo", dict{"video": link("20", 0), "filename_prefix": "video/x", "format": "auto", "codec": "auto"})
	g["22"] = graphNode("VHS_VideoCombine", dict{"images": link("8", 0), "frame_rate": 8, "filename_prefix": "x", "format": "video/h264-mp4", "save_output": true})
	g["23"] = graphNode("PreviewImage", dict{"images": link("8", 0)})
	g["24"] = graphNode("VAEDecodeAudio", dict{"samples": link("3", 0), "vae": link("4", 2)})
	g["25"] = graphNode("SaveAudio", dict{"audio": link("24", 0), "filename_prefix": "audio/x"})
	g["26"] = graphNode("VAEDecodeHunyuan3D", dict{"samples": link("3", 0), "vae": link("4", 2)})
	g["27"] = graphNode("VoxelToMesh", dict{"voxel": link("26", 0), "algorithm": "basic"})
	g["28"] = graphNode("SaveGLB", dict{"mesh": link("27", 0), "filename_prefix": "mesh/x"})
	g["29"] = graphNode("PrimitiveStringMultiline", dict{"value": "a fox on a wall"})
	g["30"] = graphNode("PreviewAny", dict{"source": link("29", 0)})
	g["31"] = graphNode("VHS_VideoCombine", dict{"images": link("8", 0), "frame_rate": 8, "filename_prefix": "t", "format": "video/h264-mp4", "save_output": false})
	r := start(t, comfyuitest.Options{})
	for _, tt := range []struct {
		kind    string
		most    int
		outputs []string
		starts  []string
	}{
		{"IMG", 1, nil, []string{"\x89PNG"}},
		{"VID", 2, nil, []string{"\x00\x00\x00\x18ftypisom", "\x00\x00\x00\x18ftypisom"}},
		{"VID", 1, []string{"22"}, []string{"\x00\x00\x00\x18ftypisom"}},
		{"AUDIO", 1, nil, []string{"fLaC"}},
		{"ASSET_3D", 1, nil, []string{"glTF"}},
		{"TEXT", 1, nil, []string{"a fox on a wall"}},
	} {
		j := job(t)
		j.With, j.OutputType, j.NumResults = with(t, g, bound, tt.outputs...), tt.kind, tt.most
		before := len(r.server.Prompts())
		out := r.results(t, j).Outputs()
		if len(out) != len(tt.starts) {
			t.Fatalf("%s: results = %d, want %d", tt.kind, len(out), len(tt.starts))
		}
		for i, start := range tt.starts {
			if !bytes.HasPrefix(out[i], []byte(start)) {
				t.Errorf("%s: result %d begins %q", tt.kind, i, out[i][:12])
			}
		}
		if n := len(r.server.Prompts()) - before; n != 1 {
			t.Errorf("%s: prompts = %d, want 1: what one gives has to be enough", tt.kind, n)
		}
	}
	j := job(t)
	j.With = with(t, g, bound, "23", "25") // only temporary pictures, and a sound
	if e := r.refusal(t, j); e.Code != engine.Invalid {
		t.Errorf("failure = %+v, want that nothing came", e)
	}
}

func TestGotcha5OldPromptsLeaveTheHistory(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	first := r.results(t, job(t))
	r.call(t, "POST", "/history", `{"clear":true}`)
	j := job(t)
	j.Attempt, j.SavedCheckpoint = 2, first.LastCheckpoint()
	if j.SavedCheckpoint == "" {
		t.Fatal("no checkpoint was saved")
	}
	again := r.results(t, j)
	if !slices.EqualFunc(first.Outputs(), again.Outputs(), bytes.Equal) || len(r.server.Prompts()) != 2 {
		t.Errorf("prompts = %d, want the work done again, with the same result", len(r.server.Prompts()))
	}
}

func TestGotcha6Interrupted(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: time.Minute})
	go func() {
		eventually(t, "it runs", func() bool { return len(r.server.Prompts()) > 0 })
		eventually(t, "it is over", func() bool {
			r.call(t, "POST", "/interrupt", "")
			return r.server.Idle()
		})
	}()
	e := r.refusal(t, job(t))
	if e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "interrupted") {
		t.Errorf("failure = %+v", e)
	}
}

func TestGotcha7NoOrigin(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	if status, _ := r.call(t, "GET", "/system_stats", "", "Origin", "https://example.com"); status != 403 {
		t.Errorf("status = %d, want the server to refuse pages of others", status)
	}
	if len(r.results(t, job(t)).Previews()) == 0 {
		t.Error("there was no preview, so the socket was refused")
	}
}

func TestGotcha8NobodySendsAGraph(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := job(t)
	for _, v := range []any{[]any{"4", int64(0)}, []any{"a", "b"}, dict{"__value__": []any{"4", int64(0)}}, nil} {
		j.Values = dict{"prompt": v}
		if e := r.refusal(t, j); e.Message != "This tool is not configured correctly. Contact the operator." {
			t.Errorf("%v: %+v", v, e)
		}
	}
	for _, v := range []string{`["4", 0]`, `{"class_type": "Shell"}`, `", "inputs": {"x": "`} {
		j.Values = dict{"prompt": v, "6": "x", "unbound": []any{"4", int64(0)}, "4.ckpt_name": "evil"}
		r.results(t, j)
		g := r.sent(t, len(r.server.Prompts())-1)
		if got := g["6"].(dict)["inputs"].(dict)["text"]; got != v {
			t.Errorf("text = %v, want %q as it is", got, v)
		}
		if len(g) != len(portrait()) || inputs(g, "4")["ckpt_name"] != "dreamscape_xl.safetensors" {
			t.Errorf("the graph was changed: %v", g)
		}
	}
}

func TestGotcha9OutputsStayOnTheServersDisk(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	one := r.results(t, job(t)).Outputs()[0]
	if err := r.server.Restart(); err != nil {
		t.Fatal(err)
	}
	// Over connections of its own: a prompt sent on one that the restart closed
	// fails, and is tried again by the runner.
	j := job(t)
	j.Seed++
	two := connect(t, r.server).results(t, j).Outputs()[0]
	name := regexp.MustCompile(`^output/atelier/portrait_[a-z2-7]{16}_00001_\.png$`)
	files := r.server.Files()
	if bytes.Equal(one, two) || len(files) != 2 || !name.MatchString(files[0]) || !name.MatchString(files[1]) {
		t.Errorf("files = %v, want one for each job", files)
	}
}

func TestGotcha10CachedRepeats(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	// Without a client id, the repeat has no outputs.
	for range 2 {
		r.send(t, portrait(), "", uuid.NewString())
	}
	eventually(t, "both are done", r.server.Idle)
	id := r.server.Prompts()[1].ID
	var history map[string]struct{ Outputs dict }
	if _, body := r.call(t, "GET", "/history/"+id, ""); json.Unmarshal([]byte(body), &history) != nil || len(history[id].Outputs) != 0 {
		t.Fatalf("history = %v, want the server's mistake", history)
	}
	first, again := r.results(t, job(t)).Outputs(), r.results(t, job(t)).Outputs()
	if len(again) != 1 || !bytes.Equal(first[0], again[0]) {
		t.Error("a repeat gave another result")
	}
	j := job(t)
	j.NumResults = 3
	r.results(t, j)
	seen := map[any]bool{}
	for _, p := range r.server.Prompts()[2:] {
		if p.ClientID == "" {
			t.Error("a prompt had no client id")
		}
	}
	for n := 4; n < 7; n++ {
		seen[inputs(r.sent(t, n), "3")["seed"]] = true
	}
	if len(seen) != 3 || !seen[json.Number("7")] {
		t.Errorf("seeds = %v, want three, the first the job's own", seen)
	}
}

func TestGotcha11ANodeThatIsGone(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	g := portrait()
	g["40"] = graphNode("FancySaver", dict{"images": link("8", 0)})
	j := job(t)
	j.With = with(t, g, bound)
	if e := r.refusal(t, j); e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "FancySaver does not exist") {
		t.Errorf("failure = %+v", e)
	}
}

// cancelled runs a job that is cancelled once is says so.
func (r rig) cancelled(t *testing.T, j engine.Job, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan time.Time, 1)
	go func() {
		eventually(t, "it is time to cancel", is)
		ended <- time.Now()
		cancel()
	}()
	if err := r.Run(ctx, j, &enginetest.Recorder{}); err == nil {
		t.Error("run = nil although it was cancelled")
	}
	watch.Took(t, "the end", time.Since(<-ended), 2*time.Second)
}
