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

// Backend is a model server, or a program, that tools run on. Manifests know it
// by its name in the file only.
type Backend struct {
	Engine   string `yaml:"engine"`
	URL      string `yaml:"url"`
	Key      string `yaml:"key"`      // or
	KeyEnv   string `yaml:"key_env"`  // the variable that has it, or
	KeyFile  string `yaml:"key_file"` // the file that has it
	Parallel int    `yaml:"parallel"` // runs that one node gives it at once
	Timeout  Span   `yaml:"timeout"`  // of calls that do not do the work
	Files    string `yaml:"files"`    // inline, or address: how inputs reach it
	Origin   string `yaml:"origin"`   // trained, or algorithmic: what its results are

	// Of fal, which keeps files and descriptions elsewhere.
	Storage string `yaml:"storage"`
	Catalog string `yaml:"catalog"`

	// Of exec.
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Memory      Size              `yaml:"memory"`
	FileBytes   Size              `yaml:"file_bytes"`
	FolderBytes Size              `yaml:"folder_bytes"`
	Network     bool              `yaml:"network"`
	Read        []string          `yaml:"read"`
	Write       []string          `yaml:"write"`
}

// The kinds of backends.
const (
	Cog       = "cog"
	ComfyUI   = "comfyui"
	OpenAI    = "openai"
	A1111     = "a1111"
	Replicate = "replicate"
	Fal       = "fal"
	Exec      = "exec"
)

// servers are the kinds that are reached over HTTP, with the address of those
// that everybody shares.
var servers = map[string]string{
	Cog: "", ComfyUI: "", A1111: "", OpenAI: "", Replicate: "https://api.replicate.com/v1", Fal: "https://queue.fal.run",
}

// Shipped are the engines that are in the program, whose names are taken.
var Shipped = []string{"image", "speech", "music", "video", "script"}

var backendName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// ReadBackends reads the file of model servers, and the keys that it names. All
// problems come together.
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
			bad(errors.New("a name has small letters, digits and dashes"))
		}
		if slices.Contains(Shipped, name) {
			bad(errors.New("the name is taken by an engine of the program"))
		}
		all[name] = b
	}
	return all, errors.Join(problems...)
}

// keyLines returns the lines of the names in a mapping.
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

// fillDefaults reads the key, and refuses what cannot be.
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
		bad("key, key_env and key_file exclude each other")
	case b.KeyEnv != "":
		if b.Key = getenv(b.KeyEnv); b.Key == "" {
			bad("key_env: %s is not set", b.KeyEnv)
		}
	case b.KeyFile != "":
		if !filepath.IsAbs(b.KeyFile) {
			b.KeyFile = filepath.Join(dir, b.KeyFile)
		}
		text, err := os.ReadFile(b.KeyFile)
		if b.Key = strings.TrimSpace(string(text)); err != nil || b.Key == "" {
			bad("key_file: %s cannot be read, or is empty", b.KeyFile)
		}
	}
	if strings.ContainsFunc(b.Key, func(r rune) bool { return r < ' ' || r > '~' }) {
		bad("key: has characters that no header carries")
	}
	if b.Parallel < 0 || b.Parallel > 1000 {
		bad("parallel: must be from 0 to 1000")
	}
	if b.Timeout < 0 {
		bad("timeout: must not be below 0")
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
				bad("%s: must be an http:// or https:// address without a user and a query", name)
			}
		}
		if len(b.Command) > 0 {
			bad("command: is for exec only")
		}
		if len(b.Read) > 0 || len(b.Write) > 0 {
			bad("read and write: are for exec only")
		}
	case b.Engine == Exec:
		if len(b.Command) == 0 || b.Command[0] == "" {
			bad("command: is required")
		} else if !filepath.IsAbs(b.Command[0]) {
			// Never looked up in a path that others may write to.
			b.Command[0] = filepath.Join(dir, b.Command[0])
		}
		for _, path := range slices.Concat(b.Read, b.Write) {
			if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
				bad("read and write: %q must be an absolute path below /", path)
			}
		}
		if b.URL != "" || b.Key != "" {
			bad("url and key: are for servers only")
		}
	default:
		bad("engine: must be one of %s", strings.Join(append(slices.Sorted(maps.Keys(servers)), Exec), ", "))
	}
	return errors.Join(problems...)
}
