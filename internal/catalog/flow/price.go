package flow

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// ToolFacts are the properties of a tool that the price of a flow depends on.
type ToolFacts struct {
	// Tokens returns the price of so many results.
	Tokens func(results int64) int64
	// MinResults is the number of results if the flow does not say how many;
	// MaxResults the greatest possible number.
	MinResults, MaxResults int64
	// Runs is the number of runs that a run of the tool makes: 1, or more if it
	// is a flow.
	Runs int64
}

// Share is the part of a step in the price of a flow.
type Share struct {
	Step      string
	Otherwise bool
	Tool      string
	Runs      int64 // how often the tool runs at most
	Tokens    int64 // price of one run
}

// Bounds are the greatest numbers that a run of a flow can reach.
type Bounds struct {
	Tokens  int64
	Runs    int64            // runs of tools, including those of flows in the flow
	Results int64            // results of the flow
	Counts  map[string]int64 // results of each step
	Shares  []Share
	// Overfull is a step whose list can be longer than its maximum, or nil. Its
	// list can have Items items.
	Overfull *Step
	Items    int64
}

// Bounds returns the greatest price of a run, the greatest numbers of runs and
// of results. inputs are the values of the flow's form, or nil if they are not
// known: every step then runs, for as many items as it allows.
func (d *Definition) Bounds(inputs map[string]any, factsOf func(slug string) ToolFacts) Bounds {
	var b Bounds
	results := map[string]int64{}
	sorted, _ := d.order()
	for _, s := range sorted {
		if inputs != nil && s.When != nil && !s.When.Holds(inputs) {
			continue
		}
		items := int64(1)
		if s.ForEach != nil {
			items = d.countItems(s, inputs, results)
			if items > s.Max && b.Overfull == nil {
				b.Overfull = s
				b.Items = items
			}
			items = min(items, s.Max)
		}
		for i, call := range s.calls() {
			facts := factsOf(call.Tool)
			n := countResults(call, inputs, facts)
			tokens := facts.Tokens(n)
			results[s.ID] = max(results[s.ID], items*n)
			b.Tokens = addBounded(b.Tokens, multiplyBounded(items, tokens))
			b.Runs = addBounded(b.Runs, multiplyBounded(items, facts.Runs))
			b.Shares = append(b.Shares, Share{
				Step:      s.ID,
				Otherwise: i > 0,
				Tool:      call.Tool,
				Runs:      items,
				Tokens:    tokens,
			})
		}
	}
	for _, id := range d.Results {
		b.Results += results[id]
	}
	b.Counts = results
	slices.SortStableFunc(b.Shares, func(x, y Share) int { return d.indexOf(x.Step) - d.indexOf(y.Step) })
	return b
}

func (d *Definition) indexOf(id string) int {
	return slices.IndexFunc(d.Steps, func(s Step) bool { return s.ID == id })
}

func (d *Definition) countItems(s *Step, inputs map[string]any, results map[string]int64) int64 {
	if s.ForEach.Kind == FromStep {
		return results[s.ForEach.Step]
	}
	if inputs == nil {
		return s.Max
	}
	value, _ := fieldValue(inputs, s.ForEach.Field)
	list, _ := value.([]any)
	return int64(len(list))
}

func countResults(c *Call, inputs map[string]any, facts ToolFacts) int64 {
	if c.NumResults == nil {
		return facts.MinResults
	}
	value := c.NumResults.Value
	if c.NumResults.Kind == FromField {
		if inputs == nil {
			return facts.MaxResults
		}
		value, _ = fieldValue(inputs, c.NumResults.Field)
	}
	if n, ok := value.(int64); ok {
		return min(max(n, 1), facts.MaxResults)
	}
	return facts.MinResults
}

// Formula describes the price, as in "2 (large) + 8 × 5 (clips) = 42 tokens".
func (b Bounds) Formula() string {
	var parts []string
	for _, s := range b.Shares {
		name := s.Step
		if s.Otherwise {
			name += ", otherwise"
		}
		if s.Runs == 1 {
			parts = append(parts, fmt.Sprintf("%d (%s)", s.Tokens, name))
		} else {
			parts = append(parts, fmt.Sprintf("%d × %d (%s)", s.Runs, s.Tokens, name))
		}
	}
	unit := "tokens"
	if b.Tokens == 1 {
		unit = "token"
	}
	return fmt.Sprintf("%s = %d %s at most", strings.Join(parts, " + "), b.Tokens, unit)
}

// addBounded and multiplyBounded return math.MaxInt64 on overflow.
func addBounded(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func multiplyBounded(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
