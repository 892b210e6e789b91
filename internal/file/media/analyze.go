package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/lowpriority"
	"atelier/internal/base/memory"
)

// Limits are what a file may be at most. A field of zero stands for the value
// in its comment.
type Limits struct {
	Pixels   int64         // of a picture or of a video's frame: 50 million
	Frames   int           // of an animation: 600
	Duration time.Duration // of sound and video: 10 minutes
	// Memory is what decodings take their memory from, together with whoever else
	// has the budget: one of 512 MiB of their own.
	Memory *memory.Budget
}

func (l Limits) withDefaults() Limits {
	fill := func(v *int64, standard int64) {
		if *v <= 0 {
			*v = standard
		}
	}
	fill(&l.Pixels, 50e6)
	fill((*int64)(&l.Duration), int64(10*time.Minute))
	if l.Frames <= 0 {
		l.Frames = 600
	}
	if l.Memory == nil {
		l.Memory = memory.NewBudget(512 << 20)
	}
	return l
}

// Lab examines files. It may be used by many at once; a process has one, or
// its memory is not bounded.
type Lab struct {
	limits Limits
}

// NewLab makes a lab with these limits.
func NewLab(l Limits) *Lab {
	return &Lab{limits: l.withDefaults()}
}

// Turn says whose file it is, and how long it may wait to be decoded.
type Turn struct {
	Owner string        // person, or address where nobody is known: owners take turns
	Wait  time.Duration // 0: until the context ends
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
// and duration are held against the limits before anything is decoded. Where
// its turn does not come in time, the failure is Unavailable.
func (l *Lab) Examine(ctx context.Context, t Turn, f Format, src io.ReaderAt, size int64) (Facts, error) {
	return l.analyzeSource(ctx, t, f, newSource(ctx, src, size), true)
}

// Measure is Examine without decoding pictures, which takes far longer than all
// else: it finds what the structure of a file tells, refuses what is above a limit,
// and makes no thumbnail. Damage inside of compressed pixels is left to whoever
// decodes them.
func (l *Lab) Measure(ctx context.Context, t Turn, f Format, src io.ReaderAt, size int64) (Facts, error) {
	return l.analyzeSource(ctx, t, f, newSource(ctx, src, size), false)
}

func (l *Lab) analyzeSource(ctx context.Context, t Turn, f Format, s *source, decodes bool) (Facts, error) {
	facts, err := l.analyzeFormat(ctx, t, f, s, decodes)
	if s.err != nil { // what a decoder makes of it says less
		err = s.err
	}
	if err != nil {
		return Facts{}, fmt.Errorf("examine a file: %w", err)
	}
	return facts, nil
}

func (l *Lab) analyzeFormat(ctx context.Context, t Turn, f Format, s *source, decodes bool) (Facts, error) {
	facts := Facts{Format: f}
	if f.Type == Text {
		return facts, checkText(s)
	}
	head, err := s.peekBytes(0, int(min(s.size, HeadLength)))
	if err != nil {
		return facts, readError(f.Type, err)
	}
	if found, ok := Sniff(head); !ok || found.MimeType != f.MimeType {
		return facts, damagedError(f.Type, "it is no "+f.MimeType)
	}
	switch f.MimeType {
	case mp4Format.MimeType, movFormat.MimeType:
		return l.measureVideo(facts, s, measureMP4)
	case webmFormat.MimeType:
		return l.measureVideo(facts, s, measureWebM)
	case mp3Format.MimeType:
		return l.measureAudio(facts, s, mp3Duration)
	case wavFormat.MimeType:
		return l.measureAudio(facts, s, wavDuration)
	case flacFormat.MimeType:
		return l.measureAudio(facts, s, flacDuration)
	case oggFormat.MimeType:
		return l.measureAudio(facts, s, oggDuration)
	case glbFormat.MimeType:
		return facts, l.checkModel(ctx, t, s)
	}
	return l.analyzePicture(ctx, t, facts, s, decodes)
}

func (l *Lab) measureVideo(facts Facts, s *source, measure func(*source) (videoInfo, error)) (Facts, error) {
	m, err := measure(s)
	if err != nil {
		return facts, err
	}
	facts.Width = m.width
	facts.Height = m.height
	facts.Duration = m.duration
	if err := l.checkPixels(Video, m.width, m.height); err != nil {
		return facts, err
	}
	return facts, l.checkDuration(Video, m.duration)
}

func (l *Lab) measureAudio(facts Facts, s *source, measure func(*source) (time.Duration, error)) (Facts, error) {
	var err error
	if facts.Duration, err = measure(s); err != nil {
		return facts, err
	}
	return facts, l.checkDuration(Audio, facts.Duration)
}

func (l *Lab) checkModel(ctx context.Context, t Turn, s *source) error {
	at, err := findScene(s)
	if err != nil {
		return err
	}
	need := sceneMemory * (at.to - at.from)
	return l.runWithMemory(ctx, t, Model, need, memoryLane(need, 0), func() error { return checkScene(s, at) })
}

// largePixels is from where on a picture counts as large, however few bytes each
// pixel takes: decoding it takes long.
const largePixels = 16_000_000

func memoryLane(bytes, pixels int64) memory.Lane {
	if bytes > memory.LargeBytes || pixels > largePixels {
		return memory.Large
	}
	return memory.Quick
}

// retryAfter is when those are told to come back whose file could not be
// decoded in time.
const retryAfter = 10 * time.Second

// runWithMemory does work that needs memory when its turn has come.
func (l *Lab) runWithMemory(ctx context.Context, t Turn, kind Type, bytes int64, lane memory.Lane, work func() error) error {
	if lane == memory.Large {
		large := work
		work = func() (err error) {
			lowpriority.Do(func() { err = large() })
			debug.FreeOSMemory() // before the memory counts as free, it has to be
			return err
		}
	}
	if memory.Covers(ctx, bytes) {
		return work()
	}
	waiting := ctx
	if t.Wait > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, t.Wait)
		defer cancel()
	}
	hold, err := l.limits.Memory.Acquire(waiting, memory.Request{Owner: t.Owner, Bytes: bytes, Lane: lane})
	switch {
	case err == nil:
	case errors.Is(err, memory.ErrNeverFits):
		return l.memoryError(kind, bytes, lane)
	case ctx.Err() != nil:
		return fmt.Errorf("wait for memory: %w", ctx.Err())
	default:
		return fault.New(fault.Unavailable, "Too many files are being read just now. Try again shortly.").After(retryAfter).Because(err)
	}
	defer hold.Release()
	return work()
}

