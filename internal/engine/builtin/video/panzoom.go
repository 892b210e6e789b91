package video

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"atelier/internal/engine"
)

// oversize is the factor by which a picture is rendered larger than the video,
// so that a part of it can fill the frame without blur.
const oversize = 1.2

// maxTravel is the largest length of the area that a pan covers, as a multiple
// of the view's length in that direction.
const maxTravel = 1.5

// motions are the ways in which the view can move over a picture.
var motions = []string{"zoom-in", "zoom-out", "left", "right", "up", "down"}

func motionWords() map[string]string {
	words := map[string]string{"mixed": "mixed"}
	for _, m := range motions {
		words[m] = m
	}
	return words
}

// isMixed reports whether the motion is chosen at random, by the seed.
func isMixed(t task) bool {
	m, err := choiceInput(t, "motion", "mixed", motionWords())
	return err == nil && m == "mixed"
}

var rates = map[string]int{"24": 24, "25": 25, "30": 30}

// makePanZoom makes a video in which the view moves slowly over each picture.
func makePanZoom(ctx context.Context, w *jobRun, s engine.Span, seed uint32) (string, error) {
	files, err := w.pictureInputs(1)
	if err != nil {
		return "", err
	}
	motion, err := choiceInput(w.task, "motion", "mixed", motionWords())
	if err != nil {
		return "", err
	}
	fps, err := choiceInput(w.task, "fps", "25", rates)
	if err != nil {
		return "", err
	}
	size, err := w.shapeInput("size", 1280, 720)
	if err != nil {
		return "", err
	}
	each := int(math.Round(w.NumberInput("seconds", 5, 0.2, 20) * float64(fps)))
	reel := sequence{fps: fps, each: max(each, 2), count: len(files)}
	if w.flagInput("fade", true) {
		reel.fade = min(int(0.6*float64(fps)), each/3)
	}
	if err := reel.checkLength(); err != nil {
		return "", err
	}
	random := rand.New(rand.NewPCG(uint64(seed), 0x6b656e))
	var graph strings.Builder
	var args []string
	for i, f := range files {
		m := viewMove{motion: motion, x: 0.5, y: 0.5}
		if motion == "mixed" {
			m = viewMove{motions[random.IntN(len(motions))], 0.3 + 0.4*random.Float64(), 0.3 + 0.4*random.Float64()}
		}
		part := s.SubSpan(0, 0.2).NthOf(i, len(files))
		in, chain, err := w.moveFilters(ctx, part, i, f, size, m, reel.frameCount(i))
		if err != nil {
			return "", err
		}
		args = append(args, in.inputArgs("-framerate", fmt.Sprint(fps))...)
		fmt.Fprintf(&graph, "[%d:v]%s,loop=loop=-1:size=1:start=0,setpts=N/(%d*TB),trim=end_frame=%d,%s[p%d];", i, videoColourFilter, fps, reel.frameCount(i), chain, i)
	}
	graph.WriteString(reel.joinFilters("p", "fade"))
	args = append(args, "-filter_complex", graph.String(), "-map", "[reel]")
	args = append(args, videoOutputArgs("result.mp4", fmt.Sprint(fps), reel.totalSeconds(), false)...)
	return "result.mp4", w.runFFmpeg(ctx, s.SubSpan(0.2, 1), reel.totalSeconds(), errRender, args...)
}

// videoColourFilter converts the colours of a picture to the colour space of
// video.
const videoColourFilter = "scale=out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int,format=yuv420p,setsar=1"

// viewMove is a motion of the view and a point in the picture: the point where
// a zoom ends or begins, or a point that a pan passes.
type viewMove struct {
	motion string
	x, y   float64 // the point, as fractions of width and height from 0 to 1
}

// moveFilters prepares the picture with index i and returns the filters that
// move the view over it for the given number of frames.
func (w *jobRun) moveFilters(ctx context.Context, s engine.Span, i int, f engine.File, size shape, m viewMove, frames int) (inputFile, string, error) {
	p, err := w.addStill(ctx, fmt.Sprintf("picture-%d", i), f)
	if err != nil {
		return inputFile{}, "", err
	}
	s.ReportProgress(0.3)
	view := shape{evenSide(int(float64(size.w) * oversize)), evenSide(int(float64(size.h) * oversize))}
	area := m.movingArea(p.shape, view)
	graph := "[in]" + coverFilters(p.shape, area, sharpFlags)
	in, err := w.prepareStill(ctx, s.SubSpan(0.3, 1), p, fmt.Sprintf("plain-%d", i), "255", graph, i == 0)
	if err != nil {
		return inputFile{}, "", err
	}
	return in, m.perspectiveFilters(area, view, size, frames), nil
}

