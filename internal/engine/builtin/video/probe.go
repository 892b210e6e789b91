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

// Limits on inputs and results. The length in a file's header can be wrong, so
// the length of the output is limited as well.
const (
	maxInputSeconds  = 600.0 // length of an input in seconds
	maxResultSeconds = 300.0
	inputPixels      = 50_000_000
	// decodedPixels is the largest number of pixels that decoders accept. It is
	// higher than inputPixels because decoders count whole blocks.
	decodedPixels = inputPixels * 5 / 4
)

// inputFile is an input file in the job's folder.
type inputFile struct {
	name string
	kind fileKind
}

// fileKind describes how FFmpeg reads files of a MIME type.
type fileKind struct {
	ext     string
	demuxer string
	codecs  string // names of the decoders that a file of this type may use
	other   *engine.Error
}

const (
	videoCodecs = "h264,hevc,av1,libdav1d,vp8,vp9,libvpx,libvpx-vp9,mpeg4,mpeg2video,mjpeg,prores,png,"
	soundCodecs = "aac,mp3,mp3float,opus,libopus,vorbis,flac,alac,ac3,eac3,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_f32le,pcm_f32be,pcm_f64le,pcm_u8,pcm_s8,pcm_alaw,pcm_mulaw"
)

// fileKinds are the supported kinds of files by MIME type. The service detected
// the type from the file's content when it stored the file. FFmpeg's own
// detection is switched off, because it would accept playlists that refer to
// other files.
var fileKinds = map[string]fileKind{
	"image/jpeg":      {"jpg", "jpeg_pipe", "mjpeg", errPicture},
	"image/png":       {"png", "png_pipe", "png,apng", errPicture},
	"image/webp":      {"webp", "webp_pipe", "webp,vp8,libwebp", errPicture},
	"image/gif":       {"gif", "gif", "gif", errPicture},
	"video/mp4":       {"mp4", "mov", videoCodecs + soundCodecs, errVideo},
	"video/quicktime": {"mov", "mov", videoCodecs + soundCodecs, errVideo},
	"video/webm":      {"webm", "matroska", videoCodecs + soundCodecs, errVideo},
	"audio/mpeg":      {"mp3", "mp3", soundCodecs, errSound},
	"audio/wav":       {"wav", "wav", soundCodecs, errSound},
	"audio/flac":      {"flac", "flac", soundCodecs, errSound},
	"audio/ogg":       {"ogg", "ogg", soundCodecs, errSound},
}

// addInput copies an input file into the job's folder. group is the required
// first part of its MIME type, such as image.
func (w *jobRun) addInput(ctx context.Context, group, name string, f engine.File) (inputFile, error) {
	k, ok := fileKinds[f.MimeType]
	if !ok || !strings.HasPrefix(f.MimeType, group+"/") {
		return inputFile{}, engine.Fail(engine.Failed, "This tool does not support the type of one of the files.")
	}
	in := inputFile{name + "." + k.ext, k}
	return in, w.copyInput(ctx, in.name, f)
}

// guardArgs returns the options that restrict how ffmpeg and ffprobe read an
// input.
func (in inputFile) guardArgs() []string {
	args := []string{
		"-protocol_whitelist", "file", "-format_whitelist", in.kind.demuxer, "-codec_whitelist", in.kind.codecs,
		"-max_pixels", strconv.Itoa(decodedPixels),
	}
	if in.kind.demuxer == "mov" { // refuse tracks whose samples are in other files
		args = append(args, "-enable_drefs", "0", "-use_absolute_path", "0")
	}
	return append(args, "-f", in.kind.demuxer)
}

// inputArgs returns the options with which ffmpeg reads the input. more are
// further input options.
func (in inputFile) inputArgs(more ...string) []string {
	n := threads
	if strings.HasSuffix(in.kind.demuxer, "_pipe") { // a single picture is decoded by one thread
		n = "1"
	}
	return append(append(append([]string{"-threads", n}, in.guardArgs()...), more...), "-i", "file:"+in.name)
}

// mediaInfo has the properties of a file that ffprobe reports.
type mediaInfo struct {
	shape          // size after rotation to upright
	fps     string // frames per second, as a ratio such as 30000/1001
	seconds float64
	video   bool
	sound   bool
}

