package engine

import "sync"

// Span is a part of a job's progress that belongs to one piece of its work. The reported progress
// never decreases, in any order of reports, and small steps are skipped. The zero Span reports
// nothing.
type Span struct {
	bar      *progressBar
	from, to float64
}

// progressBar is the progress of a whole job.
type progressBar struct {
	out Sink

	mu   sync.Mutex
	last float64
}

// NewSpan returns the span of a whole job.
func NewSpan(out Sink) Span { return Span{bar: &progressBar{out: out, last: -1}, to: 1} }

// SubSpan returns a part of the span.
func (s Span) SubSpan(from, to float64) Span {
	width := s.to - s.from
	return Span{s.bar, s.from + from*width, s.from + to*width}
}

// NthOf returns the ith of n equal parts.
func (s Span) NthOf(i, n int) Span { return s.SubSpan(float64(i)/float64(n), float64(i+1)/float64(n)) }

// ReportProgress reports the completed share of the span, from 0 to 1.
func (s Span) ReportProgress(fraction float64) {
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
