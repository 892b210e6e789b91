package sanitize_test

import (
	"testing"

	"atelier/internal/base/sanitize"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	engines := []string{"image", "tiny", "speech", "music", "video"}
	for word, want := range map[string]string{
		"imgae": "image", "images": "image", "Image": "image", "tniy": "tiny", "speach": "speech", "vidoe": "video", "muzak": "", "flux": "", "": "", "x": "",
	} {
		if got := sanitize.Nearest(word, engines); got != want {
			t.Errorf("nearest to %q = %q, want %q", word, got, want)
		}
	}
	if got := sanitize.Nearest("image/jpg", []string{"image/png", "image/jpeg"}); got != "image/jpeg" {
		t.Errorf("nearest to image/jpg = %q", got)
	}
}
