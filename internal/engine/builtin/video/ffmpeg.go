package video

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// jobRun is a running job and the temporary folder for its files.
type jobRun struct {
	*Engine
	task
	out    engine.Sink
	folder *subprocess.Folder
}

func (e *Engine) newJobRun(t task, out engine.Sink) (*jobRun, error) {
	folder, err := subprocess.NewFolder(e.folder)
	if err != nil {
		return nil, errUnavailable.WithCause(err)
	}
	return &jobRun{Engine: e, task: t, out: out, folder: folder}, nil
}

// removeFolder deletes the job's folder. An error is ignored, because the
// clean-up of the parent folder deletes it later.
func (w *jobRun) removeFolder() { _ = w.folder.Close() }

// Failures of a job with messages for the person who started it.
var (
	errUnavailable = engine.FailTransient(engine.Unavailable, "The video programs are unavailable. Try again later.")
	errPicture     = engine.Fail(engine.Failed, "A picture could not be read. It is damaged, or its format is not supported by this tool.")
	errVideo       = engine.Fail(engine.Failed, "The video could not be read. It is damaged, or its format is not supported by this tool.")
	errSound       = engine.Fail(engine.Failed, "The recording could not be read. It is damaged, or its format is not supported by this tool.")
	errRender      = engine.Fail(engine.Failed, "The video could not be rendered.")
	errTooLarge    = engine.Fail(engine.Failed, "The result is too large.")
	errFetch       = engine.FailTransient(engine.Failed, "A file could not be read from storage. Try again.")
)

// explainError converts the error of a program to a failure of the job. If the
// program itself reported an error, it returns the failure other.
func explainError(ctx context.Context, err error, other *engine.Error) error {
	switch _, exit := errors.AsType[*subprocess.Exit](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, subprocess.ErrLimit):
		return errTooLarge.WithCause(err)
	case exit:
		return other.WithCause(err)
	}
	return errUnavailable.WithCause(err)
}

// runProgram runs ffmpeg or ffprobe in the job's folder, with the engine's
// limits.
func (w *jobRun) runProgram(ctx context.Context, p subprocess.Program) error {
	p.Folder = w.folder
	p.Limits = w.limits
	// Without this setting, each of the program's many threads reserves 64 MiB
	// of address space, and the limit on address space would have to be far
	// above the memory in use.
	p.Env = []string{"MALLOC_ARENA_MAX=2"}
	return subprocess.Run(ctx, p)
}

// copyInput copies an input file of the job into the job's folder.
func (w *jobRun) copyInput(ctx context.Context, name string, f engine.File) error {
	if err := w.folder.CopyInput(ctx, name, f); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errFetch.WithCause(err)
	}
	return nil
}

// threads is the number of threads that ffmpeg uses. It is the same on every
// machine, because the output of the encoder depends on it.
const threads = "2"

// runFFmpeg runs ffmpeg once. args are its inputs, filters and outputs, length
// is the expected length of the output in seconds, which is used to report
// progress, and other is the failure to return if ffmpeg fails.
func (w *jobRun) runFFmpeg(ctx context.Context, s engine.Span, length float64, other *engine.Error, args ...string) error {
	all := append([]string{
		"-nostdin", "-hide_banner", "-loglevel", "error", "-y", "-progress", "pipe:1", "-stats_period", "0.2",
		"-filter_threads", threads, "-filter_complex_threads", threads,
	}, args...)
	s.ReportProgress(0)
	err := w.runProgram(ctx, subprocess.Program{
		Path: w.ffmpeg, Args: all,
		Line: func(line []byte) {
			if text, ok := strings.CutPrefix(string(line), "out_time_us="); ok && length > 0 {
				if us, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
					s.ReportProgress(float64(us) / 1e6 / length)
				}
			}
		},
	})
	if err != nil {
		return explainError(ctx, err, other)
	}
	s.ReportProgress(1)
	return nil
}

// videoOutputArgs returns ffmpeg's output options for a video. length is its
// length in seconds.
func videoOutputArgs(name string, fps string, length float64, sound bool) []string {
	args := []string{
		"-r", fps, "-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p", "-threads", threads,
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv",
	}
	if sound {
		args = append(args, "-c:a", "aac", "-b:a", "160k", "-ar", "48000", "-ac", "2")
	}
	return append(args, "-movflags", "+faststart", "-map_metadata", "-1", "-map_chapters", "-1",
		"-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-t", formatNumber(length), "-f", "mp4", name)
}

