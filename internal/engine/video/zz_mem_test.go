package video_test

import (
	"fmt"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/video"
)

func TestZZMem(t *testing.T) {
	big := enginetest.Bytes("image/jpeg", made(t, "jpg", "-f", "lavfi", "-i", "testsrc2=s=8160x6120", "-frames:v", "1"))
	big2 := enginetest.Bytes("image/png", made(t, "png", "-f", "lavfi", "-i", "testsrc2=s=8160x6120", "-frames:v", "1", "-pix_fmt", "rgba64be"))
	v4k := enginetest.Bytes("video/mp4", made(t, "mp4", "-f", "lavfi", "-i", "testsrc2=s=3840x2160:r=10:d=0.5", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"))
	small := pngFile(quarters(200, 100))
	var twelve []engine.File
	for range 12 { twelve = append(twelve, small) }
	a, b := programs(t)
	for n, j := range map[string]engine.Job{
		"big": job("slideshow", values{"seconds": 0.2, "size": size(1920, 1080)}, pictures(big, big2)),
		"twelve": job("pan-zoom", values{"seconds": 0.2, "motion": "left", "size": size(1080, 1920)}, pictures(twelve...)),
		"4k": job("smooth-motion", values{"size": "1080", "method": "motion"}, film(v4k)),
	} {
		for _, mem := range []int64{1 << 30, 1536 << 20, 2 << 30, 3<<30, 4 << 30} {
			began := time.Now()
			err := video.New(a, b, video.Options{Folder: t.TempDir(), Memory: mem}).Run(t.Context(), j, &enginetest.Recorder{})
			fmt.Println(n, mem>>20, time.Since(began).Round(time.Millisecond), err)
			if err == nil { break }
		}
	}
}
