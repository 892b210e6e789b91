package video

import (
	"math"
	"strings"
	"testing"
)

// FuzzParseProbe proves that the facts of a file are within bounds, whatever
// ffprobe says about it, and that frame rates are ratios that it can read.
func FuzzParseProbe(f *testing.F) {
	for _, answer := range []string{
		`{"streams": [{"codec_type": "video", "width": 64, "height": 48, "sample_aspect_ratio": "4:3", "r_frame_rate": "30000/1001", "avg_frame_rate": "0/0", "side_data_list": [{"rotation": -90}]}], "format": {"duration": "1.5"}}`,
		`{"streams": [{"codec_type": "audio"}], "format": {"duration": "Inf"}}`, `{"streams": [{"codec_type": "video", "width": 0, "height": 1}]}`, `{"streams": []}`, `{}`, `null`,
		`{"streams": [{"codec_type": "video", "width": 2147483647, "height": 1, "sample_aspect_ratio": "7:1", "avg_frame_rate": "119/1"}], "format": {"duration": "-1"}}`,
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		info, err := parseProbe(answer)
		if err != nil {
			return
		}
		if info.seconds < 0 || math.IsInf(info.seconds, 0) || math.IsNaN(info.seconds) {
			t.Errorf("%q lasts %v seconds", answer, info.seconds)
		}
		if info.video && (info.w < 1 || info.h < 1) {
			t.Errorf("%q has %dx%d pixels", answer, info.w, info.h)
		}
		if rate := parseRatio(info.fps); info.video && (rate < 0.9 || rate > 121) || !info.video && info.fps != "" {
			t.Errorf("%q has the rate %q", answer, info.fps)
		}
		if strings.Trim(info.fps, "0123456789/") != "" {
			t.Errorf("%q has the rate %q", answer, info.fps)
		}
	})
}
