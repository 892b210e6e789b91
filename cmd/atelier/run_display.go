package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/gif"  // previews
	_ "image/jpeg" // previews
	_ "image/png"  // previews
	"io"
	"math"
	"strings"
	"sync"
	"time"

	_ "golang.org/x/image/webp" // previews

	"atelier/client"
	"atelier/internal/cli/term"
)

// palette returns the colours for an output.
func (p *program) palette(w io.Writer) term.Palette { return term.NewPalette(w, p.getenv) }

// pictureProtocol returns how pictures are shown on standard error.
func (c runCmd) pictureProtocol(p *program) term.Protocol {
	switch {
	case c.Preview != "auto":
		return term.Protocol(c.Preview)
	case !term.IsTerminal(p.stderr):
		return term.NoPictures
	}
	return term.DetectProtocol(p.getenv)
}

// runDisplay shows the progress of runs: bars on a terminal, otherwise a few
// lines. It is safe for concurrent use.
type runDisplay struct {
	program  *program
	bars     *term.Bars // nil if there is no terminal
	silent   bool
	estimate time.Duration // of one run; 0 if nobody knows it

	mu      sync.Mutex
	states  map[int]*runState
	ticking sync.WaitGroup
	ended   chan struct{}
}

// runState is what is known of a run that has not ended.
type runState struct {
	name     string
	stage    client.RunStage
	step     string    // of a flow: the one that started last, or ""
	position *int64    // in the queue, when updated was
	updated  time.Time // time of the last news
	fraction float64   // negative if nobody knows it
	began    time.Time
	printed  string // the last line that was printed, where there are no bars
}

func newRunDisplay(p *program, silent bool, estimate *int64) *runDisplay {
	d := &runDisplay{program: p, silent: silent, states: map[int]*runState{}, ended: make(chan struct{})}
	if estimate != nil {
		d.estimate = time.Duration(*estimate) * time.Second
	}
	if term.IsTerminal(p.stderr) && !silent {
		d.bars = term.NewBars(p.stderr, p.palette(p.stderr))
	}
	return d
}

// start draws the bars again and again, so that the estimates count down.
func (d *runDisplay) start() {
	if d.bars == nil {
		return
	}
	d.ticking.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-d.ended:
				return
			case <-tick.C:
				d.draw()
			}
		}
	})
}

func (d *runDisplay) stop() {
	close(d.ended)
	d.ticking.Wait()
	if d.bars != nil {
		d.bars.Clear()
	}
}

// pause removes the bars for a question. The returned function draws them again.
func (d *runDisplay) pause() (resume func()) {
	if d.bars == nil {
		fmt.Fprintln(d.program.stderr) // after the "^C" of the terminal
		return func() {}
	}
	d.bars.Pause()
	return d.bars.Resume
}

func (d *runDisplay) draw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for number, s := range d.states {
		d.bars.Set(number, term.Bar{Name: s.name, Fraction: s.fraction, Text: s.describe(d.estimate, time.Now())})
	}
}

// describe returns the stage of a run and the time that it probably still takes.
func (s *runState) describe(estimate time.Duration, now time.Time) string {
	switch s.stage {
	case "":
		return "starting"
	case client.RunStageQueued:
		const fresh = 5 * time.Second // the service does not report that a queue has moved
		if s.position != nil && now.Sub(s.updated) < fresh {
			return fmt.Sprintf("waiting, number %d in the queue", *s.position)
		}
		return "waiting"
	case client.RunStageRunning:
	}
	text := s.describeStage()
	left := estimate - now.Sub(s.began)
	const enough = 0.05 // less progress predicts nothing
	if s.fraction > enough {
		done := now.Sub(s.began).Seconds()
		left = time.Duration(done * (1 - s.fraction) / s.fraction * float64(time.Second))
	}
	if left > time.Second {
		text += ", about " + showSeconds(left) + " left"
	}
	return text
}

// describeStage returns the stage, with the step if the run is a flow.
func (s *runState) describeStage() string {
	text := string(s.stage)
	if s.step != "" {
		text += " " + s.step
	}
	return cleanText(text)
}

// showSeconds formats a duration for people.
func showSeconds(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
	}
	return fmt.Sprintf("%.0f min", math.Ceil(d.Minutes()))
}

func (d *runDisplay) begin(number int, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.states[number] = &runState{name: name, fraction: -1}
}

// finish removes the bar of a run, and prints a line and a picture.
func (d *runDisplay) finish(number int, line, picture string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.states, number)
	text := strings.TrimSuffix(line+"\n"+picture, "\n")
	switch {
	case d.silent:
	case d.bars != nil:
		d.bars.Finish(number, text)
	case text != "":
		fmt.Fprintln(d.program.stderr, text)
	}
}

