package music

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	wav "atelier/internal/engine/builtin/sound"
)

// sound is samples of two channels by turns, 1 being as loud as can be.
type sound []float32

var errFormat = errors.New("not a recording of floats in two channels")

// parse reads a WAV file that is all there.
func parse(r io.Reader) (sound, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	f, size, err := wav.Open(in)
	if err != nil {
		return nil, err
	}
	if f != (wav.Format{Floats: true, Bits: 32, Channels: 2, Rate: rate}) {
		return nil, errFormat
	}
	return floats(in, size)
}

// floats reads samples that take n bytes.
func floats(in io.Reader, n int64) (sound, error) {
	if n > limits.File {
		return nil, errFormat
	}
	var s sound
	block := make([]byte, 64<<10)
	for n -= n % frame; n > 0; n -= int64(len(block)) {
		block = block[:min(n, int64(len(block)))]
		if _, err := io.ReadFull(in, block); err != nil {
			return nil, fmt.Errorf("the recording breaks off: %w", err)
		}
		if s == nil { // it is no empty promise
			s = make(sound, 0, n/4)
		}
		for at := 0; at < len(block); at += 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(block[at:]))
			if !(v > -100 && v < 100) { // also what is no number
				return nil, errFormat
			}
			s = append(s, v)
		}
	}
	return s, nil
}

// add mixes another sound in, so many dB louder than a part that leads.
func (s sound) add(other sound, level float64) sound {
	const quietest, most = 1e-5, 100 // a silent part stays silent
	loud := other.loudness()
	if loud < quietest {
		return s
	}
	gain := float32(min(0.1*math.Pow(10, level/20)/loud, most))
	if more := len(other) - len(s); more > 0 {
		s = append(s, make(sound, more)...)
	}
	for i, v := range other {
		s[i] += gain * v
	}
	return s
}

// loudness is how loud a sound is while there is any. Low tones count less, as
// they do for ears.
func (s sound) loudness() float64 {
	const (
		block = rate / 20 * 2
		keep  = 0.98 // a high-pass at about 140 Hz
	)
	var powers []float64
	var high, before, loudest float64
	for part := range slices.Chunk(s, block) {
		sum := 0.0
		for i := 0; i+1 < len(part); i += 2 {
			v := float64(part[i]) + float64(part[i+1])
			high = keep * (high + v - before)
			before = v
			sum += high * high
		}
		power := sum / float64(len(part)/2+1)
		powers = append(powers, power)
		loudest = max(loudest, power)
	}
	total := 0.0
	n := 0
	for _, p := range powers {
		if p > loudest/1000 {
			total += p
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(total / float64(n))
}

// wav writes the file, in 16 bits.
func (s sound) wav() []byte {
	b := wav.Header(rate, 2, len(s))
	for _, v := range s {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(math.Round(float64(v)*32767))))
	}
	return b
}

const (
	// quiet is where the end is out of hearing, 60 dB below the loudest.
	quiet = 0.001
	// lead and fade are samples of a channel.
	lead = rate / 20
	fade = rate * 6 / 10
)

// polish takes the silence off both ends, lets the end fade out and brings the
// tune to an even level. It tells false of one without anything to hear.
func (s *sound) polish() bool {
	all := *s
	peak := 0.0
	for _, v := range all {
		peak = max(peak, math.Abs(float64(v)))
	}
	if peak < 1e-4 {
		return false
	}
	heard := func(i int) bool { return math.Abs(float64(all[i])) > peak*quiet }
	from := 0
	to := len(all)
	for !heard(from) {
		from++
	}
	for !heard(to - 1) {
		to--
	}
	from = max(from-2*lead, 0) &^ 1
	to = min((to+1)&^1, len(all))
	all = all[from:to]
	gain := all.gain(peak)
	frames := len(all) / 2
	for i, v := range all {
		edge := 1.0
		if left := frames - 1 - i/2; left < fade {
			edge = float64(left) / fade
			edge *= edge // as ears hear it, even
		}
		all[i] = float32(float64(v) * gain * edge)
	}
	*s = all
	return true
}

// gain is what brings a tune to -17 dB, with no peak above -1 dB.
func (s sound) gain(peak float64) float64 {
	const level, ceiling = 0.141, 0.891
	var power float64
	for _, v := range s {
		power += float64(v) * float64(v)
	}
	return min(level/math.Sqrt(power/float64(len(s))), ceiling/peak)
}
