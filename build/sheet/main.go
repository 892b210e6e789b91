// Command sheet draws a picture for each prompt of a list with the picture
// model, for viewing and scoring. From the root of the repository:
//
//	go run ./build/sheet                               docs/sketch/sheet.png from model/sheet.txt
//	go run ./build/sheet -prompts FILE -folder DIR     000.png, 001.png and so on, for model/judge.py
//
// The file of prompts has one prompt per line. The seed of a picture is the
// index of its prompt. Pictures are neither selected nor retouched: the first
// picture of each prompt is used.
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
)

const (
	columns = 8
	gap     = 4
)

func main() {
	prompts := flag.String("prompts", "model/sheet.txt", "prompts to draw, one a line")
	folder := flag.String("folder", "", "folder for single pictures, instead of a sheet")
	out := flag.String("out", "docs/sketch/sheet.png", "the sheet")
	flag.Parse()
	if err := run(*prompts, *folder, *out); err != nil {
		fmt.Fprintln(os.Stderr, "sheet:", err)
		os.Exit(1)
	}
}

func run(prompts, folder, out string) error {
	text, err := os.ReadFile(prompts)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	m, err := neural.Open(kernel.Best(), runtime.NumCPU())
	if err != nil {
		return err
	}
	defer m.Close()
	if folder != "" {
		return each(m, lines, func(i int, p *image.NRGBA) error {
			return write(filepath.Join(folder, fmt.Sprintf("%03d.png", i)), p)
		})
	}
	rows, step := (len(lines)+columns-1)/columns, m.PictureSide()+gap
	sheet := image.NewNRGBA(image.Rect(0, 0, columns*step+gap, rows*step+gap))
	draw.Draw(sheet, sheet.Rect, image.NewUniform(color.Gray{Y: 220}), image.Point{}, draw.Src)
	err = each(m, lines, func(i int, p *image.NRGBA) error {
		at := image.Pt(gap+i%columns*step, gap+i/columns*step)
		draw.Draw(sheet, p.Rect.Add(at), p, image.Point{}, draw.Src)
		return nil
	})
	if err != nil {
		return err
	}
	return write(out, sheet)
}

// each draws every prompt and calls take with its index and picture.
func each(m *neural.Model, prompts []string, take func(i int, p *image.NRGBA) error) error {
	for i, prompt := range prompts {
		o := neural.Order{Prompt: prompt, Seed: uint64(i), Steps: m.DefaultSteps(), Guidance: 1}
		p, err := m.DrawPicture(context.Background(), o, nil)
		if err != nil {
			return err
		}
		if err := take(i, p); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, p image.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	e := png.Encoder{CompressionLevel: png.BestCompression}
	if err := e.Encode(f, p); err != nil {
		return err
	}
	return f.Close()
}
