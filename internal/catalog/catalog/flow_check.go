package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/catalog/flow"
)

// CheckFlow returns the problems of a flow with the tools that it names: unknown
// tools and fields, values of the wrong type, missing inputs, tools that people
// who see the flow could not run, and sizes beyond the limits. find must return
// the current version of a tool.
func (t *Tool) CheckFlow(find ToolFinder) []Remark {
	c := &flowChecker{flow: t, find: find, fields: map[string]*Field{}}
	for _, f := range t.Leaves() {
		c.fields[f.Key] = f
	}
	for i := range t.Flow.Steps {
		c.checkStep(i, &t.Flow.Steps[i])
	}
	c.checkResults()
	if len(c.remarks) == 0 {
		c.checkBounds()
	}
	return c.remarks
}

type flowChecker struct {
	flow    *Tool
	find    ToolFinder
	fields  map[string]*Field // of the flow's form, by key
	remarks []Remark
}

func (c *flowChecker) add(path []string, format string, args ...any) {
	c.remarks = append(c.remarks, Remark{Path: flowPath(path), Message: fmt.Sprintf(format, args...)})
}

func (c *flowChecker) checkStep(i int, s *flow.Step) {
	path := []string{"steps", strconv.Itoa(i)}
	below := func(keys ...string) []string { return append(slices.Clone(path), keys...) }
	if s.When != nil {
		c.checkCondition(s.When, below("when"))
	}
	if s.ForEach != nil && s.ForEach.Kind == flow.FromField {
		switch f := c.fields[s.ForEach.Field]; {
		case f == nil:
			c.addUnknownField(s.ForEach.Field, below("for_each"))
		case !f.IsList():
			c.add(below("for_each"), "the field %s is no list of files", f.Key)
		}
	}
	c.checkCall(s, &s.Call, path)
	if s.Otherwise != nil && !s.Otherwise.Skip {
		c.checkCall(s, &s.Otherwise.Call, below("otherwise"))
		one := c.find(s.Tool, "")
		other := c.find(s.Otherwise.Tool, "")
		if one != nil && other != nil && one.Output.Type != other.Output.Type {
			c.add(below("otherwise"), "%s makes %s and %s makes %s; both must make the same", s.Tool, one.Output.Type, s.Otherwise.Tool, other.Output.Type)
		}
	}
}

func (c *flowChecker) addUnknownField(key string, path []string) {
	c.add(path, "the flow has no field %s", key)
}

func (c *flowChecker) checkCondition(w *flow.Condition, path []string) {
	f := c.fields[w.Field]
	switch {
	case f == nil:
		c.addUnknownField(w.Field, path)
	case w.Given != nil:
	case f.IsMedia():
		c.add(path, "the field %s is a file; use given", f.Key)
	default:
		if problem := f.CheckValue(w.Is); problem != "" {
			c.add(path, "the value for %s %s", f.Key, problem)
		}
	}
}

// checkCall checks a call of a tool by a step.
func (c *flowChecker) checkCall(s *flow.Step, call *flow.Call, path []string) {
	below := func(keys ...string) []string { return append(slices.Clone(path), keys...) }
	tool := c.find(call.Tool, "")
	if tool == nil {
		c.add(below("tool"), "there is no tool %s", call.Tool)
		return
	}
	if !c.flow.Saved && !c.flow.Visibility.within(tool.Visibility) { // who may use a saved flow is checked when it runs
		c.add(below("tool"), "not everyone who may use the flow may use the tool %s; restrict the visibility of the flow in the same way", call.Tool)
	}
	if tool.flowDepth(c.find, flow.MaxDepth) >= flow.MaxDepth {
		c.add(below("tool"), "with %s flows are nested more than %d deep, or the flow contains itself", call.Tool, flow.MaxDepth)
		return
	}
	c.checkCount(tool, call, below("num_results"))
	known := map[string]bool{}
	for _, f := range tool.Leaves() {
		known[f.Key] = true
		source, given := call.Inputs[f.Key]
		if !given {
			if f.Required && f.Default == nil {
				c.add(below("inputs"), "the field %s of %s is required", f.Key, call.Tool)
			}
			continue
		}
		problem := c.checkSource(s, f, source)
		if problem == "" && f.Required && f.Default == nil && !c.hasValue(source) {
			problem = "is required, but can be without a value; add first_of with a source that always has one"
		}
		if problem != "" {
			c.add(below("inputs", f.Key), "%s", problem)
		}
	}
	for _, key := range sortedKeys(call.Inputs) {
		if !known[key] {
			c.add(below("inputs", key), "the tool %s has no field %s", call.Tool, key)
		}
	}
}

func (c *flowChecker) checkCount(tool *Tool, call *flow.Call, path []string) {
	n := call.NumResults
	switch {
	case n == nil:
	case tool.NumResults == nil:
		c.add(path, "the tool %s always makes one result", call.Tool)
	case n.Kind == flow.FromField:
		f := c.fields[n.Field]
		if f == nil {
			c.addUnknownField(n.Field, path)
		} else if fieldTypes[f.Type] != numberFamily || !f.IsInteger() {
			c.add(path, "the field %s is no whole number", f.Key)
		}
	default:
		count, _ := n.Value.(int64)
		if _, err := tool.ResultCount(&count, maxResults); err != nil {
			c.add(path, "the tool %s makes %d to %d results", call.Tool, max(1, tool.NumResults.Min), tool.NumResults.Max)
		}
	}
}

