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

// Options are what to run, and how.
type Options struct {
	// Command is the program, as an absolute path, and the arguments that it
	// always gets.
	Command []string
	// Env is what it has in its environment besides the usual. It is in no log.
	Env    map[string]string
	Limits subprocess.Limits
	// Read and Write are what it may reach besides its folder, the absolute
	// paths of Command and Env, which it may read, and the system's.
	Read, Write []string
	// Folder is where folders of jobs are made, "" for the system's place.
	Folder string
}

// Engine runs a program for each job.
type Engine struct {
	command []string
	env     []string
	limits  subprocess.Limits
	read    []string
	write   []string
	folder  string
}

var _ engine.Prober = (*Engine)(nil)

// New makes the engine. Whether the program is there is for Probe: it may come
// and go.
func New(o Options) (*Engine, error) {
	if len(o.Command) == 0 || !filepath.IsAbs(o.Command[0]) {
		return nil, errors.New("command: the program has to be an absolute path")
	}
	if slices.ContainsFunc(o.Command, func(s string) bool { return strings.ContainsRune(s, 0) }) {
		return nil, errors.New("command: there is a zero byte in it")
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
			return nil, fmt.Errorf("environment: %q cannot be set", name) // without the value
		}
		e.env = append(e.env, name+"="+o.Env[name])
	}
	return e, nil
}

// What people are told. The program may have said more.
var (
	errMissing = engine.Again(engine.Unavailable, "The tool's program cannot be started.")
	errSetup   = engine.Fail(engine.Failed, "This tool is not configured correctly. Contact the operator.")
	errLimit   = engine.Fail(engine.Failed, "The tool needed more than it may have.")
	errFailed  = engine.Fail(engine.Failed, "The tool could not finish.")
	errNothing = engine.Fail(engine.Invalid, "The tool gave no result.")
	errNoFile  = engine.Fail(engine.Invalid, "The tool gave something that is no result.")
)

// Probe tells whether the program is there.
func (e *Engine) Probe(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := exec.LookPath(e.command[0]); err != nil {
		return errMissing.Because(err)
	}
	return nil
}

// Manual says what a manifest can ask of the engine: anything, which the program
// is told.
func Manual() engine.Manual { return engine.Manual{} }

// Run runs the program.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	if err := e.Probe(ctx); err != nil {
		return err
	}
	folder, err := subprocess.NewFolder(e.folder)
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer folder.Close() // what stays is swept up later
	stdin, err := begin(ctx, j, folder)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	n := &news{
		end:       end,
		job:       j,
		out:       out,
		folder:    folder,
		announced: map[string]bool{},
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
		Line:   func(line []byte) { n.line(ctx, line) },
	})
	if err = n.verdict(ctx, err); err != nil {
		return err
	}
	return n.rest(ctx)
}

// begin puts the inputs into the folder and gives what the program is told.
func begin(ctx context.Context, j engine.Job, folder *subprocess.Folder) ([]byte, error) {
	t := task{
		RunID:      j.RunID,
		Attempt:    j.Attempt,
		Seed:       j.Seed,
		NumResults: j.NumResults,
		Output:     output{j.OutputType, j.MimeTypes},
		With:       json.RawMessage(j.With),
		Values:     j.Values,
		Files:      map[string][]file{},
		Folder:     folder.Path(),
	}
	if j.With == "" {
		t.With = json.RawMessage("{}")
	}
	if t.Values == nil {
		t.Values = map[string]any{}
	}
	for _, sub := range []string{"in", "out"} {
		if err := folder.Make(sub); err != nil {
			return nil, fmt.Errorf("make a folder: %w", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.Files)) {
		for i, f := range j.Files[key] {
			name := fmt.Sprintf("in/%s-%d.%s", key, i+1, extension(f.MimeType))
			if err := folder.Put(ctx, name, f); err != nil {
				return nil, err
			}
			t.Files[key] = append(t.Files[key], file{name, f.MimeType, f.Size, f.Width, f.Height})
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // with is handed on as it is
	if err := enc.Encode(t); err != nil {
		return nil, errSetup.Because(err)
	}
	return b.Bytes(), nil
}

// task is what the program reads.
type task struct {
	RunID      string            `json:"run_id"`
	Attempt    int64             `json:"attempt"`
	Seed       uint32            `json:"seed"`
	NumResults int               `json:"num_results"`
	Output     output            `json:"output"`
	With       json.RawMessage   `json:"with"`
	Values     map[string]any    `json:"values"`
	Files      map[string][]file `json:"files"`
	Folder     string            `json:"folder"`
}

type output struct {
	Type      string   `json:"type"`
	MimeTypes []string `json:"mime_types"`
}

type file struct {
	Path     string `json:"path"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`
}

// extension is how names of such files end. Many programs go by it.
func extension(mimeType string) string {
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
