package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"atelier/client"
	"atelier/internal/base/sanitize"
	"atelier/internal/engine"
	"atelier/internal/engine/manifestdraft"
)

type generateCmd struct {
	jsonFlag
	Tool    string   `arg:"" help:"The tool's name, as in atelier tools list, or its id."`
	Inputs  []string `arg:"" optional:"" help:"key=value; key=@FILE sends a file, key=result:ID uses an earlier result. Lists are separated by commas; a size is written 1280x720."`
	Service string   `help:"Address of the service." default:"http://localhost:8080" env:"ATELIER_SERVICE" placeholder:"URL"`
	Token   string   `help:"Access token (default: ATELIER_TOKEN)." placeholder:"TOKEN"`
	Team    string   `help:"Id of the team that pays (default: your personal account)." placeholder:"ID"`
	Results int      `help:"Number of results."`
	Out     string   `help:"Folder for the results." default:"." placeholder:"DIR"`
	As      string   `help:"Name of the result files without extension (default: the tool's name)." placeholder:"NAME"`
}

// Run runs a tool through the public API and saves the results.
func (c generateCmd) Run(p *program) error {
	token := cmp.Or(c.Token, p.getenv("ATELIER_TOKEN"))
	if token == "" {
		return usageError{errors.New("an access token is required: set --token or ATELIER_TOKEN")}
	}
	service := &client.Client{URL: c.Service, Token: token, TeamID: c.Team}
	tool, err := c.findTool(p.ctx, service)
	if err != nil {
		return err
	}
	run, err := c.startRun(p, service, tool)
	if err != nil {
		return err
	}
	id := run.ID
	run, err = service.FollowRun(p.ctx, id, c.showProgress(p, toolSlug(tool)))
	if err != nil {
		return fmt.Errorf("run %s continues on the server, but its progress cannot be followed: %w", id, err)
	}
	if !c.JSON {
		line := toolSlug(tool) + ": " + run.Status
		if isTerminal(p.stderr) { // overwrite the progress bar
			line = fmt.Sprintf("\r%s%40s", line, "")
		}
		fmt.Fprintln(p.stderr, line)
	}
	if run.Status != "succeeded" {
		if run.Failure != nil {
			return fmt.Errorf("%s: %s", run.Failure.Code, run.Failure.Message)
		}
		return fmt.Errorf("the run was %s", run.Status)
	}
	return c.saveResults(p, service, tool, run)
}

// maxRetryWait is the longest Retry-After that the command waits before it
// sends the request again.
const maxRetryWait = 2 * time.Minute

// startRun starts the run. If the service responds with Retry-After, it waits
// and sends the request again; the idempotency key prevents a second run.
func (c generateCmd) startRun(p *program, service *client.Client, tool *client.Tool) (*client.Run, error) {
	key := uuid.NewString()
	for {
		run, err := c.sendRun(p.ctx, service, &client.Request{Tool: tool, NumResults: c.Results, Key: key})
		e, ok := errors.AsType[*client.Error](err)
		if !ok || !e.Retryable || e.RetryAfter <= 0 || e.RetryAfter > maxRetryWait {
			return run, err
		}
		fmt.Fprintf(p.stderr, "%s: trying again in %v: %s\n", toolSlug(tool), e.RetryAfter, e.Message)
		select {
		case <-p.ctx.Done():
			return nil, p.ctx.Err()
		case <-time.After(e.RetryAfter):
		}
	}
}

// sendRun sends the request for a run, with the files named on the command
// line.
func (c generateCmd) sendRun(ctx context.Context, service *client.Client, req *client.Request) (*client.Run, error) {
	files, err := c.readInputs(req)
	defer closeAll(files)
	if err != nil {
		return nil, usageError{err}
	}
	return service.StartRun(ctx, req)
}

// findTool returns the tool with the given slug or id. Display names are not
// accepted, because they are not unique and can change.
func (c generateCmd) findTool(ctx context.Context, service *client.Client) (*client.Tool, error) {
	all, err := service.ListTools(ctx)
	if err != nil {
		return nil, err
	}
	var slugs []string
	var displayed []string // slugs of the tools with this display name
	for _, t := range all {
		name := toolSlug(&t)
		if t.ID == c.Tool || name == c.Tool {
			return service.GetTool(ctx, t.ID)
		}
		if strings.EqualFold(t.Name, c.Tool) {
			displayed = append(displayed, name)
		}
		slugs = append(slugs, name)
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("no tools are available to this account")
	case len(displayed) > 0:
		return nil, usageError{fmt.Errorf("%q is a display name; the tool is called %s", c.Tool, strings.Join(displayed, " or "))}
	}
	slices.Sort(slugs)
	return nil, usageError{fmt.Errorf("there is no tool %q; available tools:\n  %s", c.Tool, wrapWords(withCommas(slugs), "  ", helpColumns-2))}
}