// checkSource returns a message that says why a source does not fit into a field
// of a tool, or "".
func (c *flowChecker) checkSource(s *flow.Step, f *Field, source flow.Source) string {
	switch source.Kind {
	case flow.Constant:
		if f.IsMedia() {
			return "must be a file: a field or a result of a step"
		}
		return f.CheckValue(source.Value)
	case flow.FromField:
		from := c.fields[source.Field]
		if from == nil {
			return "the flow has no field " + source.Field
		}
		return describeFieldMisfit(from, f)
	case flow.FromItem:
		if s.ForEach == nil {
			return "the step has no for_each"
		}
		if s.ForEach.Kind == flow.FromStep {
			return c.checkResult(s.ForEach.Step, f, false)
		}
		list := c.fields[s.ForEach.Field]
		if list == nil {
			return "" // reported with for_each
		}
		if list.MediaType() != f.MediaType() {
			return describeMedia(list.MediaType(), f)
		}
		return describeAcceptMisfit(list, f)
	case flow.FromStep:
		return c.checkResult(source.Step, f, source.Pick.All)
	case flow.AllOf, flow.FirstOf:
		if source.Kind == flow.AllOf && !f.IsList() {
			return "takes one file, not a list"
		}
		for _, option := range source.Options {
			if problem := c.checkSource(s, f, option); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// checkResult checks that a field accepts the results of a step.
func (c *flowChecker) checkResult(id string, f *Field, all bool) string {
	step := c.flow.Flow.StepByID(id)
	tool := c.find(step.Tool, "")
	if tool == nil {
		return "" // reported with the step
	}
	if tool.Output.Type != f.MediaType() {
		return describeMedia(tool.Output.Type, f)
	}
	if all && !f.IsList() {
		return "takes one file; write result: first"
	}
	for _, kind := range tool.Output.MimeTypes {
		if len(f.Display.Accept) > 0 && !slices.Contains(f.Display.Accept, kind) {
			return fmt.Sprintf("takes %s; the step %s can make %s", strings.Join(f.Display.Accept, ", "), id, kind)
		}
	}
	return ""
}

func describeMedia(media string, f *Field) string {
	if f.MediaType() == "" {
		return fmt.Sprintf("is a %s, not a file", f.Type)
	}
	return fmt.Sprintf("takes %s, not %s", f.MediaType(), media)
}

// describeFieldMisfit returns a message that says why values of one field do not
// fit into another, or "".
func describeFieldMisfit(from, to *Field) string {
	kind := fieldTypes[to.Type]
	switch {
	case from.MediaType() != to.MediaType():
		return fmt.Sprintf("is a %s; the field %s of the flow is a %s", to.Type, from.Key, from.Type)
	case from.IsList() && !to.IsList():
		return fmt.Sprintf("takes one file; the field %s of the flow is a list", from.Key)
	case to.IsMedia():
		return describeAcceptMisfit(from, to)
	case fieldTypes[from.Type] != kind && (fieldTypes[from.Type] != numberFamily || kind != seedFamily):
		return fmt.Sprintf("is a %s; the field %s of the flow is a %s", to.Type, from.Key, from.Type)
	}
	return describeRangeMisfit(from, to, kind)
}

// describeAcceptMisfit compares the kinds of files that two fields accept.
func describeAcceptMisfit(from, to *Field) string {
	if len(to.Display.Accept) == 0 {
		return ""
	}
	unknown := func(kind string) bool { return !slices.Contains(to.Display.Accept, kind) }
	if len(from.Display.Accept) == 0 || slices.ContainsFunc(from.Display.Accept, unknown) {
		return fmt.Sprintf("takes %s; set accept of the field %s of the flow", strings.Join(to.Display.Accept, ", "), from.Key)
	}
	return ""
}

// describeRangeMisfit compares the values that two fields of one family allow.
func describeRangeMisfit(from, to *Field, kind fieldFamily) string {
	switch kind {
	case textFamily:
		if limit := to.Display.MaxLength; limit > 0 && (from.Display.MaxLength == 0 || from.Display.MaxLength > limit) {
			return fmt.Sprintf("takes at most %d characters; set max_length of the field %s of the flow", limit, from.Key)
		}
	case numberFamily:
		if to.IsInteger() && !from.IsInteger() {
			return fmt.Sprintf("takes whole numbers; set integer of the field %s of the flow", from.Key)
		}
		if to.Display.Min != nil && (from.Display.Min == nil || *from.Display.Min < *to.Display.Min) {
			return fmt.Sprintf("must be at least %v; set min of the field %s of the flow", *to.Display.Min, from.Key)
		}
		if to.Display.Max != nil && (from.Display.Max == nil || *from.Display.Max > *to.Display.Max) {
			return fmt.Sprintf("must be at most %v; set max of the field %s of the flow", *to.Display.Max, from.Key)
		}
	case selectFamily, multiSelectFamily:
		for _, option := range from.Display.Options {
			if _, ok := to.findOption(option.Value); !ok {
				return fmt.Sprintf("has no option %v, which the field %s of the flow has", option.Value, from.Key)
			}
		}
	case sizeFamily:
		for _, size := range from.Display.Sizes {
			if problem := to.CheckValue(SizeValue(size.Width, size.Height)); problem != "" {
				return fmt.Sprintf("does not take %d × %d, which the field %s of the flow offers: %s", size.Width, size.Height, from.Key, problem)
			}
		}
	case seedFamily, boolFamily, mediaFamily, mediaListFamily, noValueFamily: // have no limits of their own
	}
	return ""
}

// hasValue reports whether a source always has a value.
func (c *flowChecker) hasValue(source flow.Source) bool {
	switch source.Kind {
	case flow.Constant, flow.FromItem:
		return true
	case flow.FromField:
		f := c.fields[source.Field]
		return f != nil && (f.Required || f.Default != nil && !f.isEmptyValue(f.Default))
	case flow.FromStep:
		s := c.flow.Flow.StepByID(source.Step)
		always := s.When == nil && (s.ForEach == nil || c.hasValue(*s.ForEach)) && (s.Otherwise == nil || !s.Otherwise.Skip)
		return always && (source.Pick.All || source.Pick.Index == 0)
	case flow.FirstOf, flow.AllOf:
		return slices.ContainsFunc(source.Options, c.hasValue)
	}
	return false
}

// checkResults checks that the steps make what the manifest says the flow makes.
func (c *flowChecker) checkResults() {
	sure := false
	for i, id := range c.flow.Flow.Results {
		path := []string{"results"}
		if len(c.flow.Flow.Results) > 1 {
			path = append(path, strconv.Itoa(i))
		}
		tool := c.find(c.flow.Flow.StepByID(id).Tool, "")
		if tool == nil {
			continue
		}
		sure = sure || c.hasValue(flow.Source{Kind: flow.FromStep, Step: id})
		if tool.Output.Type != c.flow.Output.Type {
			c.add(path, "the step %s makes %s; output.type of the flow is %s", id, tool.Output.Type, c.flow.Output.Type)
			continue
		}
		for _, kind := range tool.Output.MimeTypes {
			if !slices.Contains(c.flow.Output.MimeTypes, kind) {
				c.add(path, "the step %s can make %s, which output.mime_types of the flow does not list", id, kind)
			}
		}
	}
	if !sure && len(c.remarks) == 0 {
		c.add([]string{"results"}, "no step in results always runs; the flow could end without a result")
	}
}

func (c *flowChecker) checkBounds() {
	b := c.flow.FlowBounds(nil, c.find)
	switch {
	case b.Overfull != nil:
		i := slices.IndexFunc(c.flow.Flow.Steps, func(s flow.Step) bool { return s.ID == b.Overfull.ID })
		c.add([]string{"steps", strconv.Itoa(i), "max"}, "is %d, but the list can have %d items", b.Overfull.Max, b.Items)
	case b.Runs > flow.MaxRuns:
		c.add([]string{"steps"}, "a run can make %d runs of tools; at most %d are allowed", b.Runs, flow.MaxRuns)
	case b.Results > flow.MaxResults:
		c.add([]string{"results"}, "a run can make %d results; at most %d are allowed", b.Results, flow.MaxResults)
	case b.Tokens > maxTokens:
		c.add([]string{"steps"}, "a run can cost %d tokens; at most %d are allowed", b.Tokens, maxTokens)
	}
	for i := range c.flow.Flow.Steps {
		s := &c.flow.Flow.Steps[i]
		c.checkLengths(&s.Call, b.Counts, []string{"steps", strconv.Itoa(i)})
		if s.Otherwise != nil && !s.Otherwise.Skip {
			c.checkLengths(&s.Otherwise.Call, b.Counts, []string{"steps", strconv.Itoa(i), "otherwise"})
		}
	}
}

// checkLengths checks that the lists of files that a call passes are not longer
// than its tool allows.
func (c *flowChecker) checkLengths(call *flow.Call, counts map[string]int64, path []string) {
	lengthOf := func(key string) int64 {
		f := c.fields[key]
		if f.IsList() {
			return f.Display.MaxItems
		}
		return 1
	}
	for _, f := range c.find(call.Tool, "").Leaves() {
		source, ok := call.Inputs[f.Key]
		if !ok || !f.IsList() {
			continue
		}
		if most := source.Most(counts, lengthOf); most > f.Display.MaxItems {
			c.add(append(path, "inputs", f.Key), "takes at most %d files, but can get %d", f.Display.MaxItems, most)
		}
	}
}

// within reports whether everyone whom v includes is included in other as well.
func (v Visibility) within(other Visibility) bool {
	if !other.isRestricted() {
		return true
	}
	contains := func(all, some []string) bool {
		return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
	}
	return v.isRestricted() && contains(other.Companies, v.Companies) && contains(other.Teams, v.Teams) && contains(other.Roles, v.Roles)
}