// movingArea returns the size of the area in which the view moves. For a zoom
// it is the view itself. For a pan it is longer in the direction of the pan if
// the picture p is longer.
func (m viewMove) movingArea(p, view shape) shape {
	scale := max(float64(view.w)/float64(p.w), float64(view.h)/float64(p.h))
	area := view
	switch m.motion {
	case "left", "right":
		area.w = evenSide(int(min(max(float64(p.w)*scale, float64(view.w)), float64(view.w)*maxTravel)))
	case "up", "down":
		area.h = evenSide(int(min(max(float64(p.h)*scale, float64(view.h)), float64(view.h)*maxTravel)))
	}
	return area
}

// viewRect is the position and width of the view. Its height follows from its
// aspect ratio.
type viewRect struct{ x, y, w float64 }

// viewEnds returns the view at the beginning and at the end of the motion.
func (m viewMove) viewEnds(area, view shape) (from, to viewRect) {
	aw := float64(area.w)
	ah := float64(area.h)
	vw := float64(view.w)
	vh := float64(view.h)
	whole := viewRect{0, 0, vw}
	near := viewRect{m.x * vw * (1 - 1/oversize), m.y * vh * (1 - 1/oversize), vw / oversize}
	// If the picture is not longer than the view in the direction of a pan, the
	// view is made smaller so that it can move.
	along := max(aw/vw, ah/vh)
	zoom := max(1, oversize/along)
	w := vw / zoom
	h := vh / zoom
	first := viewRect{0, 0, w}
	last := viewRect{aw - w, ah - h, w}
	switch m.motion {
	case "zoom-in":
		return whole, near
	case "zoom-out":
		return near, whole
	case "left":
		return viewRect{last.x, m.y * last.y, w}, viewRect{first.x, m.y * last.y, w}
	case "right":
		return viewRect{first.x, m.y * last.y, w}, viewRect{last.x, m.y * last.y, w}
	case "up":
		return viewRect{m.x * last.x, last.y, w}, viewRect{m.x * last.x, first.y, w}
	}
	return viewRect{m.x * last.x, first.y, w}, viewRect{m.x * last.x, last.y, w}
}

// perspectiveFilters returns the filters that move the view. They use the
// perspective filter, which positions corners at fractions of a pixel. FFmpeg's
// zoom filters round to whole pixels, which makes the picture tremble.
func (m viewMove) perspectiveFilters(area, view, size shape, frames int) string {
	from, to := m.viewEnds(area, view)
	// The motion begins and ends slowly. The filter counts frames from 1.
	ease := fmt.Sprintf("(0.5-0.5*cos(PI*(on-1)/%d))", max(frames-1, 1))
	between := func(a, b float64) string { return fmt.Sprintf("%s+%s*%s", formatNumber(a), formatNumber(b-a), ease) }
	// The corners are positioned so that the view fills the top left part of
	// the filter's output, which is then cropped to the view's size.
	right := func(r viewRect) float64 { return r.x + r.w*float64(area.w)/float64(view.w) }
	below := func(r viewRect) float64 { return r.y + r.w*float64(area.h)/float64(view.w) }
	x0 := between(from.x, to.x)
	x1 := between(right(from), right(to))
	y0 := between(from.y, to.y)
	y1 := between(below(from), below(to))
	return fmt.Sprintf("perspective=x0='%[1]s':y0='%[3]s':x1='%[2]s':y1='%[3]s':x2='%[1]s':y2='%[4]s':x3='%[2]s':y3='%[4]s':interpolation=cubic:sense=source:eval=frame,crop=%[5]d:%[6]d:0:0,scale=%[7]d:%[8]d:flags=bicubic,setsar=1",
		x0, x1, y0, y1, view.w, view.h, size.w, size.h)
}
