package video

import (
	"context"
	"fmt"
	"strings"

	"atelier/internal/engine"
)

// waveRate is the number of frames per second of the video.
const waveRate = 25

// waveStyle is a way to draw sound: the filters that draw it in white on black,
// and the fraction of the frame's height that the drawing takes.
type waveStyle struct {
	draw     func(size shape) string
	share    float64
	overlayY string // vertical position, as an expression of FFmpeg's overlay filter
}

// waveStyles are the styles of drawing sound, by their names in manifests.
var waveStyles = map[string]waveStyle{
	"wave":     {drawWave, 0.7, "(H-h)/2"},
	"line":     {drawLine, 0.7, "(H-h)/2"},
	"bars":     {drawBars, 0.8, "H-h"},
	"spectrum": {drawSpectrum, 1, "0"},
}

func drawWave(size shape) string {
	return fmt.Sprintf("showwaves=rate=%d:mode=cline:colors=white:scale=sqrt:draw=full:s=%s", waveRate, size)
}

// drawLine returns filters that draw the waveform as a line one pixel wide and
// then thicken it.
func drawLine(size shape) string {
	return fmt.Sprintf("showwaves=rate=%d:mode=p2p:colors=white:scale=sqrt:draw=full:s=%s,format=gray%s", waveRate, size, strings.Repeat(",dilation", max(min(size.w, size.h)/250, 1)))
}

// drawBars returns filters that draw the spectrum as bars. They draw columns of
// single pixels, enlarge them and draw black lines between them.
func drawBars(size shape) string {
	const wide = 16
	many := size.w / wide
	return fmt.Sprintf("showfreqs=rate=%d:mode=bar:ascale=cbrt:fscale=log:colors=white:win_size=4096:averaging=3:s=%dx%d,scale=%d:%d:flags=neighbor,"+
		"drawgrid=x=-2:y=-10:w=%d:h=ih+20:t=4:c=black,pad=%d:%d:-1:0", waveRate, many, max(size.h/4, 16), many*wide, size.h, wide, size.w, size.h)
}

// drawSpectrum returns a filter that draws the current loudness of each note at
// the top and its history below.
func drawSpectrum(size shape) string {
	now := evenSide(size.h / 3)
	return fmt.Sprintf("showcqt=fps=%d:bar_h=%d:sono_h=%d:axis_h=0:axis=0:sono_g=4:bar_g=3:sono_v=12:bar_v=10:count=4:csp=bt709:s=%s", waveRate, now, size.h-now, size)
}

// drawWaveform makes a video that shows the sound of a recording while it
// plays.
func drawWaveform(ctx context.Context, w *jobRun, s engine.Span, _ uint32) (string, error) {
	look, err := choiceInput(w.task, "style", "wave", waveStyles)
	if err != nil {
		return "", err
	}
	size, err := w.shapeInput("size", 1280, 720)
	if err != nil {
		return "", err
	}
	colour, err := w.colourInput("colour", "#5ec8f2")
	if err != nil {
		return "", err
	}
	behind, err := w.colourInput("background", "#101820")
	if err != nil {
		return "", err
	}
	f, err := w.fileInput("audio", "recording")
	if err != nil {
		return "", err
	}
	sound, length, err := w.prepareSound(ctx, s.SubSpan(0, 0.1), f, maxResultSeconds+1)
	if err != nil {
		return "", err
	}
	if length > maxResultSeconds+0.5 {
		return "", engine.Fail(engine.Failed, "The recording is longer than 5 minutes.")
	}
	args := sound.inputArgs()
	ground := fmt.Sprintf("color=c=%s:s=%s:r=%d,format=rgb24,%s", behind, size, waveRate, videoColourFilter)
	if files := w.Files["picture"]; len(files) > 0 {
		p, err := w.addStill(ctx, "picture", files[0])
		if err != nil {
			return "", err
		}
		plain, err := w.prepareStill(ctx, s.SubSpan(0.15, 0.2), p, "plain", "255", "[in]"+coverFilters(p.shape, size, sharpFlags), true)
		if err != nil {
			return "", err
		}
		args = append(args, plain.inputArgs("-framerate", fmt.Sprint(waveRate))...)
		ground = fmt.Sprintf("[1:v]%s,loop=loop=-1:size=1:start=0,setpts=N/(%d*TB)", videoColourFilter, waveRate)
	}
	tall := evenSide(int(float64(size.h) * look.share))
	// The drawing is used as the alpha mask of a plain area in the chosen
	// colour.
	graph := fmt.Sprintf("[0:a]asplit[heard][seen];[seen]aformat=channel_layouts=mono,%s,format=gray[mask];color=c=%s:s=%dx%d:r=%d,format=rgba[sheet];"+
		"[sheet][mask]alphamerge,scale=out_color_matrix=bt709:out_range=tv,format=yuva420p[light];%s[ground];[ground][light]overlay=0:%s:shortest=1:format=yuv420,setsar=1[reel]",
		look.draw(shape{size.w, tall}), colour, size.w, tall, waveRate, ground, look.overlayY)
	args = append(args, "-filter_complex", graph, "-map", "[reel]", "-map", "[heard]")
	args = append(args, videoOutputArgs("result.mp4", fmt.Sprint(waveRate), length, true)...)
	return "result.mp4", w.runFFmpeg(ctx, s.SubSpan(0.2, 1), length, errRender, args...)
}
