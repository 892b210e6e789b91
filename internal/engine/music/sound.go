package music

import (
	"encoding/binary"
	"errors"
	"math"
)

// sound is samples of two channels by turns, 1 being as loud as can be.
type sound []float32

var errFormat = errors.New("not a recording of floats in two channels")

// parse reads a WAV file that is all there.
func parse(b []byte) (sound, error) {
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return nil, errFormat
	}
	known := false
	for b = b[12:]; len(b) >= 8; {
		name, n := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
		if n > int64(len(b)) {
			return nil, errors.New("the recording breaks off")
		}
		switch body := b[:n]; name {
		case "fmt ":
			const floats, extensible = 3, 0xfffe
			le := binary.LittleEndian
			if n < 16 || le.Uint16(body) != floats && le.Uint16(body) != extensible ||
				le.Uint16(body[2:]) != 2 || le.Uint32(body[4:]) != rate || le.Uint16(body[14:]) != 32 {
				return nil, errFormat
			}
			known = true
		case "data":
			if !known {
				return nil, errFormat
			}
			s := make(sound, n/frame*2)
			for i := range s {
				v := math.Float32frombits(binary.LittleEndian.Uint32(body[4*i:]))
				if !(v > -100 && v < 100) { // also what is no number
					return nil, errFormat
				}
				s[i] = v
			}
			return s, nil
		}
		b = b[min(n+n&1, int64(len(b))):]
	}
	return nil, errFormat
}

// wav writes the file, in 16 bits.
func (s sound) wav() []byte {
	const header = 44
	le := binary.LittleEndian
	n := 2 * len(s)
	b := make([]byte, 0, header+n)
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, uint32(header-8+n))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1) // integers
	b = le.AppendUint16(b, 2) // channels
	b = le.AppendUint32(b, rate)
	b = le.AppendUint32(b, 4*rate)
	b = le.AppendUint16(b, 4)
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = le.AppendUint32(b, uint32(n))
	for _, v := range s {
		b = le.AppendUint16(b, uint16(int16(math.Round(float64(v)*32767))))
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
	from, to := 0, len(all)
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
