package tiny

import "time"

// stageTimer adds up how long the stages of a job take. A stage may run several
// times.
type stageTimer struct {
	now    func() time.Time
	at     time.Time
	stages []stage
}

type stage struct {
	name  string
	times int
	took  time.Duration
}

// start starts a stage. The name of the stage is passed to endStage.
func (w *stageTimer) start() { w.at = w.now() }

// endStage ends the current stage, records its duration under the given name,
// and starts the next stage.
func (w *stageTimer) endStage(name string) {
	now := w.now()
	took := now.Sub(w.at)
	w.at = now
	for i := range w.stages {
		if w.stages[i].name == name {
			w.stages[i].times++
			w.stages[i].took += took
			return
		}
	}
	w.stages = append(w.stages, stage{name, 1, took})
}

// logAttrs returns the mean duration of each stage as attributes for a log
// line.
func (w *stageTimer) logAttrs() (all []any) {
	for _, s := range w.stages {
		all = append(all, s.name, (s.took / time.Duration(s.times)).Round(100*time.Microsecond).String())
	}
	return all
}
