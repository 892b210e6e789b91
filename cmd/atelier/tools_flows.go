package main

import (
	"fmt"
	"io"

	"atelier/internal/catalog/catalog"
)

// flowRow says what a run of a flow costs at most.
type flowRow struct {
	Tool   string `json:"tool"`
	Tokens int64  `json:"tokens"`
	Price  string `json:"price"` // how the tokens are computed
}

// flowRows returns a row for each flow in the operator's folder or, if a set has
// no tool of the operator, for each shipped one.
func flowRows(set *catalog.Set) []flowRow {
	tools := map[string]*catalog.Tool{}
	for slug, t := range set.AllTools() {
		tools[slug] = t
	}
	all := []flowRow{}
	for slug, t := range set.AllTools() {
		isShipped := set.SourceOf(slug) == catalog.Builtin && set.LenOf(catalog.Directory) > 0
		if !t.IsFlow() || isShipped {
			continue
		}
		bounds := t.FlowBounds(nil, func(slug, _ string) *catalog.Tool { return tools[slug] })
		all = append(all, flowRow{Tool: slug, Tokens: bounds.Tokens, Price: bounds.Formula()})
	}
	return all
}

func printFlows(w io.Writer, all []flowRow) {
	for _, row := range all {
		fmt.Fprintf(w, "price of the flow %s: %s\n", row.Tool, row.Price)
	}
}
