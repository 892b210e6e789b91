// Package flow describes flows: tools whose runs are several runs of other
// tools. The runs of the steps get their inputs from the form of the flow, from
// constants and from the results of earlier steps.
//
//	engine.with ──Parse──▶ Definition ──Price──▶ tokens
//	                           │
//	inputs, runs of steps ─────┴──Next──▶ Plan: runs to start, or the end of the flow
//
// The package knows nothing of databases and of the forms of tools. Package
// catalog checks a definition against the tools that it names, and package
// generation runs it.
package flow

import (
	"slices"
)

// Limits of one flow.
const (
	MaxSteps   = 50
	MaxItems   = 64  // runs of one step
	MaxRuns    = 200 // runs of all steps together, including those of flows in the flow
	MaxResults = 64
	MaxDepth   = 4 // flows in flows
)

// Definition is what the manifest of a flow says about its steps.
type Definition struct {
	Steps []Step
	// Results are the steps whose results are the results of the flow, in this
	// order.
	Results []string
}

// Step is a step of a flow. It runs a tool once, or once for each item of a
// list.
type Step struct {
	ID string
	Call
	// ForEach is the list for whose items the tool runs; nil if it runs once.
	// Max is the greatest number of items.
	ForEach *Source
	Max     int64
	// When is the condition under which the step runs; nil if it always runs. A
	// step that does not run has no results.
	When *Condition
	// Otherwise is what happens if a run of the step fails; nil if the flow then
	// fails.
	Otherwise *Otherwise
	// Drop says that the results of the step are deleted when the flow has
	// succeeded, unless they are results of the flow.
	Drop bool
}

// Call is a tool, named by its slug, and its inputs.
type Call struct {
	Tool       string
	Inputs     map[string]Source // by the key of the tool's field
	NumResults *Source           // nil if the tool makes as few results as it can
}

// Otherwise replaces a failed run of a step. Its results are the results of the
// step.
type Otherwise struct {
	// Skip says that no other tool runs: the failed run has no results.
	Skip bool
	Call
}

// SourceKind says where the value of an input comes from.
type SourceKind int

// The kinds of sources.
const (
	Constant  SourceKind = iota + 1 // Value
	FromField                       // the field of the flow's form with the key Field
	FromStep                        // the results of Step that Pick selects
	FromItem                        // the current item of ForEach
	FirstOf                         // the first of Options that has a value
	AllOf                           // a list of the values of all Options
)

// Source says where the value of an input comes from.
type Source struct {
	Kind    SourceKind
	Value   any // string, bool, int64, float64, []any or map[string]any
	Field   string
	Step    string
	Pick    Pick
	Options []Source
}

// Pick selects results of a step.
type Pick struct {
	All   bool  // all results, as a list
	Index int64 // otherwise the result with this index, from 0
}

// Condition compares a field of the flow's form.
type Condition struct {
	Field string
	// Given says whether the field must have a value, or must have none. If it
	// is nil, the value of the field is compared with Is.
	Given *bool
	Is    any
	Not   bool // the condition holds if the value differs
}

