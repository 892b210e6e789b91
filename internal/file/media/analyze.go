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

// Limits are the maximum values for a media file. A zero field means the
// default in its comment.
type Limits struct {
	Pixels   int64         // pixels of a picture or of a video frame; default: 50 million
	Frames   int           // frames of an animation; default: 600
	Duration time.Duration // duration of audio and video; default: 10 minutes
	// Memory is the memory budget for decoding. Other parts of the program may
	// use the same budget. Default: a separate budget of 512 MiB.
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

// Analyzer determines the properties of media files. It is safe for concurrent
// use. Use one per process; otherwise the total memory for decoding is not
// limited.
type Analyzer struct {
	limits Limits
}

// NewAnalyzer returns an analyzer with the given limits.
func NewAnalyzer(l Limits) *Analyzer {
	return &Analyzer{limits: l.withDefaults()}
}

// DecodeRequest is the owner of a file to decode and the maximum time to wait
// for memory.
type DecodeRequest struct {
	Owner   string        // a person's ID, or the IP address of an unknown client; waiting owners get memory in turn
	Timeout time.Duration // maximum wait; 0 means until the context is cancelled
}

// Facts are the properties of a media file.
type Facts struct {
	Format
	Width, Height int           // pixels, as displayed after rotation; 0 if the file has none
	Duration      time.Duration // 0 if the file has no duration or does not state it
	Blurhash      string        // empty if the file has no picture
	Thumb         []byte        // the thumbnail file; nil if there is none
	ThumbExt      string        // "jpg" or "png"
}

// AnalyzeFile determines the properties of a stored file, which Clean must
// have processed. It checks the pixels, frames and duration before it decodes
// anything, and makes a thumbnail. If no memory becomes free in time, the
// error has the code Unavailable.
func (l *Analyzer) AnalyzeFile(ctx context.Context, t DecodeRequest, f Format, src io.ReaderAt, size int64) (Facts, error) {
	return l.analyzeSource(ctx, t, f, newSource(ctx, src, size), true)
}

// MeasureFile is like AnalyzeFile, but does not decode the file, which would
// take most of the time: it parses the structure of a file and checks the
// limits, but makes no thumbnail. It does not find damage in compressed pixels.
func (l *Analyzer) MeasureFile(ctx context.Context, t DecodeRequest, f Format, src io.ReaderAt, size int64) (Facts, error) {
	return l.analyzeSource(ctx, t, f, newSource(ctx, src, size), false)
}

func (l *Analyzer) analyzeSource(ctx context.Context, t DecodeRequest, f Format, s *source, decodes bool) (Facts, error) {
	facts, err := l.analyzeFormat(ctx, t, f, s, decodes)
	if s.err != nil { // the original error; the decoder wraps it with less detail
		err = s.err
	}
	if err != nil {
		return Facts{}, fmt.Errorf("analyze file: %w", err)
	}
	return facts, nil
}

func (l *Analyzer) analyzeFormat(ctx context.Context, t DecodeRequest, f Format, s *source, decodes bool) (Facts, error) {
	facts := Facts{Format: f}
	if f.Type == Text {
		return facts, checkText(s)
	}

	head, err := s.peekBytes(0, int(min(s.size, HeadLength)))
	if err != nil {
		return facts, readError(f.Type, err)
	}
	if found, ok := Sniff(head); !ok || found.MimeType != f.MimeType {
		return facts, damagedError(f.Type, "the content does not match the media type "+f.MimeType)
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

func (l *Analyzer) measureVideo(facts Facts, s *source, measure func(*source) (videoInfo, error)) (Facts, error) {
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

func (l *Analyzer) measureAudio(facts Facts, s *source, measure func(*source) (time.Duration, error)) (Facts, error) {
	var err error
	if facts.Duration, err = measure(s); err != nil {
		return facts, err
	}
	return facts, l.checkDuration(Audio, facts.Duration)
}

func (l *Analyzer) checkModel(ctx context.Context, t DecodeRequest, s *source) error {
	at, err := findScene(s)
	if err != nil {
		return err
	}

	need := sceneMemory * (at.to - at.from)
	return l.runWithMemory(ctx, t, Model, need, memoryLane(need, 0), func() error { return checkScene(s, at) })
}

// largePixels is the number of pixels above which a picture counts as large,
// even with few bytes per pixel, because decoding it takes long.
const largePixels = 16_000_000

func memoryLane(bytes, pixels int64) memory.Lane {
	if bytes > memory.LargeBytes || pixels > largePixels {
		return memory.Large
	}
	return memory.Quick
}

// retryAfter is the Retry-After value of the error if no memory became free in
// time.
const retryAfter = 10 * time.Second

// runWithMemory waits until the given number of bytes of memory is free, and
// then calls work. It calls work at once if ctx already has a sufficient
// reservation. lane is the class of requests whose share of the memory is used.
func (l *Analyzer) runWithMemory(ctx context.Context, t DecodeRequest, kind Type, bytes int64, lane memory.Lane, work func() error) error {
	if lane == memory.Large {
		large := work
		work = func() (err error) {
			lowpriority.Do(func() { err = large() })
			debug.FreeOSMemory() // returns the memory to the system before it counts as free
			return err
		}
	}
	if memory.Covers(ctx, bytes) {
		return work()
	}

	waiting := ctx
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, t.Timeout)
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
		return fault.New(fault.Unavailable, "Too many files are being processed at the moment. Try again shortly.").After(retryAfter).Because(err)
	}

	defer hold.Release()
	return work()
}

// memoryError returns the error for a file that needs more memory than one
// request of its class (lane) can reserve.
func (l *Analyzer) memoryError(kind Type, bytes int64, lane memory.Lane) error {
	const mega = 1 << 20
	maxBytes := l.limits.Memory.MaxBytes(lane)
	text := fmt.Sprintf("The %s is too large: processing it needs %d MB of memory, and this server allows %d MB.", kind.displayName(), bytes/mega+1, maxBytes/mega)
	return fault.New(fault.Invalid, text).With("limit_memory_bytes", maxBytes)
}

func (l *Analyzer) checkPixels(t Type, width, height int) error {
	if int64(width) > l.limits.Pixels/int64(max(height, 1)) {
		millions := strconv.FormatFloat(float64(l.limits.Pixels)/1e6, 'f', -1, 64)
		return fault.New(fault.Invalid, "The "+t.displayName()+" has more than "+millions+" megapixels.").With("limit_pixels", l.limits.Pixels)
	}
	return nil
}

func (l *Analyzer) checkDuration(t Type, d time.Duration) error {
	if d > l.limits.Duration {
		limit := l.limits.Duration.String()
		if l.limits.Duration%time.Minute == 0 {
			limit = fmt.Sprintf("%d minutes", int(l.limits.Duration.Minutes()))
		}
		return fault.New(fault.Invalid, "The "+t.displayName()+" is longer than "+limit+".").With("limit_seconds", l.limits.Duration.Seconds())
	}
	return nil
}
