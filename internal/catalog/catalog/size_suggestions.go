package catalog

import (
	"fmt"
	"math"
	"slices"
)

// defaultSide is the length of the longer side of suggested sizes, in pixels,
// if the field has no default.
const defaultSide = 1024

// suggestedRatios are the aspect ratios of suggested sizes.
var suggestedRatios = []struct{ width, height float64 }{{1, 1}, {4, 3}, {3, 4}, {16, 9}, {9, 16}}

// suggestSizes returns sizes to choose from, for a field that allows any size
// within limits: the default, then common aspect ratios with the same longer
// side. The list is empty only if no size is within the limits.
func suggestSizes(f *Field) []Size {
	low := f.Display.Min
	high := f.Display.Max
	if low == nil || high == nil {
		return nil
	}

	grid := max(1, float64(f.Display.MultipleOf))
	minSide := math.Ceil(max(*low, 1)/grid) * grid
	maxAllowed := math.Floor(min(*high, maxSide)/grid) * grid
	if minSide > maxAllowed {
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
	fit := func(side float64) float64 { return min(max(math.Round(side/grid)*grid, minSide), maxAllowed) }

	side := float64(defaultSide)
	if chosen, ok := f.Default.(map[string]any); ok && f.sizeProblem(chosen) == "" {
		width, _ := ToFloat(chosen["width"])
		height, _ := ToFloat(chosen["height"])
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