// memoryError is the fault for a file that takes more memory than the lane ever has.
func (l *Lab) memoryError(kind Type, bytes int64, lane memory.Lane) error {
	const mega = 1 << 20
	most := l.limits.Memory.Most(lane)
	text := fmt.Sprintf("The %s is too large: reading it takes %d MB of memory, and this server has %d MB for that.", kind.displayName(), bytes/mega+1, most/mega)
	return fault.New(fault.Invalid, text).With("limit_memory_bytes", most)
}

func (l *Lab) checkPixels(t Type, width, height int) error {
	if int64(width) > l.limits.Pixels/int64(max(height, 1)) {
		millions := strconv.FormatFloat(float64(l.limits.Pixels)/1e6, 'f', -1, 64)
		return fault.New(fault.Invalid, "The "+t.displayName()+" has more than "+millions+" megapixels.").With("limit_pixels", l.limits.Pixels)
	}
	return nil
}

func (l *Lab) checkDuration(t Type, d time.Duration) error {
	if d > l.limits.Duration {
		most := l.limits.Duration.String()
		if l.limits.Duration%time.Minute == 0 {
			most = fmt.Sprintf("%d minutes", int(l.limits.Duration.Minutes()))
		}
		return fault.New(fault.Invalid, "The "+t.displayName()+" is longer than "+most+".").With("limit_seconds", l.limits.Duration.Seconds())
	}
	return nil
}
