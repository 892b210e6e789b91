package video

import (
	"context"
	"fmt"
	"math"
	"strings"

	"atelier/internal/engine"
)

// Limits on the number of pixels in all frames of a result. Motion estimation
// processes about five million pixels per second, blending ten times as many.
// Both must end well before the time limit of the tool.
const (
	maxMotionPixels  = 3_000_000_000
	maxBlendedPixels = 40_000_000_000
)

// maxFrameRate is the highest frame rate of a result, in frames per second.
const maxFrameRate = 120

var methods = map[string]struct {
	filter    string
	maxPixels float64
}{
	"motion": {"mi_mode=mci:mc_mode=obmc:me_mode=bilat:vsbmc=0", maxMotionPixels},
	"blend":  {"mi_mode=blend", maxBlendedPixels},
}

// heights are the limits on the shorter side of a result in pixels, by the
// value of the input size.
var heights = map[string]int{"1080": 1080, "720": 720, "480": 480, "360": 360}

// makeSmoothMotion adds interpolated frames to a video, for a higher frame rate
// or for slow motion.
func makeSmoothMotion(ctx context.Context, w *jobRun, s engine.Span, _ uint32) (string, error) {
	slow, err := choiceInput(w.task, "effect", "smooth", map[string]bool{"smooth": false, "slow": true})
	if err != nil {
		return "", err
	}
	factor, err := choiceInput(w.task, "factor", "2", map[string]float64{"2": 2, "4": 4})
	if err != nil {
		return "", err
	}
	method, err := choiceInput(w.task, "method", "motion", methods)
	if err != nil {
		return "", err
	}
	height, err := choiceInput(w.task, "size", "720", heights)
	if err != nil {
		return "", err
	}
	f, err := w.fileInput("video", "video")
	if err != nil {
		return "", err
	}
	in, fact, err := w.addSource(ctx, s.SubSpan(0, 0.05), "video", "video", f)
	if err != nil {
		return "", err
	}
	size := fact.shape
	if side := min(size.w, size.h); side > height {
		size = scaleShape(size, float64(height)/float64(side))
	}
	if side := max(size.w, size.h); side > maxLongSide {
		size = scaleShape(size, float64(maxLongSide)/float64(side))
	}
	size = shape{evenSide(max(size.w, 32)), evenSide(max(size.h, 32))} // the filter requires at least 32 pixels
	rate := parseRatio(fact.fps)
	length := fact.seconds
	made := min(rate*factor, maxFrameRate)
	shown := made
	if slow {
		made = rate * factor
		shown = rate
		length = length * factor
	}
	if length > maxResultSeconds {
		return "", engine.Fail(engine.Failed, fmt.Sprintf("The result would last %.0f seconds. The limit is %.0f.", length, maxResultSeconds))
	}
	if shown*length*float64(size.w)*float64(size.h) > method.maxPixels {
		return "", engine.Fail(engine.Failed, "The video would take too long to process. Use a shorter video or a smaller size, or blend the frames.")
	}
	if err := w.previewFirstFrame(ctx, s.SubSpan(0.05, 0.1), in, size); err != nil {
		return "", err
	}

	var graph strings.Builder
	// The filter drops the last frames, so copies of the last frame are added.
	fmt.Fprintf(&graph, "[0:V:0]scale=%d:%d:flags=bicubic:out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p,fps=%s,tpad=stop=8:stop_mode=clone,minterpolate=fps=%s:%s",
		size.w, size.h, fact.fps, formatFrameRate(made), method.filter)
	if slow {
		fmt.Fprintf(&graph, ",setpts=%s*PTS", formatNumber(factor))
	}
	graph.WriteString("[reel]")
	sound := fact.sound && w.flagInput("sound", true)
	if sound {
		graph.WriteString(";[0:a:0]aresample=48000:async=1:first_pts=0")
		if slow { // one atempo filter can halve the speed at most
			graph.WriteString(strings.Repeat(",atempo=0.5", int(math.Log2(factor))))
		}
		graph.WriteString("[sound]")
	}
	args := append(in.inputArgs(), "-filter_complex", graph.String(), "-map", "[reel]")
	if sound {
		args = append(args, "-map", "[sound]")
	}
	args = append(args, videoOutputArgs("result.mp4", formatFrameRate(shown), length, sound)...)
	return "result.mp4", w.runFFmpeg(ctx, s.SubSpan(0.1, 1), length, errVideo, args...)
}

// maxLongSide is the largest length of the longer side of a result in pixels.
const maxLongSide = 1920

func scaleShape(s shape, by float64) shape {
	side := func(n int) int { return max(int(math.Round(float64(n)*by)), 1) }
	return shape{side(s.w), side(s.h)}
}

// previewFirstFrame sends the first frame of a video to the sink as a preview.
func (w *jobRun) previewFirstFrame(ctx context.Context, s engine.Span, in inputFile, size shape) error {
	small := fitInside(size, shape{512, 512})
	if small.w > size.w {
		small = size
	}
	args := append(in.inputArgs(), "-filter_complex", fmt.Sprintf("[0:V:0]scale=%d:%d:flags=bicubic,setsar=1[small]", small.w, small.h),
		"-map", "[small]", "-q:v", "4", "-pix_fmt", "yuvj420p")
	if err := w.runFFmpeg(ctx, s, 0, errVideo, append(args, stillOutputArgs("preview.jpg", "mjpeg")...)...); err != nil {
		return err
	}
	w.sendPreview("preview.jpg")
	return nil
}
