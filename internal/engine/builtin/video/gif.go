package video

import (
	"context"
	"fmt"
	"math"

	"atelier/internal/engine"
)

// What a GIF may be. It keeps every frame nearly whole, so that it gets large
// soon; the service takes no animation of more than 600 frames.
const (
	longestGIF = 15.0
	mostFrames = 600
	gifPixels  = 1_000_000
)

var dithers = map[string]string{
	"smooth":  "sierra2_4a",
	"pattern": "bayer:bayer_scale=3",
	"none":    "none",
}

// videoToGIF makes a GIF of a part of a video: one pass finds its colours, one
// draws with them.
func videoToGIF(ctx context.Context, w *work, s engine.Span, _ uint32) (string, error) {
	dither, err := choice(w.task, "dither", "smooth", dithers)
	if err != nil {
		return "", err
	}
	f, err := w.file("video", "video")
	if err != nil {
		return "", err
	}
	in, fact, err := w.source(ctx, s.Part(0, 0.1), "video", "video", f)
	if err != nil {
		return "", err
	}
	start := w.Number("start", 0, 0, longestInput)
	if start >= fact.length {
		return "", engine.Fail(engine.Failed, fmt.Sprintf("The video lasts only %.1f seconds: it cannot start at %.1f.", fact.length, start))
	}
	fps := math.Round(w.Number("fps", 12, 1, 30))
	length := min(w.Number("length", 5, 0.1, longestGIF), fact.length-start, mostFrames/fps)
	length = max(length, 1/fps)
	width := w.Number("width", 480, 16, 1280)
	size := scaled(fact.shape, width/float64(fact.w))
	if n := float64(size.w) * float64(size.h); n > gifPixels {
		size = scaled(size, math.Sqrt(gifPixels/n))
	}
	size = shape{min(size.w, 4096), min(size.h, 4096)}
	loop := "-1"
	if w.flag("loop", true) {
		loop = "0"
	}

	part := in.args("-ss", num(start), "-t", num(length))
	frames := fmt.Sprintf("[0:V:0]fps=%.0f:eof_action=pass,scale=%d:%d:flags=lanczos,setsar=1", fps, size.w, size.h)
	small := inside(size, shape{512, 512})
	args := append(part, "-filter_complex", fmt.Sprintf("%s,split[all][one];[all]palettegen=max_colors=256:stats_mode=diff[palette];[one]scale=%d:%d:flags=bicubic[small]", frames, small.w, small.h),
		"-map", "[palette]")
	args = append(args, still("palette.png", "png")...)
	args = append(append(args, "-map", "[small]", "-q:v", "4", "-pix_fmt", "yuvj420p"), still("preview.jpg", "mjpeg")...)
	if err := w.run(ctx, s.Part(0.1, 0.5), 0, errVideo, args...); err != nil {
		return "", err
	}
	w.preview("preview.jpg")

	palette := input{"palette.png", kind{"png", "png_pipe", "png", errMaking}}
	args = append(in.args("-ss", num(start), "-t", num(length)), palette.args()...)
	args = append(args, "-filter_complex", fmt.Sprintf("%s[all];[all][1:v]paletteuse=dither=%s:diff_mode=rectangle[reel]", frames, dither),
		"-map", "[reel]", "-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-threads", "1",
		"-frames:v", fmt.Sprint(mostFrames), "-loop", loop, "-f", "gif", "result.gif")
	return "result.gif", w.run(ctx, s.Part(0.5, 1), length, errVideo, args...)
}
