package video

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// The limits on inputs and results. A file can lie about its length, so every
// pass is told how many seconds to write, too.
const (
	longestInput  = 600.0 // seconds
	longestResult = 300.0
	inputPixels   = 50_000_000
	// decodedPixels is for the decoders, which count whole blocks.
	decodedPixels = inputPixels * 5 / 4
)

// input is a file in the folder.
type input struct {
	name string
	kind kind
}

// kind is how ffmpeg has to read a type of file.
type kind struct {
	ext     string
	demuxer string
	codecs  string // the decoders that a file of this type may ask for
	other   *engine.Error
}

const (
	filmCodecs  = "h264,hevc,av1,libdav1d,vp8,vp9,libvpx,libvpx-vp9,mpeg4,mpeg2video,mjpeg,prores,png,"
	soundCodecs = "aac,mp3,mp3float,opus,libopus,vorbis,flac,alac,ac3,eac3,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_f32le,pcm_f32be,pcm_f64le,pcm_u8,pcm_s8,pcm_alaw,pcm_mulaw"
)

// kinds are the types that are taken. What a file is was found from its bytes
// when it came in; guessing again here would be the way in for playlists.
var kinds = map[string]kind{
	"image/jpeg":      {"jpg", "jpeg_pipe", "mjpeg", errPicture},
	"image/png":       {"png", "png_pipe", "png,apng", errPicture},
	"image/webp":      {"webp", "webp_pipe", "webp,vp8,libwebp", errPicture},
	"image/gif":       {"gif", "gif", "gif", errPicture},
	"video/mp4":       {"mp4", "mov", filmCodecs + soundCodecs, errVideo},
	"video/quicktime": {"mov", "mov", filmCodecs + soundCodecs, errVideo},
	"video/webm":      {"webm", "matroska", filmCodecs + soundCodecs, errVideo},
	"audio/mpeg":      {"mp3", "mp3", soundCodecs, errSound},
	"audio/wav":       {"wav", "wav", soundCodecs, errSound},
	"audio/flac":      {"flac", "flac", soundCodecs, errSound},
	"audio/ogg":       {"ogg", "ogg", soundCodecs, errSound},
}

// takes puts a file of a kind, such as image, into the folder.
func (w *work) takes(ctx context.Context, group, name string, f engine.File) (input, error) {
	k, ok := kinds[f.MimeType]
	if !ok || !strings.HasPrefix(f.MimeType, group+"/") {
		return input{}, engine.Fail(engine.Failed, "A file is of a kind that this tool does not take.")
	}
	in := input{name + "." + k.ext, k}
	return in, w.put(ctx, in.name, f)
}

// guard are the settings with which any program of FFmpeg reads an input.
func (in input) guard() []string {
	args := []string{
		"-protocol_whitelist", "file", "-format_whitelist", in.kind.demuxer, "-codec_whitelist", in.kind.codecs,
		"-max_pixels", strconv.Itoa(decodedPixels),
	}
	if in.kind.demuxer == "mov" { // tracks whose samples lie in other files
		args = append(args, "-enable_drefs", "0", "-use_absolute_path", "0")
	}
	return append(args, "-f", in.kind.demuxer)
}

// args are the settings with which ffmpeg reads the input, more before them.
func (in input) args(more ...string) []string {
	n := threads
	if strings.HasSuffix(in.kind.demuxer, "_pipe") { // one picture is decoded by one
		n = "1"
	}
	return append(append(append([]string{"-threads", n}, in.guard()...), more...), "-i", "file:"+in.name)
}

// facts is what ffprobe tells of a file.
type facts struct {
	shape         // as people see it
	fps    string // as a ratio
	length float64
	video  bool
	sound  bool
}

// measure asks ffprobe about an input. A length of 0 is unknown.
func (w *work) measure(ctx context.Context, in input) (facts, error) {
	var b bytes.Buffer
	args := append([]string{"-hide_banner", "-loglevel", "error"}, in.guard()...)
	args = append(args, "-show_entries",
		"format=duration:stream=codec_type,width,height,sample_aspect_ratio,avg_frame_rate,r_frame_rate:stream_side_data=rotation:stream_disposition=attached_pic",
		"-of", "json", "-i", "file:"+in.name)
	err := w.program(ctx, subprocess.Program{
		Path: w.ffprobe, Args: args,
		Line: func(line []byte) {
			const most = 1 << 20
			if b.Len() < most {
				b.Write(line)
				b.WriteByte('\n')
			}
		},
	})
	if err != nil {
		return facts{}, meaning(ctx, err, in.kind.other)
	}
	f, err := read(b.Bytes())
	if err != nil {
		return facts{}, in.kind.other.Because(err)
	}
	return f, nil
}

