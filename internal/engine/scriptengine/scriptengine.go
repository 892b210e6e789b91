// Package scriptengine is an engine for tests that follows a script in the
// job. Only test builds of the program contain it.
//
// The input "script" is a JSON list of steps, done one after the other:
//
//	{"wait": "50ms"}                 wait, at most until the job is cancelled
//	{"progress": 0.5}                report progress; invalid values are passed on
//	{"queued": 3}                    report a position in the queue of a server
//	{"preview": true}                send a small picture
//	{"output": {"kind": "png", "width": 64, "height": 48}}
//	{"output": {"kind": "text", "text": "hello", "times": 3}}
//	{"output": {"kind": "raw", "base64": "…", "size_mb": 20}}
//	{"output": {"kind": "wav", "seconds": 1}}
//	{"output": {"echo": "picture", "index": 0}}   the content of an input file
//	{"fail": {"code": "ENGINE_FAILED", "message": "…", "transient": true, "times": 2}}
//	{"hang": true}                   wait until the job is cancelled
//	{"ignore_cancel": "2s"}          wait, and ignore the job's cancellation:
//	                                 the script continues after it
//	{"panic": true}
//	{"hold": "NAME"}                 wait for Release; if NAME begins with a
//	                                 slash, wait until the file NAME exists
//	{"count_to": "/path"}            append "RUNID ATTEMPT\n" to a file, "RUNID ATTEMPT TRY\n" in later tries of an attempt
//
// A failure with "times": n occurs only in the first n attempts of the run in
// this process. The number of results is independent of NumResults: a script
// may make too many or too few. Without a script the engine makes NumResults
// pictures of 8 by 8 pixels, whose colour depends on the seed and their number.
package scriptengine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"atelier/internal/engine"
)

// Engine follows scripts. It counts the failures of each run and remembers
// which hold points have been released.
type Engine struct {
	mu     sync.Mutex
	failed map[failureKey]int
	holds  map[string]*holdPoint
}

// failureKey identifies a step of a run's script that fails.
type failureKey struct {
	run  string
	step int
}

// holdPoint is a named point in scripts at which jobs wait until a test
// releases them.
type holdPoint struct {
	reached, released chan struct{}
}

// New returns an engine without recorded failures or hold points.
func New() *Engine {
	return &Engine{failed: map[failureKey]int{}, holds: map[string]*holdPoint{}}
}

var _ engine.Engine = (*Engine)(nil)

// step is one step of a script. Exactly one of its fields is set.
type step struct {
	Wait         *duration   `json:"wait"`
	Progress     *float64    `json:"progress"`
	Queued       *int        `json:"queued"`
	Preview      *bool       `json:"preview"`
	Output       *outputStep `json:"output"`
	Fail         *failStep   `json:"fail"`
	Hang         *bool       `json:"hang"`
	IgnoreCancel *duration   `json:"ignore_cancel"`
	Panic        *bool       `json:"panic"`
	Hold         *string     `json:"hold"`
	CountTo      *string     `json:"count_to"`
}

type failStep struct {
	Code      engine.Code `json:"code"`
	Message   string      `json:"message"`
	Transient bool        `json:"transient"`
	Times     int         `json:"times"` // number of attempts that fail; 0 means all
}

// duration is a time.Duration that is written in JSON as a string such as
// "1.5s".
type duration time.Duration

func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = duration(v)
	return err
}

// parseScript parses a script. It refuses unknown keys.
func parseScript(text string) ([]step, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	var raw []json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("unexpected data after the list of steps")
	}
	steps := make([]step, len(raw))
	for i, b := range raw {
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(b, &keys); err != nil || len(keys) != 1 {
			return nil, fmt.Errorf("step %d must have exactly one key", i)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&steps[i]); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		if err := steps[i].validate(); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	return steps, nil
}

func (s step) validate() error {
	if s == (step{}) {
		return errors.New("the value of a step must not be null")
	}
	for _, on := range []*bool{s.Preview, s.Hang, s.Panic} {
		if on != nil && !*on {
			return errors.New("the value of a step preview, hang or panic must be true")
		}
	}
	if s.Fail != nil {
		switch s.Fail.Code {
		case "", engine.Failed, engine.Unavailable, engine.Refused, engine.Invalid:
		default:
			return fmt.Errorf("unknown error code %s", s.Fail.Code)
		}
	}
	if s.Output != nil {
		return s.Output.validate()
	}
	return nil
}

