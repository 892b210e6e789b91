package video

import (
	"context"
	"fmt"
	"strings"

	"atelier/internal/engine"
)

// waveRate is how many frames a second are drawn.
const waveRate = 25

// look draws sound as light on black, in so much of the frame's height.
type look struct {
	draw  func(size shape) string
	share float64
	place string // where that is
}

// looks are the words for them.
var looks = map[string]look{
	"wave":     {wave, 0.7, "(H-h)/2"},
	"line":     {line, 0.7, "(H-h)/2"},
	"bars":     {bars, 0.8, "H-h"},
	"spectrum": {spectrum, 1, "0"},
}

func wave(size shape) string {
	return fmt.Sprintf("showwaves=rate=%d:mode=cline:colors=white:scale=sqrt:draw=full:s=%s", waveRate, size)
}

// line is drawn a pixel wide and made thicker.
func line(size shape) string {
	return fmt.Sprintf("showwaves=rate=%d:mode=p2p:colors=white:scale=sqrt:draw=full:s=%s,format=gray%s", waveRate, size, strings.Repeat(",dilation", max(min(size.w, size.h)/250, 1)))
}

// bars are columns of single pixels, enlarged, with lines of black between.
func bars(size shape) string {
	const wide = 16
	many := size.w / wide
	return fmt.Sprintf("showfreqs=rate=%d:mode=bar:ascale=cbrt:fscale=log:colors=white:win_size=4096:averaging=3:s=%dx%d,scale=%d:%d:flags=neighbor,"+
		"drawgrid=x=-2:y=-10:w=%d:h=ih+20:t=4:c=black,pad=%d:%d:-1:0", waveRate, many, max(size.h/4, 16), many*wide, size.h, wide, size.w, size.h)
}

// spectrum has how loud each note is above, and how loud it was below.
func spectrum(size shape) string {
	now := even(size.h / 3)
	return fmt.Sprintf("showcqt=fps=%d:bar_h=%d:sono_h=%d:axis_h=0:axis=0:sono_g=4:bar_g=3:sono_v=12:bar_v=10:count=4:csp=bt709:s=%s", waveRate, now, size.h-now, size)
}

// waveform shows what a recording sounds like while it plays.
func waveform(ctx context.Context, w *work, s engine.Span, _ uint32) (string, error) {
	look, err := choice(w.task, "style", "wave", looks)
	if err != nil {
		return "", err
	}
	size, err := w.shape("size", 1280, 720)
	if err != nil {
		return "", err
	}
	colour, err := w.colour("colour", "#5ec8f2")
	if err != nil {
		return "", err
	}
	behind, err := w.colour("background", "#101820")
	if err != nil {
		return "", err
	}
	f, err := w.file("audio", "recording")
	if err != nil {
		return "", err
	}
	sound, length, err := w.sound(ctx, s.Part(0, 0.1), f, longestResult+1)
	if err != nil {
		return "", err
	}
	if length > longestResult+0.5 {
		return "", engine.Fail(engine.Failed, "The recording is longer than 5 minutes.")
	}
	args := sound.args()
	ground := fmt.Sprintf("color=c=%s:s=%s:r=%d,format=rgb24,%s", behind, size, waveRate, toVideo)
	if files := w.Files["picture"]; len(files) > 0 {
		p, err := w.picture(ctx, "picture", files[0])
		if err != nil {
			return "", err
		}
		plain, err := w.prepare(ctx, s.Part(0.15, 0.2), p, "plain", "255", "[in]"+cover(p.shape, size, sharp), true)
		if err != nil {
			return "", err
		}
		args = append(args, plain.args("-framerate", fmt.Sprint(waveRate))...)
		ground = fmt.Sprintf("[1:v]%s,loop=loop=-1:size=1:start=0,setpts=N/(%d*TB)", toVideo, waveRate)
	}
	tall := even(int(float64(size.h) * look.share))
	// What is drawn becomes the mask of a sheet of the colour.
	graph := fmt.Sprintf("[0:a]asplit[heard][seen];[seen]aformat=channel_layouts=mono,%s,format=gray[mask];color=c=%s:s=%dx%d:r=%d,format=rgba[sheet];"+
		"[sheet][mask]alphamerge,scale=out_color_matrix=bt709:out_range=tv,format=yuva420p[light];%s[ground];[ground][light]overlay=0:%s:shortest=1:format=yuv420,setsar=1[reel]",
		look.draw(shape{size.w, tall}), colour, size.w, tall, waveRate, ground, look.place)
	args = append(args, "-filter_complex", graph, "-map", "[reel]", "-map", "[heard]")
	args = append(args, film("result.mp4", fmt.Sprint(waveRate), length, true)...)
	return "result.mp4", w.run(ctx, s.Part(0.2, 1), length, errMaking, args...)
}
