package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The supported values of Backend.Auth: how the key is sent to the server.
const (
	AuthBearer = "bearer" // Authorization: Bearer <key>
	AuthBasic  = "basic"  // Authorization: Basic, with a key of the form user:password
	AuthKey    = "key"    // Authorization: Key <key>, as fal expects it
	AuthHeader = "header" // the header that Backend.KeyHeader names has the key as its value
)

var authChoices = []string{AuthBearer, AuthBasic, AuthKey, AuthHeader}

// defaultAuth has the engines whose servers do not expect a bearer token.
var defaultAuth = map[string]string{A1111: AuthBasic, Fal: AuthKey}

// Limits of the headers of a backend: their number, and the length of a value
// in bytes.
const (
	maxHeaders     = 20
	maxHeaderValue = 8 << 10
)

// reservedHeaders are headers that belong to the connection or to the body of
// each request, so a backend cannot set them. Headers that begin with one of
// reservedPrefixes are reserved as well.
var (
	reservedHeaders = []string{
		"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Range",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
	reservedPrefixes = []string{"Proxy-", "Sec-"}
)

// HeaderValue is the value of a fixed header of a backend: the value itself,
// the environment variable with the value, or the file with the value.
type HeaderValue struct {
	Value string `yaml:"value"`
	Env   string `yaml:"env"`
	File  string `yaml:"file"`
}

// UnmarshalYAML decodes a plain string, or a mapping with one of the keys
// value, env and file. Its errors do not repeat the value, which may be a
// secret.
func (v *HeaderValue) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		v.Value = n.Value
		return nil
	}
	type plain HeaderValue
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[1].Kind != yaml.ScalarNode || n.Decode((*plain)(v)) != nil ||
		!slices.Contains([]string{"value", "env", "file"}, n.Content[0].Value) {
		return fmt.Errorf("line %d: the value of a header must be a string, {env: NAME} or {file: PATH}", n.Line)
	}
	return nil
}

// HeaderValues are the fixed headers of a backend, by name.
type HeaderValues map[string]HeaderValue

// UnmarshalYAML decodes a mapping. Its errors do not repeat values, which may
// be secrets.
func (v *HeaderValues) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: headers must be a mapping of names to values", n.Line)
	}
	return n.Decode((*map[string]HeaderValue)(v))
}

// resolve returns the header's value, read from its source. dir is the folder
// of the backends file.
func (v HeaderValue) resolve(dir string, getenv func(string) string) (string, error) {
	value := v.Value
	switch {
	case v.Env != "":
		if value = getenv(v.Env); value == "" {
			return "", fmt.Errorf("%s is not set", v.Env)
		}
	case v.File != "":
		path := absoluteIn(dir, v.File)
		text, err := os.ReadFile(path)
		if value = strings.TrimSpace(string(text)); err != nil || value == "" {
			return "", fmt.Errorf("%s is empty or cannot be read", path)
		}
	}
	if value == "" || len(value) > maxHeaderValue || !isHeaderText(value) || strings.TrimSpace(value) != value {
		return "", fmt.Errorf("the value must have 1 to %d printable ASCII characters, without leading or trailing spaces", maxHeaderValue)
	}
	return value, nil
}

// fillRequestHeader sets RequestHeader from the key and the fixed headers. It
// returns an error that lists all problems and contains no value.
func (b *Backend) fillRequestHeader(dir string, getenv func(string) string) error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	b.RequestHeader = map[string]string{}

	if err := b.setKeyHeader(); err != nil {
		problems = append(problems, err)
	}

	if len(b.Headers) > maxHeaders {
		bad("headers: at most %d are allowed", maxHeaders)
		return errors.Join(problems...)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Headers)) {
		if err := checkHeaderName(name); err != nil {
			bad("headers: %w", err)
			continue
		}
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if _, taken := b.RequestHeader[canonical]; taken {
			bad("headers: %s is set twice or already contains the key", canonical)
			continue
		}
		value, err := b.Headers[name].resolve(dir, getenv)
		if err != nil {
			bad("headers: %s: %w", canonical, err)
			continue
		}
		b.RequestHeader[canonical] = value
		if file := b.Headers[name].File; file != "" {
			b.SecretFiles = append(b.SecretFiles, absoluteIn(dir, file))
		}
	}
	return errors.Join(problems...)
}

// setKeyHeader sets the header that has the key.
func (b *Backend) setKeyHeader() error {
	switch {
	case b.Auth == "" && b.KeyHeader != "":
		b.Auth = AuthHeader
	case b.Auth == "":
		b.Auth = defaultAuth[b.Engine]
		if b.Auth == "" {
			b.Auth = AuthBearer
		}
	case b.Key == "":
		return errors.New("auth: requires a key: set key, key_env or key_file")
	case !slices.Contains(authChoices, b.Auth):
		return fmt.Errorf("auth: must be one of %s", strings.Join(authChoices, ", "))
	}

	switch {
	case b.Auth == AuthHeader && b.KeyHeader == "":
		return errors.New(`"auth: header" requires key_header, the name of the header`)
	case b.Auth != AuthHeader && b.KeyHeader != "":
		return errors.New(`key_header: allowed only with "auth: header"`)
	case b.KeyHeader != "" && b.Key == "":
		return errors.New("key_header: requires a key: set key, key_env or key_file")
	case b.Key == "":
		return nil
	}

	switch b.Auth {
	case AuthBearer:
		b.RequestHeader["Authorization"] = "Bearer " + b.Key
	case AuthKey:
		b.RequestHeader["Authorization"] = "Key " + b.Key
	case AuthBasic:
		if !strings.Contains(b.Key, ":") {
			return errors.New(`"auth: basic" requires a key of the form user:password`)
		}
		b.RequestHeader["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(b.Key))
	case AuthHeader:
		if err := checkHeaderName(b.KeyHeader); err != nil {
			return fmt.Errorf("key_header: %w", err)
		}
		b.RequestHeader[textproto.CanonicalMIMEHeaderKey(b.KeyHeader)] = b.Key
	}
	return nil
}

// checkHeaderName returns an error if a backend cannot set the header, because
// the name is not a token (RFC 9110, section 5.6.2), or because the header
// belongs to the connection or to the body of a request.
func checkHeaderName(name string) error {
	isToken := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return !isToken(r) }) {
		return fmt.Errorf("%.100q is not a valid header name", name)
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	isPrefix := func(prefix string) bool { return strings.HasPrefix(canonical, prefix) }
	if slices.Contains(reservedHeaders, canonical) || slices.ContainsFunc(reservedPrefixes, isPrefix) {
		return fmt.Errorf("%s cannot be set: the program sets it for each request", canonical)
	}
	return nil
}

// isHeaderText reports whether text consists of characters that are valid in
// the value of a header.
func isHeaderText(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// absoluteIn returns path unchanged if it is absolute, and otherwise joined to
// the folder dir.
func absoluteIn(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
