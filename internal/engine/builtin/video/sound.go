package video

import (
	"context"

	"atelier/internal/engine"
)

// soundBytes is the number of bytes per second of prepared sound: 48,000
// samples per second in two channels of 16 bits.
const soundBytes = 48_000 * 2 * 2

// prepareSound copies a recording into the job's folder and decodes its first
// maxSeconds seconds to PCM. It returns the decoded file and its length in
// seconds.
func (w *jobRun) prepareSound(ctx context.Context, s engine.Span, f engine.File, maxSeconds float64) (inputFile, float64, error) {
	in, fact, err := w.addSource(ctx, s.SubSpan(0, 0.3), "audio", "sound", f)
	if err != nil {
		return inputFile{}, 0, err
	}
	plain := inputFile{"plain.wav", fileKind{"wav", "wav", "pcm_s16le", errRender}}
	args := append(in.inputArgs(), "-map", "0:a:0", "-t", formatNumber(maxSeconds), "-ac", "2", "-ar", "48000", "-c:a", "pcm_s16le",
		"-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact", "-f", "wav", plain.name)
	if err := w.runFFmpeg(ctx, s.SubSpan(0.3, 1), min(fact.seconds, maxSeconds), errSound, args...); err != nil {
		return inputFile{}, 0, err
	}
	size, err := w.fileSize(ctx, plain.name)
	seconds := float64(size-44) / soundBytes // 44 bytes are the WAV header
	if err != nil || seconds < 0.05 {
		return inputFile{}, 0, errSound.WithCause(err)
	}
	return plain, seconds, nil
}
