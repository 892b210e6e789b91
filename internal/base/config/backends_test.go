package config_test

import (
	"maps"
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
studio: {engine: comfyui, url: "http://10.0.0.5:8188", parallel: 2, timeout: 5s, pool: gpu}
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
	for name, want := range map[string]string{"studio": "gpu", "model": "default", "render": "default"} {
		if got := all[name].Pool; got != want {
			t.Errorf("%s: pool = %q, want %q", name, got, want)
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

func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	all, err := readBackends(t, `
plain: {engine: cog, url: "http://x"}
bearer: {engine: comfyui, url: "http://x", key: secret}
basic: {engine: openai, url: "http://x", key: "me:secret", auth: basic}
webui: {engine: a1111, url: "http://x", key: "me:secret"}
token: {engine: a1111, url: "http://x", key: secret, auth: bearer}
queue: {engine: fal, key: secret}
named: {engine: cog, url: "http://x", key_env: THE_KEY, key_header: x-api-key}
scheme: {engine: cog, url: "http://x", key: Token secret, auth: header, key_header: Authorization}
more:
  engine: cog
  url: "http://x"
  key: secret
  headers:
    x-team: art and design
    X-From-Env: {env: THE_KEY}
    X-From-File: {file: key}
    X-Value: {value: plain}
`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]string{
		"plain":  {},
		"bearer": {"Authorization": "Bearer secret"},
		"basic":  {"Authorization": "Basic bWU6c2VjcmV0"},
		"webui":  {"Authorization": "Basic bWU6c2VjcmV0"},
		"token":  {"Authorization": "Bearer secret"},
		"queue":  {"Authorization": "Key secret"},
		"named":  {"X-Api-Key": "from-env"},
		"scheme": {"Authorization": "Token secret"},
		"more": {
			"Authorization": "Bearer secret", "X-Team": "art and design", "X-From-Env": "from-env", "X-From-File": "from-file", "X-Value": "plain",
		},
	} {
		if got := all[name].RequestHeader; !maps.Equal(got, want) {
			t.Errorf("%s: header = %v, want %v", name, got, want)
		}
	}
	if files := all["more"].SecretFiles; len(files) != 1 || filepath.Base(files[0]) != "key" || !filepath.IsAbs(files[0]) {
		t.Errorf("secret files = %q, want the path of key", files)
	}
}

func TestBackendsThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: {engine: magic}":               "engine: must be one of",
		"a: {}":                            "engine: must be one of",
		"a: {engine: cog}":                 "url: must be",
		"a: {engine: cog, url: 'ftp://x'}": "url: must be",
		"a: {engine: cog, url: 'http://me:secret@x'}":                                   "url: must be",
		"a: {engine: cog, url: 'http://x', key: a, key_env: THE_KEY}":                   "only one of key, key_env and key_file",
		"a: {engine: cog, url: 'http://x', key_env: NOBODY}":                            "NOBODY is not set",
		"a: {engine: cog, url: 'http://x', key_file: empty}":                            "is empty or cannot be read",
		"a: {engine: cog, url: 'http://x', key_file: /no/such}":                         "is empty or cannot be read",
		"a: {engine: cog, url: 'http://x', key: \"a\\nb\"}":                             "only printable ASCII characters",
		"a: {engine: cog, url: 'http://x', parallel: -1}":                               "parallel: must be",
		"a: {engine: cog, url: 'http://x', pool: 'GPU 1'}":                              "pool: must have",
		"a: {engine: cog, url: 'http://x', parallel_per_node: -1}":                      "parallel_per_node: must be",
		"a: {engine: cog, url: 'http://x', files: magic}":                               "files: must be",
		"a: {engine: cog, url: 'http://x', origin: magic}":                              "origin: must be",
		"a: {engine: cog, url: 'http://x', command: [x]}":                               "command: allowed only with",
		"a: {engine: cog, url: 'http://x', auth: basic}":                                "auth: requires a key",
		"a: {engine: cog, url: 'http://x', key: geheim, auth: magic}":                   "auth: must be one of bearer, basic, key, header",
		"a: {engine: cog, url: 'http://x', key: geheim, auth: basic}":                   "requires a key of the form user:password",
		"a: {engine: a1111, url: 'http://x', key: geheim}":                              "requires a key of the form user:password",
		"a: {engine: cog, url: 'http://x', key: geheim, auth: header}":                  "requires key_header",
		"a: {engine: cog, url: 'http://x', key_header: X-Key}":                          "key_header: requires a key",
		"a: {engine: cog, url: 'http://x', key: geheim, auth: bearer, key_header: X-K}": `key_header: allowed only with "auth: header"`,
		"a: {engine: cog, url: 'http://x', key: geheim, key_header: Host}":              "Host cannot be set",
		"a: {engine: cog, url: 'http://x', key: geheim, key_header: 'X Key'}":           "is not a valid header name",
		"a: {engine: cog, url: 'http://x', headers: {content-length: 7}}":               "Content-Length cannot be set",
		"a: {engine: cog, url: 'http://x', headers: {transfer-encoding: geheim}}":       "Transfer-Encoding cannot be set",
		"a: {engine: cog, url: 'http://x', headers: {proxy-authorization: geheim}}":     "Proxy-Authorization cannot be set",
		"a: {engine: cog, url: 'http://x', headers: {sec-websocket-key: geheim}}":       "Sec-Websocket-Key cannot be set",
		"a: {engine: cog, url: 'http://x', headers: {'x:y': geheim}}":                   "is not a valid header name",
		"a: {engine: cog, url: 'http://x', headers: {X-A: \"geheim\\r\\nHost: x\"}}":    "headers: X-A: the value must have",
		"a: {engine: cog, url: 'http://x', headers: {X-A: ''}}":                         "headers: X-A: the value must have",
		"a: {engine: cog, url: 'http://x', headers: {X-A: {env: NOBODY}}}":              "headers: X-A: NOBODY is not set",
		"a: {engine: cog, url: 'http://x', headers: {X-A: {file: empty}}}":              "is empty or cannot be read",
		"a: {engine: cog, url: 'http://x', headers: {X-A: {env: THE_KEY, file: key}}}":  "must be a string, {env: NAME} or {file: PATH}",
		"a: {engine: cog, url: 'http://x', headers: {X-A: {secret: geheim}}}":           "must be a string, {env: NAME} or {file: PATH}",
		"a: {engine: cog, url: 'http://x', headers: {X-A: [geheim]}}":                   "must be a string, {env: NAME} or {file: PATH}",
		"a: {engine: cog, url: 'http://x', headers: geheim}":                            "headers must be a mapping of names to values",
		"a: {engine: cog, url: 'http://x', headers: {X-A: geheim, x-a: geheim}}":        "X-A is set twice",
		"a: {engine: cog, url: 'http://x', key: geheim, headers: {authorization: x}}":   "Authorization is set twice or already contains the key",
		"a: {engine: exec, command: [/bin/x], headers: {X-A: geheim}}":                  "headers: not allowed with",
		"a: {engine: exec}": "command: is required",
		"a: {engine: exec, command: [/bin/x], url: 'http://x'}": "headers: not allowed with",
		"image: {engine: cog, url: 'http://x'}":                 "the name is reserved",
		"A_b: {engine: cog, url: 'http://x'}":                   "lower-case letters, digits and dashes",
		"a: {engine: cog, url: 'http://x', secret: 1}":          "field secret not found",
		"- a": "cannot unmarshal",
		"a: {engine: cog, url: 'http://x', timeout: soon}": "is not a duration",
		"a: {engine: magic}\nb: {engine: exec}":            "command: is required",
	} {
		_, err := readBackends(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "me:secret") || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%s: the error contains the secret: %v", text, err)
		}
	}
	if _, err := config.ReadBackends(filepath.Join(t.TempDir(), "none"), os.Getenv); err == nil {
		t.Error("a file that is not there is read")
	}
}
