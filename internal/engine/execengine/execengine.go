package execengine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// Options are the operator's program for an exec engine and its limits.
type Options struct {
	// Command is the absolute path of the program, followed by the arguments
	// that it always gets.
	Command []string
	// Env are additional environment variables for the program. They are never
	// logged.
	Env    map[string]string
	Limits subprocess.Limits
	// Read and Write are paths that the program may read or write, in addition
	// to the job's folder, the absolute paths in Command and Env (read only),
	// and the system's paths.
	Read, Write []string
	// Folder is the parent of the jobs' folders. If it is empty, the system's
	// temporary folder is used.
	Folder string
}

// Engine runs the operator's program once for each job.
type Engine struct {
	command []string
	env     []string
	limits  subprocess.Limits
	read    []string
	write   []string
	folder  string
}

var _ engine.Prober = (*Engine)(nil)

// New returns an engine that runs the program of o. It does not check that the
// program exists; Probe does, because the program may be installed or removed
// at any time.
func New(o Options) (*Engine, error) {
	if len(o.Command) == 0 || !filepath.IsAbs(o.Command[0]) {
		return nil, errors.New("command: the program must be an absolute path")
	}
	if slices.ContainsFunc(o.Command, func(s string) bool { return strings.ContainsRune(s, 0) }) {
		return nil, errors.New("command: must not contain a NUL byte")
	}
	e := &Engine{
		command: slices.Clone(o.Command),
		limits:  o.Limits,
		read:    slices.Concat(o.Command, o.Read, slices.Collect(maps.Values(o.Env))),
		write:   slices.Clone(o.Write),
		folder:  o.Folder,
	}
	e.read = slices.DeleteFunc(e.read, func(path string) bool { return !filepath.IsAbs(path) || filepath.Clean(path) == "/" })
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(o.Env[name], 0) {
			return nil, fmt.Errorf("environment: the name or the value of the variable %q is invalid", name) // the error does not repeat the value, which may be a password
		}
		e.env = append(e.env, name+"="+o.Env[name])
	}
	return e, nil
}

// Failures with general messages for people, for programs that report no
// message of their own.
var (
	errMissing       = engine.FailTransient(engine.Unavailable, "The tool's program cannot be started. Try again later.")
	errMisconfigured = engine.Fail(engine.Failed, "This tool is not configured correctly. Contact the operator.")
	errLimit         = engine.Fail(engine.Failed, "The tool exceeded its limit of memory, disk space or processes.")
	errFailed        = engine.Fail(engine.Failed, "The tool could not finish.")
	errNoResult      = engine.Fail(engine.Invalid, "The tool returned no result.")
	errBadResult     = engine.Fail(engine.Invalid, "The tool returned an invalid result.")
)

// Probe returns an error if the program does not exist or is not executable.
func (e *Engine) Probe(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := exec.LookPath(e.command[0]); err != nil {
		return errMissing.WithCause(err)
	}
	return nil
}

// ManifestSpec describes the settings that a tool's manifest may have for this
// engine. Any settings are allowed, because the program gets them unchanged.
func ManifestSpec() engine.ManifestSpec { return engine.ManifestSpec{} }

// Run runs the program for a job and passes its results to out.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	if err := e.Probe(ctx); err != nil {
		return err
	}
	folder, err := subprocess.NewFolder(e.folder)
	if err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	defer func() { _ = folder.Close() }() // if this fails, the folder is deleted later with other leftover folders
	stdin, err := prepareFolder(ctx, j, folder)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	n := &programOutput{
		killProgram: end,
		job:         j,
		out:         out,
		folder:      folder,
		announced:   map[string]bool{},
	}
	err = subprocess.Run(life, subprocess.Program{
		Path:   e.command[0],
		Args:   e.command[1:],
		Env:    e.env,
		Folder: folder,
		Stdin:  stdin,
		Limits: e.limits,
		Read:   e.read,
		Write:  e.write,
		Line:   func(line []byte) { n.handleLine(ctx, line) },
	})
	if err = n.finalError(ctx, err); err != nil {
		return err
	}
	return n.deliverUnannounced(ctx)
}

// prepareFolder copies the job's files into the folder and returns the JSON
// for the program's standard input.
func prepareFolder(ctx context.Context, j engine.Job, folder *subprocess.Folder) ([]byte, error) {
	t := taskInput{
		RunID:      j.RunID,
		Attempt:    j.Attempt,
		Seed:       j.Seed,
		NumResults: j.NumResults,
		Output:     outputSpec{j.OutputType, j.MimeTypes},
		With:       json.RawMessage(j.With),
		Values:     j.Values,
		Files:      map[string][]inputFile{},
		Folder:     folder.FilePath(),
	}
	if j.With == "" {
		t.With = json.RawMessage("{}")
	}
	if t.Values == nil {
		t.Values = map[string]any{}
	}
	for _, sub := range []string{"in", "out"} {
		if err := folder.MakeFolder(sub); err != nil {
			return nil, fmt.Errorf("create folder: %w", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.Files)) {
		for i, f := range j.Files[key] {
			name := fmt.Sprintf("in/%s-%d.%s", key, i+1, extensionOf(f.MimeType))
			if err := folder.CopyInput(ctx, name, f); err != nil {
				return nil, err
			}
			t.Files[key] = append(t.Files[key], inputFile{name, f.MimeType, f.Size, f.Width, f.Height})
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // so that the manifest's settings are passed on unchanged
	if err := enc.Encode(t); err != nil {
		return nil, errMisconfigured.WithCause(err)
	}
	return b.Bytes(), nil
}

// taskInput is the JSON object on the program's standard input.
type taskInput struct {
	RunID      string                 `json:"run_id"`
	Attempt    int64                  `json:"attempt"`
	Seed       uint32                 `json:"seed"`
	NumResults int                    `json:"num_results"`
	Output     outputSpec             `json:"output"`
	With       json.RawMessage        `json:"with"`
	Values     map[string]any         `json:"values"`
	Files      map[string][]inputFile `json:"files"`
	Folder     string                 `json:"folder"`
}

type outputSpec struct {
	Type      string   `json:"type"`
	MimeTypes []string `json:"mime_types"`
}

type inputFile struct {
	Path     string `json:"path"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`
}

// extensionOf returns the file name ending for a MIME type, without a dot.
// Many programs depend on it. For unknown types it returns "bin".
func extensionOf(mimeType string) string {
	if ext := extensions[mimeType]; ext != "" {
		return ext
	}
	return "bin"
}

var extensions = map[string]string{
	"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif", "image/heic": "heic", "image/heif": "heif",
	"image/avif": "avif", "image/tiff": "tiff", "image/svg+xml": "svg",
	"video/mp4": "mp4", "video/webm": "webm", "video/quicktime": "mov",
	"audio/mpeg": "mp3", "audio/wav": "wav", "audio/flac": "flac", "audio/ogg": "ogg", "audio/mp4": "m4a", "audio/aac": "aac",
	"text/plain": "txt", "application/json": "json", "application/pdf": "pdf", "model/gltf-binary": "glb",
}