// print prints a line above the bars.
func (d *runDisplay) print(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bars != nil {
		d.bars.Print(line)
		return
	}
	fmt.Fprintln(d.program.stderr, line)
}

// watch returns the functions that a client calls while it waits for a run.
func (d *runDisplay) watch(number int, preview func(client.Preview)) client.Watch {
	return client.Watch{
		Status: func(r *client.Run) {
			for _, s := range r.Steps {
				d.setStep(number, s)
			}
			if r.Stage != nil {
				d.update(number, *r.Stage, r.Progress, r.QueuePosition)
			}
		},
		Step:     func(s client.RunStep) { d.setStep(number, s) },
		Progress: func(r client.RunProgress) { d.update(number, r.Stage, r.Progress, nil) },
		Preview:  preview,
	}
}

// setStep keeps the step of a flow that started last. It is shown with the next
// progress.
func (d *runDisplay) setStep(number int, step client.RunStep) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.states[number]; s != nil && step.Stage != nil && *step.Stage == client.RunStageRunning {
		s.step = step.Step
	}
}

func (d *runDisplay) update(number int, stage client.RunStage, progress *float64, position *int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.states[number]
	if s == nil {
		return
	}
	if stage != s.stage && stage == client.RunStageRunning {
		s.began = time.Now()
	}
	s.stage = stage
	s.position = position
	s.updated = time.Now()
	s.fraction = -1
	if progress != nil {
		s.fraction = min(max(*progress, 0), 1)
	}
	if d.bars == nil && !d.silent {
		d.printStep(s)
	}
}

// printStep prints a line for each stage, and for each quarter of the work.
func (d *runDisplay) printStep(s *runState) {
	line := s.name + ": " + s.describeStage()
	if s.fraction >= 0 {
		const quarter = 25
		line += fmt.Sprintf(" %d%%", int(s.fraction*100)/quarter*quarter)
	}
	if line != s.printed {
		s.printed = line
		fmt.Fprintln(d.program.stderr, line)
	}
}

// maxPreview is the maximum number of bytes of a preview.
const maxPreview = 8 << 20

// previews returns a function that shows unfinished pictures of a run. Several
// runs side by side show none, because their pictures would take the screen.
func (b *runBatch) previews(ctx context.Context) func(client.Preview) {
	if b.picture == term.NoPictures || b.display.bars == nil || len(b.tasks) > 1 {
		return nil
	}
	return func(preview client.Preview) {
		if picture, err := b.fetchPicture(ctx, preview.URL); err == nil {
			b.display.bars.SetPicture(b.picture, picture)
		}
	}
}

// showPictures returns the results of a run as pictures for the terminal.
func (b *runBatch) showPictures(ctx context.Context, saved *savedRun) string {
	if saved == nil || b.picture == term.NoPictures || len(saved.Results) == 0 {
		return ""
	}
	run, err := b.service.Runs.Get(ctx, saved.RequestID)
	if err != nil {
		return ""
	}
	var all strings.Builder
	for _, o := range run.Outputs {
		if o.ThumbURL == nil {
			continue
		}
		picture, err := b.fetchPicture(ctx, *o.ThumbURL)
		if err == nil {
			term.WritePicture(&all, b.picture, picture, term.Width(b.stderr)) //nolint:errcheck // a picture less
		}
	}
	return all.String()
}

// fetchPicture downloads and decodes a small picture.
func (b *runBatch) fetchPicture(ctx context.Context, address string) (image.Image, error) {
	var body bytes.Buffer
	err := b.service.Media.Fetch(ctx, client.RemoteFile{URL: address, Size: -1}, &limitedWriter{to: &body, left: maxPreview}, nil)
	if err != nil {
		return nil, err
	}
	size, _, err := image.DecodeConfig(bytes.NewReader(body.Bytes()))
	if err != nil {
		return nil, err
	}
	const maxPixels = 16 << 20 // a small file can decode to gigabytes
	if size.Width > maxPixels || size.Height > maxPixels || size.Width*size.Height > maxPixels {
		return nil, fmt.Errorf("the preview has %d x %d pixels", size.Width, size.Height)
	}
	picture, _, err := image.Decode(&body)
	return picture, err
}

// limitedWriter refuses more than a number of bytes.
type limitedWriter struct {
	to   io.Writer
	left int
}

// Write implements io.Writer.
func (w *limitedWriter) Write(p []byte) (int, error) {
	w.left -= len(p)
	if w.left < 0 {
		return 0, fmt.Errorf("more than %d bytes", maxPreview)
	}
	return w.to.Write(p)
}
