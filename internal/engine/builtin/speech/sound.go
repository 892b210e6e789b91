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

// sound is samples of one channel.
type sound struct {
	rate    int
	samples []int16
}

var errFormat = errors.New("not a recording of 16 bits in one channel")

// parse reads a WAV file that is all there.
func parse(r io.Reader) (*sound, error) {
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
		return nil, errors.New("the recording breaks off")
	}
	s := &sound{rate: f.Rate, samples: make([]int16, size/2)}
	for i := range s.samples {
		s.samples[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return s, nil
}

// wav writes the file.
func (s *sound) wav() []byte {
	b := wav.Header(s.rate, 1, len(s.samples))
	for _, v := range s.samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func (s *sound) append(t *sound) error {
	if s.rate == 0 {
		s.rate = t.rate
	}
	if s.rate != t.rate {
		return errors.New("the rate changes on the way")
	}
	s.samples = append(s.samples, t.samples...)
	return nil
}

// rest adds silence.
func (s *sound) rest(d time.Duration) {
	s.samples = append(s.samples, make([]int16, s.count(d))...)
}

func (s *sound) count(d time.Duration) int { return int(d.Seconds() * float64(s.rate)) }

func (s *sound) length() time.Duration {
	if s.rate == 0 {
		return 0
	}
	return time.Duration(float64(len(s.samples)) / float64(s.rate) * float64(time.Second))
}

// audible is the level below which there is nothing to hear, about -54 dB.
const audible = 66

func (s *sound) silent() bool {
	from, to := s.heard()
	return from == to
}

// heard gives the part from the first audible sample to the last.
func (s *sound) heard() (from, to int) {
	loud := func(v int16) bool { return v > audible || v < -audible }
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
	lead = 50 * time.Millisecond  // silence left before the first word
	tail = 150 * time.Millisecond // and behind the last
	fade = 5 * time.Millisecond
)

// polish trims the sound, brings it to an even level and takes clicks off its
// ends. It tells false of one without anything to hear.
func (s *sound) polish() bool {
	from, to := s.heard()
	if from == to {
		return false
	}
	from = max(from-s.count(lead), 0)
	to = min(to+s.count(tail), len(s.samples))
	s.samples = s.samples[from:to]
	gain := s.gain()
	ramp := min(s.count(fade), len(s.samples)/2)
	for i, v := range s.samples {
		edge := 1.0
		if near := min(i, len(s.samples)-1-i); near < ramp {
			edge = float64(near) / float64(ramp)
		}
		s.samples[i] = int16(math.Round(float64(v) * gain * edge))
	}
	return true
}

// gain is what brings speech to -19 dB, pauses aside, with at most 12 dB up and
// no peak above -1 dB.
func (s *sound) gain() float64 {
	const (
		level   = 0.112 * 32768
		ceiling = 0.891 * 32767
		most    = 4
	)
	var peak, power float64
	spoken := 0
	for block := range slices.Chunk(s.samples, s.count(20*time.Millisecond)) {
		var sum float64
		for _, v := range block {
			sum += float64(v) * float64(v)
			peak = max(peak, math.Abs(float64(v)))
		}
		if sum > audible*audible*float64(len(block)) {
			power += sum
			spoken += len(block)
		}
	}
	if spoken == 0 { // a single click
		return 1
	}
	return min(level/math.Sqrt(power/float64(spoken)), ceiling/peak, most)
}
