package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"atelier/internal/catalog/flow"
)

// FlowEngine is the name of the engine of flows in manifests. No worker runs
// it: the run of a flow consists of the runs of its steps.
const FlowEngine = "flow"

// Keys of stored manifests of flows that the program adds: the hashes of the
// tools that the flow names, the greatest price of a run, and the id of a flow
// that people saved, so that no two of them have the same hash.
const (
	flowToolsKey = "flow_tools"
	priceKey     = "price"
	savedIDKey   = "saved_id"
)

// IsFlow reports whether the tool is a flow.
func (t *Tool) IsFlow() bool { return t.Flow != nil }

// readFlow reads the steps of a flow.
func (r *manifestReader) readFlow(root *yaml.Node, t *Tool) {
	with, err := DecodeObject(t.Engine.With)
	if err != nil {
		return // reported by readEngine
	}
	definition, problems := flow.Parse(with)
	for _, p := range problems {
		r.problems = append(r.problems, r.locateRemark(root, Remark{Path: flowPath(p.Path), Message: p.Message}))
	}
	t.Flow = definition
}

func flowPath(path []string) []string { return append([]string{"engine", "with"}, path...) }

// DecodeObject decodes a JSON object, such as the stored inputs of a run. Whole
// numbers become int64, other numbers float64.
func DecodeObject(text string) (map[string]any, error) {
	var all map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	for key := range all {
		all[key] = nativeNumbers(all[key])
	}
	return all, nil
}

// nativeNumbers replaces the numbers of decoded JSON by int64 and float64.
func nativeNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // cannot fail, because this service encoded the number
		return f
	case []any:
		for i := range v {
			v[i] = nativeNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = nativeNumbers(v[key])
		}
	}
	return v
}

// readFlowTools reads the hashes that were added to the manifest of a flow.
func (r *manifestReader) readFlowTools(o *mapping) map[string]string {
	if o.lookupKey(savedIDKey) != nil && !r.stored {
		o.addProblem(savedIDKey, "is set by the program")
	}
	n := o.lookupKey(flowToolsKey)
	if n == nil {
		return nil
	}
	if !r.stored {
		o.addProblem(flowToolsKey, "is set by the program")
		return nil
	}
	p := r.openMapping(n, flowToolsKey+".")
	hashes := map[string]string{}
	for _, k := range p.keys {
		hashes[k.Value] = p.readText(k.Value, 100)
	}
	return hashes
}

// ToolFinder returns the version of a tool with a hash, or nil if there is none.
// The hash "" stands for the current version.
type ToolFinder func(slug, hash string) *Tool

// FlowBounds returns the greatest price of a run of a flow, and the greatest
// numbers of runs and results (see flow.Definition.Bounds).
func (t *Tool) FlowBounds(inputs map[string]any, find ToolFinder) flow.Bounds {
	return t.flowBounds(inputs, find, flow.MaxDepth)
}

func (t *Tool) flowBounds(inputs map[string]any, find ToolFinder, depth int) flow.Bounds {
	return t.Flow.Bounds(inputs, func(slug string) flow.ToolFacts {
		named := find(slug, t.FlowTools[slug])
		none := flow.ToolFacts{Tokens: func(int64) int64 { return 0 }, MinResults: 1, MaxResults: 1, Runs: 1}
		switch {
		case named == nil || named.IsFlow() && depth <= 1:
			return none
		case named.IsFlow():
			inner := named.flowBounds(nil, find, depth-1)
			return flow.ToolFacts{Tokens: func(int64) int64 { return inner.Tokens }, MinResults: inner.Results, MaxResults: inner.Results, Runs: 1 + inner.Runs}
		}
		facts := none
		facts.Tokens = named.TokenCost
		if named.NumResults != nil {
			facts.MinResults = max(1, named.NumResults.Min)
			facts.MaxResults = named.NumResults.Max
		}
		return facts
	})
}

// flowDepth returns how deep flows are nested: 0 for other tools. It returns a
// number above flow.MaxDepth if they are nested too deep or contain themselves.
func (t *Tool) flowDepth(find ToolFinder, limit int) int {
	if !t.IsFlow() || limit < 0 {
		return 0
	}
	deepest := 0
	for _, slug := range t.Flow.Tools() {
		if named := find(slug, t.FlowTools[slug]); named != nil {
			deepest = max(deepest, named.flowDepth(find, limit-1))
		}
	}
	return deepest + 1
}

