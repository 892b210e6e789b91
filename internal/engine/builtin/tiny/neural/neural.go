// Package neural is the picture model: the networks and how they draw.
//
//	prompt ──words──▶ text encoder ──────────────┐
//	seed ───────────▶ noise ──▶ transformer ──▶ picture expected ──▶ a step towards it ──▶ ... ──▶ picture
//	picture ────────▶ upscaler ──▶ picture four times as wide and high
//
// The weights are part of the program, as int8; they are widened a panel at a
// time while they are used. All other memory is taken once, when a model is
// opened. A picture depends on the order, the weights and the kernel, and not
// on how many threads there are.
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

// Model draws, one picture at a time.
type Model struct {
	k       kernel.Kernel
	crew    *crew
	turn    chan struct{} // held by whoever draws
	closed  bool
	words   vocabulary
	core    core
	text    textEncoder
	up      upscaler
	sampler sampler
	memory  int
	zeros   []float32
}

// Open checks the embedded weights and makes a model that computes with k on
// at most workers threads.
func Open(k kernel.Kernel, workers int) (*Model, error) { return open(k, workers, embedded()) }

func open(k kernel.Kernel, workers int, files map[string]string) (*Model, error) {
	s, err := openStore("model.json", "atelier-tiny-2", files)
	if err != nil {
		return nil, err
	}
	u, err := openStore("upscale.json", "atelier-upscale-1", files)
	if err != nil {
		return nil, err
	}
	c := s.index.Config
	if err := fits(c, u.index.Config, s.index.TextLen); err != nil {
		return nil, err
	}
	m := &Model{k: k, turn: make(chan struct{}, 1), sampler: s.index.Sampler}
	if m.sampler.Name != "euler" || m.sampler.Steps < 1 || m.sampler.Steps > mostSteps || m.sampler.Shift <= 0 {
		return nil, fmt.Errorf("weights: made for a sampler that is not known here: %+v", m.sampler)
	}
	if err := errors.Join(s.verify(), u.verify()); err != nil {
		return nil, err
	}
	if m.words, err = openWords(s.file("words.txt"), s.file("words.bin"), c.Learned, s.index.Norm); err != nil {
		return nil, err
	}
	m.text = openText(s, c, s.index.TextLen)
	m.core = openCore(s, k, c, s.index.TextLen)
	m.up = openUpscaler(u, k)
	if err := errors.Join(s.done(), u.done()); err != nil {
		return nil, err
	}
	m.take(max(1, workers))
	return m, nil
}

// widest, deepest and longest are beyond what could be drawn with on a
// processor, and keep a wrong index from taking all memory.
const widest, deepest, longest = 1024, 64, 4096

// fits refuses shapes that the code does not expect.
func fits(c, u config, length int) error {
	within := func(most int, all ...int) bool { return slices.Min(all) >= 1 && slices.Max(all) <= most }
	lanes := func(all ...int) bool {
		return within(widest, all...) && !slices.ContainsFunc(all, func(n int) bool { return n%kernel.Lane != 0 })
	}
	if within(deepest, c.Patch, c.Heads, c.THeads, c.Depth, c.TDepth, c.Ch, u.Layers) && within(widest, c.Res, length) &&
		lanes(c.D, c.Hid, c.Dt, c.THid, c.Bott, c.Cw, c.Patch*c.Patch*c.Ch, u.Channels) &&
		c.Res%c.Patch == 0 && within(longest, c.Res/c.Patch*c.Res/c.Patch) && c.Ch >= 3 &&
		c.D%c.Heads == 0 && lanes(c.D/c.Heads) && c.Dt%c.THeads == 0 && lanes(c.Dt/c.THeads) &&
		c.Learned > unknown && c.Learned <= mostNumbers/widest && c.Theta > 0 &&
		u.Scale == scale && u.Channels >= 3*scale*scale {
		return nil
	}
	return fmt.Errorf("weights: a network of this shape is not known here: %+v %+v", c, u)
}

// take takes the memory that everything works in. Drawing and enlarging share
// one block of it, since they never happen at once.
func (m *Model) take(workers int) {
	c := m.core.config
	tokens := m.core.tokens
	hands := make([]*hand, workers)
	var own int
	for i := range hands {
		h := &hand{
			room: block(m.k.Room()),
			tile: block(tokens * 2 * m.k.Cols()),
			rows: block(attentionRows(m.k)*wide(tokens) + chunk*c.D/c.Heads),
		}
		own += len(h.room) + len(h.tile) + len(h.rows)
		hands[i] = h
	}
	var draw, enlarge arena
	m.core.lay(&draw)
	m.text.lay(&draw)
	m.up.lay(&enlarge)
	shared := block(max(draw.size, enlarge.size))
	draw.use(shared)
	enlarge.use(shared)
	m.zeros = block(max(6*c.D, 2*c.Hid, 3*c.Dt, wide(tokens), c.Patch*c.Patch*c.Ch))
	m.memory = 4 * (own + len(shared) + len(m.zeros))
	m.crew = newCrew(hands)
}

// Memory is how many bytes the model works in, without its weights.
func (m *Model) Memory() int { return m.memory }

// Side is how many pixels wide and high a drawn picture is.
func (m *Model) Side() int { return m.core.config.Res }

// Steps is how many steps the model was made for.
func (m *Model) Steps() int { return m.sampler.Steps }

