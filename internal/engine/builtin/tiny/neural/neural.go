// Package neural is the picture model: its networks and the sampler.
//
//	prompt ──words──▶ text encoder ──────────────┐
//	seed ───────────▶ noise ──▶ transformer ──▶ predicted picture ──▶ a step towards it ──▶ ... ──▶ picture
//	picture ────────▶ upscaler ──▶ picture four times as wide and high
//
// The weights are embedded in the program as int8 and converted panel by panel
// while they are used. All other memory is allocated once, when a model is
// opened. A picture depends on its Order, the weights and the kernel, but not
// on the number of threads.
package neural

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"slices"

	"atelier/internal/base/fault"
	"atelier/internal/engine/builtin/tiny/kernel"
)

// Model draws and enlarges pictures, one at a time.
type Model struct {
	k           kernel.Kernel
	pool        *workerPool
	turn        chan struct{} // contains a value while the model is in use
	closed      bool
	words       vocabulary
	transformer transformer
	text        textEncoder
	upscaler    upscaler
	sampler     sampler
	memory      int
	zeros       []float32
}

// Open checks the embedded weights and returns a model that computes with the
// kernel k on at most the given number of threads.
func Open(k kernel.Kernel, workers int) (*Model, error) {
	return openFiles(k, workers, embeddedFiles())
}

func openFiles(k kernel.Kernel, workers int, files map[string]string) (*Model, error) {
	s, err := openStore("model.json", "atelier-tiny-2", files)
	if err != nil {
		return nil, err
	}
	u, err := openStore("upscale.json", "atelier-upscale-1", files)
	if err != nil {
		return nil, err
	}
	c := s.index.Config
	if err := checkShape(c, u.index.Config, s.index.TextLen); err != nil {
		return nil, err
	}
	m := &Model{k: k, turn: make(chan struct{}, 1), sampler: s.index.Sampler}
	if m.sampler.Name != "euler" || m.sampler.Steps < 1 || m.sampler.Steps > maxSteps || m.sampler.Shift <= 0 {
		return nil, fmt.Errorf("weights: unknown sampler: %+v", m.sampler)
	}
	if err := errors.Join(s.verifyHashes(), u.verifyHashes()); err != nil {
		return nil, err
	}
	if m.words, err = openWords(s.fileData("words.txt"), s.fileData("words.bin"), c.Learned, s.index.Norm); err != nil {
		return nil, err
	}
	m.text = openText(s, c, s.index.TextLen)
	m.transformer = openTransformer(s, k, c, s.index.TextLen)
	m.upscaler = openUpscaler(u, k)
	if err := errors.Join(s.checkComplete(), u.checkComplete()); err != nil {
		return nil, err
	}
	m.allocateMemory(max(1, workers))
	return m, nil
}

// Limits far above the dimensions of real networks. They keep a damaged index
// from causing huge allocations.
const maxWidth, maxDepth, maxLength = 1024, 64, 4096

// checkShape returns an error if the code does not support the dimensions of
// the networks. c is for the picture model, u for the upscaler.
func checkShape(c, u config, length int) error {
	within := func(most int, all ...int) bool { return slices.Min(all) >= 1 && slices.Max(all) <= most }
	lanes := func(all ...int) bool {
		return within(maxWidth, all...) && !slices.ContainsFunc(all, func(n int) bool { return n%kernel.Lane != 0 })
	}
	if within(maxDepth, c.Patch, c.Heads, c.THeads, c.Depth, c.TDepth, c.Ch, u.Layers) && within(maxWidth, c.Res, length) &&
		lanes(c.D, c.Hid, c.Dt, c.THid, c.Bott, c.Cw, c.Patch*c.Patch*c.Ch, u.Channels) &&
		c.Res%c.Patch == 0 && within(maxLength, c.Res/c.Patch*c.Res/c.Patch) && c.Ch >= 3 &&
		c.D%c.Heads == 0 && lanes(c.D/c.Heads) && c.Dt%c.THeads == 0 && lanes(c.Dt/c.THeads) &&
		c.Learned > unknownWord && c.Learned <= maxTensorSize/maxWidth && c.Theta > 0 &&
		u.Scale == upscaleFactor && u.Channels >= 3*upscaleFactor*upscaleFactor {
		return nil
	}
	return fmt.Errorf("weights: unsupported network shape: %+v %+v", c, u)
}

