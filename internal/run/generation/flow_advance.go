package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/flow"
	"atelier/internal/engine"
	"atelier/internal/people/person"
	"atelier/internal/run/run"
)

// cancelAgain is how long a flow waits for its cancelled steps before it looks
// at them again. Steps that end make it look sooner.
const cancelAgain = 2 * time.Second

// maxFailures is the number of failures to decide about a flow, in succession,
// after which the flow fails. With the delays between them, they take half an
// hour.
const maxFailures = 60

// AdvanceFlow decides what happens next in a flow: it starts the steps that can
// start, ends the flow, or cancels its steps. Nothing happens if the flow is not
// due.
//
// The state of a flow is only in the database, and each decision is one
// transaction, so any node can decide, and a decision is made once.
func (s *Service) AdvanceFlow(ctx context.Context, id string) error {
	var r run.Run
	err := s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		r, err = run.GetUnscoped(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	tool, err := s.Catalog.ToolVersion(ctx, r.ToolHash)
	if err != nil {
		return err
	}
	if !tool.IsFlow() {
		return fmt.Errorf("advance flow %s: version %s of the tool is no flow", id, r.ToolHash)
	}
	var cancel []run.Run
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		cancel, err = s.advanceInTx(ctx, tx, r, tool)
		return err
	})
	if err != nil {
		return err
	}
	failpoint.Hit("flow.after_advance")
	for _, step := range cancel {
		if err := s.cancelStep(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// advanceInTx makes the decision about a flow. It returns the runs that must be
// cancelled then, in transactions of their own, because their rows must not be
// locked together with that of the flow.
func (s *Service) advanceInTx(ctx context.Context, tx *sqldb.Tx, r run.Run, tool *catalog.Tool) (cancel []run.Run, err error) {
	err = person.Lock(ctx, tx, r.PersonID) // lock order: a person is always locked before runs
	if err != nil && !errors.Is(err, person.ErrDeleted) {
		return nil, err
	}
	isDeleted := err != nil
	due, ok, err := run.LockFlow(ctx, tx, r.ID)
	if err != nil || !ok {
		return nil, err
	}
	if r, err = run.GetUnscoped(ctx, tx, r.ID); err != nil {
		return nil, err
	}
	if r.State.IsEnded() {
		return nil, run.SetFlowDue(ctx, tx, r.ID, time.Time{})
	}
	f, err := s.loadFlow(ctx, tx, r, tool, due.RetryOf)
	if err != nil {
		return nil, err
	}
	end := f.decide()
	switch {
	case r.Cancel || isDeleted:
		end = &Outcome{State: run.Cancelled}
	case due.Failures >= maxFailures:
		end = failFlow(engine.Failed, "The flow could not be continued because of an internal error.")
	case end == nil:
		if end, err = f.startSteps(ctx, tx); err != nil {
			return nil, err
		}
	}
	if end == nil {
		failpoint.Hit("flow.before_commit")
		return nil, nil
	}
	if end.State != run.Succeeded {
		if cancel = f.activeRuns(); len(cancel) > 0 {
			return cancel, run.SetFlowDue(ctx, tx, r.ID, tx.Now.Add(cancelAgain))
		}
	}
	return nil, s.endInTx(ctx, tx, r, *end)
}

// cancelStep cancels the run of a step, and that of a flow in the flow with all
// its steps.
func (s *Service) cancelStep(ctx context.Context, step run.Run) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, step.PersonID); err != nil && !errors.Is(err, person.ErrDeleted) {
			return err
		}
		return s.cancelInTx(ctx, tx, step.AccountID, step.ID)
	})
}

// cancelInTx ends a queued run, or requests that the worker of a running run
// stop. It does nothing if the run has ended.
func (s *Service) cancelInTx(ctx context.Context, tx *sqldb.Tx, accountID, id string) error {
	r, ok, err := run.RequestCancel(ctx, tx, accountID, id)
	switch {
	case err != nil || !ok:
		return err
	case r.State == run.Queued:
		return s.endInTx(ctx, tx, r, Outcome{State: run.Cancelled})
	}
	tx.AfterCommit(func() { s.noticeChange(r) })
	return nil
}

// noticeChange tells the followers of a run on this node about a change, and the
// loop that decides about flows.
func (s *Service) noticeChange(r run.Run) {
	s.Hub.Notify(r.FollowedBy()...)
	if r.IsFlow() || r.ParentID != "" {
		s.FlowDue()
	}
}

// flowRun is a flow with the runs of its steps, while it is decided what happens
// next.
type flowRun struct {
	service *Service
	run     run.Run
	tool    *catalog.Tool // the version that the run was validated against
	retryOf string
	inputs  map[string]any // for flow.Definition.Next
	files   map[ownFile]run.Input
	stored  map[string]any // the inputs as they are stored
	steps   map[flow.Key]run.FlowStep
	plan    flow.Plan
}

// loadFlow reads what the decision about a flow depends on.
func (s *Service) loadFlow(ctx context.Context, tx *sqldb.Tx, r run.Run, tool *catalog.Tool, retryOf string) (*flowRun, error) {
	f := &flowRun{
		service: s,
		run:     r,
		tool:    tool,
		retryOf: retryOf,
		files:   map[ownFile]run.Input{},
		steps:   map[flow.Key]run.FlowStep{},
	}
	all, err := run.FlowSteps(ctx, tx, r.ID)
	if err != nil {
		return nil, err
	}
	children, err := f.readChildren(ctx, tx, all[r.ID])
	if err != nil {
		return nil, err
	}
	inputs, err := run.ListInputs(ctx, tx, r.ID)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		f.files[ownFile{in.Field, in.Index}] = in
	}
	if f.stored, err = catalog.DecodeObject(r.Inputs); err != nil {
		return nil, fmt.Errorf("read inputs of flow %s: %w", r.ID, err)
	}
	f.inputs = f.planInputs()
	f.plan = tool.Flow.Next(f.inputs, children)
	return f, nil
}

