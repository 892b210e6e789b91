package main

import (
	"cmp"
	"context"
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

	"github.com/google/uuid"

	"atelier/client"
	"atelier/internal/engine/sketch"
)

type generateCmd struct {
	jsonFlag
	Tool    string   `arg:"" help:"Name or id of the tool."`
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
	req := &client.Request{Tool: tool, NumResults: c.Results, Key: uuid.NewString()}
	files, err := c.fill(req)
	defer closeAll(files)
	if err != nil {
		return usageError{err}
	}
	run, err := service.Start(p.ctx, req)
	if err != nil {
		return err
	}
	run, err = service.Follow(p.ctx, run.ID, c.bar(p, tool.Name))
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(p.stderr, "\r%s: %s%s\n", tool.Name, run.Status, strings.Repeat(" ", 40))
	}
	if run.Status != "succeeded" {
		if run.Failure != nil {
			return fmt.Errorf("%s: %s", run.Failure.Code, run.Failure.Message)
		}
		return fmt.Errorf("the run was %s", run.Status)
	}
	return c.keep(p, service, tool, run)
}

// find gives the tool that is called so.
func (c generateCmd) find(ctx context.Context, service *client.Client) (*client.Tool, error) {
	all, err := service.Tools(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range all {
		if t.ID == c.Tool || sketch.Slug(t.Name) == sketch.Slug(c.Tool) {
			return service.Tool(ctx, t.ID)
		}
		names = append(names, sketch.Slug(t.Name))
	}
	return nil, fmt.Errorf("there is no tool %s; there are %s", c.Tool, strings.Join(names, ", "))
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
	case "SLIDER", "UPSCALE_FACTOR_SLIDER", "CFG", "STEPS", "NUM", "SEED", "SINGLE_SELECT", "MODEL_SINGLE_SELECT":
		if number := json.Number(text); json.Valid([]byte(text)) {
			if _, err := number.Float64(); err == nil && !strings.Contains(kind, "SELECT") {
				return number, nil
			}
		}
	}
	return text, nil
}

// bar shows how far a run is, on a line of its own.
func (c generateCmd) bar(p *program, name string) func(float64) {
	if c.JSON {
		return nil
	}
	return func(fraction float64) {
		const width = 30
		done := int(fraction * width)
		fmt.Fprintf(p.stderr, "\r%s: [%s%s] %3.0f%%", name, strings.Repeat("=", done), strings.Repeat(" ", width-done), fraction*100)
	}
}

// keep stores the results and says where.
func (c generateCmd) keep(p *program, service *client.Client, tool *client.Tool, run *client.Run) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	var paths, ids []string
	for i, o := range run.Outputs {
		name := cmp.Or(c.As, sketch.Slug(tool.Name))
		if len(run.Outputs) > 1 {
			name += "-" + strconv.Itoa(i+1)
		}
		path := filepath.Join(c.Out, name+ending(o.MimeType))
		if err := save(p.ctx, service, o, path); err != nil {
			return err
		}
		paths, ids = append(paths, path), append(ids, o.ID)
	}
	return p.print(c.JSON, map[string]any{
		"request_id": run.ID, "status": run.Status, "seed": run.Seed, "tokens_charged": run.TokensCharged, "files": paths, "results": ids,
	}, strings.Join(paths, "\n"))
}

func save(ctx context.Context, service *client.Client, o client.Output, path string) error {
	from, err := service.Download(ctx, o)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
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
