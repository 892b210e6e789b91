package music

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"atelier/internal/engine/child"
)

// rate is samples a second, of two channels.
const rate = 44100

// frame is how many bytes FluidSynth writes for each: two floats, so that
// nothing is cut off that is too loud before it was levelled.
const frame = 8

// limits hold the largest soundfont that people use, and the longest tune.
var limits = child.Limits{Memory: 2 << 30, File: 256 << 20, Folder: 300 << 20}

const (
	notes  = "tune.mid"
	result = "tune.wav"
)

// play has a score played and gives the finished file.
func (e *Engine) play(ctx context.Context, s *score, progress func(fraction float64)) ([]byte, error) {
	if _, err := os.Stat(e.soundfont); err != nil {
		return nil, errAway.Because(err)
	}
	folder, err := child.NewFolder(e.folder)
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer folder.Close()
	if err := folder.Write(notes, s.midi()); err != nil {
		return nil, fmt.Errorf("write the notes: %w", err)
	}
	progress(0.05)
	err = e.render(ctx, folder, func(written int64) {
		progress(0.05 + 0.85*min(float64(written)/(s.seconds()*rate*frame), 1))
	})
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
	b, err := io.ReadAll(io.LimitReader(f, limits.File))
	if err != nil {
		return nil, errResult.Because(err)
	}
	sound, err := parse(b)
	if err != nil {
		return nil, errResult.Because(err)
	}
	progress(0.93)
	if !sound.polish() {
		return nil, errResult.Because(errors.New("nothing can be heard"))
	}
	return sound.wav(), nil
}

// render runs FluidSynth and tells, now and then, how much it has written.
func (e *Engine) render(ctx context.Context, folder *child.Folder, written func(n int64)) error {
	done := make(chan error, 1)
	go func() {
		done <- child.Run(ctx, child.Program{
			Path: e.program,
			Args: []string{"-n", "-i", "-q",
				"-g", "0.5", "-r", strconv.Itoa(rate), "-O", "float", "-T", "wav",
				"-o", "synth.dynamic-sample-loading=1", // only what is played: a tenth of the time and memory
				"-o", "synth.lock-memory=0",
				"-o", "synth.reverb.room-size=0.5", "-o", "synth.reverb.level=0.6", "-o", "synth.reverb.damp=0.3",
				"-F", result, e.soundfont, notes},
			Folder: folder,
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
