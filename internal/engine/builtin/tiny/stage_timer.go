package tiny

import "time"

// watch adds up how long the stages of a job take.
type watch struct {
	now    func() time.Time
	at     time.Time
	stages []stage
}

type stage struct {
	name  string
	times int
	took  time.Duration
}

// begin begins a stage whose name end gives.
func (w *watch) begin() { w.at = w.now() }

// end ends a stage, and begins the next.
func (w *watch) end(name string) {
	now := w.now()
	took := now.Sub(w.at)
	w.at = now
	for i := range w.stages {
		if w.stages[i].name == name {
			w.stages[i].times, w.stages[i].took = w.stages[i].times+1, w.stages[i].took+took
			return
		}
	}
	w.stages = append(w.stages, stage{name, 1, took})
}

// attrs are the stages for a log line: how long each took in the mean.
func (w *watch) attrs() (all []any) {
	for _, s := range w.stages {
		all = append(all, s.name, (s.took / time.Duration(s.times)).Round(100*time.Microsecond).String())
	}
	return all
}
