package imageengine_test

import (
	"context"
	"testing"

	"atelier/internal/engine/builtin/imageengine"
	"atelier/internal/engine/enginetest"
)

// enlarge measures whole jobs, from the file to the file, in megapixels of the
// result a second.
func enlarge(b *testing.B, operation string, v values) {
	b.Helper()
	const side, factor = 1000, 2
	v["factor"], v["format"] = int64(factor), "jpeg"
	j := job(operation, v, jpegFile(photo(side, side)))
	for b.Loop() {
		if err := imageengine.New().Run(context.Background(), j, &enginetest.Recorder{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(factor*factor*side*side*float64(b.N)/1e6/b.Elapsed().Seconds(), "MP/s")
}

func BenchmarkUpscale(b *testing.B)      { enlarge(b, "upscale", values{}) }
func BenchmarkPhotoUpscale(b *testing.B) { enlarge(b, "photo-upscale", values{}) }
