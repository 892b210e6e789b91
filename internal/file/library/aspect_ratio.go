package library

import "math"

// AspectRatios are the aspect ratios that the library can be filtered by.
var AspectRatios = []string{"1:1", "16:9", "2:1", "3:2", "4:3", "21:9", "9:16", "2:3", "3:4"}

// OtherAspectRatio is the value for pictures whose ratio is near none of
// AspectRatios.
const OtherAspectRatio = "OTHER"

var ratios = []float64{1, 16. / 9, 2, 3. / 2, 4. / 3, 21. / 9, 9. / 16, 2. / 3, 3. / 4}

// maxRatioFactor is the largest factor between a picture's ratio and a common
// ratio that counts as a match. Models make pictures whose sides are multiples
// of 8, 16 or 64 pixels, so their ratio is often not exactly a common one.
const maxRatioFactor = 1.05

// AspectRatio returns the common aspect ratio nearest to that of a picture. It
// returns OTHER if none is within 5 %, and "" for a file without dimensions.
// The distance between two ratios is measured as a factor, so that portrait and
// landscape are treated alike.
func AspectRatio(width, height int) string {
	if width <= 0 || height <= 0 {
		return ""
	}

	nearest := OtherAspectRatio
	maxDistance := math.Log(maxRatioFactor) + 1e-9 // exactly 5 % still matches, in portrait and landscape
	for i, ratio := range ratios {
		if d := math.Abs(math.Log(float64(width) / float64(height) / ratio)); d <= maxDistance {
			nearest = AspectRatios[i]
			maxDistance = d
		}
	}
	return nearest
}

// Resolutions are the size classes that the library can be filtered by.
var Resolutions = []string{"1K", "2K", "4K+"}

// Resolution returns the size class of a picture by its longer side, in
// pixels. It returns "" for a file without dimensions. The limits are half-way
// between 1024, 2048 and 4096, so that 1920 counts as 2K and 3840 as 4K+.
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
