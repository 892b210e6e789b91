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
	Inputs  []string `arg:"" optional:"" help:"key=value; key=@FILE sends a file, key=result:ID one made before. Lists are separated by commas, a size is 1280x720."`
	Service string   `help:"Address of the service." default:"http://localhost:8080" env:"ATELIER_SERVICE" placeholder:"URL"`
	Token   string   `help:"Access token (default: ATELIER_TOKEN)." placeholder:"TOKEN"`
	Team    string   `help:"Team that pays." placeholder:"ID"`
	Results int      `help:"How many results."`
	Out     string   `help:"Folder for the results." default:"." placeholder:"DIR"`
	As      string   `help:"Name of the results' files, without their ending (default: the tool's name)." placeholder:"NAME"`
}

// Run makes results like any client of the interface would.
func (c generateCmd) Run(p *program) error {
	token := cmp.Or(c.Token, p.getenv("ATELIER_TOKEN"))
	if token == "" {
		return usageError{errors.New("name an access token with --token or ATELIER_TOKEN")}
	}
	service := &client.Client{URL: c.Service, Token: token, TeamID: c.Team}
	tool, err := c.find(p.ctx, service)
	if err != nil {
		return err
	}
	run, err := c.begin(p, service, tool)
	if err != nil {
		return err
	}
	id := run.ID
	run, err = service.Follow(p.ctx, id, c.bar(p, nameOf(tool)))
	if err != nil {
		return fmt.Errorf("run %s, which goes on: %w", id, err)
	}
	if !c.JSON {
		line := nameOf(tool) + ": " + run.Status
		if terminal(p.stderr) { // over the bar
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
	return c.keep(p, service, tool, run)
}

// patience is how long a service may ask to wait before it takes a run.
const patience = 2 * time.Minute

// begin starts the run. Where the service asks to wait, it does, and tries
// again: the key makes that safe.
func (c generateCmd) begin(p *program, service *client.Client, tool *client.Tool) (*client.Run, error) {
	key := uuid.NewString()
	for {
		run, err := c.start(p.ctx, service, &client.Request{Tool: tool, NumResults: c.Results, Key: key})
		e, ok := errors.AsType[*client.Error](err)
		if !ok || !e.Retryable || e.RetryAfter <= 0 || e.RetryAfter > patience {
			return run, err
		}
		fmt.Fprintf(p.stderr, "%s: waiting for %v: %s\n", nameOf(tool), e.RetryAfter, e.Message)
		select {
		case <-p.ctx.Done():
			return nil, p.ctx.Err()
		case <-time.After(e.RetryAfter):
		}
	}
}

// start sends the request, with the files that the command line names.
func (c generateCmd) start(ctx context.Context, service *client.Client, req *client.Request) (*client.Run, error) {
	files, err := c.fill(req)
	defer closeAll(files)
	if err != nil {
		return nil, usageError{err}
	}
	return service.Start(ctx, req)
}

// find gives the tool with this slug or id. A display name is no name: several
// tools can have the same, and the next edit can change it.
func (c generateCmd) find(ctx context.Context, service *client.Client) (*client.Tool, error) {
	all, err := service.Tools(ctx)
	if err != nil {
		return nil, err
	}
	var slugs []string
	var displayed []string // slugs of those with this display name
	for _, t := range all {
		name := nameOf(&t)
		if t.ID == c.Tool || name == c.Tool {
			return service.Tool(ctx, t.ID)
		}
		if strings.EqualFold(t.Name, c.Tool) {
			displayed = append(displayed, name)
		}
		slugs = append(slugs, name)
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("the service offers this account no tools")
	case len(displayed) > 0:
		return nil, usageError{fmt.Errorf("%q is a display name; the tool is called %s", c.Tool, strings.Join(displayed, " or "))}
	}
	slices.Sort(slugs)
	return nil, usageError{fmt.Errorf("there is no tool %q; there are:\n  %s", c.Tool, wrap(commas(slugs), "  ", helpColumns-2))}
}

// nameOf is what a tool is called here. It becomes the name of files, so it is
// made sure that it is a slug: nobody here knows the service.
func nameOf(t *client.Tool) string {
	isSlug := t.Slug != "" && strings.Trim(t.Slug, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if isSlug {
		return t.Slug
	}
	return manifestdraft.Slug(t.Slug)
}

// fill reads the inputs from the command line. It gives the files that it
// opened.
func (c generateCmd) fill(req *client.Request) (files []io.Closer, err error) {
	fields := req.Tool.Leaves()
	req.Inputs = map[string]any{}
	for _, one := range c.Inputs {
		key, text, ok := strings.Cut(one, "=")
		i := slices.IndexFunc(fields, func(f client.Field) bool { return f.Key == key })
		if !ok || i < 0 {
			var keys []string
			for _, f := range fields {
				keys = append(keys, f.Key)
			}
			return files, fmt.Errorf("%q is not key=value with a key of %s", one, strings.Join(keys, ", "))
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
			return req.File(filepath.Base(f.Name()), f), nil
		}
		if req.Inputs[key], err = value(fields[i].Type, text, media); err != nil {
			return files, fmt.Errorf("%s: %w", key, err)
		}
	}
	return files, nil
}

// value reads what a field of a type takes. What it does not understand it
// sends as text: the service knows better, and says what is wrong.
func value(kind, text string, media func(string) (any, error)) (any, error) {
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

// bar shows how far a run is: to whoever watches on one line that moves, to a
// file in a few lines.
func (c generateCmd) bar(p *program, name string) func(float64) {
	if c.JSON {
		return nil
	}
	if terminal(p.stderr) {
		return func(fraction float64) { fmt.Fprintf(p.stderr, "\r%s: %s", name, gauge(fraction)) }
	}
	const step = 0.25
	last := -step
	return func(fraction float64) {
		if fraction >= last+step || fraction == 1 && last < 1 {
			last = fraction
			fmt.Fprintf(p.stderr, "%s: %s\n", name, gauge(fraction))
		}
	}
}

// gauge draws a part of 1.
func gauge(fraction float64) string {
	const width = 30
	fraction = min(max(fraction, 0), 1)
	done := int(fraction * width)
	return fmt.Sprintf("[%s%s] %3.0f%%", strings.Repeat("=", done), strings.Repeat(" ", width-done), fraction*100)
}

// terminal tells whether a person reads along, rather than a file.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// keep stores the results and says where.
func (c generateCmd) keep(p *program, service *client.Client, tool *client.Tool, run *client.Run) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil { //nolint:gosec // for its person to share
		return err
	}
	var paths, ids, notes []string
	said := false
	for i, o := range run.Outputs {
		name := cmp.Or(c.As, nameOf(tool))
		if len(run.Outputs) > 1 {
			name += "-" + strconv.Itoa(i+1)
		}
		path := filepath.Join(c.Out, name+ending(o.MimeType))
		if err := save(p.ctx, service, o, path); err != nil {
			return err
		}
		paths = append(paths, path)
		ids = append(ids, o.ID)
		notes = append(notes, o.Note)
		if o.Note != "" {
			said = true
			fmt.Fprintf(p.stderr, "%s: %s\n", path, sanitize.Line(o.Note, engine.MaxRemark)) // of a service that nobody here knows
		}
	}
	answer := map[string]any{
		"request_id": run.ID, "status": run.Status, "seed": run.Seed, "tokens_charged": run.TokensCharged, "files": paths, "results": ids,
	}
	if said {
		answer["notes"] = notes // one for each file
	}
	return p.print(c.JSON, answer, strings.Join(paths, "\n"))
}

// save puts an output into a file. It is there as a whole and as it was made, or
// not at all.
func save(ctx context.Context, service *client.Client, o client.Output, path string) (err error) {
	from, err := service.Download(ctx, o)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644) //nolint:gosec // for its person to share
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
		return errors.New("what was downloaded is not what the run made")
	}
	return os.Rename(to.Name(), path)
}

// ending is what files of a type are called.
func ending(mimeType string) string {
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