// told is ffprobe's answer.
type told struct {
	Streams []struct {
		Type   string `json:"codec_type"`
		Width  int    `json:"width"`
		Height int    `json:"height"`
		Aspect string `json:"sample_aspect_ratio"`
		Mean   string `json:"avg_frame_rate"`
		Rate   string `json:"r_frame_rate"`
		Side   []struct {
			Rotation float64 `json:"rotation"`
		} `json:"side_data_list"`
		Disposition struct {
			Cover int `json:"attached_pic"`
		} `json:"disposition"`
	} `json:"streams"`
	Format struct {
		Duration string `json:"duration"`
	} `json:"format"`
}

func read(answer []byte) (facts, error) {
	var t told
	if err := json.Unmarshal(answer, &t); err != nil {
		return facts{}, fmt.Errorf("ffprobe's answer: %w", err)
	}
	if len(t.Streams) == 0 {
		return facts{}, errors.New("no streams")
	}
	var f facts
	if d, err := strconv.ParseFloat(t.Format.Duration, 64); err == nil && d > 0 && !math.IsInf(d, 0) {
		f.length = d
	}
	for _, s := range t.Streams {
		switch {
		case s.Type == "audio":
			f.sound = true
		case s.Type == "video" && s.Disposition.Cover == 0 && !f.video:
			if s.Width < 1 || s.Height < 1 {
				return facts{}, errors.New("a video without a size")
			}
			f.video = true
			f.shape = shape{s.Width, s.Height}
			if a := ratio(strings.Replace(s.Aspect, ":", "/", 1)); a > 1.0/8 && a < 8 {
				f.w = max(int(math.Round(float64(f.w)*a)), 1)
			}
			for _, d := range s.Side {
				if turn := math.Abs(d.Rotation); turn == 90 || turn == 270 {
					f.w, f.h = f.h, f.w
				}
			}
			f.fps = "30/1"
			for _, r := range []string{s.Rate, s.Mean} { // the last good one
				if n := ratio(r); n >= 1 && n <= 120 {
					f.fps = tidy(n)
				}
			}
		}
	}
	return f, nil
}

// ratio reads 30000/1001, 0 for what is none.
func ratio(s string) float64 {
	above, below, _ := strings.Cut(s, "/")
	a, err1 := strconv.ParseUint(above, 10, 31)
	b, err2 := strconv.ParseUint(below, 10, 31)
	if err1 != nil || err2 != nil || b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// tidy gives a frame rate as a ratio of small numbers. The mean of a camera's
// rate is often one of nine digits.
func tidy(fps float64) string {
	if whole := math.Round(fps); math.Abs(fps-whole) < 0.01 {
		return fmt.Sprintf("%.0f/1", whole)
	}
	if whole := math.Round(fps * 1.001); math.Abs(fps-whole/1.001) < 0.01 { // NTSC
		return fmt.Sprintf("%.0f/1001", whole*1000)
	}
	return fmt.Sprintf("%.0f/100", fps*100)
}

// source puts a video or a recording into the folder and measures it.
func (w *work) source(ctx context.Context, s engine.Span, group, name string, f engine.File) (input, facts, error) {
	in, err := w.takes(ctx, group, name, f)
	if err != nil {
		return in, facts{}, err
	}
	s.At(0.3)
	fact, err := w.measure(ctx, in)
	if err != nil {
		return in, fact, err
	}
	switch {
	case group == "video" && !fact.video:
		return in, fact, engine.Fail(engine.Failed, "The file has no video in it.")
	case group == "audio" && !fact.sound:
		return in, fact, engine.Fail(engine.Failed, "The file has no sound in it.")
	}
	if fact.length == 0 { // some recorders write the length nowhere
		if fact.length, err = w.count(ctx, in, group); err != nil {
			return in, fact, err
		}
	}
	if fact.length > longestInput {
		return in, fact, engine.Fail(engine.Failed, "The file is longer than 10 minutes.")
	}
	s.At(1)
	return in, fact, nil
}

// count reads through a file to learn how long it is.
func (w *work) count(ctx context.Context, in input, group string) (float64, error) {
	stream := "0:V:0"
	if group == "audio" {
		stream = "0:a:0"
	}
	seconds := 0.0
	err := w.program(ctx, subprocess.Program{
		Path: w.ffmpeg,
		Args: append(append([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-progress", "pipe:1"}, in.args()...),
			"-map", stream, "-c", "copy", "-t", num(longestInput+1), "-f", "null", "-"),
		Line: func(line []byte) {
			if text, ok := strings.CutPrefix(string(line), "out_time_us="); ok {
				if us, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
					seconds = float64(us) / 1e6
				}
			}
		},
	})
	if err == nil && seconds <= 0 {
		return 0, in.kind.other
	}
	return seconds, meaning(ctx, err, in.kind.other)
}
