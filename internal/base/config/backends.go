package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Backend is a model server, or a program, that tools run on. Manifests refer to
// it by its name in the backends file.
type Backend struct {
	Engine   string `yaml:"engine"`
	URL      string `yaml:"url"`
	Key      string `yaml:"key"`      // the API key; excludes KeyEnv and KeyFile
	KeyEnv   string `yaml:"key_env"`  // the environment variable with the API key
	KeyFile  string `yaml:"key_file"` // the file with the API key
	Pool     string `yaml:"pool"`     // the pool that the backend belongs to; workers can be bound to pools with the setting pools
	Parallel int    `yaml:"parallel"` // the number of concurrent runs of all nodes together; 0 if it is not set
	Timeout  Span   `yaml:"timeout"`  // the limit on requests other than the run itself
	Files    string `yaml:"files"`    // how the backend receives input files: "inline" in the request, or "address" as URLs
	Origin   string `yaml:"origin"`   // how the results are made: "trained" (a model) or "algorithmic"

	ParallelPerNode int `yaml:"parallel_per_node"` // the number of concurrent runs of one node; 0 if it is not set

	Auth      string       `yaml:"auth"`       // how the key is sent: one of the Auth constants; default: as the engine's servers expect it
	KeyHeader string       `yaml:"key_header"` // the header with the key, for AuthHeader
	Headers   HeaderValues `yaml:"headers"`    // fixed headers of every request to the server

	// RequestHeader has the headers of every request to the server, including
	// the one with the server's key, by canonical name. SecretFiles are the
	// files that contain secret header values. ReadBackends sets both.
	RequestHeader map[string]string `yaml:"-"`
	SecretFiles   []string          `yaml:"-"`

	// Only for fal, which has separate URLs for file uploads and for
	// descriptions of models.
	Storage string `yaml:"storage"`
	Catalog string `yaml:"catalog"`

	// Only for exec, which runs a program on this machine.
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Memory      Size              `yaml:"memory"`
	FileBytes   Size              `yaml:"file_bytes"`
	FolderBytes Size              `yaml:"folder_bytes"`
	Network     bool              `yaml:"network"`
	Read        []string          `yaml:"read"`
	Write       []string          `yaml:"write"`
}

// The supported values of Backend.Engine.
const (
	Cog       = "cog"
	ComfyUI   = "comfyui"
	OpenAI    = "openai"
	A1111     = "a1111"
	Replicate = "replicate"
	Fal       = "fal"
	Exec      = "exec"
)

// servers has the default URL of each engine that is reached over HTTP. The URL
// is empty if there is no public service.
var servers = map[string]string{
	Cog: "", ComfyUI: "", A1111: "", OpenAI: "", Replicate: "https://api.replicate.com/v1", Fal: "https://queue.fal.run",
}

// The pools that engines belong to unless the backends file says otherwise.
const (
	BuiltinPool = "cpu"     // of the built-in engines
	DefaultPool = "default" // of a backend that names no pool
)

// Shipped are the names of the built-in engines. A backend must not have one of
// these names.
var Shipped = []string{"image", "speech", "music", "video", "script"}

var backendName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// isPoolName reports whether a pool may have this name.
func isPoolName(name string) bool { return backendName.MatchString(name) && len(name) <= 64 }

// ReadBackends reads the backends file and the API keys that it refers to. The
// returned error lists all problems of the file.
func ReadBackends(file string, getenv func(string) string) (map[string]Backend, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("backends: %w", err)
	}
	var all map[string]Backend
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("backends: %s: %w", file, err)
	}
	lines := keyLines(text)
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := all[name]
		bad := func(err error) {
			problems = append(problems, fmt.Errorf("backends: %s:%d: %s: %w", file, lines[name], name, err))
		}
		if err := b.fillDefaults(filepath.Dir(file), getenv); err != nil {
			bad(err)
		}
		if !backendName.MatchString(name) || len(name) > 64 {
			bad(errors.New("a name must have 1 to 64 lower-case letters, digits and dashes"))
		}
		if slices.Contains(Shipped, name) {
			bad(errors.New("the name is reserved for a built-in engine"))
		}
		all[name] = b
	}
	return all, errors.Join(problems...)
}