// probeInput runs ffprobe on an input. If the length is unknown, it is 0 in the
// result.
func (w *jobRun) probeInput(ctx context.Context, in inputFile) (mediaInfo, error) {
	var b bytes.Buffer
	args := append([]string{"-hide_banner", "-loglevel", "error"}, in.guardArgs()...)
	args = append(args, "-show_entries",
		"format=duration:stream=codec_type,width,height,sample_aspect_ratio,avg_frame_rate,r_frame_rate:stream_side_data=rotation:stream_disposition=attached_pic",
		"-of", "json", "-i", "file:"+in.name)
	err := w.runProgram(ctx, subprocess.Program{
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
		return mediaInfo{}, explainError(ctx, err, in.kind.other)
	}
	f, err := parseProbe(b.Bytes())
	if err != nil {
		return mediaInfo{}, in.kind.other.WithCause(err)
	}
	return f, nil
}

// probeReply is the JSON output of ffprobe.
type probeReply struct {
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

// parseProbe parses the JSON output of ffprobe.
func parseProbe(answer []byte) (mediaInfo, error) {
	var t probeReply
	if err := json.Unmarshal(answer, &t); err != nil {
		return mediaInfo{}, fmt.Errorf("parse ffprobe output: %w", err)
	}
	if len(t.Streams) == 0 {
		return mediaInfo{}, errors.New("the file has no streams")
	}
	var f mediaInfo
	if d, err := strconv.ParseFloat(t.Format.Duration, 64); err == nil && d > 0 && !math.IsInf(d, 0) {
		f.seconds = d
	}
	for _, s := range t.Streams {
		switch {
		case s.Type == "audio":
			f.sound = true
		case s.Type == "video" && s.Disposition.Cover == 0 && !f.video:
			if s.Width < 1 || s.Height < 1 {
				return mediaInfo{}, errors.New("the video stream has no dimensions")
			}
			f.video = true
			f.shape = shape{s.Width, s.Height}
			if a := parseRatio(strings.Replace(s.Aspect, ":", "/", 1)); a > 1.0/8 && a < 8 {
				f.w = max(int(math.Round(float64(f.w)*a)), 1)
			}
			for _, d := range s.Side {
				if turn := math.Abs(d.Rotation); turn == 90 || turn == 270 {
					f.w, f.h = f.h, f.w
				}
			}
			f.fps = "30/1"
			for _, r := range []string{s.Rate, s.Mean} { // the mean rate takes precedence if it is valid
				if n := parseRatio(r); n >= 1 && n <= 120 {
					f.fps = formatFrameRate(n)
				}
			}
		}
	}
	return f, nil
}

// parseRatio parses a ratio such as 30000/1001. It returns 0 if the string is
// not a ratio.
func parseRatio(s string) float64 {
	above, below, _ := strings.Cut(s, "/")
	a, err1 := strconv.ParseUint(above, 10, 31)
	b, err2 := strconv.ParseUint(below, 10, 31)
	if err1 != nil || err2 != nil || b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// formatFrameRate returns a frame rate as a ratio of small numbers. The mean
// frame rate of a camera's video is often a ratio of nine-digit numbers.
func formatFrameRate(fps float64) string {
	if whole := math.Round(fps); math.Abs(fps-whole) < 0.01 {
		return fmt.Sprintf("%.0f/1", whole)
	}
	if whole := math.Round(fps * 1.001); math.Abs(fps-whole/1.001) < 0.01 { // a rate of the NTSC standard, such as 30000/1001
		return fmt.Sprintf("%.0f/1001", whole*1000)
	}
	return fmt.Sprintf("%.0f/100", fps*100)
}

// addSource copies a video or a recording into the job's folder and returns its
// properties. It fails if the file is too long.
func (w *jobRun) addSource(ctx context.Context, s engine.Span, group, name string, f engine.File) (inputFile, mediaInfo, error) {
	in, err := w.addInput(ctx, group, name, f)
	if err != nil {
		return in, mediaInfo{}, err
	}
	s.ReportProgress(0.3)
	fact, err := w.probeInput(ctx, in)
	if err != nil {
		return in, fact, err
	}
	switch {
	case group == "video" && !fact.video:
		return in, fact, engine.Fail(engine.Failed, "The file contains no video.")
	case group == "audio" && !fact.sound:
		return in, fact, engine.Fail(engine.Failed, "The file contains no sound.")
	}
	if fact.seconds == 0 { // some recorders do not store the length
		if fact.seconds, err = w.measureLength(ctx, in, group); err != nil {
			return in, fact, err
		}
	}
	if fact.seconds > maxInputSeconds {
		return in, fact, engine.Fail(engine.Failed, "The file is longer than 10 minutes.")
	}
	s.ReportProgress(1)
	return in, fact, nil
}

// measureLength reads a whole file to determine its length in seconds.
func (w *jobRun) measureLength(ctx context.Context, in inputFile, group string) (float64, error) {
	stream := "0:V:0"
	if group == "audio" {
		stream = "0:a:0"
	}
	seconds := 0.0
	err := w.runProgram(ctx, subprocess.Program{
		Path: w.ffmpeg,
		Args: append(append([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-progress", "pipe:1"}, in.inputArgs()...),
			"-map", stream, "-c", "copy", "-t", formatNumber(maxInputSeconds+1), "-f", "null", "-"),
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
	return seconds, explainError(ctx, err, in.kind.other)
}
