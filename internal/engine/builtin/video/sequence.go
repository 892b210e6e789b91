package video

import (
	"fmt"
	"strings"

	"atelier/internal/engine"
)

// sequence is the timing of pictures that are shown one after the other. Each
// picture is shown for the same number of frames, from the start of its
// cross-fade to the start of the next cross-fade.
type sequence struct {
	fps, count, each int
	fade             int // length of a cross-fade in frames; 0 if there is none
}

// frameCount returns the number of frames of the picture with index i,
// including the cross-fade to the next picture.
func (r sequence) frameCount(i int) int {
	if i == r.count-1 {
		return r.each
	}
	return r.each + r.fade
}

// totalSeconds returns the length of the video in seconds.
func (r sequence) totalSeconds() float64 { return r.toSeconds(r.count * r.each) }

func (r sequence) toSeconds(frames int) float64 { return float64(frames) / float64(r.fps) }

func (r sequence) checkLength() error {
	if r.totalSeconds() > maxResultSeconds {
		return engine.Fail(engine.Failed, fmt.Sprintf("The video would last %.0f seconds. The limit is %.0f.", r.totalSeconds(), maxResultSeconds))
	}
	return nil
}

// joinFilters returns the filters that join the streams [name0], [name1] and so
// on into the stream [reel].
func (r sequence) joinFilters(name, transition string) string {
	var b strings.Builder
	if r.count == 1 {
		fmt.Fprintf(&b, "[%s0]null[reel]", name)
		return b.String()
	}
	if r.fade == 0 {
		for i := range r.count {
			fmt.Fprintf(&b, "[%s%d]", name, i)
		}
		fmt.Fprintf(&b, "concat=n=%d:v=1:a=0[reel]", r.count)
		return b.String()
	}
	last := name + "0"
	for i := 1; i < r.count; i++ {
		to := fmt.Sprintf("joined%d", i)
		if i == r.count-1 {
			to = "reel"
		}
		fmt.Fprintf(&b, "[%s][%s%d]xfade=transition=%s:duration=%s:offset=%s[%s];", last, name, i, transition,
			formatNumber(r.toSeconds(r.fade)), formatNumber(r.toSeconds(i*r.each)), to)
		last = to
	}
	return strings.TrimSuffix(b.String(), ";")
}