// allocateMemory allocates all working memory. Drawing and enlarging use the
// same memory, because they never run at the same time.
func (m *Model) allocateMemory(workers int) {
	c := m.transformer.config
	tokens := m.transformer.tokens
	hands := make([]*worker, workers)
	var own int
	for i := range hands {
		h := &worker{
			scratch: newAligned(m.k.ScratchSize()),
			tile:    newAligned(tokens * 2 * m.k.TileCols()),
			rows:    newAligned(attentionRows(m.k)*padToPanel(tokens) + chunkRows*c.D/c.Heads),
		}
		own += len(h.scratch) + len(h.tile) + len(h.rows)
		hands[i] = h
	}
	var draw, enlarge arena
	m.transformer.reserveMemory(&draw)
	m.text.reserveMemory(&draw)
	m.upscaler.reserveMemory(&enlarge)
	shared := newAligned(max(draw.size, enlarge.size))
	draw.assignMemory(shared)
	enlarge.assignMemory(shared)
	m.zeros = newAligned(max(6*c.D, 2*c.Hid, 3*c.Dt, padToPanel(tokens), c.Patch*c.Patch*c.Ch))
	m.memory = 4 * (own + len(shared) + len(m.zeros))
	m.pool = newWorkerPool(hands)
}

// MemoryBytes returns the size of the model's working memory in bytes, without
// its weights.
func (m *Model) MemoryBytes() int { return m.memory }

// PictureSide returns the width and height of a drawn picture in pixels.
func (m *Model) PictureSide() int { return m.transformer.config.Res }

// DefaultSteps returns the number of steps that the model was trained for.
func (m *Model) DefaultSteps() int { return m.sampler.Steps }

// MaxWords returns the largest number of words of a prompt that are read.
// Further words are ignored.
func (m *Model) MaxWords() int { return m.transformer.length }

// UnknownWords returns the words of a prompt that the model does not know, each
// once, and the number of words of the prompt.
func (m *Model) UnknownWords(prompt string) (unknown []string, words int) {
	return m.words.unknownWords(prompt)
}

// GuessedWords returns the words of a prompt that the model knows only from
// texts: it can relate them to words of similar meaning, but has seen no
// pictures of them.
func (m *Model) GuessedWords(prompt string) []string { return m.words.guessedWords(prompt) }

// Close waits until the current picture is done and stops the threads.
func (m *Model) Close() {
	m.turn <- struct{}{}
	defer m.releaseTurn()
	if !m.closed {
		m.closed = true
		m.pool.stopWorkers()
	}
}

// acquireTurn waits for exclusive use of the model's memory and threads.
func (m *Model) acquireTurn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.closed {
		m.releaseTurn()
		return errors.New("the model is closed")
	}
	return nil
}

func (m *Model) releaseTurn() { <-m.turn }

// Order describes a picture to draw.
type Order struct {
	Prompt   string
	Seed     uint64
	Steps    int          // from 1 to 16; DefaultSteps() is the number that the model was trained for
	Guidance float32      // has no effect up to 1; above 1 it moves the picture away from the picture for an empty prompt, and takes twice the time
	Start    *image.NRGBA // opaque picture of PictureSide()×PictureSide() pixels to start from; nil to start from noise
	Strength float32      // if Start is set, the extent to which the picture is redrawn, from 0 to 1
}

const (
	maxSteps = 16
	// limit is the largest absolute value in a predicted picture, where black
	// is -1 and white is 1. The model was distilled with the same limit.
	limit = 1.2
	// seedStream is the second half of the random generator's seed. It makes
	// the noise independent of other uses of the same seed.
	seedStream = 7
)