// Run executes the script of a job and passes its results to out.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	text, _ := j.Values["script"].(string)
	if text == "" {
		return noScript(ctx, j, out)
	}
	steps, err := parseScript(text)
	if err != nil {
		return engine.Fail(engine.Failed, "The script is invalid: "+err.Error())
	}
	p := scriptRun{engine: e, job: j, out: out}
	heard := ctx // context of the steps; replaced when the script ignores cancellation
	for i, s := range steps {
		if err := heard.Err(); err != nil {
			return err
		}
		if s.IgnoreCancel != nil {
			heard = context.WithoutCancel(ctx)
		}
		if err := p.doStep(ctx, heard, i, s); err != nil {
			return err
		}
	}
	return nil
}

func noScript(ctx context.Context, j engine.Job, out engine.Sink) error {
	for i := range j.NumResults {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := out.Output(ctx, engine.Result{Data: bytes.NewReader(plainPNG(8, 8, colourOf(j.Seed, i)))}); err != nil {
			return err
		}
		out.Progress(float64(i+1) / float64(j.NumResults))
	}
	return nil
}

// scriptRun is the state of one running script.
type scriptRun struct {
	engine *Engine
	job    engine.Job
	out    engine.Sink
	made   int // number of results made so far
}

// doStep executes a step, with heard as its context. The steps hang and hold
// always use ctx instead, because nothing else would end them.
func (p *scriptRun) doStep(ctx, heard context.Context, number int, s step) error {
	switch {
	case s.Wait != nil:
		return waitFor(heard, time.Duration(*s.Wait))
	case s.Progress != nil:
		p.out.Progress(*s.Progress)
	case s.Queued != nil:
		p.out.Queued(*s.Queued)
	case s.Preview != nil:
		p.out.Preview(plainPNG(16, 16, colourOf(p.job.Seed, p.made)))
	case s.Output != nil:
		return p.makeOutput(heard, s.Output)
	case s.Fail != nil:
		return p.engine.failTimes(p.job.RunID, number, s.Fail)
	case s.Hang != nil:
		<-ctx.Done()
		return ctx.Err()
	case s.IgnoreCancel != nil:
		return waitFor(heard, time.Duration(*s.IgnoreCancel))
	case s.Panic != nil:
		panic("panic step of the script")
	case s.Hold != nil:
		return p.engine.waitAtHold(ctx, *s.Hold)
	case s.CountTo != nil:
		line := fmt.Sprint(p.job.RunID, " ", p.job.Attempt)
		if p.job.Try > 0 {
			line += fmt.Sprint(" ", p.job.Try)
		}
		return appendLine(*s.CountTo, line+"\n")
	}
	return nil
}

func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Engine) failTimes(run string, number int, f *failStep) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := failureKey{run, number}
	if f.Times > 0 && e.failed[at] >= f.Times {
		return nil
	}
	e.failed[at]++
	code := f.Code
	message := f.Message
	if code == "" {
		code = engine.Failed
	}
	if message == "" {
		message = "The script failed on purpose."
	}
	if f.Transient {
		return engine.FailTransient(code, message)
	}
	return engine.Fail(code, message)
}

// appendLine appends a line to a file. It writes the line at once in append
// mode, so that lines of several processes do not mix.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

func (e *Engine) holdAt(name string) *holdPoint {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.holds[name]
	if h == nil {
		h = &holdPoint{make(chan struct{}), make(chan struct{})}
		e.holds[name] = h
	}
	return h
}

// closeOnce closes a channel unless it is already closed.
func (e *Engine) closeOnce(c chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

func (e *Engine) waitAtHold(ctx context.Context, name string) error {
	if filepath.IsAbs(name) {
		return waitForFile(ctx, name)
	}
	h := e.holdAt(name)
	e.closeOnce(h.reached)
	select {
	case <-h.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitForFile waits until a file exists.
func waitForFile(ctx context.Context, path string) error {
	for {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := waitFor(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// Release makes all jobs continue that wait at the hold step called name.
// Later jobs do not wait there.
func (e *Engine) Release(name string) { e.closeOnce(e.holdAt(name).released) }

// Reached returns a channel that is closed when the first job waits at the
// hold step called name.
func (e *Engine) Reached(name string) <-chan struct{} { return e.holdAt(name).reached }
