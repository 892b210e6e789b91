package catalog

import (
	"fmt"
	"math"
	"slices"
)

// defaultSide is the longer side of a suggested size where the form has no default.
const defaultSide = 1024

// suggestedRatios are the shapes that sizes are suggested in, width to height.
var suggestedRatios = []struct{ width, height float64 }{{1, 1}, {4, 3}, {3, 4}, {16, 9}, {9, 16}}

// suggestSizes makes a list to choose from for a field that takes free sizes:
// the default, then usual shapes that are as large. It is empty only where no
// size fits the bounds.
func suggestSizes(f *Field) []Size {
	low := f.Display.Min
	high := f.Display.Max
	if low == nil || high == nil {
		return nil
	}
	grid := max(1, float64(f.Display.MultipleOf))
	least := math.Ceil(max(*low, 1)/grid) * grid
	most := math.Floor(min(*high, maxSide)/grid) * grid
	if least > most {
		return nil
	}

	var sizes []Size
	add := func(width, height float64) {
		s := Size{
			Text:   fmt.Sprintf("%.0f × %.0f", width, height),
			Width:  int64(width),
			Height: int64(height),
		}
		if !slices.Contains(sizes, s) {
			sizes = append(sizes, s)
		}
	}
	fit := func(side float64) float64 { return min(max(math.Round(side/grid)*grid, least), most) }

	side := float64(defaultSide)
	if chosen, ok := f.Default.(map[string]any); ok && f.sizeProblem(chosen) == "" {
		width, _ := toFloat(chosen["width"])
		height, _ := toFloat(chosen["height"])
		if side = max(width, height); side <= maxSide {
			add(width, height)
		}
	}
	side = fit(side)
	for _, shape := range suggestedRatios {
		longer := max(shape.width, shape.height)
		add(fit(side*shape.width/longer), fit(side*shape.height/longer))
	}
	return sizes
}
