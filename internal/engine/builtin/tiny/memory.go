package tiny

import (
	"context"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// takenMemory is for a sketch on its way out, and for what the sink takes to make
// a small picture of a result. The model has its own memory, once for all jobs.
const takenMemory = 28 << 20

// memoryOf is what a job takes, by the header of its picture.
func memoryOf(ctx context.Context, operation string, j engine.Job) (int64, error) {
	if operation == "sketch" {
		return takenMemory, nil
	}
	f, err := picture(j)
	if err != nil {
		return 0, err
	}
	in, err := pixels.ReadHeader(ctx, f)
	if err != nil {
		return 0, err
	}
	if operation == "sketch-from-picture" {
		return in.Memory + takenMemory, nil
	}
	if err := checkArt(in); err != nil {
		return 0, err
	}
	const (
		// Four bytes in memory and as many in the file, for each of the pixels that
		// one becomes.
		result = (4 + 4) * enlarged * enlarged
		// Four floats for each pixel and a third as many for the layers above, and
		// the filled picture.
		filled = 4*4*4/3 + 4
	)
	return in.Memory + (result+filled)*in.Pixels() + takenMemory, nil
}
