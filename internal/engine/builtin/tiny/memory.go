package tiny

import (
	"context"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// sinkMemory is the number of bytes for encoding a sketch and for the thumbnail
// that the sink makes. The memory of the model is counted separately and shared
// by all jobs.
const sinkMemory = 28 << 20

// jobMemory returns the number of bytes that a job needs. For a job with an
// input picture it reads the picture's header.
func jobMemory(ctx context.Context, operation string, j engine.Job) (int64, error) {
	if operation == "sketch" {
		return sinkMemory, nil
	}
	f, err := pictureInput(j)
	if err != nil {
		return 0, err
	}
	in, err := pixels.ReadHeader(ctx, f)
	if err != nil {
		return 0, err
	}
	if operation == "sketch-from-picture" {
		return in.Memory + sinkMemory, nil
	}
	if err := checkArt(in); err != nil {
		return 0, err
	}
	const (
		// Bytes per input pixel for the result: four in memory and four in the
		// file for each pixel of the result.
		result = (4 + 4) * upscaleFactor * upscaleFactor
		// Bytes per input pixel for filling transparent parts: four floats, a
		// third more for the coarser layers, and the filled picture.
		filled = 4*4*4/3 + 4
	)
	return in.Memory + (result+filled)*in.Pixels() + sinkMemory, nil
}
