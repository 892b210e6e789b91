package catalog_test

import (
	"fmt"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
)

func TestResults(t *testing.T) {
	t.Parallel()
	none := int64(-99)
	for _, c := range []struct {
		name        string
		bounds      *catalog.NumResults
		asked, most int64
		want        int64 // 0: refused
		low, high   int64
	}{
		{"always one", nil, none, 64, 1, 0, 0},
		{"always one, asked for many", nil, 1 << 62, 64, 1, 0, 0},
		{"always one, asked for none", nil, 0, 64, 1, 0, 0},
		{"nothing said", &catalog.NumResults{Min: 1, Max: 4, Default: 2}, none, 64, 1, 0, 0},
		{"nothing said to a tool that makes more", &catalog.NumResults{Min: 3, Max: 8, Default: 4}, none, 64, 3, 0, 0},
		{"the least", &catalog.NumResults{Min: 2, Max: 4, Default: 2}, 2, 64, 2, 0, 0},
		{"below the least", &catalog.NumResults{Min: 2, Max: 4, Default: 2}, 1, 64, 0, 2, 4},
		{"the most", &catalog.NumResults{Min: 2, Max: 4, Default: 2}, 4, 64, 4, 0, 0},
		{"above the most", &catalog.NumResults{Min: 2, Max: 4, Default: 2}, 5, 64, 0, 2, 4},
		{"zero", &catalog.NumResults{Min: 1, Max: 4, Default: 1}, 0, 64, 0, 1, 4},
		{"below zero", &catalog.NumResults{Min: 1, Max: 4, Default: 1}, -1, 64, 0, 1, 4},
		{"zero where the tool would", &catalog.NumResults{Min: 0, Max: 4, Default: 1}, 0, 64, 0, 1, 4},
		{"everybody's most", &catalog.NumResults{Min: 1, Max: 64, Default: 1}, 64, 64, 64, 0, 0},
		{"above everybody's most", &catalog.NumResults{Min: 1, Max: 100, Default: 1}, 65, 64, 0, 1, 64},
		{"a smaller most", &catalog.NumResults{Min: 1, Max: 64, Default: 1}, 9, 8, 0, 1, 8},
		{"a default that is too much", &catalog.NumResults{Min: 1, Max: 64, Default: 9}, none, 8, 1, 0, 0},
		{"a least that is too much", &catalog.NumResults{Min: 9, Max: 64, Default: 9}, none, 8, 0, 9, 8},
		{"huge", &catalog.NumResults{Min: 1, Max: 64, Default: 1}, 1e18, 64, 0, 1, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := &c.asked
			if c.asked == none {
				asked = nil
			}
			n, err := (&catalog.Tool{NumResults: c.bounds}).ResultCount(asked, c.most)
			if c.want > 0 {
				if n != c.want || err != nil {
					t.Errorf("results = %d, %v, want %d", n, err, c.want)
				}
				return
			}
			e, ok := err.(*fault.Error)
			if !ok || e.Code != fault.NumResultsLimit || e.Details["min"] != c.low || e.Details["max"] != c.high {
				t.Errorf("results = %d, %#v, want a limit from %d to %d", n, err, c.low, c.high)
			}
		})
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	const most = 1<<63 - 1
	for _, c := range []struct {
		price   catalog.Price
		n, want int64
	}{
		{catalog.Price{Type: catalog.Free}, 4, 0},
		{catalog.Price{Type: catalog.Free, Tokens: 7}, 4, 0},
		{catalog.Price{Type: catalog.Cost, Tokens: 1}, 1, 1},
		{catalog.Price{Type: catalog.Cost, Tokens: 7}, 3, 21},
		{catalog.Price{Type: catalog.Cost, Tokens: 7}, 0, 0},
		{catalog.Price{Type: catalog.Cost, Tokens: 7}, -3, 0},
		{catalog.Price{Type: catalog.Cost, Tokens: 2}, most / 2, most - 1},
		{catalog.Price{Type: catalog.Cost, Tokens: 2}, most/2 + 1, most},
		{catalog.Price{Type: catalog.Cost, Tokens: most}, most, most},
		// What manifests and the interface allow is far from any edge.
		{catalog.Price{Type: catalog.Cost, Tokens: catalog.MaxTokens}, catalog.MaxResults, 64_000_000},
	} {
		if got := (&catalog.Tool{Price: c.price}).TokenCost(c.n); got != c.want {
			t.Errorf("%d × %+v = %d, want %d", c.n, c.price, got, c.want)
		}
	}
	dear := func(tokens int64) error {
		_, err := catalog.ToolOf([]byte(fmt.Sprintf("name: A\nprice: {type: COST, tokens: %d}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: e}\n", tokens)))
		return err
	}
	if dear(catalog.MaxTokens) != nil || dear(catalog.MaxTokens+1) == nil {
		t.Error("a manifest may ask for more than the most, or not for the most")
	}
}
