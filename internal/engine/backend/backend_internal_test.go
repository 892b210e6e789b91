package backend

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"atelier/internal/engine"
)

func TestAnswersHaveAnEnd(t *testing.T) {
	t.Parallel()
	const most = 1000
	var out any
	for _, size := range []int{0, 1, most - 2, most - 1, most + 5, 1 << 20} {
		err := DecodeJSONLimit(strings.NewReader(`"`+strings.Repeat("a", size)+`"`), most, &out)
		if large := size+2 > most; errors.Is(err, errTooLarge) != large || !large && err != nil {
			t.Errorf("%d characters: %v", size, err)
		}
	}
	e := engine.AsError(CallFailure(t.Context(), DecodeJSONLimit(strings.NewReader(strings.Repeat(" ", most+1)), most, &out)))
	if e.Code != engine.Invalid || e.Transient {
		t.Errorf("failure = %v, want one that stays", e)
	}
}

func TestSameServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"http://gpu", "http://GPU:80/x", true},
		{"https://gpu:443", "https://gpu", true},
		{"https://gpu", "http://gpu", false},
		{"http://gpu:443", "https://gpu", false},
		{"http://gpu", "http://gpu:8080", false},
		{"http://gpu", "http://gpu.example", false},
		{"http://[::1]:80", "http://[::1]", true},
		{"http://gpu", "http://gpu@evil", false},
	} {
		a, errA := url.Parse(tt.a)
		b, errB := url.Parse(tt.b)
		if errA != nil || errB != nil || isSameServer(a, b) != tt.want {
			t.Errorf("%s and %s: %v, want %v", tt.a, tt.b, !tt.want, tt.want)
		}
	}
}
