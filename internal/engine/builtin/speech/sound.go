package speech

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"time"

	wav "atelier/internal/engine/builtin/sound"
)

// recording has the samples of a mono recording. The rate is in samples per
// second.
type recording struct {
	rate    int
	samples []int16
}

var errFormat = errors.New("the WAV file does not contain one channel of 16-bit samples")

// parseWAV parses a WAV file with one channel and 16 bits per sample.
func parseWAV(r io.Reader) (*recording, error) {
	f, size, err := wav.Open(r)
	if err != nil {
		return nil, err
	}
	if f.Floats || f.Bits != 16 || f.Channels != 1 || f.Rate < 8000 || f.Rate > 192_000 || size > limits.File {
		return nil, errFormat
	}
	b, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) < size {
		return nil, errors.New("the recording is truncated")
	}
	s := &recording{rate: f.Rate, samples: make([]int16, size/2)}
	for i := range s.samples {
		s.samples[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return s, nil
}

// encodeWAV returns the recording as a WAV file.
func (s *recording) encodeWAV() []byte {
	b := wav.Header(s.rate, 1, len(s.samples))
	for _, v := range s.samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func (s *recording) appendSound(t *recording) error {
	if s.rate == 0 {
		s.rate = t.rate
	}
	if s.rate != t.rate {
		return errors.New("the parts of the speech have different sample rates")
	}
	s.samples = append(s.samples, t.samples...)
	return nil
}

// appendSilence appends silence of the given duration.
func (s *recording) appendSilence(d time.Duration) {
	s.samples = append(s.samples, make([]int16, s.sampleCount(d))...)
}

func (s *recording) sampleCount(d time.Duration) int { return int(d.Seconds() * float64(s.rate)) }

func (s *recording) duration() time.Duration {
	if s.rate == 0 {
		return 0
	}
	return time.Duration(float64(len(s.samples)) / float64(s.rate) * float64(time.Second))
}

// audibleLevel is the largest absolute value of an inaudible sample, about -54
// dB relative to full scale.
const audibleLevel = 66

func (s *recording) isSilent() bool {
	from, to := s.audibleRange()
	return from == to
}

// audibleRange returns the range from the first audible sample to the last. The
// index to is exclusive.
func (s *recording) audibleRange() (from, to int) {
	loud := func(v int16) bool { return v > audibleLevel || v < -audibleLevel }
	to = len(s.samples)
	for from < to && !loud(s.samples[from]) {
		from++
	}
	for to > from && !loud(s.samples[to-1]) {
		to--
	}
	return from, to
}

const (
	lead = 50 * time.Millisecond  // silence kept before the first word
	tail = 150 * time.Millisecond // silence kept after the last word
	fade = 5 * time.Millisecond
)

// trimAndLevel removes silence at both ends of the recording, changes it to a
// standard loudness, and fades both ends briefly to avoid clicks. It reports
// whether anything is audible.
func (s *recording) trimAndLevel() bool {
	from, to := s.audibleRange()
	if from == to {
		return false
	}
	from = max(from-s.sampleCount(lead), 0)
	to = min(to+s.sampleCount(tail), len(s.samples))
	s.samples = s.samples[from:to]
	gain := s.levelGain()
	ramp := min(s.sampleCount(fade), len(s.samples)/2)
	for i, v := range s.samples {
		edge := 1.0
		if near := min(i, len(s.samples)-1-i); near < ramp {
			edge = float64(near) / float64(ramp)
		}
		s.samples[i] = int16(math.Round(float64(v) * gain * edge))
	}
	return true
}

// levelGain returns the gain that changes the loudness of the speech, without
// its pauses, to -19 dB relative to full scale. The gain is at most 12 dB, and
// no peak exceeds -1 dB.
func (s *recording) levelGain() float64 {
	const (
		level   = 0.112 * 32768
		ceiling = 0.891 * 32767
		most    = 4
	)
	var peak, power float64
	spoken := 0
	for block := range slices.Chunk(s.samples, s.sampleCount(20*time.Millisecond)) {
		var sum float64
		for _, v := range block {
			sum += float64(v) * float64(v)
			peak = max(peak, math.Abs(float64(v)))
		}
		if sum > audibleLevel*audibleLevel*float64(len(block)) {
			power += sum
			spoken += len(block)
		}
	}
	if spoken == 0 { // the recording is a single click
		return 1
	}
	return min(level/math.Sqrt(power/float64(spoken)), ceiling/peak, most)
}
