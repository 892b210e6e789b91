package flow

import (
	"maps"
	"reflect"
	"slices"
)

// Key identifies a run of a step within the run of a flow.
type Key struct {
	Step      string
	Otherwise bool // the run replaces a failed run
	Place     int  // index of the item; 0 if the step runs once
}

// ChildState is the state of a run of a step.
type ChildState int

// The states of runs of steps.
const (
	Active ChildState = iota + 1
	Succeeded
	Failed
	Cancelled
)

// Child is a run of a step.
type Child struct {
	State   ChildState
	Results []any // references to its results; set if it succeeded
}

// Start is a run of a step that can start now.
type Start struct {
	Key
	Tool       string // slug
	Inputs     map[string]any
	NumResults *int64
}

// Plan says what happens next in a flow.
type Plan struct {
	Start []Start
	// Ended reports whether all steps are done. If Failed is not nil, it is the
	// run that made the flow fail; the active runs must then be cancelled, and
	// Ended is false until none is left.
	Ended  bool
	Failed *Key
	// Results are references to the results of the flow. They are set if it has
	// ended and has not failed. Makers are the runs that made them.
	Results []any
	Makers  []Key
}

// Next returns what happens next in a flow. inputs are the values of its form by
// key, with references to files as they are passed on; children are the runs of
// its steps.
func (d *Definition) Next(inputs map[string]any, children map[Key]Child) Plan {
	r := &planner{inputs: inputs, children: children, done: map[string][]made{}}
	sorted, _ := d.order()
	for _, s := range sorted {
		r.visit(s)
	}
	isActive := func(c Child) bool { return c.State == Active }
	active := slices.ContainsFunc(slices.Collect(maps.Values(children)), isActive)
	plan := r.plan
	if plan.Failed != nil {
		plan.Start = nil
		plan.Ended = !active
		return plan
	}
	plan.Ended = !active && len(plan.Start) == 0
	if plan.Ended {
		for _, id := range d.Results {
			for _, one := range r.done[id] {
				plan.Results = append(plan.Results, one.results...)
				plan.Makers = append(plan.Makers, one.maker)
			}
		}
	}
	return plan
}

// made are the results of one run of a step.
type made struct {
	maker   Key
	results []any
}

type planner struct {
	inputs   map[string]any
	children map[Key]Child
	done     map[string][]made // results of finished and skipped steps, by the id of the step
	plan     Plan
}

// visit decides about a step after all steps that it needs. A step that does not
// run waits for none.
func (r *planner) visit(s *Step) {
	if s.When != nil && !s.When.Holds(r.inputs) {
		r.done[s.ID] = nil
		return
	}
	for _, id := range s.needs() {
		if _, done := r.done[id]; !done {
			return
		}
	}
	items := []any{nil}
	if s.ForEach != nil {
		value, _ := r.resolve(*s.ForEach, nil)
		items, _ = value.([]any)
		items = items[:min(int64(len(items)), s.Max)]
	}
	var all []made
	finished := true
	for i, item := range items {
		one, ok := r.visitItem(s, i, item)
		all = append(all, one...)
		finished = finished && ok
	}
	if finished {
		r.done[s.ID] = all
	}
}

// visitItem decides about the runs of a step for one item. ok reports whether
// the item is done.
func (r *planner) visitItem(s *Step, place int, item any) (all []made, ok bool) {
	key := Key{Step: s.ID, Place: place}
	call := &s.Call
	if c := r.children[key]; c.State == Failed && s.Otherwise != nil {
		if s.Otherwise.Skip {
			return nil, true
		}
		key.Otherwise = true
		call = &s.Otherwise.Call
	}
	c, began := r.children[key]
	switch {
	case !began:
		r.plan.Start = append(r.plan.Start, r.start(key, call, item))
	case c.State == Succeeded:
		return []made{{maker: key, results: c.Results}}, true
	case c.State != Active && r.plan.Failed == nil:
		r.plan.Failed = &key
	}
	return nil, false
}

func (r *planner) start(key Key, call *Call, item any) Start {
	s := Start{Key: key, Tool: call.Tool, Inputs: map[string]any{}}
	for input, source := range call.Inputs {
		if value, ok := r.resolve(source, item); ok {
			s.Inputs[input] = value
		}
	}
	if call.NumResults != nil {
		if value, ok := r.resolve(*call.NumResults, item); ok {
			if n, ok := value.(int64); ok {
				s.NumResults = &n
			}
		}
	}
	return s
}

// resolve returns the value of a source. ok is false if it has none.
func (r *planner) resolve(s Source, item any) (value any, ok bool) {
	switch s.Kind {
	case Constant:
		return s.Value, true
	case FromField:
		return fieldValue(r.inputs, s.Field)
	case FromItem:
		return item, item != nil
	case FromStep:
		var all []any
		for _, one := range r.done[s.Step] {
			all = append(all, one.results...)
		}
		if s.Pick.All {
			return all, len(all) > 0
		}
		if s.Pick.Index < int64(len(all)) {
			return all[s.Pick.Index], true
		}
	case FirstOf:
		for _, option := range s.Options {
			if value, ok := r.resolve(option, item); ok {
				return value, true
			}
		}
	case AllOf:
		var all []any
		for _, option := range s.Options {
			value, ok := r.resolve(option, item)
			if list, isList := value.([]any); isList {
				all = append(all, list...)
			} else if ok {
				all = append(all, value)
			}
		}
		return all, len(all) > 0
	}
	return nil, false
}

// fieldValue returns the value of a field. ok is false if it is empty.
func fieldValue(inputs map[string]any, key string) (value any, ok bool) {
	value = inputs[key]
	list, isList := value.([]any)
	return value, value != nil && value != "" && (!isList || len(list) > 0)
}

// Holds reports whether the condition holds for the values of the flow's form.
func (c *Condition) Holds(inputs map[string]any) bool {
	value, given := fieldValue(inputs, c.Field)
	if c.Given != nil {
		return given == *c.Given
	}
	return reflect.DeepEqual(value, c.Is) != c.Not
}
