package engine

import "sync"

// Span is a stretch of a job's progress that belongs to one piece of its work.
// What it tells only grows, in steps worth telling, whoever tells it and in
// whatever order. The zero Span tells nobody.
type Span struct {
	bar      *bar
	from, to float64
}

// bar is the whole progress of a job.
type bar struct {
	out Sink

	mu   sync.Mutex
	last float64
}

// Whole is the span of a whole job.
func Whole(out Sink) Span { return Span{bar: &bar{out: out, last: -1}, to: 1} }

// Part gives a part of the span.
func (s Span) Part(from, to float64) Span {
	width := s.to - s.from
	return Span{s.bar, s.from + from*width, s.from + to*width}
}

// Of gives the ith of n equal parts.
func (s Span) Of(i, n int) Span { return s.Part(float64(i)/float64(n), float64(i+1)/float64(n)) }

// At tells how much of the span is done, from 0 to 1.
func (s Span) At(fraction float64) {
	if s.bar == nil {
		return
	}
	const step = 0.01
	f := min(s.from+min(max(fraction, 0), 1)*(s.to-s.from), 1)
	s.bar.mu.Lock()
	defer s.bar.mu.Unlock()
	last := s.bar.last
	if f >= last+step || f == 1 && last < 1 {
		s.bar.last = f
		s.bar.out.Progress(f)
	}
}
