package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// How large the uploads are: as large as they may be.
const (
	uploads     = 8 // at once
	uploadFiles = 5
	fileBytes   = 50 << 20
	mostGrowth  = 256 << 20
)

const recordings = `name: Recordings
description: Takes five recordings, for measuring only.
tags: [image]
price: {type: COST, tokens: 1}
output: {type: IMG, mime_types: [image/png]}
engine: {name: image, with: {operation: gradient}}
fields:
  - {key: file0, type: AUDIO, label: First, required: true}
  - {key: file1, type: AUDIO, label: Second, required: true}
  - {key: file2, type: AUDIO, label: Third, required: true}
  - {key: file3, type: AUDIO, label: Fourth, required: true}
  - {key: file4, type: AUDIO, label: Fifth, required: true}
`

const pictures = `name: Pictures
description: Takes up to twelve pictures, for measuring only.
tags: [image]
price: {type: COST, tokens: 1}
output: {type: IMG, mime_types: [image/png]}
engine: {name: image, with: {operation: gradient}}
fields: [{key: pictures, type: IMGS, label: Pictures, required: true, max_items: 12}]
`

// memory measures how much a server grows when many large creates come at once.
func (b *bench) memory(ctx context.Context) error {
	if _, err := peak(os.Getpid()); err != nil {
		fmt.Printf("the memory of a process cannot be read here (%v): uploads are not measured\n\n", err)
		return nil
	}
	var sounds, images []string
	for i := range uploadFiles {
		one := fmt.Sprintf(`{"kind": "MULTIPART", "file_index": %d}`, i)
		sounds, images = append(sounds, fmt.Sprintf(`"file%d": %s`, i, one)), append(images, one)
	}
	for _, c := range []struct {
		name, tool, inputs, kind string
		write                    func(io.Writer) error
	}{
		{"recordings (WAV)", "Recordings", `{` + strings.Join(sounds, ", ") + `}`, "audio/wav", writeWAV},
		{"pictures (PNG, noise)", "Pictures", `{"pictures": [` + strings.Join(images, ", ") + `]}`, "image/png", writePNG},
	} {
		var all []float64
		for round := range 2 { // each with a server that has taken nothing yet
			grown, err := b.grow(ctx, fmt.Sprintf("memory-%s-%d", c.tool, round), c.tool, c.inputs, c.kind, c.write)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			all = append(all, float64(grown)/(1<<20))
		}
		name := fmt.Sprintf("%d creates at once, each with %d %s of %d bytes", uploads, uploadFiles, c.name, fileBytes)
		worst := max(all[0], all[1])
		fmt.Printf("%9.0f MiB  the server's growth (peak RSS less RSS before) with %s\n%9s at most %d MiB: %s (rounds %.0f and %.0f)\n\n",
			worst, name, "", mostGrowth>>20, b.verdict(name, worst <= mostGrowth>>20, "ABOVE"), all[0], all[1])
	}
	return nil
}

// grow gives the bytes by which a new server grows at most.
func (b *bench) grow(ctx context.Context, name, tool, inputs, kind string, write func(io.Writer) error) (int64, error) {
	s, err := b.serve(ctx, name, settings{roles: "api", tools: map[string]string{"tags.yaml": tags, "sketch.yaml": sketch, "recordings.yaml": recordings, "pictures.yaml": pictures}})
	if err != nil {
		return 0, err
	}
	defer s.remove()
	people, err := gather(ctx, s, uploads)
	if err != nil {
		return 0, err
	}
	small, err := s.job(people[0].token, "Sketch", words)
	if err != nil {
		return 0, err
	}
	if err := greet(s.creates(people, small)); err != nil {
		return 0, err
	}
	large, err := s.job(people[0].token, tool, inputs)
	if err != nil {
		return 0, err
	}
	pid := s.process.Pid
	before, err := memoryOf(pid, "VmRSS")
	if err != nil {
		return 0, err
	}
	// From here on the peak is counted anew.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return 0, err
	}
	var group errgroup.Group
	for _, m := range people {
		group.Go(func() error { return upload(s.target, m.token, large, kind, write) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	after, err := peak(pid)
	return after - before, err
}

func peak(pid int) (int64, error) { return memoryOf(pid, "VmHWM") }

// memoryOf reads a line of a process's status, in bytes.
func memoryOf(pid int, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := value([]byte(line), name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(v, " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s", name)
}

// upload creates a run with files that are made as they are sent.
func upload(t target, token string, j job, kind string, write func(io.Writer) error) error {
	form := func(to io.Writer, boundary string, file func(io.Writer) error) error {
		w := multipart.NewWriter(to)
		if err := w.SetBoundary(boundary); err != nil {
			return err
		}
		if err := w.WriteField("payload", j.payload()); err != nil {
			return err
		}
		for i := range uploadFiles {
			part, err := w.CreatePart(textproto.MIMEHeader{
				"Content-Disposition": {fmt.Sprintf(`form-data; name="files"; filename="file%d"`, i)}, "Content-Type": {kind},
			})
			if err != nil {
				return err
			}
			if err := file(part); err != nil {
				return err
			}
		}
		return w.Close()
	}
	const boundary = "0123456789abcdef0123456789abcdef"
	var frame bytes.Buffer
	if err := form(&frame, boundary, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	c, err := dial(t.address)
	if err != nil {
		return err
	}
	defer c.Close()
	out := bufio.NewWriterSize(c, 256<<10)
	fmt.Fprintf(out, "POST /api/v2/generate HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: multipart/form-data; boundary=%s\r\nContent-Length: %d\r\n\r\n",
		t.address, token, boundary, frame.Len()+uploadFiles*fileBytes)
	err = form(out, boundary, write)
	if err == nil {
		err = out.Flush()
	}
	// One that was refused early says why.
	var body bytes.Buffer
	if told := answer(c.in, &body); told != nil {
		return told
	}
	if err != nil {
		return err
	}
	var made struct {
		RequestID string `json:"request_id"`
	}
	return json.Unmarshal(body.Bytes(), &made)
}
