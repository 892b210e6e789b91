package generation

import (
	"context"
	"fmt"
	"slices"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/provenance"
	"atelier/internal/run/run"
)

// FlowHistory adds to the statement of origin of a run that is a step of a flow:
// the flow, and the steps whose results it uses, directly or through other
// steps. It adds nothing for other runs.
func (s *Service) FlowHistory(ctx context.Context, r run.Run, statement *provenance.Statement) error {
	if r.ParentID == "" {
		return nil
	}
	return s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		r := r
		statement.Steps = nil
		for r.ParentID != "" {
			parent, err := run.GetUnscoped(ctx, tx, r.ParentID)
			if err != nil {
				return err
			}
			earlier, err := s.stepsBefore(ctx, tx, parent, r.ID)
			if err != nil {
				return err
			}
			statement.Steps = slices.Concat(earlier, statement.Steps)
			statement.Flow = s.Catalog.CurrentSnapshot().ToolName(parent.ToolID)
			statement.FlowRequestID = parent.ID
			r = parent
		}
		return nil
	})
}

// stepsBefore returns the runs of a flow whose results a run of one of its steps
// uses. The steps of flows among them are named instead of the flows.
func (s *Service) stepsBefore(ctx context.Context, tx *sqldb.Tx, flow run.Run, runID string) ([]provenance.Step, error) {
	tool, err := s.Catalog.ToolVersion(ctx, flow.ToolHash)
	if err != nil {
		return nil, err
	}
	if !tool.IsFlow() {
		return nil, fmt.Errorf("version %s of the tool of flow %s is no flow", flow.ToolHash, flow.ID)
	}
	steps, err := run.FlowSteps(ctx, tx, flow.ID)
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
		inner, err := s.describeStep(ctx, tx, step)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

func (s *Service) describeStep(ctx context.Context, tx *sqldb.Tx, step run.FlowStep) ([]provenance.Step, error) {
	if !step.Run.IsFlow() {
		return []provenance.Step{{
			Name:      step.Step,
			Tool:      s.Catalog.CurrentSnapshot().ToolName(step.Run.ToolID),
			RequestID: step.Run.ID,
			Seed:      uint32(step.Run.Seed),
		}}, nil
	}
	inner, err := run.FlowSteps(ctx, tx, step.Run.ID)
	if err != nil {
		return nil, err
	}
	var all []provenance.Step
	for _, one := range inner[step.Run.ID] {
		if one.Run.State != run.Succeeded {
			continue
		}
		steps, err := s.describeStep(ctx, tx, one)
		if err != nil {
			return nil, err
		}
		all = append(all, steps...)
	}
	return all, nil
}
