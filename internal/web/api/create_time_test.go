package api_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/sample"
)

// noisyPicture is a JPEG with the grain of a photograph, 3840 by 2160.
func noisyPicture(t *testing.T) []byte {
	t.Helper()
	img := image.NewYCbCr(image.Rect(0, 0, 3840, 2160), image.YCbCrSubsampleRatio420)
	r := rand.New(rand.NewPCG(1, 2))
	for _, plane := range [][]byte{img.Y, img.Cb, img.Cr} {
		for i := range plane {
			plane[i] = byte(96 + i%3840/40 + int(r.Uint32()%16))
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fastest is the shortest of some tries, since others use the machine too.
func fastest(tries int, do func()) time.Duration {
	least := time.Duration(1<<63 - 1)
	for range tries {
		start := time.Now()
		do()
		least = min(least, time.Since(start))
	}
	return least
}

// TestTwelveLargePictures holds a create with twelve 4K pictures to what it takes
// to decode some of them: decoding all of them has no place before the answer.
func TestTwelveLargePictures(t *testing.T) {
	t.Parallel()
	sample.Skip(t)
	m := newRunFixture(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits, setHighLimits)
	photo := noisyPicture(t)
	parts := []part{payload(m.body("one", named(12)))}
	for range 12 {
		parts = append(parts, file(photo))
	}

	decoding := fastest(2, func() {
		if _, err := jpeg.Decode(bytes.NewReader(photo)); err != nil {
			t.Error(err)
		}
	})
	creating := fastest(3, func() { m.createForm(parts).checkStatus(t, "twelve pictures", 202, "") })
	if creating > 6*decoding {
		t.Errorf("a create with twelve pictures of %d bytes takes %v; decoding one takes %v", len(photo), creating, decoding)
	}
	t.Logf("create %v, decode one %v", creating, decoding)
}
