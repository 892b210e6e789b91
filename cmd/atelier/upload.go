package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"atelier/client"
	"atelier/internal/cli/term"
)

type uploadCmd struct {
	jsonFlag
	serviceFlags
	Files     []string `arg:"" help:"Files to upload." complete:"files"`
	Resumable bool     `help:"Send small files resumably too; files above 8 MiB always are."`
}

// Run uploads files for use as inputs of runs. An interrupted upload of a large
// file goes on where it ended when the same command is given again.
func (c uploadCmd) Run(p *program) error {
	p.patient = true
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	for _, path := range c.Files { // before the first is sent
		if err := checkRegular(path); err != nil {
			return usageError{err}
		}
	}
	uploads := []*client.Upload{}
	for i, path := range c.Files {
		upload, err := c.uploadFile(p, service, i, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		uploads = append(uploads, upload)
		if !c.JSON {
			fmt.Fprintln(p.stdout, upload.ID)
		}
	}
	if c.JSON {
		return p.printResult(true, map[string]any{"data": uploads}, "")
	}
	return nil
}

// uploadFile uploads one file, with a bar on a terminal.
func (c uploadCmd) uploadFile(p *program, service *client.Client, number int, path string) (*client.Upload, error) {
	key, err := c.uploadKey(service, path)
	if err != nil {
		return nil, err
	}
	request := client.UploadRequest{File: client.FileAt(path), Key: key}
	if term.IsTerminal(p.stderr) && !c.JSON {
		bars := term.NewBars(p.stderr, p.palette(p.stderr))
		defer bars.Clear()
		request.Progress = func(done, total int64) {
			bars.Set(number, term.Bar{
				Name:     cleanText(filepath.Base(path)),
				Fraction: float64(done) / float64(max(total, 1)),
				Text:     showBytes(done) + " of " + showBytes(total),
			})
		}
	}
	return service.Uploads.Create(p.ctx, request)
}

// uploadKey returns the idempotency key of a resumable upload, and "" for a
// file that is sent with one request. It is the same while the file is the same,
// so that an upload that was interrupted continues.
func (c uploadCmd) uploadKey(service *client.Client, path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(full)
	if err != nil {
		return "", err
	}
	if !c.Resumable && info.Size() <= client.ResumableSize {
		return "", nil
	}
	digest := sha256.Sum256([]byte(strings.Join([]string{
		service.URL(), service.TeamID(), full, fmt.Sprint(info.Size()), fmt.Sprint(info.ModTime().UnixNano()),
	}, "\x00")))
	return "cli-" + hex.EncodeToString(digest[:]), nil
}

// checkRegular returns an error if there is no regular file at path.
func checkRegular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if info.Size() == 0 {
		return fmt.Errorf("%s is empty", path)
	}
	return nil
}
