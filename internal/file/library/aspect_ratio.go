package library

import "math"

// Shapes are the common aspect ratios that a library can be searched by.
var Shapes = []string{"1:1", "16:9", "2:1", "3:2", "4:3", "21:9", "9:16", "2:3", "3:4"}

// OtherShape is what is near none of them.
const OtherShape = "OTHER"

var ratios = []float64{1, 16. / 9, 2, 3. / 2, 4. / 3, 21. / 9, 9. / 16, 2. / 3, 3. / 4}

// maxRatioFactor is how far a picture may be from a ratio and still count as it: models
// work in multiples of 8, 16 or 64 pixels and so never hit 16:9 exactly.
const maxRatioFactor = 1.05

// Shape gives the nearest common aspect ratio, OTHER where none is within 5 %,
// and "" for what has no size. Near is meant as a factor, so that a shape and
// the same one turned by 90° are treated alike.
func Shape(width, height int) string {
	if width <= 0 || height <= 0 {
		return ""
	}
	got := OtherShape
	off := math.Log(maxRatioFactor) + 1e-9 // 5 % exactly is within, either way up
	for i, ratio := range ratios {
		if d := math.Abs(math.Log(float64(width) / float64(height) / ratio)); d <= off {
			got = Shapes[i]
			off = d
		}
	}
	return got
}

// Resolutions are the classes of size that a library can be searched by.
var Resolutions = []string{"1K", "2K", "4K+"}

// Resolution gives the class of a size by its long edge, "" for what has none.
// The classes meet half-way between 1024, 2048 and 4096, so that what is a
// little below a round number, like 1920 or 3840, counts as it.
func Resolution(width, height int) string {
	switch long := max(width, height); {
	case width <= 0 || height <= 0:
		return ""
	case long < 1536:
		return "1K"
	case long < 3072:
		return "2K"
	}
	return "4K+"
}