// Words is how many words of a prompt are read. What comes after them is passed
// over.
func (m *Model) Words() int { return m.core.length }

// Unknown gives the words of a prompt that the model has never seen, and how
// many words it has in all.
func (m *Model) Unknown(prompt string) (unknown []string, words int) {
	return m.words.unknown(prompt)
}

// Guessed gives the words of a prompt that the model knows from texts only: it
// has an idea of what they are near to, and was never shown one.
func (m *Model) Guessed(prompt string) []string { return m.words.guessed(prompt) }

// Close ends the threads. A picture that is being drawn is finished first.
func (m *Model) Close() {
	m.turn <- struct{}{}
	defer m.leave()
	if !m.closed {
		m.closed = true
		m.crew.end()
	}
}

// enter waits for the turn to use the model's memory and threads.
func (m *Model) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.closed {
		m.leave()
		return errors.New("the model is closed")
	}
	return nil
}

func (m *Model) leave() { <-m.turn }

// Order says what to draw.
type Order struct {
	Prompt   string
	Seed     uint64
	Steps    int          // 1..16; the model was made for Steps()
	Guidance float32      // up to 1: none, as distilled; more: away from the empty prompt, for twice the work
	Start    *image.NRGBA // nil: from noise; else an opaque picture of Side()×Side() to start from
	Strength float32      // with Start: 0..1, how much is drawn anew
}

const (
	mostSteps = 16
	// limit is how far beyond black and white an expected picture may go; the
	// model was distilled with the same.
	limit = 1.2
	// stream is the second half of a seed, so that no other use of the number
	// gives the same noise.
	stream = 7
)

func (o Order) check(side int) error {
	switch {
	case o.Steps < 1 || o.Steps > mostSteps:
		return fault.New(fault.Invalid, fmt.Sprintf("from 1 to %d steps are possible", mostSteps)).On("steps")
	case !(o.Guidance >= 0 && o.Guidance <= 100):
		return fault.New(fault.Invalid, "guidance is from 0 to 100").On("guidance")
	case o.Start == nil:
		return nil
	case o.Start.Rect.Dx() != side || o.Start.Rect.Dy() != side:
		return fault.New(fault.Invalid, fmt.Sprintf("the picture to start from has to be %d×%d", side, side)).On("start")
	case !(o.Strength >= 0 && o.Strength <= 1):
		return fault.New(fault.Invalid, "strength is from 0 to 1").On("strength")
	}
	return nil
}

// Draw makes a picture of Side()×Side(). step is called after each step with
// how many are done and the picture expected so far; an error of step, or
// ctx's end, stops it between steps. step must not use the model: it is not its
// turn.
func (m *Model) Draw(ctx context.Context, o Order, step func(done, of int, soFar *image.NRGBA) error) (*image.NRGBA, error) {
	if err := o.check(m.Side()); err != nil {
		return nil, err
	}
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.leave()

	from := 0.0
	if o.Start != nil {
		from = 1 - float64(o.Strength)
	}
	times := m.sampler.times(o.Steps, from)
	w := &m.core.work
	z := w.z
	x := w.x
	noise(z, o.Seed)
	if o.Start != nil {
		blend(z, o.Start, float32(from))
	}
	guided := o.Guidance > 1
	if err := m.crew.run(func() {
		m.core.begin()
		m.encode(o.Prompt, &w.prompt)
		if guided {
			m.encode("", &w.empty)
		}
	}); err != nil {
		return nil, err
	}
	for i, t := range times[:len(times)-1] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		share := float32((times[i+1] - t) / (1 - t))
		if err := m.crew.run(func() {
			m.pass(z, float32(t), &w.prompt, x)
			if guided {
				m.pass(z, float32(t), &w.empty, w.other)
				m.k.Guide(x, w.other, o.Guidance)
			}
			m.k.Toward(z, x, share, limit)
		}); err != nil {
			return nil, err
		}
		if step != nil {
			if err := step(i+1, len(times)-1, m.picture(x)); err != nil {
				return nil, err
			}
		}
	}
	return m.picture(z), nil
}

// times are where steps begin and end, from noise at 0 to a picture at 1: a
// grid that is finer near noise, from the given time on.
func (s sampler) times(steps int, from float64) []float64 {
	times := []float64{from}
	for i := 1; i <= steps; i++ {
		u := float64(i) / float64(steps)
		if t := u / (u + float64(s.Shift*(1-u))); t > from+1e-6 {
			times = append(times, t)
		}
	}
	return times
}

// blend mixes a share of a picture with the noise in z.
func blend(z []float32, p *image.NRGBA, share float32) {
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

// picture makes a picture of numbers from -1 to 1.
func (m *Model) picture(v []float32) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, m.Side(), m.Side()))
	for i := range m.Side() * m.Side() {
		for c := range 3 {
			p.Pix[4*i+c] = uint8(float32((min(max(v[3*i+c], -1), 1)+1)*127.5) + .5)
		}
		p.Pix[4*i+3] = math.MaxUint8
	}
	return p
}

// block takes memory for n numbers, at the start of a cache line.
func block(n int) []float32 { return aligned(make([]float32, n+lineNumbers), n) }

// wide is n, filled up to whole panels.
func wide(n int) int { return (n + kernel.Lane - 1) / kernel.Lane * kernel.Lane }
