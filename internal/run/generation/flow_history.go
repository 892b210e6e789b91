package generation

import (
	"context"
	"fmt"
	"slices"

	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/provenance"
	"atelier/internal/run/run"
)

// FlowHistory adds to the statement of origin of a run that is a step of a flow:
// the flow, and the steps whose results it uses, directly or through other
// steps. It adds nothing for other runs. The result counts as made by a trained
// model if one of these steps used one, which isTrained reports.
func (s *Service) FlowHistory(ctx context.Context, r run.Run, statement *provenance.Statement, isTrained func(*catalog.Tool) bool) error {
	if r.ParentID == "" {
		return nil
	}
	return s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		r := r
		h := flowHistory{service: s, tx: tx, isTrained: isTrained}
		statement.Steps = nil
		for r.ParentID != "" {
			parent, err := run.GetUnscoped(ctx, tx, r.ParentID)
			if err != nil {
				return err
			}
			earlier, err := h.stepsBefore(ctx, parent, r.ID)
			if err != nil {
				return err
			}
			statement.Steps = slices.Concat(earlier, statement.Steps)
			names, err := s.Catalog.CurrentSnapshot().ToolNames(ctx, tx, []string{parent.ToolID})
			if err != nil {
				return err
			}
			statement.Flow = names[parent.ToolID]
			statement.FlowRequestID = parent.ID
			r = parent
		}
		statement.Trained = statement.Trained || h.trained
		return nil
	})
}

// flowHistory collects the steps that led to a result.
type flowHistory struct {
	service   *Service
	tx        *sqldb.Tx
	isTrained func(*catalog.Tool) bool
	trained   bool // one of the steps used a trained model
}

// stepsBefore returns the runs of a flow whose results a run of one of its steps
// uses. The steps of flows among them are named instead of the flows.
func (h *flowHistory) stepsBefore(ctx context.Context, flow run.Run, runID string) ([]provenance.Step, error) {
	tool, err := h.service.Catalog.ToolVersion(ctx, flow.ToolHash)
	if err != nil {
		return nil, err
	}
	if !tool.IsFlow() {
		return nil, fmt.Errorf("version %s of the tool of flow %s is no flow", flow.ToolHash, flow.ID)
	}
	steps, err := run.FlowSteps(ctx, h.tx, flow.ID)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(steps[flow.ID], func(step run.FlowStep) bool { return step.Run.ID == runID })
	if i < 0 {
		return nil, fmt.Errorf("run %s is no step of flow %s", runID, flow.ID)
	}
	needed := tool.Flow.Ancestors(steps[flow.ID][i].Step)
	var all []provenance.Step
	for _, step := range steps[flow.ID] {
		if step.Run.State != run.Succeeded || !slices.Contains(needed, step.Step) {
			continue
		}
		inner, err := h.describeStep(ctx, step)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

func (h *flowHistory) describeStep(ctx context.Context, step run.FlowStep) ([]provenance.Step, error) {
	if !step.Run.IsFlow() {
		tool, err := h.service.Catalog.ToolVersion(ctx, step.Run.ToolHash)
		if err != nil {
			return nil, err
		}
		h.trained = h.trained || h.isTrained(tool)
		return []provenance.Step{{
			Name:      step.Step,
			Tool:      h.service.Catalog.CurrentSnapshot().ToolName(step.Run.ToolID),
			RequestID: step.Run.ID,
			Seed:      uint32(step.Run.Seed),
		}}, nil
	}
	inner, err := run.FlowSteps(ctx, h.tx, step.Run.ID)
	if err != nil {
		return nil, err
	}
	var all []provenance.Step
	for _, one := range inner[step.Run.ID] {
		if one.Run.State != run.Succeeded {
			continue
		}
		steps, err := h.describeStep(ctx, one)
		if err != nil {
			return nil, err
		}
		all = append(all, steps...)
	}
	return all, nil
}
