package library_test

import (
	"testing"

	"atelier/internal/file/library"
)

func TestShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width, height int
		want          string
	}{
		{512, 512, "1:1"}, {1, 1, "1:1"}, {1050, 1000, "1:1"}, {1051, 1000, "OTHER"}, {1000, 1050, "1:1"}, {1000, 1051, "OTHER"},
		{1920, 1080, "16:9"}, {1344, 768, "16:9"}, {1280, 720, "16:9"}, {1024, 576, "16:9"}, {1866, 1000, "16:9"}, {1867, 1000, "OTHER"},
		{2000, 1000, "2:1"}, {1905, 1000, "2:1"}, {1904, 1000, "OTHER"},
		{1500, 1000, "3:2"}, {1216, 832, "3:2"}, {1333, 1000, "4:3"}, {1152, 896, "4:3"}, {1415, 1000, "OTHER"},
		{2560, 1080, "21:9"}, {3440, 1440, "21:9"}, {2451, 1000, "OTHER"},
		{1080, 1920, "9:16"}, {832, 1216, "2:3"}, {768, 1024, "3:4"}, {1000, 2000, "OTHER"},
		{10000, 1, "OTHER"}, {1, 10000, "OTHER"},
		{0, 0, ""}, {0, 5, ""}, {5, 0, ""}, {-5, 5, ""},
	} {
		if got := library.AspectRatio(c.width, c.height); got != c.want {
			t.Errorf("Shape(%d, %d) = %q, want %q", c.width, c.height, got, c.want)
		}
	}
}

func TestResolution(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width, height int
		want          string
	}{
		{1, 1, "1K"}, {1024, 1024, "1K"}, {1535, 100, "1K"}, {100, 1535, "1K"}, {1536, 100, "2K"}, {1920, 1080, "2K"},
		{3071, 3071, "2K"}, {3072, 1, "4K+"}, {3840, 2160, "4K+"}, {1, 20000, "4K+"},
		{0, 0, ""}, {0, 4000, ""}, {4000, 0, ""},
	} {
		if got := library.Resolution(c.width, c.height); got != c.want {
			t.Errorf("Resolution(%d, %d) = %q, want %q", c.width, c.height, got, c.want)
		}
	}
}
