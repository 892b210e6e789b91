// Package a1111 is the engine for AUTOMATIC1111's Stable Diffusion web UI,
// started with --api, and for Forge, which kept its API.
//
// A tool's manifest says:
//
//	call        txt2img, img2img or upscale
//	checkpoint  the model; "" is the one that is loaded
//	fixed       parameters of the body that are always the same, such as
//	            override_settings; Forge wants forge_additional_modules in it
//	            for Flux
//	rename      field: parameter; "-" sends it nowhere, size.width and
//	            size.height name the sides of a size
//
// The server does one thing at a time, for everybody, and answers when it is
// done. Meanwhile it is asked how our own task is coming along, by its name:
// what the server says about itself may be about somebody else's. For the same
// reason a job that has ended interrupts the server only while that says that
// it works on our task; between the question and the interruption somebody
// else's may begin, which the API has no remedy for. A task that still waits in
// the server's queue cannot be taken back.
package a1111

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// Options are how an engine works with its server.
type Options struct {
	// Poll is the time between two questions how far a task is: 1 s.
	Poll time.Duration
	// MaxAnswer bounds an answer with results in it, in bytes:
	// backend.MaxAnswer, which is also the most.
	MaxAnswer int64
}

// Engine runs jobs on one server.
type Engine struct {
	c    *backend.Client
	poll time.Duration
	most int64
}

// New makes an engine. The client's headers hold the Basic credentials of
// --api-auth.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{c: c, poll: cmp.Or(o.Poll, time.Second), most: cmp.Or(o.MaxAnswer, backend.MaxResponse)}
}

var _ engine.Prober = (*Engine)(nil)

// setting is the engine's part of a manifest.
type setting struct {
	Call       string            `json:"call"`
	Checkpoint string            `json:"checkpoint"`
	Fixed      map[string]any    `json:"fixed"`
	Rename     map[string]string `json:"rename"`
}

// calls are what a manifest can name.
var calls = []string{"img2img", "txt2img", "upscale"}

// Manual says what a manifest can ask of the engine.
func Manual() engine.Manual {
	return engine.Manual{Setting: func() any { return &setting{} }, Choices: map[string][]string{"call": calls}}
}

// task is a job that is being done.
type task struct {
	engine.Job
	setting
	e   *Engine
	out engine.Sink
	bar engine.Span
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := &task{Job: j, e: e, out: out, bar: engine.NewSpan(out)}
	if err := engine.DecodeSetting(j.With, &t.setting); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	switch t.Call {
	case "txt2img", "img2img":
		return t.draw(ctx)
	case "upscale":
		return t.upscale(ctx)
	}
	return engine.ErrMisconfigured
}

// Probe asks for the samplers: a short list that needs --api and the
// credentials, and does not wait for what the server is doing.
func (e *Engine) Probe(ctx context.Context) error {
	short, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	var list []json.RawMessage
	return failure(ctx, e.c.CallJSON(short, http.MethodGet, "sdapi/v1/samplers", nil, &list))
}

// result is the answer to txt2img and img2img.
type result struct {
	Images []string `json:"images"`
	Info   string   `json:"info"` // JSON
}

// draw makes pictures from a prompt, and from others.
func (t *task) draw(ctx context.Context) error {
	body, err := t.body(ctx)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("task(%s-%d-%d)", t.RunID, t.Attempt, t.Try)
	body["force_task_id"] = name
	if t.Call == "img2img" && body["init_images"] == nil {
		return engine.Fail(engine.Failed, "A picture is required.")
	}
	var res result
	if err := t.watched(ctx, name, func(ctx context.Context) error { return t.post(ctx, "sdapi/v1/"+t.Call, body, &res) }); err != nil {
		return err
	}
	own := res.own()
	if len(own) == 0 { // fewer than were wanted are better than none
		return backend.ErrNoResult
	}
	for i, image := range own[:min(len(own), t.NumResults)] {
		if err := t.deliver(ctx, image); err != nil {
			return err
		}
		t.bar.ReportProgress(float64(i+1) / float64(t.NumResults))
	}
	return nil
}

// own are the pictures that were asked for: scripts may add others after them,
// and a grid may come before them.
func (r result) own() []string {
	var info struct {
		First int   `json:"index_of_first_image"`
		Seeds []any `json:"all_seeds"`
	}
	if json.Unmarshal([]byte(r.Info), &info) != nil || len(info.Seeds) == 0 {
		return r.Images
	}
	first := min(max(info.First, 0), len(r.Images))
	return r.Images[first:min(first+len(info.Seeds), len(r.Images))]
}

// upscale enlarges a picture. The server knows no tasks for that, so there is
// nothing to be asked, and nothing to be interrupted. It always makes the same
// of the same.
func (t *task) upscale(ctx context.Context) error {
	body, err := t.body(ctx)
	if err != nil {
		return err
	}
	if body["image"] == nil {
		return engine.Fail(engine.Failed, "A picture is required.")
	}
	var res struct {
		Image string `json:"image"`
	}
	if err := t.post(ctx, "sdapi/v1/extra-single-image", body, &res); err != nil {
		return failure(ctx, err)
	}
	for i := range t.NumResults {
		if err := t.deliver(ctx, res.Image); err != nil {
			return err
		}
		t.bar.ReportProgress(float64(i+1) / float64(t.NumResults))
	}
	return nil
}

// post makes a call that does the work.
func (t *task) post(ctx context.Context, path string, body map[string]any, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return engine.ErrMisconfigured.Because(err)
	}
	res, err := t.e.c.Do(ctx, backend.Request{Method: http.MethodPost, Path: path, Body: bytes.NewReader(b), Type: "application/json"})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return backend.DecodeJSONLimit(res.Body, t.e.most, into)
}

// deliver hands over a picture: base64, with the start of a data: URI or
// without.
func (t *task) deliver(ctx context.Context, image string) error {
	if strings.HasPrefix(image, "data:") {
		_, image, _ = strings.Cut(image, ",")
	}
	return backend.DeliverReader(ctx, backend.Base64Reader(image), t.out)
}
