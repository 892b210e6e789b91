package neural

import "fmt"

// textEncoder makes of a prompt's words what the transformer reads: a row for
// each word, and one for all of them.
type textEncoder struct {
	width, hidden, length, learned int
	project, out, pool             linear
	embedding                      table
	position                       []float32
	blocks                         []textBlock
	gain                           []float32
	turn                           turns

	tokens []int
	work   struct{ vectors, x, y, qkv, hidden, keys, mean []float32 }
}

type textBlock struct {
	attention    attention
	up, down     linear
	gain1, gain2 []float32
}

// encoded is what the transformer knows of a prompt.
type encoded struct{ rows, all []float32 }

func openText(s *store, c config, length int) textEncoder {
	t := textEncoder{
		width:     c.Dt,
		hidden:    c.THid,
		length:    length,
		learned:   c.Learned,
		project:   openLinear(s, "text.proj", vectorSize, c.Dt, true),
		out:       openLinear(s, "text.out", c.Dt, c.D, true),
		pool:      openLinear(s, "text.pool", c.Dt, c.D, true),
		embedding: s.rows("text.emb.weight", c.Learned, c.Dt),
		position:  s.half("text.pos", length, c.Dt),
		gain:      s.half("text.norm.w", c.Dt),
		turn:      newTurns(length, c.Dt/c.THeads/2),
		tokens:    make([]int, length),
	}
	for i := range c.TDepth {
		name := fmt.Sprintf("text.blocks.%d", i)
		t.blocks = append(t.blocks, textBlock{
			openAttention(s, name+".att", c.Dt, c.THeads),
			openLinear(s, name+".mlp.w12", c.Dt, 2*c.THid, false), openLinear(s, name+".mlp.w3", c.THid, c.Dt, false),
			s.half(name+".n1.w", c.Dt), s.half(name+".n2.w", c.Dt),
		})
	}
	return t
}

func (t *textEncoder) lay(a *arena) {
	w := &t.work
	a.lay(&w.vectors, t.length*vectorSize)
	a.lay(&w.x, t.length*t.width)
	a.lay(&w.y, t.length*t.width)
	a.lay(&w.qkv, t.length*apart(3*t.width))
	a.lay(&w.hidden, t.length*apart(t.hidden))
	a.lay(&w.keys, t.width*wide(t.length))
	a.lay(&w.mean, t.width)
}

// encode reads a prompt. Only the leader of the crew calls it.
func (m *Model) encode(prompt string, to *encoded) {
	t := &m.text
	w := &t.work
	n := t.length
	width := t.width
	m.words.encode(prompt, t.tokens)
	for i, token := range t.tokens {
		m.words.vector(w.vectors[i*vectorSize:], token)
	}
	m.apply(&t.project, n, w.vectors, w.x, width)
	for i, token := range t.tokens {
		row := w.x[i*width:][:width]
		if token >= t.learned {
			token = unknown
		}
		t.embedding.add(row, token)
		m.k.Add(row, t.position[i*width:])
	}
	for i := range t.blocks {
		b := &t.blocks[i]
		m.normed(n, width, w.x, b.gain1, m.zeros, w.y)
		m.apply(&b.attention.in, n, w.y, w.qkv, apart(3*width))
		m.attend(&b.attention, n, width, w.qkv, t.turn, w.keys, w.y)
		m.residual(&b.attention.out, n, w.y, width, nil, w.x)
		m.normed(n, width, w.x, b.gain2, m.zeros, w.y)
		m.gated(&b.up, n, w.y, w.hidden)
		m.residual(&b.down, n, w.hidden, apart(t.hidden), nil, w.x)
	}
	m.normed(n, width, w.x, t.gain, m.zeros, w.y)
	clear(w.mean)
	count := 0
	for i, token := range t.tokens {
		if token != nothing {
			count++
			m.k.Add(w.mean, w.y[i*width:])
		}
	}
	for i := range w.mean {
		w.mean[i] /= float32(max(1, count))
	}
	m.apply(&t.out, n, w.y, to.rows, t.out.w.N)
	m.apply(&t.pool, 1, w.mean, to.all, t.pool.w.N)
}