// toolSlug returns the tool's slug, which becomes a file name. The service is
// not trusted, so an invalid slug is converted to a valid one.
func toolSlug(t *client.Tool) string {
	isSlug := t.Slug != "" && strings.Trim(t.Slug, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if isSlug {
		return t.Slug
	}
	return manifestdraft.Slug(t.Slug)
}

// readInputs reads the inputs of the run from the command line. It returns the
// opened files, even if there is an error.
func (c generateCmd) readInputs(req *client.Request) (files []io.Closer, err error) {
	fields := req.Tool.InputFields()
	req.Inputs = map[string]any{}
	for _, one := range c.Inputs {
		key, text, ok := strings.Cut(one, "=")
		i := slices.IndexFunc(fields, func(f client.Field) bool { return f.Key == key })
		if !ok || i < 0 {
			var keys []string
			for _, f := range fields {
				keys = append(keys, f.Key)
			}
			return files, fmt.Errorf("%q must have the form key=value; the keys of this tool are %s", one, strings.Join(keys, ", "))
		}
		media := func(text string) (any, error) {
			if id, ok := strings.CutPrefix(text, "result:"); ok {
				return client.Result(id), nil
			}
			if id, ok := strings.CutPrefix(text, "upload:"); ok {
				return client.Upload(id), nil
			}
			f, err := os.Open(strings.TrimPrefix(text, "@"))
			if err != nil {
				return nil, err
			}
			files = append(files, f)
			return req.AddFile(filepath.Base(f.Name()), f), nil
		}
		if req.Inputs[key], err = parseInput(fields[i].Type, text, media); err != nil {
			return files, fmt.Errorf("%s: %w", key, err)
		}
	}
	return files, nil
}

// parseInput parses the command-line value of a field of the given type. A
// value that cannot be parsed is sent as a string: the service validates it
// and explains the problem.
func parseInput(kind, text string, media func(string) (any, error)) (any, error) {
	switch kind {
	case "IMG", "VIDEO", "AUDIO", "ASSET_3D":
		return media(text)
	case "IMGS":
		list := []any{}
		for _, one := range strings.Split(text, ",") {
			m, err := media(one)
			if err != nil {
				return nil, err
			}
			list = append(list, m)
		}
		return list, nil
	case "MULTI_SELECT":
		return strings.Split(text, ","), nil
	case "BOOLEAN":
		if b, err := strconv.ParseBool(text); err == nil {
			return b, nil
		}
	case "WIDTH_HEIGHT":
		var w, h int
		if n, _ := fmt.Sscanf(text, "%dx%d", &w, &h); n == 2 {
			return map[string]any{"width": w, "height": h}, nil
		}
	case "SLIDER", "UPSCALE_FACTOR_SLIDER", "CFG", "STEPS", "NUM", "SEED":
		if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
			return json.Number(text), nil
		}
	}
	return text, nil
}

// showProgress returns a function that prints progress: one line that is
// updated on a terminal, otherwise a few separate lines.
func (c generateCmd) showProgress(p *program, name string) func(float64) {
	if c.JSON {
		return nil
	}
	if isTerminal(p.stderr) {
		return func(fraction float64) { fmt.Fprintf(p.stderr, "\r%s: %s", name, progressBar(fraction)) }
	}
	const step = 0.25
	last := -step
	return func(fraction float64) {
		if fraction >= last+step || fraction == 1 && last < 1 {
			last = fraction
			fmt.Fprintf(p.stderr, "%s: %s\n", name, progressBar(fraction))
		}
	}
}

// progressBar formats a progress bar for a fraction between 0 and 1.
func progressBar(fraction float64) string {
	const width = 30
	fraction = min(max(fraction, 0), 1)
	done := int(fraction * width)
	return fmt.Sprintf("[%s%s] %3.0f%%", strings.Repeat("=", done), strings.Repeat(" ", width-done), fraction*100)
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// saveResults downloads the results of a run and prints their paths.
func (c generateCmd) saveResults(p *program, service *client.Client, tool *client.Tool, run *client.Run) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil { //nolint:gosec // the user may share the results
		return err
	}
	var paths, ids, notes []string
	said := false
	for i, o := range run.Outputs {
		name := cmp.Or(c.As, toolSlug(tool))
		if len(run.Outputs) > 1 {
			name += "-" + strconv.Itoa(i+1)
		}
		path := filepath.Join(c.Out, name+fileExtension(o.MimeType))
		if err := downloadOutput(p.ctx, service, o, path); err != nil {
			return err
		}
		paths = append(paths, path)
		ids = append(ids, o.ID)
		notes = append(notes, o.Note)
		if o.Note != "" {
			said = true
			fmt.Fprintf(p.stderr, "%s: %s\n", path, sanitize.Line(o.Note, engine.MaxNote)) // the service is not trusted
		}
	}
	answer := map[string]any{
		"request_id": run.ID, "status": run.Status, "seed": run.Seed, "tokens_charged": run.TokensCharged, "files": paths, "results": ids,
	}
	if said {
		answer["notes"] = notes // one per file
	}
	return p.printResult(c.JSON, answer, strings.Join(paths, "\n"))
}

// downloadOutput downloads an output to a file. The file gets its final name
// only after it is complete and its hash has been verified.
func downloadOutput(ctx context.Context, service *client.Client, o client.Output, path string) (err error) {
	from, err := service.DownloadOutput(ctx, o)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644) //nolint:gosec // the user may share the results
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to.Name()))
		}
	}()
	digest := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, digest), from)
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	if o.SHA256 != "" && hex.EncodeToString(digest.Sum(nil)) != o.SHA256 {
		return errors.New("the downloaded file does not match the result's SHA-256")
	}
	return os.Rename(to.Name(), path)
}

// fileExtension returns the file name extension for a MIME type.
func fileExtension(mimeType string) string {
	usual := map[string]string{
		"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "video/mp4": ".mp4", "video/webm": ".webm",
		"audio/wav": ".wav", "audio/mpeg": ".mp3", "text/plain": ".txt", "model/gltf-binary": ".glb",
	}
	if e, ok := usual[mimeType]; ok {
		return e
	}
	if all, err := mime.ExtensionsByType(mimeType); err == nil && len(all) > 0 {
		return all[0]
	}
	return ".bin"
}

func closeAll(files []io.Closer) {
	for _, f := range files {
		f.Close()
	}
}
