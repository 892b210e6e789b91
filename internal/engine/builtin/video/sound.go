package video

import (
	"context"

	"atelier/internal/engine"
)

// The plain form of sound: 48,000 samples a second, two channels of 16 bits.
const soundBytes = 48_000 * 2 * 2 // a second

// sound puts a recording into the folder and makes a plain one of its first
// seconds. It gives how many there are.
func (w *work) sound(ctx context.Context, s engine.Span, f engine.File, most float64) (input, float64, error) {
	in, fact, err := w.source(ctx, s.Part(0, 0.3), "audio", "sound", f)
	if err != nil {
		return input{}, 0, err
	}
	plain := input{"plain.wav", kind{"wav", "wav", "pcm_s16le", errMaking}}
	args := append(in.args(), "-map", "0:a:0", "-t", num(most), "-ac", "2", "-ar", "48000", "-c:a", "pcm_s16le",
		"-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact", "-f", "wav", plain.name)
	if err := w.run(ctx, s.Part(0.3, 1), min(fact.length, most), errSound, args...); err != nil {
		return input{}, 0, err
	}
	size, err := w.size(ctx, plain.name)
	seconds := float64(size-44) / soundBytes // behind the header
	if err != nil || seconds < 0.05 {
		return input{}, 0, errSound.Because(err)
	}
	return plain, seconds, nil
}
