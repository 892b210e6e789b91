package video

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"atelier/internal/engine"
)

// A picture is drawn larger than the video by this much, so that a part of it
// can fill the frame without getting soft.
const headroom = 1.2

// mostTravel is how much longer than the view the part of a wide or tall
// picture is that a pan goes over.
const mostTravel = 1.5

// motions are the ways that the view can move.
var motions = []string{"zoom-in", "zoom-out", "left", "right", "up", "down"}

func motionWords() map[string]string {
	words := map[string]string{"mixed": "mixed"}
	for _, m := range motions {
		words[m] = m
	}
	return words
}

// mixed tells whether the seed chooses.
func mixed(t task) bool {
	m, err := choice(t, "motion", "mixed", motionWords())
	return err == nil && m == "mixed"
}

var rates = map[string]int{"24": 24, "25": 25, "30": 30}

// panZoom makes a video of pictures over which the view moves slowly.
func panZoom(ctx context.Context, w *work, s engine.Span, seed uint32) (string, error) {
	files, err := w.pictures(1)
	if err != nil {
		return "", err
	}
	motion, err := choice(w.task, "motion", "mixed", motionWords())
	if err != nil {
		return "", err
	}
	fps, err := choice(w.task, "fps", "25", rates)
	if err != nil {
		return "", err
	}
	size, err := w.shape("size", 1280, 720)
	if err != nil {
		return "", err
	}
	each := int(math.Round(w.Number("seconds", 5, 0.2, 20) * float64(fps)))
	reel := reel{fps: fps, each: max(each, 2), many: len(files)}
	if w.flag("fade", true) {
		reel.fade = min(int(0.6*float64(fps)), each/3)
	}
	if err := reel.fits(); err != nil {
		return "", err
	}
	random := rand.New(rand.NewPCG(uint64(seed), 0x6b656e))
	var graph strings.Builder
	var args []string
	for i, f := range files {
		m := move{motion: motion, x: 0.5, y: 0.5}
		if motion == "mixed" {
			m = move{motions[random.IntN(len(motions))], 0.3 + 0.4*random.Float64(), 0.3 + 0.4*random.Float64()}
		}
		part := s.Part(0, 0.2).Of(i, len(files))
		in, chain, err := w.moving(ctx, part, i, f, size, m, reel.frames(i))
		if err != nil {
			return "", err
		}
		args = append(args, in.args("-framerate", fmt.Sprint(fps))...)
		fmt.Fprintf(&graph, "[%d:v]%s,loop=loop=-1:size=1:start=0,setpts=N/(%d*TB),trim=end_frame=%d,%s[p%d];", i, toVideo, fps, reel.frames(i), chain, i)
	}
	graph.WriteString(reel.join("p", "fade"))
	args = append(args, "-filter_complex", graph.String(), "-map", "[reel]")
	args = append(args, film("result.mp4", fmt.Sprint(fps), reel.length(), false)...)
	return "result.mp4", w.run(ctx, s.Part(0.2, 1), reel.length(), errMaking, args...)
}

// toVideo converts the colours of a picture to those of video.
const toVideo = "scale=out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int,format=yuv420p,setsar=1"

// move is a motion, and the point that a zoom goes to or comes from, or that a
// pan goes through.
type move struct {
	motion string
	x, y   float64 // from 0 to 1
}

// moving prepares a picture and gives the filters that move the view over it,
// for so many frames.
func (w *work) moving(ctx context.Context, s engine.Span, i int, f engine.File, size shape, m move, frames int) (input, string, error) {
	p, err := w.picture(ctx, fmt.Sprintf("picture-%d", i), f)
	if err != nil {
		return input{}, "", err
	}
	s.At(0.3)
	view := shape{even(int(float64(size.w) * headroom)), even(int(float64(size.h) * headroom))}
	area := m.area(p.shape, view)
	graph := "[in]" + cover(p.shape, area, sharp)
	in, err := w.prepare(ctx, s.Part(0.3, 1), p, fmt.Sprintf("plain-%d", i), "255", graph, i == 0)
	if err != nil {
		return input{}, "", err
	}
	return in, m.filters(area, view, size, frames), nil
}

// area gives the size, in pixels of the view, of the part that the view moves
// in: that of the view for a zoom; for a pan, more along the way where the
// picture has it.
func (m move) area(p, view shape) shape {
	scale := max(float64(view.w)/float64(p.w), float64(view.h)/float64(p.h))
	area := view
	switch m.motion {
	case "left", "right":
		area.w = even(int(min(max(float64(p.w)*scale, float64(view.w)), float64(view.w)*mostTravel)))
	case "up", "down":
		area.h = even(int(min(max(float64(p.h)*scale, float64(view.h)), float64(view.h)*mostTravel)))
	}
	return area
}

// rect is where the view is.
type rect struct{ x, y, w float64 }

// ends gives where the view begins and where it ends.
func (m move) ends(area, view shape) (from, to rect) {
	aw := float64(area.w)
	ah := float64(area.h)
	vw := float64(view.w)
	vh := float64(view.h)
	whole := rect{0, 0, vw}
	near := rect{m.x * vw * (1 - 1/headroom), m.y * vh * (1 - 1/headroom), vw / headroom}
	// A pan over a picture without room along the way goes nearer to make some.
	along := max(aw/vw, ah/vh)
	zoom := max(1, headroom/along)
	w := vw / zoom
	h := vh / zoom
	first := rect{0, 0, w}
	last := rect{aw - w, ah - h, w}
	switch m.motion {
	case "zoom-in":
		return whole, near
	case "zoom-out":
		return near, whole
	case "left":
		return rect{last.x, m.y * last.y, w}, rect{first.x, m.y * last.y, w}
	case "right":
		return rect{first.x, m.y * last.y, w}, rect{last.x, m.y * last.y, w}
	case "up":
		return rect{m.x * last.x, last.y, w}, rect{m.x * last.x, first.y, w}
	}
	return rect{m.x * last.x, first.y, w}, rect{m.x * last.x, last.y, w}
}

// filters moves the view. The filter for perspective places corners to parts of
// a pixel; those made for zooming round to whole ones, and tremble.
func (m move) filters(area, view, size shape, frames int) string {
	from, to := m.ends(area, view)
	// Slow at both ends. The filter counts frames from 1.
	ease := fmt.Sprintf("(0.5-0.5*cos(PI*(on-1)/%d))", max(frames-1, 1))
	between := func(a, b float64) string { return fmt.Sprintf("%s+%s*%s", num(a), num(b-a), ease) }
	// The corners of the whole area are placed so that the view fills the top
	// left part of the result that has the view's size.
	right := func(r rect) float64 { return r.x + r.w*float64(area.w)/float64(view.w) }
	below := func(r rect) float64 { return r.y + r.w*float64(area.h)/float64(view.w) }
	x0 := between(from.x, to.x)
	x1 := between(right(from), right(to))
	y0 := between(from.y, to.y)
	y1 := between(below(from), below(to))
	return fmt.Sprintf("perspective=x0='%[1]s':y0='%[3]s':x1='%[2]s':y1='%[3]s':x2='%[1]s':y2='%[4]s':x3='%[2]s':y3='%[4]s':interpolation=cubic:sense=source:eval=frame,crop=%[5]d:%[6]d:0:0,scale=%[7]d:%[8]d:flags=bicubic,setsar=1",
		x0, x1, y0, y1, view.w, view.h, size.w, size.h)
}
