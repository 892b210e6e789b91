package flow

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Problem is an error in the definition of a flow. Path is its position below
// engine.with, as keys and list indexes.
type Problem struct {
	Path    []string
	Message string
}

var idPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// Parse reads the settings of a flow, which have the types of decoded JSON with
// int64 for whole numbers. If there are problems, the definition must not be
// used.
func Parse(with map[string]any) (*Definition, []Problem) {
	p := &parser{}
	d := &Definition{}
	root := p.open(with, nil)
	steps := root.list("steps")
	if len(steps) == 0 {
		root.fail("steps", "must list at least one step")
	}
	if len(steps) > MaxSteps {
		root.fail("steps", "has %d steps; at most %d are allowed", len(steps), MaxSteps)
		return d, p.problems
	}
	for i, one := range steps {
		d.Steps = append(d.Steps, p.readStep(one, []string{"steps", strconv.Itoa(i)}))
	}
	d.Results = root.words("results")
	if len(d.Results) == 0 && len(d.Steps) > 0 {
		d.Results = []string{d.Steps[len(d.Steps)-1].ID}
	}
	root.refuseOthers()
	if len(p.problems) == 0 {
		p.checkNames(d)
	}
	return d, p.problems
}

type parser struct {
	problems []Problem
	uses     []use
}

// use is a place at which an input names a step.
type use struct {
	path []string
	step string
}

// object is a mapping whose keys are read one by one.
type object struct {
	p      *parser
	path   []string
	values map[string]any
	known  map[string]bool
}

func (p *parser) open(value any, path []string) *object {
	o := &object{p: p, path: path, known: map[string]bool{}}
	values, ok := value.(map[string]any)
	if !ok {
		p.fail(path, "must be a mapping")
	}
	o.values = values
	return o
}

func (p *parser) fail(path []string, format string, args ...any) {
	p.problems = append(p.problems, Problem{Path: slices.Clone(path), Message: fmt.Sprintf(format, args...)})
}

func (o *object) at(key string) []string { return append(slices.Clone(o.path), key) }

func (o *object) fail(key, format string, args ...any) { o.p.fail(o.at(key), format, args...) }

func (o *object) get(key string) (value any, ok bool) {
	o.known[key] = true
	value, ok = o.values[key]
	return value, ok
}

func (o *object) text(key string) string {
	value, ok := o.get(key)
	if !ok {
		return ""
	}
	s, isText := value.(string)
	if !isText || s == "" {
		o.fail(key, "must be text")
	}
	return s
}

func (o *object) list(key string) []any {
	value, ok := o.get(key)
	if !ok {
		return nil
	}
	list, isList := value.([]any)
	if !isList {
		o.fail(key, "must be a list")
	}
	return list
}

func (o *object) words(key string) []string {
	var all []string
	for i, one := range o.list(key) {
		s, ok := one.(string)
		if !ok {
			o.p.fail(append(o.at(key), strconv.Itoa(i)), "must be text")
		}
		all = append(all, s)
	}
	return all
}

func (o *object) boolean(key string) bool {
	value, ok := o.get(key)
	if !ok {
		return false
	}
	b, isBool := value.(bool)
	if !isBool {
		o.fail(key, "must be true or false")
	}
	return b
}

func (o *object) refuseOthers() {
	for _, key := range slices.Sorted(maps.Keys(o.values)) {
		if !o.known[key] {
			o.fail(key, "is not a known key here")
		}
	}
}

func (p *parser) readStep(value any, path []string) Step {
	o := p.open(value, path)
	s := Step{ID: o.text("id"), Call: p.readCall(o), Drop: o.boolean("drop")}
	if o.values != nil && !idPattern.MatchString(s.ID) {
		o.fail("id", "must start with a lower-case letter and have at most 32 lower-case letters, digits and underscores")
	}
	if each, ok := o.get("for_each"); ok {
		source := p.readSource(each, o.at("for_each"))
		if source.Kind != FromField && source.Kind != FromStep {
			o.fail("for_each", "must name a field or a step")
		}
		if source.Kind == FromStep {
			source.Pick = Pick{All: true}
		}
		s.ForEach = &source
		s.Max = p.readMax(o)
	} else if _, ok := o.get("max"); ok {
		o.fail("max", "needs for_each")
	}
	if when, ok := o.get("when"); ok {
		s.When = p.readCondition(when, o.at("when"))
	}
	if otherwise, ok := o.get("otherwise"); ok {
		s.Otherwise = p.readOtherwise(otherwise, o.at("otherwise"))
	}
	o.refuseOthers()
	return s
}

func (p *parser) readMax(o *object) int64 {
	value, _ := o.get("max")
	n, ok := value.(int64)
	if !ok || n < 1 || n > MaxItems {
		o.fail("max", "must be a number from 1 to %d: the greatest number of items", MaxItems)
	}
	return n
}

