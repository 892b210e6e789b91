package engine

import "sync"

// Span is the part of a job's progress that belongs to one step of its work.
// The reported progress never decreases, in whatever order steps report, and
// changes below 1 % are skipped. The zero Span reports nothing.
type Span struct {
	bar      *progressBar
	from, to float64
}

// progressBar is the progress of a whole job, which all its spans report to.
type progressBar struct {
	out Sink

	mu     sync.Mutex
	last   float64
	queued bool // the job waits in its server's queue, so the next report must reach the sink
}

// NewSpan returns the span of a whole job, which reports to out.
func NewSpan(out Sink) Span { return Span{bar: &progressBar{out: out, last: -1}, to: 1} }

// SubSpan returns the part of the span between its fractions from and to, which
// are between 0 and 1.
func (s Span) SubSpan(from, to float64) Span {
	width := s.to - s.from
	return Span{s.bar, s.from + from*width, s.from + to*width}
}

// NthOf returns part i of n equal parts of the span. The first part has number
// 0.
func (s Span) NthOf(i, n int) Span { return s.SubSpan(float64(i)/float64(n), float64(i+1)/float64(n)) }

// ReportProgress reports the completed fraction of the span, from 0 to 1.
func (s Span) ReportProgress(fraction float64) {
	if s.bar == nil {
		return
	}
	const step = 0.01
	f := min(s.from+min(max(fraction, 0), 1)*(s.to-s.from), 1)
	s.bar.mu.Lock()
	defer s.bar.mu.Unlock()
	last := s.bar.last
	if f >= last+step || f == 1 && last < 1 || s.bar.queued {
		s.bar.queued = false
		s.bar.last = max(f, last)
		s.bar.out.Progress(s.bar.last)
	}
}

// ReportQueued reports that the job waits in its server's queue, as Sink.Queued
// describes. The next call of ReportProgress ends the wait, even if the
// progress has not changed.
func (s Span) ReportQueued(position int) {
	if s.bar == nil {
		return
	}
	s.bar.mu.Lock()
	defer s.bar.mu.Unlock()
	s.bar.queued = true
	s.bar.out.Queued(position)
}