// keyLines returns the line number of each key in a YAML mapping.
func keyLines(text []byte) map[string]int {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 {
		return nil
	}
	lines := map[string]int{}
	mapping := doc.Content[0]
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		lines[mapping.Content[i].Value] = mapping.Content[i].Line
	}
	return lines
}

// fillDefaults reads the API key and the headers, fills in defaults and returns
// an error that lists all invalid values.
func (b *Backend) fillDefaults(dir string, getenv func(string) string) error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	given := 0
	for _, s := range []string{b.Key, b.KeyEnv, b.KeyFile} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		bad("only one of key, key_env and key_file can be set")
	case b.KeyEnv != "":
		if b.Key = getenv(b.KeyEnv); b.Key == "" {
			bad("key_env: %s is not set", b.KeyEnv)
		}
	case b.KeyFile != "":
		b.KeyFile = absoluteIn(dir, b.KeyFile)
		b.SecretFiles = append(b.SecretFiles, b.KeyFile)
		text, err := os.ReadFile(b.KeyFile)
		if b.Key = strings.TrimSpace(string(text)); err != nil || b.Key == "" {
			bad("key_file: %s is empty or cannot be read", b.KeyFile)
		}
	}
	if !isHeaderText(b.Key) {
		bad("key: must contain only printable ASCII characters")
	}
	if b.Pool == "" {
		b.Pool = DefaultPool
	}
	if !isPoolName(b.Pool) {
		bad("pool: must have 1 to 64 lower-case letters, digits and dashes")
	}
	if b.Parallel < 0 || b.Parallel > 1000 {
		bad("parallel: must be from 0 to 1000")
	}
	if b.ParallelPerNode < 0 || b.ParallelPerNode > 1000 {
		bad("parallel_per_node: must be from 0 to 1000")
	}
	if b.Timeout < 0 {
		bad("timeout: must not be negative")
	}
	if b.Files != "" && b.Files != "inline" && b.Files != "address" {
		bad("files: must be inline or address")
	}
	if b.Origin != "" && b.Origin != "trained" && b.Origin != "algorithmic" {
		bad("origin: must be trained or algorithmic")
	}
	home, server := servers[b.Engine]
	switch {
	case server:
		if err := b.fillRequestHeader(dir, getenv); err != nil {
			problems = append(problems, err)
		}
		if b.URL == "" {
			b.URL = home
		}
		if b.Engine == Fal && b.URL == home {
			if b.Storage == "" {
				b.Storage = "https://rest.fal.ai"
			}
			if b.Catalog == "" {
				b.Catalog = "https://fal.ai/api"
			}
		}
		for name, at := range map[string]string{"url": b.URL, "storage": b.Storage, "catalog": b.Catalog} {
			u, err := url.Parse(at)
			if at == "" && name != "url" {
				continue
			}
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
				bad("%s: must be an http:// or https:// address without user name and query", name)
			}
		}
		if len(b.Command) > 0 {
			bad(`command: allowed only with "engine: exec"`)
		}
		if len(b.Read) > 0 || len(b.Write) > 0 {
			bad(`read and write: allowed only with "engine: exec"`)
		}
	case b.Engine == Exec:
		if len(b.Command) == 0 || b.Command[0] == "" {
			bad("command: is required")
		} else {
			// A relative command is relative to the backends file. It is not
			// searched for in PATH, because other users may be able to write to
			// the folders in PATH.
			b.Command[0] = absoluteIn(dir, b.Command[0])
		}
		for _, path := range slices.Concat(b.Read, b.Write) {
			if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
				bad("read and write: %q must be an absolute path below /", path)
			}
		}
		if b.URL != "" || b.Key != "" || b.Auth != "" || b.KeyHeader != "" || len(b.Headers) > 0 {
			bad(`url, key, auth, key_header and headers: not allowed with "engine: exec"`)
		}
	default:
		bad("engine: must be one of %s", strings.Join(append(slices.Sorted(maps.Keys(servers)), Exec), ", "))
	}
	return errors.Join(problems...)
}
