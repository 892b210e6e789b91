package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"atelier/internal/engine"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/manifestdraft"
	"atelier/internal/file/media"
)

const (
	// tryTime is the time limit of a trial run.
	tryTime = 30 * time.Minute
	// maxTrialResult is the maximum size of a result of a trial run, in bytes.
	maxTrialResult = 4 << 30
)

// trial is the outcome of running a tool once after its import.
type trial struct {
	Seconds float64       `json:"seconds"`
	Results []trialResult `json:"results"`
	Error   string        `json:"error,omitempty"`

	err error
}

type trialResult struct {
	File     string `json:"file"`
	Bytes    int64  `json:"bytes"`
	MimeType string `json:"mime_type"`
}

// tryTool runs an imported tool once on its server. Each field gets its default
// value. If a field has no default, a workflow uses its own value; in other
// tools a required text field gets an example text.
func (p *program) tryTool(e engine.Engine, tool manifestdraft.Tool, slug string) trial {
	ctx, cancel := context.WithTimeout(p.ctx, tryTime)
	defer cancel()
	started := time.Now()
	sink := &folderSink{slug: slug}
	err := sink.open()
	if err == nil {
		var job engine.Job
		job, err = trialJob(e, tool)
		if err == nil {
			err = e.Run(ctx, job, sink)
		}
	}
	t := trial{Seconds: time.Since(started).Round(time.Millisecond).Seconds(), Results: sink.results}
	if err == nil && len(sink.results) == 0 {
		err = errors.New("the tool made no result")
	}
	for _, r := range sink.results {
		if err == nil && !slices.Contains(tool.Output.MimeTypes, r.MimeType) {
			err = fmt.Errorf("a result has the media type %s, but the manifest lists only %s", r.MimeType, strings.Join(tool.Output.MimeTypes, ", "))
		}
	}
	if err != nil {
		t.err = fmt.Errorf("the trial run of %s failed: %w", slug, err)
		t.Error = err.Error()
	}
	return t
}

// describe returns the outcome of a trial run for people.
func (t trial) describe() string {
	var b strings.Builder
	if t.err != nil {
		fmt.Fprintf(&b, "The trial run failed after %.1f seconds.\n", t.Seconds)
	} else {
		fmt.Fprintf(&b, "The trial run took %.1f seconds.\n", t.Seconds)
	}
	for _, r := range t.Results {
		fmt.Fprintf(&b, "  %s  %s, %d bytes\n", r.File, r.MimeType, r.Bytes)
	}
	return b.String()
}

// trialJob returns the job of a trial run.
func trialJob(e engine.Engine, tool manifestdraft.Tool) (engine.Job, error) {
	with, err := trialSettings(tool)
	if err != nil {
		return engine.Job{}, err
	}
	_, isWorkflow := e.(*comfyui.Engine)
	values := map[string]any{}
	for _, f := range tool.Fields {
		switch {
		case f.Default != nil:
			values[f.Key] = f.Default
		case !f.Required || isWorkflow:
		case strings.Contains(f.Type, "PROMPT") || strings.HasPrefix(f.Type, "TEXT"):
			values[f.Key] = "A lighthouse on a cliff at dusk."
		default:
			return engine.Job{}, fmt.Errorf("the field %s is required and has no default; run the tool with atelier generate instead", f.Key)
		}
	}
	if err := plainValues(&values); err != nil {
		return engine.Job{}, err
	}
	results := 1
	if tool.NumResults != nil {
		results = int(max(tool.NumResults.Min, 1))
	}
	return engine.Job{
		RunID:      uuid.NewString(),
		Attempt:    1,
		With:       with,
		Values:     values,
		Seed:       1,
		NumResults: results,
		OutputType: tool.Output.Type,
		MimeTypes:  tool.Output.MimeTypes,
	}, nil
}

// trialSettings returns the engine.with section of a manifest, with the files
// that the manifest includes, as JSON.
func trialSettings(tool manifestdraft.Tool) (string, error) {
	with := map[string]any{}
	for key, v := range tool.Engine.With {
		with[key] = v
	}
	for key, name := range tool.Engine.Include {
		with[key] = json.RawMessage(tool.Files[name])
	}
	text, err := json.Marshal(with)
	return string(text), err
}

// plainValues converts the default values to the types that JSON decoding
// produces, because jobs contain only these.
func plainValues(values *map[string]any) error {
	text, err := json.Marshal(*values)
	if err != nil {
		return err
	}
	*values = nil
	return json.Unmarshal(text, values)
}

// folderSink is an engine.Sink that saves results in a new temporary folder.
type folderSink struct {
	slug string
	dir  string

	mu      sync.Mutex
	results []trialResult
}

func (s *folderSink) open() error {
	dir, err := os.MkdirTemp("", "atelier-try-")
	s.dir = dir
	return err
}

// Progress does nothing: a trial run shows no progress.
func (s *folderSink) Progress(float64) {}

// Queued does nothing: a trial run does not show its position in a queue.
func (s *folderSink) Queued(int) {}

// Preview does nothing: a trial run shows no previews.
func (s *folderSink) Preview([]byte) {}

// SaveCheckpoint does nothing: a trial run is never resumed.
func (s *folderSink) SaveCheckpoint(context.Context, string) error { return nil }

// Output saves a result in the folder.
func (s *folderSink) Output(ctx context.Context, r engine.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, "result-")
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := io.Copy(f, io.LimitReader(r.Data, maxTrialResult+1))
	if err != nil {
		return err
	}
	if size > maxTrialResult {
		return fmt.Errorf("a result is larger than %d GB", maxTrialResult>>30)
	}
	head := make([]byte, media.HeadLength)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	made := trialResult{File: f.Name(), Bytes: size, MimeType: "text/plain"}
	extension := "txt"
	if format, ok := media.Sniff(head[:n]); ok {
		made.MimeType = format.MimeType
		extension = format.Ext
	}
	made.File = filepath.Join(s.dir, fmt.Sprintf("%s-%d.%s", s.slug, len(s.results)+1, extension))
	if err := os.Rename(f.Name(), made.File); err != nil {
		return err
	}
	s.results = append(s.results, made)
	return nil
}
