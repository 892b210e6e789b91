package speech

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"
)

// sound is samples of one channel.
type sound struct {
	rate    int
	samples []int16
}

var errFormat = errors.New("not a recording of 16 bits in one channel")

// parse reads a WAV file that is all there.
func parse(b []byte) (*sound, error) {
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return nil, errFormat
	}
	s := &sound{}
	for b = b[12:]; len(b) >= 8; {
		name, n := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
		if n > int64(len(b)) {
			return nil, errors.New("the recording breaks off")
		}
		switch body := b[:n]; name {
		case "fmt ":
			le := binary.LittleEndian
			if n < 16 || le.Uint16(body) != 1 || le.Uint16(body[2:]) != 1 || le.Uint16(body[14:]) != 16 {
				return nil, errFormat
			}
			s.rate = int(le.Uint32(body[4:]))
		case "data":
			if s.rate < 8000 || s.rate > 192_000 {
				return nil, errFormat
			}
			s.samples = make([]int16, n/2)
			for i := range s.samples {
				s.samples[i] = int16(binary.LittleEndian.Uint16(body[2*i:]))
			}
			return s, nil
		}
		b = b[min(n+n&1, int64(len(b))):]
	}
	return nil, errFormat
}

// wav writes the file, with a header that knows its length.
func (s *sound) wav() []byte {
	const header = 44
	le := binary.LittleEndian
	n := 2 * len(s.samples)
	b := make([]byte, 0, header+n)
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, uint32(header-8+n))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1) // integers
	b = le.AppendUint16(b, 1) // channel
	b = le.AppendUint32(b, uint32(s.rate))
	b = le.AppendUint32(b, uint32(2*s.rate))
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = le.AppendUint32(b, uint32(n))
	for _, v := range s.samples {
		b = le.AppendUint16(b, uint16(v))
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
	from, to = max(from-s.count(lead), 0), min(to+s.count(tail), len(s.samples))
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
