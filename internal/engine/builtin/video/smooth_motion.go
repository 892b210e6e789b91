package video

import (
	"context"
	"fmt"
	"math"
	"strings"

	"atelier/internal/engine"
)

// How many pixels of result a job may make. Following motion takes about a
// second for five million pixels, blending a tenth of that; both have to end
// well before the tool's time is up.
const (
	mostFollowed = 3_000_000_000
	mostBlended  = 40_000_000_000
)

// fastest is the highest frame rate of a result.
const fastest = 120

var methods = map[string]struct {
	filter string
	most   float64
}{
	"motion": {"mi_mode=mci:mc_mode=obmc:me_mode=bilat:vsbmc=0", mostFollowed},
	"blend":  {"mi_mode=blend", mostBlended},
}

// heights bound the shorter side of a result.
var heights = map[string]int{"1080": 1080, "720": 720, "480": 480, "360": 360}

// smoothMotion makes frames between those that there are: to show more in a
// second, or to show as many for longer.
func smoothMotion(ctx context.Context, w *work, s engine.Span, _ uint32) (string, error) {
	slow, err := choice(w.task, "effect", "smooth", map[string]bool{"smooth": false, "slow": true})
	if err != nil {
		return "", err
	}
	factor, err := choice(w.task, "factor", "2", map[string]float64{"2": 2, "4": 4})
	if err != nil {
		return "", err
	}
	method, err := choice(w.task, "method", "motion", methods)
	if err != nil {
		return "", err
	}
	height, err := choice(w.task, "size", "720", heights)
	if err != nil {
		return "", err
	}
	f, err := w.file("video", "video")
	if err != nil {
		return "", err
	}
	in, fact, err := w.source(ctx, s.Part(0, 0.05), "video", "video", f)
	if err != nil {
		return "", err
	}
	size := fact.shape
	if side := min(size.w, size.h); side > height {
		size = scaled(size, float64(height)/float64(side))
	}
	if side := max(size.w, size.h); side > mostLong {
		size = scaled(size, float64(mostLong)/float64(side))
	}
	size = shape{even(max(size.w, 32)), even(max(size.h, 32))} // the least that the filter takes
	rate := ratio(fact.fps)
	length := fact.length
	made := min(rate*factor, fastest)
	shown := made
	if slow {
		made = rate * factor
		shown = rate
		length = length * factor
	}
	if length > longestResult {
		return "", engine.Fail(engine.Failed, fmt.Sprintf("The result would last %.0f seconds; at most %.0f are possible.", length, longestResult))
	}
	if shown*length*float64(size.w)*float64(size.h) > method.most {
		return "", engine.Fail(engine.Failed, "This would take too long. Take a shorter video, a smaller size, or blend the frames.")
	}
	if err := w.first(ctx, s.Part(0.05, 0.1), in, size); err != nil {
		return "", err
	}

	var graph strings.Builder
	// The filter keeps its last frames to itself; so it gets a few more.
	fmt.Fprintf(&graph, "[0:V:0]scale=%d:%d:flags=bicubic:out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p,fps=%s,tpad=stop=8:stop_mode=clone,minterpolate=fps=%s:%s",
		size.w, size.h, fact.fps, tidy(made), method.filter)
	if slow {
		fmt.Fprintf(&graph, ",setpts=%s*PTS", num(factor))
	}
	graph.WriteString("[reel]")
	sound := fact.sound && w.flag("sound", true)
	if sound {
		graph.WriteString(";[0:a:0]aresample=48000:async=1:first_pts=0")
		if slow { // a filter slows down by half at most
			graph.WriteString(strings.Repeat(",atempo=0.5", int(math.Log2(factor))))
		}
		graph.WriteString("[sound]")
	}
	args := append(in.args(), "-filter_complex", graph.String(), "-map", "[reel]")
	if sound {
		args = append(args, "-map", "[sound]")
	}
	args = append(args, film("result.mp4", tidy(shown), length, sound)...)
	return "result.mp4", w.run(ctx, s.Part(0.1, 1), length, errVideo, args...)
}

// mostLong bounds the longer side.
const mostLong = 1920

func scaled(s shape, by float64) shape {
	side := func(n int) int { return max(int(math.Round(float64(n)*by)), 1) }
	return shape{side(s.w), side(s.h)}
}

// first shows the first frame of a video.
func (w *work) first(ctx context.Context, s engine.Span, in input, size shape) error {
	small := inside(size, shape{512, 512})
	if small.w > size.w {
		small = size
	}
	args := append(in.args(), "-filter_complex", fmt.Sprintf("[0:V:0]scale=%d:%d:flags=bicubic,setsar=1[small]", small.w, small.h),
		"-map", "[small]", "-q:v", "4", "-pix_fmt", "yuvj420p")
	if err := w.run(ctx, s, 0, errVideo, append(args, still("preview.jpg", "mjpeg")...)...); err != nil {
		return err
	}
	w.preview("preview.jpg")
	return nil
}
