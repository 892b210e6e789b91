package neural

import "fmt"

// textEncoder encodes a prompt for the transformer: as a row of numbers for
// each word, and one row for the whole prompt.
type textEncoder struct {
	width, hidden, length, learned int
	project, out, pool             linearLayer
	embedding                      rowTable
	position                       []float32
	blocks                         []textBlock
	gain                           []float32
	turn                           rotations

	tokens []int
	work   struct{ vectors, x, y, qkv, hidden, keys, mean []float32 }
}

type textBlock struct {
	attention    attention
	up, down     linearLayer
	gain1, gain2 []float32
}

// encodedPrompt is the transformer's input for a prompt: rows has a row for
// each word, all is the row for the whole prompt.
type encodedPrompt struct{ rows, all []float32 }

func openText(s *tensorStore, c config, length int) textEncoder {
	t := textEncoder{
		width:     c.Dt,
		hidden:    c.THid,
		length:    length,
		learned:   c.Learned,
		project:   openLinear(s, "text.proj", vectorSize, c.Dt, true),
		out:       openLinear(s, "text.out", c.Dt, c.D, true),
		pool:      openLinear(s, "text.pool", c.Dt, c.D, true),
		embedding: s.readTable("text.emb.weight", c.Learned, c.Dt),
		position:  s.readHalf("text.pos", length, c.Dt),
		gain:      s.readHalf("text.norm.w", c.Dt),
		turn:      newRotations(length, c.Dt/c.THeads/2),
		tokens:    make([]int, length),
	}
	for i := range c.TDepth {
		name := fmt.Sprintf("text.blocks.%d", i)
		t.blocks = append(t.blocks, textBlock{
			openAttention(s, name+".att", c.Dt, c.THeads),
			openLinear(s, name+".mlp.w12", c.Dt, 2*c.THid, false), openLinear(s, name+".mlp.w3", c.THid, c.Dt, false),
			s.readHalf(name+".n1.w", c.Dt), s.readHalf(name+".n2.w", c.Dt),
		})
	}
	return t
}

func (t *textEncoder) reserveMemory(a *arena) {
	w := &t.work
	a.reserveSlice(&w.vectors, t.length*vectorSize)
	a.reserveSlice(&w.x, t.length*t.width)
	a.reserveSlice(&w.y, t.length*t.width)
	a.reserveSlice(&w.qkv, t.length*rowDistance(3*t.width))
	a.reserveSlice(&w.hidden, t.length*rowDistance(t.hidden))
	a.reserveSlice(&w.keys, t.width*padToPanel(t.length))
	a.reserveSlice(&w.mean, t.width)
}

// encodePrompt encodes a prompt into the given buffers. It must be called by
// the leading worker.
func (m *Model) encodePrompt(prompt string, to *encodedPrompt) {
	t := &m.text
	w := &t.work
	n := t.length
	width := t.width
	m.words.encodeWords(prompt, t.tokens)
	for i, token := range t.tokens {
		m.words.writeVector(w.vectors[i*vectorSize:], token)
	}
	m.applyLinear(&t.project, n, w.vectors, w.x, width)
	for i, token := range t.tokens {
		row := w.x[i*width:][:width]
		if token >= t.learned {
			token = unknownWord
		}
		t.embedding.addRow(row, token)
		m.k.AddRow(row, t.position[i*width:])
	}
	for i := range t.blocks {
		b := &t.blocks[i]
		m.normalizeRows(n, width, w.x, b.gain1, m.zeros, w.y)
		m.applyLinear(&b.attention.in, n, w.y, w.qkv, rowDistance(3*width))
		m.applyAttention(&b.attention, n, width, w.qkv, t.turn, w.keys, w.y)
		m.addLinear(&b.attention.out, n, w.y, width, nil, w.x)
		m.normalizeRows(n, width, w.x, b.gain2, m.zeros, w.y)
		m.applyGated(&b.up, n, w.y, w.hidden)
		m.addLinear(&b.down, n, w.hidden, rowDistance(t.hidden), nil, w.x)
	}
	m.normalizeRows(n, width, w.x, t.gain, m.zeros, w.y)
	clear(w.mean)
	count := 0
	for i, token := range t.tokens {
		if token != noWord {
			count++
			m.k.AddRow(w.mean, w.y[i*width:])
		}
	}
	for i := range w.mean {
		w.mean[i] /= float32(max(1, count))
	}
	m.applyLinear(&t.out, n, w.y, to.rows, t.out.w.N)
	m.applyLinear(&t.pool, 1, w.mean, to.all, t.pool.w.N)
}
