package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/imageengine"
)

// short is how many runs of the program are timed together.
const short = 50

// engines measures what Atelier costs over the program that does the work, and
// how fast the enlarging of our own is.
func (b *bench) engines(ctx context.Context) error {
	if err := b.overhead(ctx); err != nil {
		return err
	}
	return enlarge(ctx)
}

// drawing is the tool whose program is this command itself.
const drawing = `name: Drawing
price: {type: COST, tokens: 1}
output: {type: IMG, mime_types: [image/png]}
engine: {name: drawing}
fields: [{key: detail, type: NUM, label: Detail, default: 5}]
`

// overhead times the same short runs through Atelier, from the create to the
// end of the events, and of the program alone.
func (b *bench) overhead(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Join(b.dir, "overhead")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	backends := filepath.Join(dir, "backends.yaml")
	if err := os.WriteFile(backends, fmt.Appendf(nil, "drawing: {engine: exec, command: [%q, draw]}\n", self), 0o600); err != nil {
		return err
	}
	s, err := b.serve(ctx, "overhead", settings{tools: map[string]string{"drawing.yaml": drawing}, backends: backends})
	if err != nil {
		return err
	}
	defer s.stop()
	people, err := gather(ctx, s, 1)
	if err != nil {
		return err
	}
	j, err := s.job(people[0].token, "Drawing", "{}")
	if err != nil {
		return err
	}
	f, err := follow(s.creates(people, j)[0])
	if err != nil {
		return err
	}
	defer f.close()
	through := func() error { _, _, err := f.run(); return err }
	alone := func() error { return drawAlone(ctx, self, dir) }
	var ratios []float64
	var with, without []time.Duration
	for range 5 {
		for _, one := range []struct {
			do   func() error
			kept *[]time.Duration
		}{{through, &with}, {alone, &without}} {
			start := time.Now()
			for range short {
				if err := one.do(); err != nil {
					return err
				}
			}
			*one.kept = append(*one.kept, time.Since(start))
		}
		ratios = append(ratios, with[len(with)-1].Seconds()/without[len(without)-1].Seconds())
	}
	slices.Sort(with)
	slices.Sort(without)
	fmt.Printf("%9v  %d short runs of a program through Atelier, one after another (exec engine, SQLite)\n%9v  the program alone\n%9.2f ratio (rounds %s), %v for each run\n\n",
		with[2].Round(time.Millisecond), short, without[2].Round(time.Millisecond), median(ratios), spread(ratios), ((with[2] - without[2]) / short).Round(100*time.Microsecond))
	return nil
}

// drawAlone runs the program as a person would, in a folder of its own.
func drawAlone(ctx context.Context, self, dir string) error {
	folder, err := os.MkdirTemp(dir, "alone-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := os.Mkdir(filepath.Join(folder, "out"), 0o700); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "draw")
	cmd.Dir, cmd.Stdin = folder, bytes.NewReader([]byte(`{"seed": 1, "num_results": 1, "values": {"detail": 5}}`))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("draw: %w: %s", err, out)
	}
	_, err = os.Stat(filepath.Join(folder, "out", "1.png"))
	return err
}

// draw is the program: it makes pictures of 512 by 512 pixels.
func draw() error {
	var job struct {
		Seed       int64
		NumResults int `json:"num_results"`
		Values     struct{ Detail float64 }
	}
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		return err
	}
	for n := range job.NumResults {
		var b bytes.Buffer
		if err := png.Encode(&b, waves(512, 512, job.Values.Detail)); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join("out", strconv.Itoa(n+1)+".png"), b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// waves is a picture with edges and smooth parts.
func waves(w, h int, detail float64) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			u, v := float64(x)/float64(w), float64(y)/float64(h)
			shade := func(k float64) uint8 { return uint8(127 + 127*math.Sin(detail*k*(u*u+v)+k)) }
			p.SetNRGBA(x, y, color.NRGBA{shade(3), shade(5), shade(7), 255})
		}
	}
	return p
}

// enlarge says how many megapixels a second the enlarging of our own makes.
func enlarge(ctx context.Context) error {
	var b bytes.Buffer
	if err := png.Encode(&b, waves(1024, 768, 20)); err != nil {
		return err
	}
	picture := engine.File{MimeType: "image/png", Size: int64(b.Len()), Width: 1024, Height: 768, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}}
	for _, operation := range []string{"upscale", "photo-upscale"} {
		for _, factor := range []int64{2, 4} {
			var rates []float64
			for range 5 {
				start := time.Now()
				err := imageengine.New().Run(ctx, engine.Job{
					RunID: "bench", Attempt: 1, With: `{"operation":"` + operation + `"}`, NumResults: 1, OutputType: "IMG", MimeTypes: []string{"image/png", "image/jpeg"},
					Values: map[string]any{"factor": factor, "format": "jpeg"}, Files: map[string][]engine.File{"picture": {picture}},
				}, drain{})
				if err != nil {
					return err
				}
				rates = append(rates, float64(1024*768*factor*factor)/1e6/time.Since(start).Seconds())
			}
			fmt.Printf("%9.1f megapixels/s  %s ×%d of a 0.8 megapixel picture, decoding and encoding included (rounds %s)\n", median(rates), operation, factor, spread(rates))
		}
	}
	fmt.Println()
	return nil
}

// drain takes results and keeps nothing.
type drain struct{}

func (drain) Progress(float64)                             {}
func (drain) Queued(int)                                   {}
func (drain) Preview([]byte)                               {}
func (drain) SaveCheckpoint(context.Context, string) error { return nil }
func (drain) Output(_ context.Context, r engine.Result) error {
	_, err := io.Copy(io.Discard, r.Data)
	return err
}