func (p *parser) readCall(o *object) Call {
	c := Call{Tool: o.text("tool"), Inputs: map[string]Source{}}
	if o.values != nil && c.Tool == "" {
		o.fail("tool", "is required: the slug of a tool")
	}
	if inputs, ok := o.get("inputs"); ok {
		all := p.open(inputs, o.at("inputs"))
		for _, key := range slices.Sorted(maps.Keys(all.values)) {
			c.Inputs[key] = p.readSource(all.values[key], all.at(key))
		}
	}
	if n, ok := o.get("num_results"); ok {
		source := p.readSource(n, o.at("num_results"))
		if _, isNumber := source.Value.(int64); source.Kind != FromField && (source.Kind != Constant || !isNumber) {
			o.fail("num_results", "must be a number or a field")
		}
		c.NumResults = &source
	}
	return c
}

func (p *parser) readOtherwise(value any, path []string) *Otherwise {
	if value == "skip" {
		return &Otherwise{Skip: true}
	}
	if _, ok := value.(map[string]any); !ok {
		p.fail(path, `must be "skip", or a mapping with a tool and its inputs`)
		return nil
	}
	o := p.open(value, path)
	call := p.readCall(o)
	o.refuseOthers()
	return &Otherwise{Call: call}
}

func (p *parser) readCondition(value any, path []string) *Condition {
	o := p.open(value, path)
	c := &Condition{Field: o.text("field")}
	if o.values != nil && c.Field == "" {
		o.fail("field", "is required")
	}
	is, hasIs := o.get("is")
	not, hasNot := o.get("is_not")
	_, hasGiven := o.get("given")
	switch {
	case hasIs && !hasNot && !hasGiven:
		c.Is = is
	case hasNot && !hasIs && !hasGiven:
		c.Is = not
		c.Not = true
	case hasGiven && !hasIs && !hasNot:
		given := o.boolean("given")
		c.Given = &given
	default:
		p.fail(path, "must have one of is, is_not and given")
	}
	o.refuseOthers()
	return c
}

// readSource reads the source of an input: a plain value, or a mapping with one
// of the keys value, field, step, item, first_of and all_of.
func (p *parser) readSource(value any, path []string) Source {
	values, ok := value.(map[string]any)
	if !ok {
		if value == nil {
			p.fail(path, "must have a value")
		}
		return Source{Kind: Constant, Value: value}
	}
	o := p.open(values, path)
	defer o.refuseOthers()
	if constant, ok := o.get("value"); ok {
		return Source{Kind: Constant, Value: constant}
	}
	if _, ok := values["field"]; ok {
		return Source{Kind: FromField, Field: o.text("field")}
	}
	if _, ok := values["step"]; ok {
		id := o.text("step")
		p.uses = append(p.uses, use{path, id})
		return Source{Kind: FromStep, Step: id, Pick: p.readPick(o)}
	}
	if item, ok := o.get("item"); ok {
		if item != true {
			o.fail("item", "must be true")
		}
		return Source{Kind: FromItem}
	}
	for key, kind := range map[string]SourceKind{"first_of": FirstOf, "all_of": AllOf} {
		if _, ok := values[key]; !ok {
			continue
		}
		s := Source{Kind: kind}
		for i, one := range o.list(key) {
			s.Options = append(s.Options, p.readSource(one, append(o.at(key), strconv.Itoa(i))))
		}
		if len(s.Options) == 0 {
			o.fail(key, "must list at least one source")
		}
		return s
	}
	p.fail(path, "must have one of the keys value, field, step, item, first_of and all_of")
	o.known = map[string]bool{}
	for key := range values {
		o.known[key] = true
	}
	return Source{}
}

func (p *parser) readPick(o *object) Pick {
	value, ok := o.get("result")
	switch n := value.(type) {
	case int64:
		if n >= 0 && n < MaxResults {
			return Pick{Index: n}
		}
	case string:
		if n == "first" || n == "all" {
			return Pick{All: n == "all"}
		}
	}
	if ok {
		o.fail("result", `must be first, all, or the index of a result, from 0`)
	}
	return Pick{}
}

// checkNames finds steps with the same id, unknown steps and circles.
func (p *parser) checkNames(d *Definition) {
	seen := map[string]bool{}
	for i, s := range d.Steps {
		path := []string{"steps", strconv.Itoa(i)}
		if seen[s.ID] {
			p.fail(append(path, "id"), "%s is the id of another step", s.ID)
		}
		seen[s.ID] = true
		if s.ForEach == nil && slices.ContainsFunc(s.Sources(), func(one Source) bool { return one.Kind == FromItem }) {
			p.fail(path, "uses an item, but has no for_each")
		}
	}
	for _, one := range p.uses {
		if d.StepByID(one.step) == nil {
			p.fail(one.path, "there is no step %s; the steps are %s", one.step, d.stepList())
		}
	}
	for i, id := range d.Results {
		if d.StepByID(id) == nil {
			p.fail([]string{"results", strconv.Itoa(i)}, "there is no step %s; the steps are %s", id, d.stepList())
		}
		if slices.Index(d.Results, id) != i {
			p.fail([]string{"results", strconv.Itoa(i)}, "%s is listed twice", id)
		}
	}
	if _, circle := d.order(); circle != "" {
		i := slices.IndexFunc(d.Steps, func(s Step) bool { return s.ID == circle })
		p.fail([]string{"steps", strconv.Itoa(i)}, "step %s needs its own results: the steps form a circle", circle)
	}
}

func (d *Definition) stepList() string {
	var ids []string
	for _, s := range d.Steps {
		ids = append(ids, s.ID)
	}
	return strings.Join(ids, ", ")
}