// Finder returns a function that finds versions of tools: those of the current
// snapshot with all their data, older ones with the data of their manifests, id
// and slug. err is set by the first failure to read a version.
func (c *Catalog) Finder(ctx context.Context, err *error) ToolFinder {
	snapshot := c.CurrentSnapshot()
	return func(slug, hash string) *Tool {
		if current := snapshot.bySlug[slug]; current != nil && (hash == "" || current.Hash == hash) {
			return current
		}
		if hash == "" {
			return nil
		}
		id := snapshot.idBySlug[slug]
		if id == "" { // a saved flow, or a tool that is newer than the snapshot
			var failure error
			if id, failure = findToolID(ctx, c.db, slug); failure != nil || id == "" {
				*err = errors.Join(*err, failure)
				return nil
			}
		}
		version, failure := c.ToolVersion(ctx, hash)
		if failure != nil {
			*err = errors.Join(*err, fmt.Errorf("find tool %s: %w", slug, failure))
			return nil
		}
		old := *version
		old.ID = id
		old.Slug = slug
		return &old
	}
}

// finderFor returns a function that finds the tools which an audience may use,
// apart from the steps of flows.
func (s *Snapshot) finderFor(a Audience) func(slug string) *Tool {
	return func(slug string) *Tool {
		if t := s.bySlug[slug]; t != nil && a.CanSee(t) {
			return t
		}
		return nil
	}
}

// BlockedStep returns the first step of a flow whose tool does not exist any more
// or may not be used by the audience, although the audience may use the flow
// itself. It returns "" if there is none.
func (s *Snapshot) BlockedStep(a Audience, toolID string) (step string) {
	_, t := s.CurrentTool(toolID)
	if t == nil || !a.CanSee(t) {
		return ""
	}
	return findBlockedStep(t, s.finderFor(a), flow.MaxDepth)
}

// findBlockedStep returns the first step of a flow for whose tool find returns
// nil, whose tool is a flow with such a step, or whose flows are nested more than
// limit deep. It returns "" if there is none, and for other tools.
func findBlockedStep(t *Tool, find func(slug string) *Tool, limit int) string {
	if !t.IsFlow() {
		return ""
	}
	for _, step := range t.Flow.Steps {
		for _, slug := range step.ToolSlugs() {
			named := find(slug)
			if named == nil || named.IsFlow() && limit <= 1 || findBlockedStep(named, find, limit-1) != "" {
				return step.ID
			}
		}
	}
	return ""
}

// withoutPins returns the manifest of a flow without what Apply has added to it.
// Other manifests are returned unchanged.
func withoutPins(definition string) string {
	if !strings.Contains(definition, `"`+flowToolsKey+`"`) {
		return definition
	}
	all, err := DecodeObject(definition)
	if err != nil {
		return definition
	}
	if _, pinned := all[flowToolsKey]; !pinned {
		return definition
	}
	delete(all, flowToolsKey)
	delete(all, priceKey)
	delete(all, savedIDKey)
	return canonicalJSON(all)
}

// flowPinner adds to the manifests of flows the hashes of the tools that they
// name, so that the hash of a flow changes with its tools.
type flowPinner struct {
	tools  map[string]*Tool  // current tools by slug
	pinned map[string]string // manifests of flows by slug
}

// newFlowPinner returns a pinner for the tools in the database.
func newFlowPinner(stored map[string]row) *flowPinner {
	p := &flowPinner{tools: map[string]*Tool{}, pinned: map[string]string{}}
	for slug, r := range stored {
		if r.removed {
			continue
		}
		t, err := decodeTool(withoutPins(r.definition))
		if err != nil {
			continue // logged when the snapshot is loaded
		}
		t.Hash = r.hash
		t.Slug = slug
		p.tools[slug] = t
	}
	for slug, t := range p.tools {
		if t.IsFlow() {
			p.pin(slug, stored, flow.MaxDepth)
		}
	}
	return p
}

// pin completes the manifest of a flow after those of the flows that it names.
func (p *flowPinner) pin(slug string, stored map[string]row, limit int) {
	t := p.tools[slug]
	if p.pinned[slug] != "" || limit == 0 {
		return
	}
	hashes := map[string]any{}
	t.FlowTools = map[string]string{}
	for _, name := range t.Flow.Tools() {
		named := p.tools[name]
		if named == nil {
			continue
		}
		if named.IsFlow() {
			p.pin(name, stored, limit-1)
		}
		hashes[name] = named.Hash
		t.FlowTools[name] = named.Hash
	}
	bounds := t.FlowBounds(nil, func(slug, _ string) *Tool { return p.tools[slug] })
	all, err := DecodeObject(withoutPins(stored[slug].definition))
	if err != nil {
		return // it was decoded as a tool, so it is JSON
	}
	if stored[slug].saved {
		all[savedIDKey] = stored[slug].id
	}
	all[flowToolsKey] = hashes
	all[priceKey] = map[string]any{"type": string(Cost), "tokens": min(bounds.Tokens, maxTokens)}
	if bounds.Tokens == 0 {
		all[priceKey] = map[string]any{"type": string(Free)}
	}
	p.pinned[slug] = canonicalJSON(all)
	t.Hash = hashOf(p.pinned[slug])
}
