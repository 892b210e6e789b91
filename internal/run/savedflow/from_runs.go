package savedflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/flow"
	"atelier/internal/file/library"
	"atelier/internal/people/principal"
	"atelier/internal/run/run"
)

// FromResult returns the draft of a flow that repeats the runs which led to a
// result: the run that made it, those that made its input files, and so on.
// Uploads become fields of the flow, prompts fields with the prompt as the
// default, and other values constants.
func (s *Service) FromResult(ctx context.Context, p principal.Principal, itemID string) (Draft, error) {
	libraryID, _, ok := library.SplitItemID(itemID)
	if !ok {
		return Draft{}, fault.New(fault.Invalid, "This is not the id of a result.").On("library_id")
	}
	w := &walker{
		service:   s,
		accountID: p.AccountID,
		steps:     map[string]string{},
		keys:      map[string]bool{},
		files:     map[string]string{},
	}
	err := s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		last, err := run.GetByLibraryID(ctx, tx, p.AccountID, libraryID)
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.NotFound, "There is no such result.")
		}
		if err != nil {
			return err
		}
		id, err := w.visit(ctx, tx, last)
		w.draft.Results = []any{id}
		w.draft.Name = w.nameOf(last)
		return err
	})
	if err != nil {
		return Draft{}, err
	}
	return w.draft, nil
}

// walker walks back from a result to the runs that led to it.
type walker struct {
	service   *Service
	accountID string
	draft     Draft
	steps     map[string]string // ids of steps by run id
	keys      map[string]bool   // keys of the flow's fields
	files     map[string]string // keys of the flow's fields by the reference to an upload
}

func (w *walker) nameOf(r run.Run) string {
	if r.Prompt == "" {
		return w.service.Catalog.CurrentSnapshot().ToolName(r.ToolID)
	}
	name := []rune(r.Prompt)
	return strings.TrimSpace(string(name[:min(len(name), 60)]))
}

// visit adds a run as a step, after the runs whose results it uses, and returns
// the id of the step.
func (w *walker) visit(ctx context.Context, tx *sqldb.Tx, r run.Run) (id string, err error) {
	if id, ok := w.steps[r.ID]; ok {
		return id, nil
	}
	if len(w.steps) == flow.MaxSteps {
		return "", fault.New(fault.Invalid, fmt.Sprintf("More than %d runs led to this result.", flow.MaxSteps))
	}
	slug, tool := w.service.Catalog.CurrentSnapshot().CurrentTool(r.ToolID)
	if tool == nil {
		return "", fault.New(fault.Invalid, "One of the tools that led to this result no longer exists.")
	}
	id = w.stepID(slug)
	w.steps[r.ID] = id
	values, err := catalog.DecodeObject(r.Inputs)
	if err != nil {
		return "", err
	}
	inputs := map[string]any{}
	for _, f := range tool.Leaves() {
		value, ok := values[f.Key]
		if !ok || f.Type == "SEED" {
			continue
		}
		source, ok, err := w.source(ctx, tx, f, value)
		if err != nil {
			return "", err
		}
		if ok {
			inputs[f.Key] = source
		}
	}
	step := map[string]any{"id": id, "tool": slug, "inputs": inputs}
	if tool.NumResults != nil {
		step["num_results"] = r.NumResults
	}
	w.draft.Steps = append(w.draft.Steps, step)
	return id, nil
}

// stepID returns an id for a step of a tool that no other step has.
func (w *walker) stepID(slug string) string {
	base := strings.ReplaceAll(slug, "-", "_")
	if base[0] < 'a' {
		base = "s_" + base
	}
	base = base[:min(len(base), 28)]
	used := map[string]bool{}
	for _, id := range w.steps {
		used[id] = true
	}
	return unused(base, used)
}

func unused(base string, used map[string]bool) string {
	name := base
	for n := 2; used[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// source returns where the value of a field comes from. ok is false if the step
// needs none.
func (w *walker) source(ctx context.Context, tx *sqldb.Tx, f *catalog.Field, value any) (source any, ok bool, err error) {
	if !f.IsMedia() {
		if f.Type == "PROMPT" {
			return map[string]any{"field": w.addPrompt(f, value)}, true, nil
		}
		return map[string]any{"value": value}, true, nil
	}
	refs, isList := value.([]any)
	if !isList {
		one, err := w.fileSource(ctx, tx, f, value)
		return one, err == nil, err
	}
	var all []any
	for _, ref := range refs {
		one, err := w.fileSource(ctx, tx, f, ref)
		if err != nil {
			return nil, false, err
		}
		all = append(all, one)
	}
	return map[string]any{"all_of": all}, len(all) > 0, nil
}

// fileSource returns the step that made a file, or the field of the flow for a
// file that no run made.
func (w *walker) fileSource(ctx context.Context, tx *sqldb.Tx, f *catalog.Field, ref any) (any, error) {
	given, _ := ref.(map[string]any)
	id, _ := given["id"].(string)
	if given["kind"] == string(catalog.LibraryRef) {
		libraryID, result, _ := library.SplitItemID(id)
		maker, err := run.GetByLibraryID(ctx, tx, w.accountID, libraryID)
		if err == nil {
			return w.resultSource(ctx, tx, maker, result)
		}
		if !fault.Is(err, fault.NotFound) {
			return nil, err
		}
	}
	return map[string]any{"field": w.addFile(f, fmt.Sprint(given))}, nil
}

func (w *walker) resultSource(ctx context.Context, tx *sqldb.Tx, maker run.Run, resultID string) (any, error) {
	step, err := w.visit(ctx, tx, maker)
	if err != nil {
		return nil, err
	}
	outputs, err := run.Outputs(ctx, tx, maker.ID)
	if err != nil {
		return nil, err
	}
	first := map[string]any{"step": step}
	index := slices.IndexFunc(outputs[maker.ID], func(o run.Output) bool { return o.ID == resultID })
	if index <= 0 {
		return first, nil
	}
	// A run can make fewer results than it was asked for.
	return map[string]any{"first_of": []any{map[string]any{"step": step, "result": int64(index)}, first}}, nil
}

// addPrompt adds a field for a prompt, and returns its key.
func (w *walker) addPrompt(f *catalog.Field, value any) string {
	key := unused(f.Key, w.keys)
	w.keys[key] = true
	field := map[string]any{"key": key, "type": string(f.Type), "label": f.Label, "required": f.Required, "default": value}
	if f.Display.MaxLength > 0 {
		field["max_length"] = f.Display.MaxLength
	}
	w.draft.Fields = append(w.draft.Fields, field)
	return key
}

// addFile adds a field for a file, once for each file, and returns its key.
func (w *walker) addFile(f *catalog.Field, ref string) string {
	if key, ok := w.files[ref]; ok {
		return key
	}
	base := f.Key
	kind := f.Type
	if f.IsList() {
		kind = "IMG"
		base = "picture"
	}
	key := unused(base, w.keys)
	w.keys[key] = true
	w.files[ref] = key
	field := map[string]any{"key": key, "type": string(kind), "label": f.Label, "required": true}
	if len(f.Display.Accept) > 0 {
		accept := []any{}
		for _, one := range f.Display.Accept {
			accept = append(accept, one)
		}
		field["accept"] = accept
	}
	w.draft.Fields = append(w.draft.Fields, field)
	return key
}