// StepByID returns the step with the given id, or nil if there is none.
func (d *Definition) StepByID(id string) *Step {
	i := slices.IndexFunc(d.Steps, func(s Step) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &d.Steps[i]
}

// Tools returns the slugs of the tools that the flow names, sorted.
func (d *Definition) Tools() []string {
	var all []string
	for _, s := range d.Steps {
		all = append(all, s.ToolSlugs()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ToolSlugs returns the slugs of the tools that the step can run.
func (s *Step) ToolSlugs() []string {
	var all []string
	for _, c := range s.calls() {
		all = append(all, c.Tool)
	}
	return all
}

// Texts returns the texts among the constants of the step's inputs, by the key
// of the input.
func (s *Step) Texts() map[string][]string {
	all := map[string][]string{}
	for _, c := range s.calls() {
		for key, source := range c.Inputs {
			if some := source.texts(); len(some) > 0 {
				all[key] = append(all[key], some...)
			}
		}
	}
	return all
}

func (s Source) texts() []string {
	all := textsIn(s.Value)
	for _, one := range s.Options {
		all = append(all, one.texts()...)
	}
	return all
}

// textsIn returns the texts in a value with the types of decoded JSON.
func textsIn(value any) (all []string) {
	switch v := value.(type) {
	case string:
		all = []string{v}
	case []any:
		for _, one := range v {
			all = append(all, textsIn(one)...)
		}
	case map[string]any:
		for _, one := range v {
			all = append(all, textsIn(one)...)
		}
	}
	return all
}

// Keeps reports whether the results of a step stay in the library after the flow
// has succeeded.
func (d *Definition) Keeps(id string) bool {
	s := d.StepByID(id)
	return s == nil || !s.Drop || slices.Contains(d.Results, id)
}

// calls returns the calls of tools that the step can make.
func (s *Step) calls() []*Call {
	all := []*Call{&s.Call}
	if s.Otherwise != nil && !s.Otherwise.Skip {
		all = append(all, &s.Otherwise.Call)
	}
	return all
}

// Sources returns all sources of the step, including those in FirstOf and AllOf.
func (s *Step) Sources() []Source {
	var all []Source
	var add func(one *Source)
	add = func(one *Source) {
		if one == nil {
			return
		}
		all = append(all, *one)
		for i := range one.Options {
			add(&one.Options[i])
		}
	}
	add(s.ForEach)
	for _, c := range s.calls() {
		add(c.NumResults)
		for _, source := range c.Inputs {
			add(&source)
		}
	}
	return all
}

// Most returns how many values a source has at most. counts are the greatest
// numbers of results of the steps, and lengthOf the greatest length of a field.
func (s Source) Most(counts map[string]int64, lengthOf func(field string) int64) int64 {
	most := int64(1)
	switch s.Kind {
	case FromField:
		most = lengthOf(s.Field)
	case FromStep:
		if s.Pick.All {
			most = counts[s.Step]
		}
	case FirstOf:
		most = 0
		for _, option := range s.Options {
			most = max(most, option.Most(counts, lengthOf))
		}
	case AllOf:
		most = 0
		for _, option := range s.Options {
			most += option.Most(counts, lengthOf)
		}
	case Constant, FromItem:
	}
	return most
}

// needs returns the ids of the steps whose results the step uses.
func (s *Step) needs() []string {
	var all []string
	for _, source := range s.Sources() {
		if source.Kind == FromStep && !slices.Contains(all, source.Step) {
			all = append(all, source.Step)
		}
	}
	return all
}

// order returns the steps in an order in which each follows the steps that it
// needs. circle is the id of a step that needs itself, directly or through other
// steps, or "" if there is none.
func (d *Definition) order() (sorted []*Step, circle string) {
	const (
		visiting = 1
		done     = 2
	)
	state := map[string]int{}
	var visit func(s *Step)
	visit = func(s *Step) {
		switch state[s.ID] {
		case visiting:
			circle = s.ID
			return
		case done:
			return
		}
		state[s.ID] = visiting
		for _, id := range s.needs() {
			if needed := d.StepByID(id); needed != nil {
				visit(needed)
			}
		}
		state[s.ID] = done
		sorted = append(sorted, s)
	}
	for i := range d.Steps {
		visit(&d.Steps[i])
	}
	return sorted, circle
}

// Ancestors returns the ids of the steps whose results a step uses, directly or
// through other steps, sorted.
func (d *Definition) Ancestors(id string) []string {
	var all []string
	var visit func(id string)
	visit = func(id string) {
		s := d.StepByID(id)
		if s == nil {
			return
		}
		for _, needed := range s.needs() {
			if !slices.Contains(all, needed) {
				all = append(all, needed)
				visit(needed)
			}
		}
	}
	visit(id)
	slices.Sort(all)
	return all
}
