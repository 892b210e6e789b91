package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atelier/internal/base/config"
)

func readBackends(t *testing.T, text string) (map[string]config.Backend, error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "backends.yaml")
	for name, text := range map[string]string{"backends.yaml": text, "key": " from-file\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.ReadBackends(file, func(name string) string { return map[string]string{"THE_KEY": "from-env"}[name] })
}

func TestBackends(t *testing.T) {
	t.Parallel()
	all, err := readBackends(t, `
studio: {engine: comfyui, url: "http://10.0.0.5:8188", parallel: 2, timeout: 5s}
model: {engine: cog, url: "http://localhost:5000", files: address}
images: {engine: openai, url: "https://api.example.com/v1", key_env: THE_KEY}
cloud: {engine: replicate, key_file: key}
queue: {engine: fal, key: secret}
render: {engine: exec, command: [render.sh, --fast], memory: 2GB, origin: trained, environment: {A: b}}
`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"studio": "http://10.0.0.5:8188", "cloud": "https://api.replicate.com/v1", "queue": "https://queue.fal.run",
	} {
		if got := all[name].URL; got != want {
			t.Errorf("%s: url = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"images": "from-env", "cloud": "from-file", "queue": "secret", "model": ""} {
		if got := all[name].Key; got != want {
			t.Errorf("%s: key = %q, want %q", name, got, want)
		}
	}
	if b := all["render"]; !filepath.IsAbs(b.Command[0]) || int64(b.Memory) != 2<<30 || b.Command[1] != "--fast" {
		t.Errorf("render = %+v", b)
	}
	if b := all["queue"]; b.Storage == "" || b.Catalog == "" {
		t.Errorf("queue = %+v, want the provider's other addresses too", b)
	}
	if all, err := readBackends(t, ""); err != nil || len(all) != 0 {
		t.Errorf("an empty file = %v, %v", all, err)
	}
}

func TestBackendsThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: {engine: magic}":               "engine: must be one of",
		"a: {}":                            "engine: must be one of",
		"a: {engine: cog}":                 "url: must be",
		"a: {engine: cog, url: 'ftp://x'}": "url: must be",
		"a: {engine: cog, url: 'http://me:secret@x'}":                 "url: must be",
		"a: {engine: cog, url: 'http://x', key: a, key_env: THE_KEY}": "exclude each other",
		"a: {engine: cog, url: 'http://x', key_env: NOBODY}":          "NOBODY is not set",
		"a: {engine: cog, url: 'http://x', key_file: empty}":          "cannot be read, or is empty",
		"a: {engine: cog, url: 'http://x', key_file: /no/such}":       "cannot be read, or is empty",
		"a: {engine: cog, url: 'http://x', key: \"a\\nb\"}":           "characters that no header carries",
		"a: {engine: cog, url: 'http://x', parallel: -1}":             "parallel: must be",
		"a: {engine: cog, url: 'http://x', files: magic}":             "files: must be",
		"a: {engine: cog, url: 'http://x', origin: magic}":            "origin: must be",
		"a: {engine: cog, url: 'http://x', command: [x]}":             "command: is for exec",
		"a: {engine: exec}": "command: is required",
		"a: {engine: exec, command: [/bin/x], url: 'http://x'}": "for servers only",
		"image: {engine: cog, url: 'http://x'}":                 "the name is taken",
		"A_b: {engine: cog, url: 'http://x'}":                   "a name has small letters",
		"a: {engine: cog, url: 'http://x', secret: 1}":          "field secret not found",
		"- a": "cannot unmarshal",
		"a: {engine: cog, url: 'http://x', timeout: soon}": "is not a duration",
		"a: {engine: magic}\nb: {engine: exec}":            "command: is required",
	} {
		_, err := readBackends(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "me:secret") {
			t.Errorf("%s: the error tells the password", text)
		}
	}
	if _, err := config.ReadBackends(filepath.Join(t.TempDir(), "none"), os.Getenv); err == nil {
		t.Error("a file that is not there is read")
	}
}
