package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"atelier/internal/base/config"
)

// FuzzValues proves that durations and sizes are written in a form that is read
// without a change, and that sizes are never negative.
func FuzzValues(f *testing.F) {
	for _, text := range []string{"90s", "10m", "600", "-1", "1h2m3.5s", "9223372036", "9223372037", "50MB", "1 gb", "0KB", "9223372036854775807", "8589934592GB", "0x10", "+5", "", "MB", "1_000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var span, sameSpan config.Span
		if span.UnmarshalText([]byte(text)) == nil {
			if err := sameSpan.UnmarshalText([]byte(span.String())); err != nil || sameSpan != span {
				t.Errorf("%q = %v, which is read as %v, %v", text, span, sameSpan, err)
			}
			if d, err := time.ParseDuration(text); err == nil && d != time.Duration(span) && text != "0" {
				t.Errorf("%q = %v, want %v", text, span, d)
			}
		}
		var size, sameSize config.Size
		if size.UnmarshalText([]byte(text)) == nil {
			if size < 0 {
				t.Errorf("%q = %d", text, size)
			}
			if err := sameSize.UnmarshalText([]byte(size.String())); err != nil || sameSize != size {
				t.Errorf("%q = %v, which is read as %v, %v", text, size, sameSize, err)
			}
		}
	})
}

// FuzzReadBackends proves that a file of backends is refused or read, each time
// in the same way, and that names which settings may not have are refused.
func FuzzReadBackends(f *testing.F) {
	for _, text := range []string{"", "comfy:\n  type: comfyui\n  url: http://127.0.0.1:8188\n", "a: {type: openai, url: https://example.com/v1, auth: {bearer: $KEY}}\n", "a: {type: nothing}\n", "- a\n", "a: &x {type: cog, url: 'http://h'}\nb: *x\n", "a: {type: exec, command: [true]}\n", "a: {headers: {X: 1}}", "image: {type: cog}", "A: {}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "backends.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		getenv := func(string) string { return "value" }
		all, err := config.ReadBackends(file, getenv)
		if err != nil {
			return
		}
		for name := range all {
			if name == "" || len(name) > 64 {
				t.Errorf("a backend is called %q", name)
			}
			for _, shipped := range config.Shipped {
				if name == shipped {
					t.Errorf("a backend is called %q, like a built-in engine", name)
				}
			}
		}
		if again, err := config.ReadBackends(file, getenv); err != nil || !reflect.DeepEqual(again, all) {
			t.Errorf("read twice: %v and %v, %v", all, again, err)
		}
	})
}
