package generation

import (
	"context"
	"maps"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/flow"
	"atelier/internal/engine"
	"atelier/internal/file/library"
	"atelier/internal/run/run"
)

// StepRecord is a run of a step of a flow, with its results.
type StepRecord struct {
	run.FlowStep
	ToolName string
	Outputs  []run.Output
}

// addSteps adds the runs of steps to the records of flows, and what follows from
// them: progress, start, preview and price.
func (s *Service) addSteps(ctx context.Context, tx *sqldb.Tx, all []Record) error {
	var ids []string
	for _, rec := range all {
		if rec.IsFlow() {
			ids = append(ids, rec.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	steps, err := readStepTree(ctx, tx, ids)
	if err != nil {
		return err
	}
	var shown []run.FlowStep
	for _, id := range ids {
		shown = append(shown, steps[id]...)
	}
	outputs, err := resultsOfSteps(ctx, tx, shown)
	if err != nil {
		return err
	}
	var tools []string
	for _, step := range shown {
		tools = append(tools, step.Run.ToolID)
	}
	for _, rec := range all {
		tools = append(tools, rec.ToolID)
	}
	names, err := s.Catalog.CurrentSnapshot().ToolNames(ctx, tx, tools)
	if err != nil {
		return err
	}
	for i := range all {
		rec := &all[i]
		if !rec.IsFlow() {
			continue
		}
		rec.ToolName = names[rec.ToolID]
		rec.PreviewRun = sumSteps(&rec.Run, steps)
		for _, step := range steps[rec.ID] {
			sumSteps(&step.Run, steps)
			rec.Steps = append(rec.Steps, StepRecord{FlowStep: step, ToolName: names[step.Run.ToolID], Outputs: outputs[step.Run.ID]})
		}
		if rec.State.IsEnded() {
			continue
		}
		if err := s.addProgress(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// readStepTree returns the runs of the steps of flows, and of the flows among
// them, by the id of the flow.
func readStepTree(ctx context.Context, tx *sqldb.Tx, ids []string) (map[string][]run.FlowStep, error) {
	all := map[string][]run.FlowStep{}
	for len(ids) > 0 {
		some, err := run.FlowSteps(ctx, tx, ids...)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, some)
		ids = nil
		for _, steps := range some {
			for _, step := range steps {
				if step.Run.IsFlow() {
					ids = append(ids, step.Run.ID)
				}
			}
		}
	}
	return all, nil
}

// sumSteps adds to a flow the revisions, the start and the price of its steps.
// It returns the run whose preview is shown. It changes no other run.
func sumSteps(r *run.Run, all map[string][]run.FlowStep) (previewRun string) {
	previewRun = r.ID
	for _, step := range all[r.ID] {
		if step.Reused {
			continue
		}
		one := step.Run
		preview := sumSteps(&one, all)
		r.Revision += one.Revision
		r.TokensCharged += one.TokensCharged
		r.AllowanceUsed += one.AllowanceUsed
		if !one.Started.IsZero() && (r.Started.IsZero() || one.Started.Before(r.Started)) {
			r.Started = one.Started
		}
		if one.Preview != "" {
			r.Preview = one.Preview
			previewRun = preview
		}
	}
	return previewRun
}

// addProgress derives the progress of a flow from its steps, by the usual
// durations of their tools.
func (s *Service) addProgress(ctx context.Context, rec *Record) error {
	tool, err := s.Catalog.ToolVersion(ctx, rec.ToolHash)
	if err != nil || !tool.IsFlow() {
		return err
	}
	find := s.Catalog.Finder(ctx, &err)
	weightOf := func(slug string) float64 {
		named := find(slug, tool.FlowTools[slug])
		if named == nil || named.AverageDuration == 0 {
			return 1
		}
		return max(named.AverageDuration.Seconds(), 0.001)
	}
	total := 0.0
	for _, share := range tool.FlowBounds(nil, find).Shares {
		if !share.Otherwise {
			total += float64(share.Runs) * weightOf(share.Tool)
		}
	}
	done := 0.0
	for _, step := range rec.Steps {
		definition := tool.Flow.StepByID(step.Step)
		if definition == nil {
			continue
		}
		weight := weightOf(definition.Tool)
		switch fraction := step.Run.ProgressFraction(); {
		case step.Run.State == run.Succeeded:
			done += weight
		case fraction != nil:
			done += weight * *fraction
		}
	}
	if rec.Started.IsZero() {
		return err
	}
	thousandths := int64(min(done/max(total, done, 1e-9), 0.999) * 1000)
	rec.Progress = &thousandths
	return err
}

// StepJSON is a run of a step in the representation of a flow. It corresponds to
// the schema GenerationStep of the OpenAPI document.
type StepJSON struct {
	Error             *FailureJSON `json:"error"`
	Finished          *time.Time   `json:"finished"`
	FreeAllowanceUsed int64        `json:"free_allowance_used"`
	Intermediate      bool         `json:"intermediate"`
	Item              int64        `json:"item"`
	Otherwise         bool         `json:"otherwise"`
	Outputs           []OutputJSON `json:"outputs"`
	Progress          *float64     `json:"progress"`
	RequestID         string       `json:"request_id"`
	Reused            bool         `json:"reused"`
	Seed              int64        `json:"seed"`
	Stage             *string      `json:"stage"`
	Started           *time.Time   `json:"started"`
	Status            string       `json:"status"`
	Step              string       `json:"step"`
	TokensCharged     int64        `json:"tokens_charged"`
	ToolID            string       `json:"tool_id"`
	ToolName          *string      `json:"tool_name"`
}

// stepsJSON returns the steps of a flow, or nil for other runs.
func (rec Record) stepsJSON(links library.URLSigner, viewerID string) []StepJSON {
	if !rec.IsFlow() {
		return nil
	}
	all := []StepJSON{}
	for _, step := range rec.Steps {
		all = append(all, step.StepJSON(links, viewerID))
	}
	return all
}

// StepJSON converts a run of a step to its API representation. The URLs of its
// results are signed for the viewer.
func (s StepRecord) StepJSON(links library.URLSigner, viewerID string) StepJSON {
	r := s.Run
	out := StepJSON{
		Step:              s.Step,
		Item:              s.Place,
		Otherwise:         s.Otherwise,
		RequestID:         r.ID,
		ToolID:            r.ToolID,
		ToolName:          orNull(s.ToolName),
		Status:            r.State.PublicStatus(),
		Started:           optionalTime(r.Started),
		Finished:          optionalTime(r.Finished),
		Seed:              r.Seed,
		Reused:            s.Reused,
		Intermediate:      s.Delivered == nil,
		TokensCharged:     r.TokensCharged,
		FreeAllowanceUsed: r.AllowanceUsed,
		Error:             failureJSON(r),
		Outputs:           []OutputJSON{},
	}
	if !r.State.IsEnded() {
		out.Stage = orNull(string(r.Stage()))
		out.Progress = r.ProgressFraction()
	}
	for _, o := range s.Outputs {
		out.Outputs = append(out.Outputs, outputJSON(links, o, viewerID))
	}
	return out
}

// StepsSince returns the runs of steps of a flow that were created after an
// earlier record of the flow, or have changed their stage since.
func (rec Record) StepsSince(earlier Record) (all []StepRecord) {
	before := make(map[flow.Key]run.State, len(earlier.Steps))
	for _, step := range earlier.Steps {
		before[keyOf(step.FlowStep)] = step.Run.Stage()
	}
	for _, step := range rec.Steps {
		if before[keyOf(step.FlowStep)] != step.Run.Stage() {
			all = append(all, step)
		}
	}
	return all
}

// keyOf returns what identifies a run of a step within its flow.
func keyOf(s run.FlowStep) flow.Key {
	return flow.Key{Step: s.Step, Otherwise: s.Otherwise, Place: int(s.Place)}
}

// failureJSON says why a run failed. It is nil for other runs.
func failureJSON(r run.Run) *FailureJSON {
	if r.State != run.Failed {
		return nil
	}
	return &FailureJSON{
		Code:      r.ErrorCode,
		Message:   r.ErrorText,
		Retryable: retryableCodes[engine.Code(r.ErrorCode)],
		Details:   map[string]any{},
	}
}
