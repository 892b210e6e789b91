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

// work is a job under way, with the folder that it lies in.
type work struct {
	*Engine
	task
	out    engine.Sink
	folder *subprocess.Folder
}

func (e *Engine) begin(t task, out engine.Sink) (*work, error) {
	folder, err := subprocess.NewFolder(e.folder)
	if err != nil {
		return nil, errAway.Because(err)
	}
	return &work{Engine: e, task: t, out: out, folder: folder}, nil
}

// end clears up. What cannot be removed is the folder's parent's matter.
func (w *work) end() { _ = w.folder.Close() }

// What people are told. Which of the inputs was at fault, a pass knows by what
// it reads.
var (
	errAway    = engine.Again(engine.Unavailable, "The programs for video do not run just now.")
	errPicture = engine.Fail(engine.Failed, "A picture could not be read: it is damaged, or of a kind that this tool does not know.")
	errVideo   = engine.Fail(engine.Failed, "The video could not be read: it is damaged, or of a kind that this tool does not know.")
	errSound   = engine.Fail(engine.Failed, "The recording could not be read: it is damaged, or of a kind that this tool does not know.")
	errMaking  = engine.Fail(engine.Failed, "The result could not be made.")
	errLarge   = engine.Fail(engine.Failed, "The result became too large.")
	errFetch   = engine.Again(engine.Failed, "A file could not be fetched.")
)

// meaning says what an error of a program means for the job: other for what
// the program itself could not do.
func meaning(ctx context.Context, err error, other *engine.Error) error {
	switch _, exit := errors.AsType[*subprocess.Exit](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, subprocess.ErrLimit):
		return errLarge.Because(err)
	case exit:
		return other.Because(err)
	}
	return errAway.Because(err)
}

// program runs one of the two, in the job's folder.
func (w *work) program(ctx context.Context, p subprocess.Program) error {
	p.Folder = w.folder
	p.Limits = w.limits
	// Otherwise each of its many threads takes 64 MiB of address space, in use
	// or not, and the limit on it would have to be far above what is used.
	p.Env = []string{"MALLOC_ARENA_MAX=2"}
	return subprocess.Run(ctx, p)
}

// put copies an input into the folder.
func (w *work) put(ctx context.Context, name string, f engine.File) error {
	if err := w.folder.Put(ctx, name, f); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errFetch.Because(err)
	}
	return nil
}

// threads is how many a pass may use. It is the same on every machine, because
// the encoder's result depends on it.
const threads = "2"

// run is one pass of ffmpeg: args are its inputs, filters and outputs. length
// is how many seconds it is expected to write, and other what it means when it
// fails.
func (w *work) run(ctx context.Context, s engine.Span, length float64, other *engine.Error, args ...string) error {
	all := append([]string{
		"-nostdin", "-hide_banner", "-loglevel", "error", "-y", "-progress", "pipe:1", "-stats_period", "0.2",
		"-filter_threads", threads, "-filter_complex_threads", threads,
	}, args...)
	s.At(0)
	err := w.program(ctx, subprocess.Program{
		Path: w.ffmpeg, Args: all,
		Line: func(line []byte) {
			if text, ok := strings.CutPrefix(string(line), "out_time_us="); ok && length > 0 {
				if us, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
					s.At(float64(us) / 1e6 / length)
				}
			}
		},
	})
	if err != nil {
		return meaning(ctx, err, other)
	}
	s.At(1)
	return nil
}

// film are the output's settings for a video of so many seconds.
func film(name string, fps string, length float64, sound bool) []string {
	args := []string{
		"-r", fps, "-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p", "-threads", threads,
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv",
	}
	if sound {
		args = append(args, "-c:a", "aac", "-b:a", "160k", "-ar", "48000", "-ac", "2")
	}
	return append(args, "-movflags", "+faststart", "-map_metadata", "-1", "-map_chapters", "-1",
		"-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-t", num(length), "-f", "mp4", name)
}

// still are the output's settings for one picture.
func still(name, codec string) []string {
	return []string{"-frames:v", "1", "-c:v", codec, "-threads", "1", "-map_metadata", "-1",
		"-fflags", "+bitexact", "-flags:v", "+bitexact", "-f", "image2", "-update", "1", name}
}

// maxPreview bounds a small picture, and maxFrame one of up to 1280 pixels.
const (
	maxPreview = 1 << 20
	maxFrame   = 4 << 20
)

// bytes reads a small file that a pass left.
func (w *work) bytes(name string, most int64) ([]byte, error) {
	r, err := w.folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && (len(b) == 0 || int64(len(b)) > most) {
		err = fmt.Errorf("%s has %d bytes", name, len(b))
	}
	return b, err
}

// size gives how many bytes a file has that a pass left.
func (w *work) size(ctx context.Context, name string) (int64, error) {
	r, err := w.folder.Open(name)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, reader{ctx.Err, r})
}

// preview shows a picture that a pass left. There may be none.
func (w *work) preview(name string) {
	if b, err := w.bytes(name, maxPreview); err == nil {
		w.out.Preview(b)
	}
}

// complete refuses a result that is missing or ends in the middle: a program
// can say that all went well and be wrong, on a full disk for one.
func (w *work) complete(ctx context.Context, name, mimeType string) error {
	r, err := w.folder.Open(name)
	if err != nil {
		return errMaking.Because(err)
	}
	defer r.Close()
	check := boxes
	if mimeType == gif {
		check = trailer
	}
	if err := check(reader{ctx.Err, r}); err != nil {
		return errors.Join(ctx.Err(), errMaking.Because(err))
	}
	return nil
}

// hand gives the result to the sink.
func (w *work) hand(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := w.folder.Open(name)
	if err != nil {
		return errMaking.Because(err)
	}
	defer r.Close()
	return w.out.Output(ctx, engine.Result{Data: r})
}

// boxes goes through the outer boxes of an MP4 (ISO 14496-12): they fill the
// file to its last byte, and the needed ones are there.
func boxes(r io.Reader) error {
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
			return fmt.Errorf("a box of %d bytes", size)
		}
		if _, err := io.CopyN(io.Discard, r, int64(size-used)); err != nil {
			return fmt.Errorf("a box ends early: %w", err)
		}
		seen[string(head[4:8])] = true
	}
	if !seen["ftyp"] || !seen["moov"] || !seen["mdat"] {
		return errors.New("a box is missing")
	}
	return nil
}

// trailer looks for a GIF's last byte.
func trailer(r io.Reader) error {
	var last lastByte
	n, err := io.Copy(&last, r)
	if err == nil && (n < 14 || last != 0x3b) {
		err = errors.New("no trailer")
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

// reader reads until the job ends.
type reader struct {
	ended func() error
	src   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ended(); err != nil {
		return 0, err
	}
	return r.src.Read(p)
}
