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

// rate is samples a second, of two channels.
const rate = 44100

// frame is how many bytes FluidSynth writes for each: two floats, so that
// nothing is cut off that is too loud before it was levelled.
const frame = 8

// limits hold the soundfonts that people use, and the longest tune.
var limits = subprocess.Limits{Memory: 2 << 30, File: 128 << 20, Folder: 160 << 20}

const (
	notes  = "tune.mid"
	result = "tune.wav"
)

// play has a score played and gives the finished file. The parts are played one
// by one and mixed here: the instruments of a soundfont differ by more than
// 20 dB, and every soundfont in its own way.
func (e *Engine) play(ctx context.Context, s *score, whole engine.Span) ([]byte, error) {
	if _, err := os.Stat(e.soundfont); err != nil {
		return nil, errAway.Because(err)
	}
	var mix sound
	playing := whole.Part(0, 0.92)
	for i, p := range s.parts {
		alone := *s
		alone.parts = []part{p}
		stem, err := e.perform(ctx, &alone, playing.Of(i, len(s.parts)))
		if err != nil {
			return nil, err
		}
		mix = mix.add(stem, p.level)
	}
	if !mix.polish() {
		return nil, errResult.Because(errors.New("nothing can be heard"))
	}
	return mix.wav(), nil
}

// perform has a score played and gives the sound as it comes.
func (e *Engine) perform(ctx context.Context, s *score, part engine.Span) (sound, error) {
	folder, err := subprocess.NewFolder(e.folder)
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer folder.Close()
	if err := folder.Write(notes, s.midi()); err != nil {
		return nil, fmt.Errorf("write the notes: %w", err)
	}
	all := s.seconds() * rate * frame
	err = e.render(ctx, folder, func(written int64) { part.At(float64(written) / all) })
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return nil, errAway.Because(err)
	case err != nil:
		return nil, errProgram.Because(err)
	}
	f, err := folder.Open(result)
	if err != nil {
		return nil, errResult.Because(err)
	}
	defer f.Close()
	out, err := parse(f)
	if err != nil {
		return nil, errResult.Because(err)
	}
	part.At(1)
	return out, nil
}

// render runs FluidSynth and tells, now and then, how much it has written.
func (e *Engine) render(ctx context.Context, folder *subprocess.Folder, written func(n int64)) error {
	done := make(chan error, 1)
	go func() {
		done <- subprocess.Run(ctx, subprocess.Program{
			Path: e.program,
			Args: []string{"-n", "-i", "-q",
				"-g", "0.5", "-r", strconv.Itoa(rate), "-O", "float", "-T", "wav",
				"-o", "synth.dynamic-sample-loading=1", // only what is played: a third of the memory
				"-o", "synth.lock-memory=0",
				"-o", "synth.reverb.room-size=0.5", "-o", "synth.reverb.level=0.6", "-o", "synth.reverb.damp=0.3",
				"-F", result, e.soundfont, notes},
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
			if info, err := os.Lstat(folder.Path(result)); err == nil {
				written(info.Size())
			}
		}
	}
}