// readChildren returns the runs of the steps with references to their results.
func (f *flowRun) readChildren(ctx context.Context, tx *sqldb.Tx, steps []run.FlowStep) (map[flow.Key]flow.Child, error) {
	results, err := resultsOfSteps(ctx, tx, steps)
	if err != nil {
		return nil, err
	}
	children := map[flow.Key]flow.Child{}
	for _, step := range steps {
		key := keyOf(step)
		f.steps[key] = step
		child := flow.Child{State: childStates[step.Run.State]}
		for _, o := range results[step.Run.ID] {
			child.Results = append(child.Results, resultRef(o.Library+":"+o.ID))
		}
		children[key] = child
	}
	return children, nil
}

// resultRef is the library id of a result in the inputs of a step.
type resultRef string

var childStates = map[run.State]flow.ChildState{
	run.Queued:    flow.Active,
	run.Running:   flow.Active,
	run.Succeeded: flow.Succeeded,
	run.Failed:    flow.Failed,
	run.Cancelled: flow.Cancelled,
}

// resultsOfSteps returns the results of the runs of steps by run id. Those of a
// flow are the results of the steps that it delivers.
func resultsOfSteps(ctx context.Context, tx *sqldb.Tx, steps []run.FlowStep) (map[string][]run.Output, error) {
	var runs []run.Run
	for _, step := range steps {
		runs = append(runs, step.Run)
	}
	return outputsOf(ctx, tx, runs)
}

// outputsOf returns the results of runs by run id. A run may be listed several
// times: several runs of a flow can have taken over the same step.
func outputsOf(ctx context.Context, tx *sqldb.Tx, runs []run.Run) (map[string][]run.Output, error) {
	var single, flows []string
	for _, r := range runs {
		switch {
		case r.State != run.Succeeded:
		case r.IsFlow():
			if !slices.Contains(flows, r.ID) {
				flows = append(flows, r.ID)
			}
		default:
			single = append(single, r.ID)
		}
	}
	all, err := run.Outputs(ctx, tx, single...)
	if err != nil || len(flows) == 0 {
		return all, err
	}
	if all == nil {
		all = map[string][]run.Output{}
	}
	steps, err := run.FlowSteps(ctx, tx, flows...)
	if err != nil {
		return nil, err
	}
	for _, id := range flows {
		delivered := run.DeliveredSteps(steps[id])
		inner, err := resultsOfSteps(ctx, tx, delivered)
		if err != nil {
			return nil, err
		}
		for _, step := range delivered {
			all[id] = append(all[id], inner[step.Run.ID]...)
		}
	}
	return all, nil
}

// planInputs returns the values of the flow's form, with its files as ownFile.
func (f *flowRun) planInputs() map[string]any {
	all := make(map[string]any, len(f.stored))
	media := map[string]*catalog.Field{}
	for _, field := range f.tool.Leaves() {
		if field.IsMedia() {
			media[field.Key] = field
		}
	}
	for key, value := range f.stored {
		field := media[key]
		switch {
		case field == nil:
			all[key] = value
		case field.IsList():
			refs, _ := value.([]any)
			var list []any
			for i := range refs {
				list = append(list, ownFile{key, i})
			}
			all[key] = list
		default:
			all[key] = ownFile{key, 0}
		}
	}
	return all
}

// activeRuns returns the runs of steps that have not ended.
func (f *flowRun) activeRuns() (all []run.Run) {
	for _, step := range f.steps {
		if !step.Run.State.IsEnded() {
			all = append(all, step.Run)
		}
	}
	return all
}

// decide returns how the flow ends, or nil if it goes on. A flow that fails or
// is cancelled ends after its active steps.
func (f *flowRun) decide() *Outcome {
	switch {
	case f.plan.Failed != nil:
		return f.failedStep(*f.plan.Failed)
	case !f.plan.Ended:
		return nil
	case len(f.plan.Results) == 0:
		return failFlow(engine.Invalid, "No step of the flow made a result.")
	}
	end := &Outcome{State: run.Succeeded, Took: f.service.DB.Now().Sub(f.run.Created)}
	for _, key := range f.plan.Makers {
		end.Delivered = append(end.Delivered, f.steps[key])
	}
	for _, step := range f.steps {
		if !f.tool.Flow.Keeps(step.Step) && !step.Reused && step.Run.State == run.Succeeded {
			end.Dropped = append(end.Dropped, step.Run.ID)
		}
	}
	return end
}

func failFlow(code engine.Code, message string) *Outcome {
	return &Outcome{State: run.Failed, ErrorCode: string(code), ErrorText: message}
}

// failedStep returns the end of a flow because of a run of a step.
func (f *flowRun) failedStep(key flow.Key) *Outcome {
	r := f.steps[key].Run
	if r.State == run.Cancelled {
		return failFlow(engine.Failed, fmt.Sprintf("The step %s was cancelled.", f.describe(key)))
	}
	return failFlow(engine.Code(r.ErrorCode), fmt.Sprintf("The step %s failed: %s", f.describe(key), r.ErrorText))
}

// describe names a run of a step for people, as in "clips (item 2, Slideshow)".
func (f *flowRun) describe(key flow.Key) string {
	s := f.tool.Flow.StepByID(key.Step)
	tool := s.Tool
	if key.Otherwise {
		tool = s.Otherwise.Tool
	}
	if s.ForEach != nil {
		return fmt.Sprintf("%s (item %d, %s)", key.Step, key.Place+1, tool)
	}
	return fmt.Sprintf("%s (%s)", key.Step, tool)
}
