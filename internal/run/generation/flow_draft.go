package generation

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/flow"
	"atelier/internal/run/run"
)

// ownFile stands for an input file of a flow in the inputs of its steps.
type ownFile struct {
	field string
	index int
}

// flowInputs returns the inputs of a flow for the planning of its steps.
func flowInputs(f catalog.FormInputs) map[string]any {
	all := make(map[string]any, len(f.Values)+len(f.Refs))
	for key, value := range f.Values {
		all[key] = value
	}
	for _, ref := range f.Refs {
		file := ownFile{ref.Field, ref.Index}
		if ref.List {
			list, _ := all[ref.Field].([]any)
			all[ref.Field] = append(list, file)
		} else {
			all[ref.Field] = file
		}
	}
	return all
}

// flowPlan is what a flow costs at most, and how long it takes.
type flowPlan struct {
	bounds    flow.Bounds
	estimated time.Duration
}

// planFlow returns what a run of a flow with these inputs costs at most. It
// returns an error if a list has more items than its step takes.
func (v validator) planFlow(ctx context.Context, t *catalog.Tool, filled catalog.FormInputs) (flowPlan, error) {
	var failure error
	find := v.catalog.Finder(ctx, &failure)
	bounds := t.FlowBounds(flowInputs(filled), find)
	if failure != nil {
		return flowPlan{}, failure
	}
	if s := bounds.Overfull; s != nil {
		path := "num_results"
		if s.ForEach.Kind == flow.FromField {
			path = "inputs." + s.ForEach.Field
		}
		return flowPlan{}, newInvalid([]fault.Field{{Path: path, Message: fmt.Sprintf("The step %s runs for at most %d items; this request has %d.", s.ID, s.Max, bounds.Items)}})
	}
	return flowPlan{bounds: bounds, estimated: estimateFlow(t, bounds, find)}, nil
}

// estimateFlow returns how long the steps of a flow take one after the other. It
// returns 0 if a tool has not been timed.
func estimateFlow(t *catalog.Tool, bounds flow.Bounds, find catalog.ToolFinder) time.Duration {
	all := time.Duration(0)
	for _, share := range bounds.Shares {
		named := find(share.Tool, t.FlowTools[share.Tool])
		if share.Otherwise || named == nil {
			continue
		}
		one := estimateDuration(named, 1)
		if one == 0 {
			return 0
		}
		all += one
	}
	return all
}

// checkRetry returns the run of the same flow whose finished steps a new run
// takes over.
func (v validator) checkRetry(ctx context.Context, d Draft, t *catalog.Tool) (run.Run, error) {
	refuse := func(message string) (run.Run, error) {
		return run.Run{}, newInvalid([]fault.Field{{Path: "retry_of", Message: message}})
	}
	if !t.IsFlow() {
		return refuse("Only flows can go on from an earlier run.")
	}
	var before run.Run
	err := v.db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		before, err = run.Get(ctx, tx, d.Principal.AccountID, d.RetryOf)
		return err
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return refuse("There is no such run.")
	case err != nil:
		return run.Run{}, err
	case before.ToolID != t.ID || !before.IsFlow():
		return refuse("This is a run of another tool.")
	case !before.State.IsEnded():
		return refuse("This run has not ended yet.")
	}
	return before, nil
}
