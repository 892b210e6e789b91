package video

import (
	"context"
	"fmt"
	"math"

	"atelier/internal/engine"
)

// Limits on a GIF: its length in seconds, its number of frames and the pixels
// of a frame. The format hardly uses similarities between frames, so files grow
// fast, and the service stores no animation of more than 600 frames.
const (
	maxGIFSeconds = 15.0
	maxGIFFrames  = 600
	gifPixels     = 1_000_000
)

var dithers = map[string]string{
	"smooth":  "sierra2_4a",
	"pattern": "bayer:bayer_scale=3",
	"none":    "none",
}

// convertToGIF makes a GIF of a part of a video. It runs ffmpeg twice: once to
// choose the colours, and once to draw with them.
func convertToGIF(ctx context.Context, w *jobRun, s engine.Span, _ uint32) (string, error) {
	dither, err := choiceInput(w.task, "dither", "smooth", dithers)
	if err != nil {
		return "", err
	}
	f, err := w.fileInput("video", "video")
	if err != nil {
		return "", err
	}
	in, fact, err := w.addSource(ctx, s.SubSpan(0, 0.1), "video", "video", f)
	if err != nil {
		return "", err
	}
	start := w.NumberInput("start", 0, 0, maxInputSeconds)
	if start >= fact.seconds {
		return "", engine.Fail(engine.Failed, fmt.Sprintf("The video lasts %.1f seconds. The GIF cannot start at %.1f.", fact.seconds, start))
	}
	fps := math.Round(w.NumberInput("fps", 12, 1, 30))
	length := min(w.NumberInput("length", 5, 0.1, maxGIFSeconds), fact.seconds-start, maxGIFFrames/fps)
	length = max(length, 1/fps)
	width := w.NumberInput("width", 480, 16, 1280)
	size := scaleShape(fact.shape, width/float64(fact.w))
	if n := float64(size.w) * float64(size.h); n > gifPixels {
		size = scaleShape(size, math.Sqrt(gifPixels/n))
	}
	size = shape{min(size.w, 4096), min(size.h, 4096)}
	loop := "-1"
	if w.flagInput("loop", true) {
		loop = "0"
	}

	part := in.inputArgs("-ss", formatNumber(start), "-t", formatNumber(length))
	frames := fmt.Sprintf("[0:V:0]fps=%.0f:eof_action=pass,scale=%d:%d:flags=lanczos,setsar=1", fps, size.w, size.h)
	small := fitInside(size, shape{512, 512})
	args := append(part, "-filter_complex", fmt.Sprintf("%s,split[all][one];[all]palettegen=max_colors=256:stats_mode=diff[palette];[one]scale=%d:%d:flags=bicubic[small]", frames, small.w, small.h),
		"-map", "[palette]")
	args = append(args, stillOutputArgs("palette.png", "png")...)
	args = append(append(args, "-map", "[small]", "-q:v", "4", "-pix_fmt", "yuvj420p"), stillOutputArgs("preview.jpg", "mjpeg")...)
	if err := w.runFFmpeg(ctx, s.SubSpan(0.1, 0.5), 0, errVideo, args...); err != nil {
		return "", err
	}
	w.sendPreview("preview.jpg")

	palette := inputFile{"palette.png", fileKind{"png", "png_pipe", "png", errRender}}
	args = append(in.inputArgs("-ss", formatNumber(start), "-t", formatNumber(length)), palette.inputArgs()...)
	args = append(args, "-filter_complex", fmt.Sprintf("%s[all];[all][1:v]paletteuse=dither=%s:diff_mode=rectangle[reel]", frames, dither),
		"-map", "[reel]", "-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-threads", "1",
		"-frames:v", fmt.Sprint(maxGIFFrames), "-loop", loop, "-f", "gif", "result.gif")
	return "result.gif", w.runFFmpeg(ctx, s.SubSpan(0.5, 1), length, errVideo, args...)
}
