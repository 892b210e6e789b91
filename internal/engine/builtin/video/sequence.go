package video

import (
	"fmt"
	"strings"

	"atelier/internal/engine"
)

// reel is pictures one after the other. A picture has each frames, from the
// beginning of its cross-fade to that of the next.
type reel struct {
	fps, many, each int
	fade            int // frames of a cross-fade, 0 for none
}

// frames is how many the ith picture is shown for, with the fade to the next.
func (r reel) frames(i int) int {
	if i == r.many-1 {
		return r.each
	}
	return r.each + r.fade
}

// length is how many seconds it lasts.
func (r reel) length() float64 { return r.seconds(r.many * r.each) }

func (r reel) seconds(frames int) float64 { return float64(frames) / float64(r.fps) }

func (r reel) fits() error {
	if r.length() > longestResult {
		return engine.Fail(engine.Failed, fmt.Sprintf("The video would last %.0f seconds; at most %.0f are possible.", r.length(), longestResult))
	}
	return nil
}

// join gives the filters that put the streams [name0] and so on together as
// [reel].
func (r reel) join(name, transition string) string {
	var b strings.Builder
	if r.many == 1 {
		fmt.Fprintf(&b, "[%s0]null[reel]", name)
		return b.String()
	}
	if r.fade == 0 {
		for i := range r.many {
			fmt.Fprintf(&b, "[%s%d]", name, i)
		}
		fmt.Fprintf(&b, "concat=n=%d:v=1:a=0[reel]", r.many)
		return b.String()
	}
	last := name + "0"
	for i := 1; i < r.many; i++ {
		to := fmt.Sprintf("joined%d", i)
		if i == r.many-1 {
			to = "reel"
		}
		fmt.Fprintf(&b, "[%s][%s%d]xfade=transition=%s:duration=%s:offset=%s[%s];", last, name, i, transition,
			num(r.seconds(r.fade)), num(r.seconds(i*r.each)), to)
		last = to
	}
	return strings.TrimSuffix(b.String(), ";")
}