// stillOutputArgs returns ffmpeg's output options for a single picture.
func stillOutputArgs(name, codec string) []string {
	return []string{"-frames:v", "1", "-c:v", codec, "-threads", "1", "-map_metadata", "-1",
		"-fflags", "+bitexact", "-flags:v", "+bitexact", "-f", "image2", "-update", "1", name}
}

// Limits in bytes on a preview, and on a frame that is up to 1280 pixels wide.
const (
	maxPreview = 1 << 20
	maxFrame   = 4 << 20
)

// readFile reads a file in the job's folder. It fails if the file is empty or
// has more than maxBytes bytes.
func (w *jobRun) readFile(name string, maxBytes int64) ([]byte, error) {
	r, err := w.folder.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && (len(b) == 0 || int64(len(b)) > maxBytes) {
		err = fmt.Errorf("%s is empty or larger than %d bytes", name, maxBytes)
	}
	return b, err
}

// fileSize returns the size in bytes of a file in the job's folder.
func (w *jobRun) fileSize(ctx context.Context, name string) (int64, error) {
	r, err := w.folder.OpenFile(name)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, cancelReader{ctx.Err, r})
}

// sendPreview sends a picture in the job's folder to the sink. Errors are
// ignored, because a missing preview does no harm.
func (w *jobRun) sendPreview(name string) {
	if b, err := w.readFile(name, maxPreview); err == nil {
		w.out.Preview(b)
	}
}

// checkComplete returns an error if the result is missing or truncated. A
// program may report success in such a case, for example if the disk is full.
func (w *jobRun) checkComplete(ctx context.Context, name, mimeType string) error {
	r, err := w.folder.OpenFile(name)
	if err != nil {
		return errRender.WithCause(err)
	}
	defer r.Close()
	check := checkMP4Boxes
	if mimeType == gif {
		check = checkGIFTrailer
	}
	if err := check(cancelReader{ctx.Err, r}); err != nil {
		return errors.Join(ctx.Err(), errRender.WithCause(err))
	}
	return nil
}

// sendResult sends the result in the job's folder to the sink.
func (w *jobRun) sendResult(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := w.folder.OpenFile(name)
	if err != nil {
		return errRender.WithCause(err)
	}
	defer r.Close()
	return w.out.Output(ctx, engine.Result{Data: r})
}

// checkMP4Boxes checks the top-level boxes of an MP4 file (ISO 14496-12): the
// last box must end at the end of the file, and the required boxes must be
// present.
func checkMP4Boxes(r io.Reader) error {
	seen := map[string]bool{}
	for {
		var head [16]byte
		if _, err := io.ReadFull(r, head[:8]); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		size := uint64(binary.BigEndian.Uint32(head[:]))
		used := uint64(8)
		if size == 1 {
			if _, err := io.ReadFull(r, head[8:]); err != nil {
				return err
			}
			size = binary.BigEndian.Uint64(head[8:])
			used = 16
		}
		if size < used || size > 1<<62 {
			return fmt.Errorf("an MP4 box has an invalid size of %d bytes", size)
		}
		if _, err := io.CopyN(io.Discard, r, int64(size-used)); err != nil {
			return fmt.Errorf("an MP4 box is truncated: %w", err)
		}
		seen[string(head[4:8])] = true
	}
	if !seen["ftyp"] || !seen["moov"] || !seen["mdat"] {
		return errors.New("a required MP4 box is missing")
	}
	return nil
}

// checkGIFTrailer checks that a file ends with the last byte of a GIF.
func checkGIFTrailer(r io.Reader) error {
	var last lastByte
	n, err := io.Copy(&last, r)
	if err == nil && (n < 14 || last != 0x3b) {
		err = errors.New("the GIF file does not end with a trailer")
	}
	return err
}

type lastByte byte

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		*l = lastByte(p[len(p)-1])
	}
	return len(p), nil
}

// cancelReader is a reader that fails after the job has been cancelled.
type cancelReader struct {
	ended func() error
	src   io.Reader
}

func (r cancelReader) Read(p []byte) (int, error) {
	if err := r.ended(); err != nil {
		return 0, err
	}
	return r.src.Read(p)
}
