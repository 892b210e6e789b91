package media

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"

	"atelier/internal/fault"
)

// Limits are what a file may be at most. A field of zero stands for the value
// in its comment.
type Limits struct {
	Pixels   int64         // of a picture or of a video's frame: 50 million
	Frames   int           // of an animation: 600
	Duration time.Duration // of sound and video: 10 minutes
	// DecodeBytes is the memory that all decodings of this process may use
	// together: 128 MiB. One that needs more than all of it runs alone.
	DecodeBytes int64
}

func (l Limits) filled() Limits {
	fill := func(v *int64, standard int64) {
		if *v <= 0 {
			*v = standard
		}
	}
	fill(&l.Pixels, 50e6)
	fill(&l.DecodeBytes, 128<<20)
	fill((*int64)(&l.Duration), int64(10*time.Minute))
	if l.Frames <= 0 {
		l.Frames = 600
	}
	return l
}

// Lab examines files. It may be used by many at once; a process has one, or
// its memory is not bounded.
type Lab struct {
	limits Limits
	memory *semaphore.Weighted
}

// NewLab makes a lab with these limits.
func NewLab(l Limits) *Lab {
	l = l.filled()
	return &Lab{limits: l, memory: semaphore.NewWeighted(l.DecodeBytes)}
}

// Facts is what Examine found out.
type Facts struct {
	Format
	Width, Height int           // as it is shown; 0: has none
	Duration      time.Duration // 0: has none, or does not say
	Blurhash      string        // "": none
	Thumb         []byte        // nil: none
	ThumbExt      string        // "jpg" or "png"
}

// Examine takes a stored file apart, which was cleaned before. Pixels, frames
// and duration are held against the limits before anything is decoded. It
// waits for memory until ctx ends.
func (l *Lab) Examine(ctx context.Context, f Format, src io.ReaderAt, size int64) (Facts, error) {
	s := newSource(ctx, src, size)
	facts, err := l.examine(ctx, f, s)
	if s.err != nil { // what a decoder makes of it says less
		err = s.err
	}
	if err != nil {
		return Facts{}, fmt.Errorf("examine a file: %w", err)
	}
	return facts, nil
}

func (l *Lab) examine(ctx context.Context, f Format, s *source) (Facts, error) {
	facts := Facts{Format: f}
	if f.Type == Text {
		return facts, checkText(s)
	}
	head, err := s.peek(0, int(min(s.size, HeadLength)))
	if err != nil {
		return facts, early(f.Type, err)
	}
	if found, ok := Sniff(head); !ok || found.MimeType != f.MimeType {
		return facts, broken(f.Type, "it is no "+f.MimeType)
	}
	switch f.MimeType {
	case mp4Format.MimeType, movFormat.MimeType:
		return l.film(facts, s, isoFilm)
	case webmFormat.MimeType:
		return l.film(facts, s, webmFilm)
	case mp3Format.MimeType:
		return l.sound(facts, s, mp3Duration)
	case wavFormat.MimeType:
		return l.sound(facts, s, wavDuration)
	case flacFormat.MimeType:
		return l.sound(facts, s, flacDuration)
	case oggFormat.MimeType:
		return l.sound(facts, s, oggDuration)
	case glbFormat.MimeType:
		return facts, l.model(ctx, s)
	}
	return l.picture(ctx, facts, s)
}

func (l *Lab) film(facts Facts, s *source, measure func(*source) (film, error)) (Facts, error) {
	m, err := measure(s)
	if err != nil {
		return facts, err
	}
	facts.Width, facts.Height, facts.Duration = m.width, m.height, m.duration
	if err := l.checkPixels(Video, m.width, m.height); err != nil {
		return facts, err
	}
	return facts, l.checkDuration(Video, m.duration)
}

func (l *Lab) sound(facts Facts, s *source, measure func(*source) (time.Duration, error)) (Facts, error) {
	var err error
	if facts.Duration, err = measure(s); err != nil {
		return facts, err
	}
	return facts, l.checkDuration(Audio, facts.Duration)
}

func (l *Lab) model(ctx context.Context, s *source) error {
	at, err := scene(s)
	if err != nil {
		return err
	}
	return l.within(ctx, sceneMemory*(at.to-at.from), func() error { return checkScene(s, at) })
}

// within does work that needs memory when there is enough of it.
func (l *Lab) within(ctx context.Context, bytes int64, work func() error) error {
	bytes = min(max(bytes, 1), l.limits.DecodeBytes)
	if err := l.memory.Acquire(ctx, bytes); err != nil {
		return fmt.Errorf("wait for memory: %w", err)
	}
	defer l.memory.Release(bytes)
	return work()
}

func (l *Lab) checkPixels(t Type, width, height int) error {
	if int64(width) > l.limits.Pixels/int64(max(height, 1)) {
		millions := strconv.FormatFloat(float64(l.limits.Pixels)/1e6, 'f', -1, 64)
		return fault.New(fault.Invalid, "The "+t.noun()+" has more than "+millions+" megapixels.")
	}
	return nil
}

func (l *Lab) checkDuration(t Type, d time.Duration) error {
	if d > l.limits.Duration {
		most := l.limits.Duration.String()
		if l.limits.Duration%time.Minute == 0 {
			most = fmt.Sprintf("%d minutes", int(l.limits.Duration.Minutes()))
		}
		return fault.New(fault.Invalid, "The "+t.noun()+" is longer than "+most+".")
	}
	return nil
}