func (o Order) validate(side int) error {
	switch {
	case o.Steps < 1 || o.Steps > maxSteps:
		return fault.New(fault.Invalid, fmt.Sprintf("The number of steps must be 1 to %d.", maxSteps)).On("steps")
	case !(o.Guidance >= 0 && o.Guidance <= 100):
		return fault.New(fault.Invalid, "The guidance must be 0 to 100.").On("guidance")
	case o.Start == nil:
		return nil
	case o.Start.Rect.Dx() != side || o.Start.Rect.Dy() != side:
		return fault.New(fault.Invalid, fmt.Sprintf("The picture to start from must have %d×%d pixels.", side, side)).On("start")
	case !(o.Strength >= 0 && o.Strength <= 1):
		return fault.New(fault.Invalid, "The strength must be 0 to 1.").On("strength")
	}
	return nil
}

// DrawPicture draws a picture of PictureSide()×PictureSide() pixels. After each
// step it calls step with the number of steps done, their total and the
// predicted picture. Drawing stops between steps if step returns an error or
// ctx is cancelled. step must not use the model.
func (m *Model) DrawPicture(ctx context.Context, o Order, step func(done, of int, soFar *image.NRGBA) error) (*image.NRGBA, error) {
	if err := o.validate(m.PictureSide()); err != nil {
		return nil, err
	}
	if err := m.acquireTurn(ctx); err != nil {
		return nil, err
	}
	defer m.releaseTurn()

	from := 0.0
	if o.Start != nil {
		from = 1 - float64(o.Strength)
	}
	times := m.sampler.stepTimes(o.Steps, from)
	w := &m.transformer.work
	z := w.z
	x := w.x
	fillNoise(z, o.Seed)
	if o.Start != nil {
		blendNoise(z, o.Start, float32(from))
	}
	guided := o.Guidance > 1
	if err := m.pool.runTask(func() {
		m.transformer.clearEdges()
		m.encodePrompt(o.Prompt, &w.prompt)
		if guided {
			m.encodePrompt("", &w.empty)
		}
	}); err != nil {
		return nil, err
	}
	for i, t := range times[:len(times)-1] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		share := float32((times[i+1] - t) / (1 - t))
		if err := m.pool.runTask(func() {
			m.predictPicture(z, float32(t), &w.prompt, x)
			if guided {
				m.predictPicture(z, float32(t), &w.empty, w.other)
				m.k.ApplyGuidance(x, w.other, o.Guidance)
			}
			m.k.MoveToward(z, x, share, limit)
		}); err != nil {
			return nil, err
		}
		if step != nil {
			if err := step(i+1, len(times)-1, toPicture(m, x)); err != nil {
				return nil, err
			}
		}
	}
	return toPicture(m, z), nil
}

// stepTimes returns the times of the steps, from 0 (noise) to 1 (picture). The
// first time is the parameter from, and the times are closer together near 0.
func (s sampler) stepTimes(steps int, from float64) []float64 {
	times := []float64{from}
	for i := 1; i <= steps; i++ {
		u := float64(i) / float64(steps)
		if t := u / (u + float64(s.Shift*(1-u))); t > from+1e-6 {
			times = append(times, t)
		}
	}
	return times
}

// blendNoise blends the noise in z with a picture. share is the fraction of the
// picture.
func blendNoise(z []float32, p *image.NRGBA, share float32) {
	side := p.Rect.Dx()
	for y := range side {
		row := p.Pix[y*p.Stride:]
		for x := range side {
			for c := range 3 {
				v := float32(row[4*x+c])/127.5 - 1
				i := (y*side+x)*3 + c
				z[i] = float32(share*v) + float32((1-share)*z[i])
			}
		}
	}
}

// toPicture converts numbers from -1 (black) to 1 (white) to an opaque picture.
func toPicture(m *Model, v []float32) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, m.PictureSide(), m.PictureSide()))
	for i := range m.PictureSide() * m.PictureSide() {
		for c := range 3 {
			p.Pix[4*i+c] = uint8(float32((min(max(v[3*i+c], -1), 1)+1)*127.5) + .5)
		}
		p.Pix[4*i+3] = math.MaxUint8
	}
	return p
}

// newAligned allocates n numbers that begin at the start of a cache line.
func newAligned(n int) []float32 { return alignSlice(make([]float32, n+lineNumbers), n) }

// padToPanel rounds a number of columns up to whole panels.
func padToPanel(n int) int { return (n + kernel.Lane - 1) / kernel.Lane * kernel.Lane }
