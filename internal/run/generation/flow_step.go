package generation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/flow"
	"atelier/internal/engine"
	"atelier/internal/file/asset"
	"atelier/internal/file/library"
	"atelier/internal/run/run"
)

// newStep is a run of a step that is about to be stored.
type newStep struct {
	key    flow.Key
	run    run.Run
	inputs []run.Input
	reused bool
}

// startSteps starts the steps that can start now, and sets when the flow is due
// next. If a step has invalid inputs, it starts none and returns how the flow
// ends.
func (f *flowRun) startSteps(ctx context.Context, tx *sqldb.Tx) (end *Outcome, err error) {
	hold := &remainingHold{}
	if hold.tokens, hold.allowance, err = run.FlowHold(ctx, tx, f.run); err != nil {
		return nil, err
	}
	before, err := f.earlierSteps(ctx, tx)
	if err != nil {
		return nil, err
	}
	var steps []newStep
	var queued []run.Run
	for _, start := range f.plan.Start {
		one, err := f.prepare(ctx, tx, start)
		if refusal, ok := errors.AsType[*fault.Error](err); ok && isRefusal(refusal) {
			return failFlow(refusalCode(refusal), fmt.Sprintf("The step %s cannot run: %s", f.describe(start.Key), describeRefusal(refusal))), nil
		}
		if err != nil {
			return nil, err
		}
		if reused, ok, err := f.findReusable(ctx, tx, one, before); err != nil {
			return nil, err
		} else if ok {
			one = reused
		} else if err := hold.pass(&one.run, one.price()); err != nil {
			return nil, err
		}
		steps = append(steps, one)
		if !one.reused {
			queued = append(queued, one.run)
		}
	}
	if err := run.EnqueueAll(ctx, tx, queued); err != nil {
		return nil, err
	}
	for _, one := range steps {
		if !one.reused {
			if err := run.Add(ctx, tx, one.run, one.inputs); err != nil {
				return nil, err
			}
		}
		if err := run.AddFlowStep(ctx, tx, f.run.ID, one.flowStep()); err != nil {
			return nil, err
		}
	}
	f.announce(tx, steps)
	var due time.Time
	if len(queued) < len(steps) {
		due = tx.Now // other steps can use the results of those that were taken over
	}
	return nil, run.SetFlowDue(ctx, tx, f.run.ID, due)
}

// announce makes workers claim the new runs after the commit. Steps that were
// taken over and flows in the flow need a decision instead.
func (f *flowRun) announce(tx *sqldb.Tx, steps []newStep) {
	s := f.service
	tx.AfterCommit(func() {
		for _, one := range steps {
			switch {
			case one.reused || one.run.IsFlow():
				s.FlowDue()
			default:
				s.Queued(one.run.Engine)
			}
		}
		s.Hub.Notify(f.run.ID, f.run.AccountID)
	})
}

// isRefusal reports whether an error says that the inputs of a step are invalid.
// Other errors are temporary, or faults of the program.
func isRefusal(f *fault.Error) bool {
	switch f.Code {
	case fault.Invalid, fault.NumResultsLimit, fault.TooManyInputFiles, fault.NotFound, fault.ContentPolicyViolation:
		return true
	default:
		return false
	}
}

// refusalCode returns the error code of a flow that ends because a step was
// refused.
func refusalCode(f *fault.Error) engine.Code {
	if f.Code == fault.ContentPolicyViolation {
		return engine.Refused
	}
	return engine.Failed
}

// describeRefusal returns the reason of a refusal, with the first field.
func describeRefusal(f *fault.Error) string {
	if len(f.Fields) == 0 {
		return f.Message
	}
	return f.Fields[0].Path + ": " + f.Fields[0].Message
}

// remainingHold is the part of the hold of a flow that its steps can get.
type remainingHold struct{ tokens, allowance int64 }

// pass passes the price of a run from the hold of the flow to the run.
func (h *remainingHold) pass(r *run.Run, price int64) error {
	r.AllowanceHeld = min(price, h.allowance)
	r.TokensHeld = price - r.AllowanceHeld
	if r.AllowanceHeld == 0 {
		r.AllowanceMonth = ""
	}
	h.allowance -= r.AllowanceHeld
	h.tokens -= r.TokensHeld
	if h.tokens < 0 {
		return fmt.Errorf("the steps of flow %s cost more than its hold", r.ParentID)
	}
	return nil
}

func (n newStep) flowStep() run.FlowStep {
	return run.FlowStep{
		Step:      n.key.Step,
		Otherwise: n.key.Otherwise,
		Place:     int64(n.key.Place),
		Reused:    n.reused,
		Run:       n.run,
	}
}

