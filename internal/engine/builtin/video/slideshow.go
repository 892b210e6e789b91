package video

import (
	"context"
	"fmt"
	"math"
	"strings"

	"atelier/internal/engine"
)

// transitions maps the values of the input style to transitions of FFmpeg's
// xfade filter.
var transitions = map[string]string{
	"fade": "fade", "dissolve": "dissolve", "black": "fadeblack", "white": "fadewhite",
	"wipe": "wipeleft", "slide": "slideleft", "smooth": "smoothleft", "circle": "circleopen", "radial": "radial", "pixels": "pixelize",
}

// backgrounds are the ways to fill the frame around a picture with another
// aspect ratio: the filters that draw the picture on the background, and the
// grey level behind its transparent parts.
var backgrounds = map[string]struct {
	lay    func(p, size shape) string
	behind string
}{
	"blur":  {onBlur, "255"},
	"black": {func(p, size shape) string { return onColour(p, size, "black") }, "0"},
	"white": {func(p, size shape) string { return onColour(p, size, "white") }, "255"},
}

func onColour(p, size shape, colour string) string {
	near := fitInside(p, size)
	return fmt.Sprintf("[in]scale=%d:%d:flags=%s,pad=%d:%d:-1:-1:color=%s,setsar=1", near.w, near.h, sharpFlags, size.w, size.h, colour)
}

// onBlur returns filters that draw the picture on a blurred copy of itself. The
// copy is blurred at a small size, which is faster and looks the same.
func onBlur(p, size shape) string {
	near := fitInside(p, size)
	small := shape{evenSide(size.w / 4), evenSide(size.h / 4)}
	return fmt.Sprintf("[in]split[far][near];[far]%s,gblur=sigma=%s:steps=3,scale=%d:%d:flags=bicubic,lutrgb=r=val*0.8:g=val*0.8:b=val*0.8[back];"+
		"[near]scale=%d:%d:flags=%s[front];[back][front]overlay=(W-w)/2:(H-h)/2:format=rgb,format=rgb24,setsar=1",
		coverFilters(p, small, "area"), formatNumber(float64(small.h)/12), size.w, size.h, near.w, near.h, sharpFlags)
}

// makeSlideshow makes a video that shows pictures one after the other, with
// music if a file was given.
func makeSlideshow(ctx context.Context, w *jobRun, s engine.Span, _ uint32) (string, error) {
	files, err := w.pictureInputs(2)
	if err != nil {
		return "", err
	}
	transition, err := choiceInput(w.task, "style", "fade", transitions)
	if err != nil {
		return "", err
	}
	back, err := choiceInput(w.task, "background", "blur", backgrounds)
	if err != nil {
		return "", err
	}
	size, err := w.shapeInput("size", 1280, 720)
	if err != nil {
		return "", err
	}
	const fps = 25
	each := max(int(math.Round(w.NumberInput("seconds", 4, 0.2, 20)*fps)), 3)
	reel := sequence{fps: fps, count: len(files), each: each, fade: min(int(math.Round(w.NumberInput("fade", 1, 0, 5)*fps)), each*4/5)}
	if err := reel.checkLength(); err != nil {
		return "", err
	}
	var graph strings.Builder
	var args []string
	for i, f := range files {
		part := s.SubSpan(0, 0.4).NthOf(i, len(files))
		p, err := w.addStill(ctx, fmt.Sprintf("picture-%d", i), f)
		if err != nil {
			return "", err
		}
		part.ReportProgress(0.4)
		in, err := w.prepareStill(ctx, part.SubSpan(0.4, 1), p, fmt.Sprintf("plain-%d", i), back.behind, back.lay(p.shape, size), i == 0)
		if err != nil {
			return "", err
		}
		args = append(args, in.inputArgs("-framerate", fmt.Sprint(fps))...)
		fmt.Fprintf(&graph, "[%d:v]%s,loop=loop=-1:size=1:start=0,setpts=N/(%d*TB),trim=end_frame=%d[p%d];", i, videoColourFilter, fps, reel.frameCount(i), i)
	}
	graph.WriteString(reel.joinFilters("p", transition))
	music := len(w.Files["music"]) > 0
	if music {
		sound, _, err := w.prepareSound(ctx, s.SubSpan(0.4, 0.5), w.Files["music"][0], reel.totalSeconds())
		if err != nil {
			return "", err
		}
		args = append(args, sound.inputArgs("-stream_loop", "-1")...)
		fmt.Fprintf(&graph, ";[%d:a]%s[music]", len(files), fadeSound(reel.totalSeconds()))
	}
	args = append(args, "-filter_complex", graph.String(), "-map", "[reel]")
	if music {
		args = append(args, "-map", "[music]")
	}
	args = append(args, videoOutputArgs("result.mp4", fmt.Sprint(fps), reel.totalSeconds(), music)...)
	return "result.mp4", w.runFFmpeg(ctx, s.SubSpan(0.5, 1), reel.totalSeconds(), errRender, args...)
}

// fadeSound returns filters that cut music to a length in seconds and fade it
// in and out.
func fadeSound(length float64) string {
	in := min(1, length/4)
	out := min(2, length/3)
	return fmt.Sprintf("atrim=end=%s,afade=t=in:d=%s,afade=t=out:st=%s:d=%s", formatNumber(length), formatNumber(in), formatNumber(length-out), formatNumber(out))
}
