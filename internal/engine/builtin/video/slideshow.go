package video

import (
	"context"
	"fmt"
	"math"
	"strings"

	"atelier/internal/engine"
)

// transitions are the cross-fades, as the filter calls them.
var transitions = map[string]string{
	"fade": "fade", "dissolve": "dissolve", "black": "fadeblack", "white": "fadewhite",
	"wipe": "wipeleft", "slide": "slideleft", "smooth": "smoothleft", "circle": "circleopen", "radial": "radial", "pixels": "pixelize",
}

// backgrounds are what is around a picture of another shape than the video's:
// the filters that lay it there, and the level of grey behind transparent parts.
var backgrounds = map[string]struct {
	lay    func(p, size shape) string
	behind string
}{
	"blur":  {onBlur, "255"},
	"black": {func(p, size shape) string { return onColour(p, size, "black") }, "0"},
	"white": {func(p, size shape) string { return onColour(p, size, "white") }, "255"},
}

func onColour(p, size shape, colour string) string {
	near := inside(p, size)
	return fmt.Sprintf("[in]scale=%d:%d:flags=%s,pad=%d:%d:-1:-1:color=%s,setsar=1", near.w, near.h, sharp, size.w, size.h, colour)
}

// onBlur lays the picture on a blurred copy of itself, which is made small:
// nobody sees the difference.
func onBlur(p, size shape) string {
	near := inside(p, size)
	small := shape{even(size.w / 4), even(size.h / 4)}
	return fmt.Sprintf("[in]split[far][near];[far]%s,gblur=sigma=%s:steps=3,scale=%d:%d:flags=bicubic,lutrgb=r=val*0.8:g=val*0.8:b=val*0.8[back];"+
		"[near]scale=%d:%d:flags=%s[front];[back][front]overlay=(W-w)/2:(H-h)/2:format=rgb,format=rgb24,setsar=1",
		cover(p, small, "area"), num(float64(small.h)/12), size.w, size.h, near.w, near.h, sharp)
}

// slideshow shows pictures one after the other, with music where there is some.
func slideshow(ctx context.Context, w *work, s engine.Span, _ uint32) (string, error) {
	files, err := w.pictures(2)
	if err != nil {
		return "", err
	}
	transition, err := choice(w.task, "style", "fade", transitions)
	if err != nil {
		return "", err
	}
	back, err := choice(w.task, "background", "blur", backgrounds)
	if err != nil {
		return "", err
	}
	size, err := w.shape("size", 1280, 720)
	if err != nil {
		return "", err
	}
	const fps = 25
	each := max(int(math.Round(w.Number("seconds", 4, 0.2, 20)*fps)), 3)
	reel := reel{fps: fps, many: len(files), each: each, fade: min(int(math.Round(w.Number("fade", 1, 0, 5)*fps)), each*4/5)}
	if err := reel.fits(); err != nil {
		return "", err
	}
	var graph strings.Builder
	var args []string
	for i, f := range files {
		part := s.Part(0, 0.4).Of(i, len(files))
		p, err := w.picture(ctx, fmt.Sprintf("picture-%d", i), f)
		if err != nil {
			return "", err
		}
		part.At(0.4)
		in, err := w.prepare(ctx, part.Part(0.4, 1), p, fmt.Sprintf("plain-%d", i), back.behind, back.lay(p.shape, size), i == 0)
		if err != nil {
			return "", err
		}
		args = append(args, in.args("-framerate", fmt.Sprint(fps))...)
		fmt.Fprintf(&graph, "[%d:v]%s,loop=loop=-1:size=1:start=0,setpts=N/(%d*TB),trim=end_frame=%d[p%d];", i, toVideo, fps, reel.frames(i), i)
	}
	graph.WriteString(reel.join("p", transition))
	music := len(w.Files["music"]) > 0
	if music {
		sound, _, err := w.sound(ctx, s.Part(0.4, 0.5), w.Files["music"][0], reel.length())
		if err != nil {
			return "", err
		}
		args = append(args, sound.args("-stream_loop", "-1")...)
		fmt.Fprintf(&graph, ";[%d:a]%s[music]", len(files), fadeSound(reel.length()))
	}
	args = append(args, "-filter_complex", graph.String(), "-map", "[reel]")
	if music {
		args = append(args, "-map", "[music]")
	}
	args = append(args, film("result.mp4", fmt.Sprint(fps), reel.length(), music)...)
	return "result.mp4", w.run(ctx, s.Part(0.5, 1), reel.length(), errMaking, args...)
}

// fadeSound cuts music to a length, and lets it come and go softly.
func fadeSound(length float64) string {
	in := min(1, length/4)
	out := min(2, length/3)
	return fmt.Sprintf("atrim=end=%s,afade=t=in:d=%s,afade=t=out:st=%s:d=%s", num(length), num(in), num(length-out), num(out))
}
