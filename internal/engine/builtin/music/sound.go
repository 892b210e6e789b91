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

// recording is a list of interleaved stereo samples, usually from -1 to 1.
// Before the recording is levelled, samples may be outside of this range.
type recording []float32

var errFormat = errors.New("the WAV file does not contain two channels of 32-bit floating-point samples")

// parseWAV parses a WAV file of stereo floats.
func parseWAV(r io.Reader) (recording, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	f, size, err := wav.Open(in)
	if err != nil {
		return nil, err
	}
	if f != (wav.Format{Floats: true, Bits: 32, Channels: 2, Rate: sampleRate}) {
		return nil, errFormat
	}
	return readFloats(in, size)
}

// readFloats reads n bytes of samples.
func readFloats(in io.Reader, n int64) (recording, error) {
	if n > limits.File {
		return nil, errFormat
	}
	var s recording
	block := make([]byte, 64<<10)
	for n -= n % frameBytes; n > 0; n -= int64(len(block)) {
		block = block[:min(n, int64(len(block)))]
		if _, err := io.ReadFull(in, block); err != nil {
			return nil, fmt.Errorf("the recording is truncated: %w", err)
		}
		if s == nil { // allocate memory only after the first samples have arrived
			s = make(recording, 0, n/4)
		}
		for at := 0; at < len(block); at += 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(block[at:]))
			if !(v > -100 && v < 100) { // the condition also refuses NaN
				return nil, errFormat
			}
			s = append(s, v)
		}
	}
	return s, nil
}

// mixIn adds another recording and returns the sum. First it changes the
// loudness of the other recording to the given level, in dB relative to the
// melody.
func (s recording) mixIn(other recording, level float64) recording {
	const quietest, maxGain = 1e-5, 100 // a part whose loudness is below quietest is left out
	loud := other.measureLoudness()
	if loud < quietest {
		return s
	}
	gain := float32(min(0.1*math.Pow(10, level/20)/loud, maxGain))
	if more := len(other) - len(s); more > 0 {
		s = append(s, make(recording, more)...)
	}
	for i, v := range other {
		s[i] += gain * v
	}
	return s
}

// measureLoudness returns the root mean square of the audible parts. Low tones
// count less, as in human hearing.
func (s recording) measureLoudness() float64 {
	const (
		block = sampleRate / 20 * 2
		keep  = 0.98 // coefficient of a high-pass filter at about 140 Hz
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

// encodeWAV returns the recording as a WAV file with 16 bits per sample.
func (s recording) encodeWAV() []byte {
	b := wav.Header(sampleRate, 2, len(s))
	for _, v := range s {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(math.Round(float64(v)*32767))))
	}
	return b
}

const (
	// inaudibleLevel is the fraction of the peak (-60 dB) below which samples
	// at the ends are inaudible.
	inaudibleLevel = 0.001
	// lead and fade are the silence kept at the beginning and the fade at the
	// end, in samples per channel.
	lead = sampleRate / 20
	fade = sampleRate * 6 / 10
)

// trimAndLevel removes silence at both ends, fades out the end and changes the
// tune to a standard loudness. It reports whether anything is audible.
func (s *recording) trimAndLevel() bool {
	all := *s
	peak := 0.0
	for _, v := range all {
		peak = max(peak, math.Abs(float64(v)))
	}
	if peak < 1e-4 {
		return false
	}
	heard := func(i int) bool { return math.Abs(float64(all[i])) > peak*inaudibleLevel }
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
	gain := all.levelGain(peak)
	frames := len(all) / 2
	for i, v := range all {
		edge := 1.0
		if left := frames - 1 - i/2; left < fade {
			edge = float64(left) / fade
			edge *= edge // a quadratic fade sounds even
		}
		all[i] = float32(float64(v) * gain * edge)
	}
	*s = all
	return true
}

// levelGain returns the gain that changes the loudness of a tune to -17 dB
// relative to full scale, or a lower gain if a peak would exceed -1 dB.
func (s recording) levelGain(peak float64) float64 {
	const level, ceiling = 0.141, 0.891
	var power float64
	for _, v := range s {
		power += float64(v) * float64(v)
	}
	return min(level/math.Sqrt(power/float64(len(s))), ceiling/peak)
}
