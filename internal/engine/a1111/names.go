package a1111

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

var (
	errCheckpoint = engine.Fail(engine.Failed, "The model of this tool is not on its server. Contact the operator.")
	errSampler    = engine.Fail(engine.Failed, "The tool's server has no sampler with this name. Choose another one.")
)

// checkNames checks that the server has the checkpoint and the sampler of a
// request. Without this check, some servers would silently use another
// checkpoint or sampler. checkNames replaces the checkpoint with the server's
// own title for it, because servers match other names only approximately.
func (t *task) checkNames(ctx context.Context, body map[string]any) error {
	settings, _ := body["override_settings"].(map[string]any)
	if name, ok := settings["sd_model_checkpoint"].(string); ok && name != "" {
		title, err := t.e.findCheckpoint(ctx, name)
		if err != nil {
			return err
		}
		settings["sd_model_checkpoint"] = title
	}
	if name, ok := body["sampler_name"].(string); ok {
		return t.e.checkSampler(ctx, name)
	}
	return nil
}

// checkpoint is a model on the server.
type checkpoint struct {
	Title  string `json:"title"`
	Name   string `json:"model_name"`
	Hash   string `json:"hash"`
	SHA256 string `json:"sha256"`
}

func (e *Engine) fetchCheckpoints(ctx context.Context) ([]checkpoint, error) {
	var list []checkpoint
	err := e.fetchList(ctx, "sd-models", &list)
	return list, err
}

// fetchList fetches one of the server's lists, such as its samplers.
func (e *Engine) fetchList(ctx context.Context, name string, into any) error {
	short, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	return e.c.CallJSON(short, http.MethodGet, "sdapi/v1/"+name, nil, into)
}

// findCheckpoint returns the title of the checkpoint called name. If the server
// does not list the checkpoint, findCheckpoint makes the server rescan its
// files once and searches again.
func (e *Engine) findCheckpoint(ctx context.Context, name string) (string, error) {
	for refreshed := false; ; refreshed = true {
		list, err := e.fetchCheckpoints(ctx)
		if err != nil {
			return "", callFailure(ctx, err)
		}
		if title := matchCheckpoint(list, name); title != "" {
			return title, nil
		}
		if refreshed {
			return "", errCheckpoint
		}
		short, cancel := e.c.WithTimeout(ctx)
		_ = e.c.CallJSON(short, http.MethodPost, "sdapi/v1/refresh-checkpoints", nil, nil) // if the rescan fails, the list stays as it is
		cancel()
	}
}

// matchCheckpoint returns the title of the checkpoint that name refers to. name
// is a title, a name or a hash, with or without folder, file name ending and
// hash. matchCheckpoint returns "" if no checkpoint matches, or if several
// checkpoints in different folders match.
func matchCheckpoint(list []checkpoint, name string) string {
	var sameFile []string
	for _, c := range list {
		if slices.Contains([]string{c.Title, c.Name, c.Hash, c.SHA256, fileTitle(c.Title)}, name) || fileTitle(c.Title) == fileTitle(name) {
			return c.Title
		}
		if path.Base(fileTitle(c.Title)) == fileTitle(name) {
			sameFile = append(sameFile, c.Title)
		}
	}
	if len(sameFile) == 1 {
		return sameFile[0]
	}
	return ""
}

// fileTitle returns the title of a checkpoint without hash and file name
// ending, for example "sd/v1-5" for "sd\v1-5.safetensors [6ce0161689]".
func fileTitle(title string) string {
	title, _, _ = strings.Cut(title, " [")
	title = strings.ReplaceAll(title, `\`, "/")
	for _, ending := range []string{".safetensors", ".ckpt", ".gguf", ".sft", ".pt"} {
		title = strings.TrimSuffix(title, ending)
	}
	return title
}

// sampler is a sampler of the server.
type sampler struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases"`
}

// schedulers are the names of schedulers that may follow a sampler's name,
// written as backend.PlainName returns them.
var schedulers = []string{"", "karras", "exponential", "polyexponential", "sgmuniform"}

// checkSampler returns an error if the server does not list the sampler called
// name. Only the letters and digits of names are compared, because
// stable-diffusion.cpp accepts "Euler a" and lists "euler_a".
func (e *Engine) checkSampler(ctx context.Context, name string) error {
	var list []sampler
	if err := e.fetchList(ctx, "samplers", &list); err != nil {
		return callFailure(ctx, err)
	}
	for _, s := range list {
		for _, known := range append(s.Aliases, s.Name) {
			rest, ok := strings.CutPrefix(backend.PlainName(name), backend.PlainName(known))
			if ok && slices.Contains(schedulers, rest) {
				return nil
			}
		}
	}
	return errSampler
}
