package music

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// sampleRate is the number of samples per second in each channel.
const sampleRate = 44100

// frameBytes is the size in bytes of a stereo sample in FluidSynth's output. It
// consists of two floats, so that loud parts are not clipped before they are
// levelled.
const frameBytes = 8

// limits are the resource limits of FluidSynth. They are sufficient for large
// soundfonts and the longest tune.
var limits = subprocess.Limits{Memory: 2 << 30, File: 128 << 20, Folder: 160 << 20}

const (
	notesFile  = "tune.mid"
	resultFile = "tune.wav"
)

// playScore plays a score with FluidSynth and returns a WAV file. It plays the
// parts one by one and mixes them itself, because the loudness of the
// instruments in a soundfont differs by more than 20 dB, and these differences
// vary between soundfonts.
func (e *Engine) playScore(ctx context.Context, s *score, whole engine.Span) ([]byte, error) {
	if _, err := os.Stat(e.soundfont); err != nil {
		return nil, errUnavailable.WithCause(err)
	}
	var mix recording
	playing := whole.SubSpan(0, 0.92)
	for i, p := range s.parts {
		alone := *s
		alone.parts = []part{p}
		stem, err := e.renderPart(ctx, &alone, playing.NthOf(i, len(s.parts)))
		if err != nil {
			return nil, err
		}
		mix = mix.mixIn(stem, p.level)
	}
	if !mix.trimAndLevel() {
		return nil, errResult.WithCause(errors.New("the synthesized recording is silent"))
	}
	return mix.encodeWAV(), nil
}

// renderPart plays a score with FluidSynth and returns the recording without
// further processing.
func (e *Engine) renderPart(ctx context.Context, s *score, part engine.Span) (recording, error) {
	folder, err := subprocess.NewFolder(e.folder)
	if err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	defer func() { _ = folder.Close() }()
	if err := folder.Write(notesFile, s.encodeMIDI()); err != nil {
		return nil, fmt.Errorf("write MIDI file: %w", err)
	}
	all := s.durationSeconds() * sampleRate * frameBytes
	err = e.runFluidSynth(ctx, folder, func(written int64) { part.ReportProgress(float64(written) / all) })
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return nil, errUnavailable.WithCause(err)
	case err != nil:
		return nil, errProgram.WithCause(err)
	}
	f, err := folder.OpenFile(resultFile)
	if err != nil {
		return nil, errResult.WithCause(err)
	}
	defer f.Close()
	out, err := parseWAV(f)
	if err != nil {
		return nil, errResult.WithCause(err)
	}
	part.ReportProgress(1)
	return out, nil
}

// runFluidSynth runs FluidSynth and repeatedly calls the function written with
// the number of bytes written so far.
func (e *Engine) runFluidSynth(ctx context.Context, folder *subprocess.Folder, written func(n int64)) error {
	done := make(chan error, 1)
	go func() {
		done <- subprocess.Run(ctx, subprocess.Program{
			Path: e.program,
			Args: []string{"-n", "-i", "-q",
				"-g", "0.5", "-r", strconv.Itoa(sampleRate), "-O", "float", "-T", "wav",
				"-o", "synth.dynamic-sample-loading=1", // load only the samples in use, which takes a third of the memory
				"-o", "synth.lock-memory=0",
				"-o", "synth.reverb.room-size=0.5", "-o", "synth.reverb.level=0.6", "-o", "synth.reverb.damp=0.3",
				"-F", resultFile, e.soundfont, notesFile},
			Folder: folder,
			Read:   []string{e.soundfont},
			Limits: limits,
		})
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if info, err := os.Lstat(folder.FilePath(resultFile)); err == nil {
				written(info.Size())
			}
		}
	}
}