// price returns the price of a run that is about to be stored: before its hold
// is passed to it, TokensHeld is the price.
func (n newStep) price() int64 { return n.run.TokensHeld }

// stepFile is an input file of a step: its description, and the reference that
// is stored with the run.
type stepFile struct {
	asset asset.Asset
	ref   map[string]any
}

// prepare validates the inputs of a run of a step.
func (f *flowRun) prepare(ctx context.Context, tx *sqldb.Tx, start flow.Start) (newStep, error) {
	s := f.service
	var failure error
	tool := s.Catalog.Finder(ctx, &failure)(start.Tool, f.tool.FlowTools[start.Tool])
	if failure != nil {
		return newStep{}, failure
	}
	if tool == nil {
		return newStep{}, fault.New(fault.NotFound, fmt.Sprintf("The tool %s no longer exists.", start.Tool))
	}
	a, err := f.checkStep(ctx, tx, tool, start)
	if err != nil {
		return newStep{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return newStep{}, err
	}
	r := f.run
	return newStep{key: start.Key, inputs: a.inputs, run: run.Run{
		ID:             id.String(),
		LibraryID:      ids.New(),
		ParentID:       r.ID,
		PersonID:       r.PersonID,
		AccountID:      r.AccountID,
		TeamID:         r.TeamID,
		Credential:     r.Credential,
		CredentialID:   r.CredentialID,
		Plugin:         r.Plugin,
		ToolID:         tool.ID,
		ToolHash:       tool.Hash,
		Engine:         tool.Engine.Name,
		Inputs:         a.stored,
		Prompt:         cmp.Or(a.filled.Prompt, r.Prompt), // so that a search by the prompt finds the results of all steps
		Seed:           a.seed,
		NumResults:     a.n,
		Estimated:      a.estimated,
		PollAfter:      s.pacing.pollAfter(tool),
		UnitTokens:     a.unitTokens(),
		TokensHeld:     a.price,
		AllowanceMonth: r.AllowanceMonth,
		HeadStart:      f.headStart(tool),
		Created:        tx.Now,
	}}, nil
}

// headStart returns the head start of a run of a step: that of the flow, with
// the priority of the tool instead of that of the flow.
func (f *flowRun) headStart(tool *catalog.Tool) time.Duration {
	p := f.service.Settings.Priorities
	limit := p.HeadStart(MaxPriority)
	return min(max(f.run.HeadStart+time.Duration(tool.Priority-f.tool.Priority)*p.Step, -limit), limit)
}

// checkStep validates the inputs of a run of a step against its tool.
func (f *flowRun) checkStep(ctx context.Context, tx *sqldb.Tx, tool *catalog.Tool, start flow.Start) (checkedDraft, error) {
	s := f.service
	var files []stepFile
	inputs := make(map[string]any, len(start.Inputs))
	for _, field := range tool.Leaves() {
		value, ok := start.Inputs[field.Key]
		if !ok {
			continue
		}
		converted, err := f.attachFiles(ctx, tx, field, value, &files)
		if err != nil {
			return checkedDraft{}, err
		}
		inputs[field.Key] = converted
	}
	filled, problems := tool.ParseInputs(inputs, catalog.InputOptions{Files: len(files)})
	if limit := s.Settings.InputFiles; len(files) > limit {
		return checkedDraft{}, TooManyFiles(limit, filled.Refs[limit].Path)
	}
	a := checkedDraft{tool: tool, filled: filled}
	for i, ref := range filled.Refs {
		file := files[ref.FileIndex]
		if problem := describeMisfit(file.asset, ref); problem != "" {
			problems = append(problems, fault.Field{Path: ref.Path, Message: problem})
		}
		a.inputs = append(a.inputs, run.Input{Field: ref.Field, Index: ref.Index, AssetID: file.asset.ID})
		a.filled.Refs[i] = originalRef(ref, file.ref)
	}
	if len(problems) > 0 {
		return checkedDraft{}, newInvalid(problems)
	}
	if err := s.Policy.CheckRules(policyTexts(filled, nil)); err != nil {
		return checkedDraft{}, err
	}
	if err := s.validator.completeDraft(ctx, &a, start.NumResults); err != nil {
		return checkedDraft{}, err
	}
	if filled.Seed == nil {
		a.seed = stepSeed(f.run.Seed, start.Key)
	}
	return a, nil
}

// attachFiles replaces the files in the value of a field by references to the
// list of files, which it extends.
func (f *flowRun) attachFiles(ctx context.Context, tx *sqldb.Tx, field *catalog.Field, value any, files *[]stepFile) (any, error) {
	if !field.IsMedia() {
		return value, nil
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var refs []any
	for _, one := range list {
		file, err := f.openFile(ctx, tx, field.Key, one)
		if err != nil {
			return nil, err
		}
		*files = append(*files, file)
		refs = append(refs, map[string]any{"kind": string(catalog.Multipart), "file_index": int64(len(*files) - 1)})
	}
	if !field.IsList() {
		return refs[0], nil
	}
	return refs, nil
}

// openFile returns a file of the flow's form, or a result of a step.
func (f *flowRun) openFile(ctx context.Context, tx *sqldb.Tx, key string, value any) (stepFile, error) {
	switch value := value.(type) {
	case resultRef:
		a, err := library.ResolveReference(ctx, tx, f.run.AccountID, library.LibraryRef, string(value))
		if missing := asNotFound(err); missing != nil {
			err = newInvalid([]fault.Field{{Path: "inputs." + key, Message: "The result of an earlier step was deleted."}})
		}
		return stepFile{asset: a, ref: map[string]any{"kind": string(catalog.LibraryRef), "id": string(value)}}, err
	case ownFile:
		a, err := asset.Get(ctx, tx, f.files[value].AssetID)
		ref, _ := f.stored[value.field].(map[string]any)
		if list, ok := f.stored[value.field].([]any); ok {
			ref, _ = list[value.index].(map[string]any)
		}
		return stepFile{asset: a, ref: ref}, err
	}
	return stepFile{}, newInvalid([]fault.Field{{Path: "inputs." + key, Message: "Must be a file."}})
}

// originalRef returns the reference to a file as it is stored with the run.
func originalRef(ref catalog.Ref, original map[string]any) catalog.Ref {
	kind, _ := original["kind"].(string)
	ref.Kind = catalog.RefKind(kind)
	ref.ID, _ = original["id"].(string)
	index, _ := original["file_index"].(int64)
	ref.FileIndex = int(index)
	return ref
}

// stepSeed derives the seed of a run of a step from that of the flow, so that
// the flow with the same seed makes the same results.
func stepSeed(seed int64, key flow.Key) int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%t/%d", seed, key.Step, key.Otherwise, key.Place))
	return int64(binary.BigEndian.Uint32(sum[:]))
}

// earlierSteps returns the steps of the run that this run of the flow takes up.
func (f *flowRun) earlierSteps(ctx context.Context, tx *sqldb.Tx) ([]run.FlowStep, error) {
	if f.retryOf == "" {
		return nil, nil
	}
	all, err := run.FlowSteps(ctx, tx, f.retryOf)
	return all[f.retryOf], err
}

// findReusable returns the finished run of an earlier run of the flow that has
// the same inputs as a new one and all its results. It sets which run a flow in
// the flow takes up.
func (f *flowRun) findReusable(ctx context.Context, tx *sqldb.Tx, one newStep, before []run.FlowStep) (newStep, bool, error) {
	i := slices.IndexFunc(before, func(s run.FlowStep) bool { return keyOf(s) == one.key })
	if i < 0 {
		return newStep{}, false, nil
	}
	old := before[i].Run
	same := old.ToolHash == one.run.ToolHash && old.Inputs == one.run.Inputs && old.Seed == one.run.Seed && old.NumResults == one.run.NumResults
	if !same || old.State != run.Succeeded {
		return newStep{}, false, nil
	}
	if same, err := f.hasSameFiles(ctx, tx, old.ID, one.inputs); err != nil || !same {
		return newStep{}, false, err
	}
	outputs, err := outputsOf(ctx, tx, []run.Run{old})
	if err != nil {
		return newStep{}, false, err
	}
	for _, o := range outputs[old.ID] {
		if o.Expired {
			return newStep{}, false, nil
		}
	}
	return newStep{key: one.key, run: old, reused: true}, true, nil
}

// hasSameFiles reports whether an earlier run has input files with the same
// content.
func (f *flowRun) hasSameFiles(ctx context.Context, tx *sqldb.Tx, runID string, inputs []run.Input) (bool, error) {
	before, err := run.ListInputs(ctx, tx, runID)
	if err != nil || len(before) != len(inputs) {
		return false, err
	}
	byPlace := map[ownFile]string{}
	for _, in := range before {
		byPlace[ownFile{in.Field, in.Index}] = in.AssetID
	}
	for _, in := range inputs {
		old, err := asset.Get(ctx, tx, byPlace[ownFile{in.Field, in.Index}])
		if asNotFound(err) != nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		now, err := asset.Get(ctx, tx, in.AssetID)
		if err != nil || now.SHA256 != old.SHA256 {
			return false, err
		}
	}
	return true, nil
}
