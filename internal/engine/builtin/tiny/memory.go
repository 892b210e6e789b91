package tiny

import (
	"context"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// sinkMemory is the memory for encoding a sketch and for the sink's thumbnail. The model has its
// own memory, which all jobs share.
const sinkMemory = 28 << 20

// jobMemory returns the memory that a job needs, by the header of its picture.
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
		// Four bytes in memory and four in the file, for each pixel of the result.
		result = (4 + 4) * upscaleFactor * upscaleFactor
		// Four floats per pixel, a third more for the smaller layers, and the filled
		// picture.
		filled = 4*4*4/3 + 4
	)
	return in.Memory + (result+filled)*in.Pixels() + sinkMemory, nil
}
