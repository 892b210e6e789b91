package config

import (
	"encoding"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"atelier/internal/base/sanitize"
)

// Sources looks up settings that were not given as flags: first in the
// environment, then in the settings file. It implements kong.Resolver.
type Sources struct {
	getenv func(string) string
	file   map[string]string // values by the name of their setting
	lines  map[string]int
	path   string
	found  map[string]string // where a value was found, "environment" or "file", by flag

	problems Problems // values that cannot be parsed
}

// NewSources reads the settings file that --config or ATELIER_CONFIG names, if
// any.
func NewSources(args []string, getenv func(string) string) (*Sources, error) {
	s := &Sources{getenv: getenv, file: map[string]string{}, lines: map[string]int{}, found: map[string]string{}}
	s.path = getenv("ATELIER_CONFIG")
	for i, a := range args {
		if a == "--" {
			break
		}
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			s.path = v
		} else if a == "--config" && i+1 < len(args) {
			s.path = args[i+1]
		}
	}
	if s.path == "" {
		return s, nil
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("settings file %s: %w", s.path, err)
	}
	if len(doc.Content) == 0 {
		return s, nil
	}
	return s, s.flattenNode("", doc.Content[0])
}

// flattenNode stores every value below a YAML node under its full name, such as
// limits.active_runs.
func (s *Sources) flattenNode(name string, n *yaml.Node) error {
	wrong := func(what string) error {
		return fmt.Errorf("settings file %s:%d: %s %s", s.path, n.Line, name, what)
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			sub := n.Content[i].Value
			if name != "" {
				sub = name + "." + sub
			}
			if err := s.flattenNode(sub, n.Content[i+1]); err != nil {
				return err
			}
		}
		return nil
	case yaml.SequenceNode:
		var items []string
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return wrong("must be a list of plain values")
			}
			items = append(items, c.Value)
		}
		n = &yaml.Node{Kind: yaml.ScalarNode, Value: strings.Join(items, ","), Line: n.Line}
	case yaml.ScalarNode:
	default:
		return wrong("must be a plain value, a list or a mapping")
	}
	if _, twice := s.lines[name]; twice {
		return wrong("is set twice")
	}
	s.lines[name] = n.Line
	if n.Tag != "!!null" { // a setting without a value keeps its default
		s.file[name] = n.Value
	}
	return nil
}

// Name returns the name of a flag's setting in the settings file.
func Name(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// Variable returns the name of the environment variable for a flag's setting.
func Variable(flag string) string {
	return prefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

// FlagNames replaces underscores in the names of flags by dashes, so that flags
// can be written like the names in the settings file.
func FlagNames(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if a == "--" {
			copy(out[i:], args[i:])
			break
		}
		name, value, given := strings.Cut(a, "=")
		if strings.HasPrefix(name, "--") {
			name = strings.ReplaceAll(name, "_", "-")
		}
		if out[i] = name; given {
			out[i] += "=" + value
		}
	}
	return out
}

// Validate returns an error that lists unknown names in the settings file and
// values that cannot be parsed.
func (s *Sources) Validate(app *kong.Application) error {
	var names []string
	for _, f := range app.Node.Flags {
		names = append(names, Name(f.Name))
	}
	slices.Sort(names)
	problems := slices.Clone(s.problems)
	for name := range s.lines {
		_, hasValue := s.file[name]
		isGroup := slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name+".") })
		if !slices.Contains(names, name) && (hasValue || !isGroup) {
			text := "is not a setting"
			if meant := sanitize.Nearest(name, names); meant != "" {
				text += "; did you mean " + meant + "?"
			}
			problems = append(problems, Problem{
				Name: name,
				Text: text,
				From: s.path,
				Line: s.lines[name],
			})
		}
	}
	return problems.asError()
}

// Resolve returns a setting's value from the environment or the settings file.
// It returns nil for flags of a single command, which can be given only on the
// command line. It also returns nil for a value that cannot be parsed: Validate
// reports all of these together.
func (s *Sources) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if parent.App == nil || flag.Name == "help" || flag.Name == "config" {
		return nil, nil
	}
	name := Name(flag.Name)
	value := s.getenv(Variable(flag.Name))
	source := "environment"
	if value == "" {
		written, ok := s.file[name]
		if !ok {
			return nil, nil
		}
		value = written
		source = "file"
	}
	s.found[flag.Name] = source
	if err := checkReadable(flag, value); err != nil {
		problem := Problem{Name: name, Text: err.Error()}
		problem.From, problem.Line = s.originOf(flag.Name)
		s.problems = append(s.problems, problem)
		return nil, nil
	}
	return value, nil
}

// originOf returns where the value of a flag was found: the environment
// variable, or the settings file and the line in it.
func (s *Sources) originOf(flag string) (from string, line int) {
	switch s.found[flag] {
	case "environment":
		return Variable(flag), 0
	case "file":
		return s.path, s.lines[Name(flag)]
	}
	return "", 0
}

// checkReadable returns an error if value cannot be parsed as the flag's value.
// It does not set the flag.
func checkReadable(flag *kong.Flag, value string) error {
	target := reflect.New(flag.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(value, kong.FlagValueToken)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, target); err != nil {
		switch target.Kind() {
		case reflect.Bool:
			return fmt.Errorf("%q is neither true nor false", value)
		case reflect.Int, reflect.Int64:
			if _, own := target.Addr().Interface().(encoding.TextUnmarshaler); !own {
				return fmt.Errorf("%q is not a whole number", value)
			}
		case reflect.Float64:
			return fmt.Errorf("%q is not a number", value)
		}
		return err
	}
	if flag.Enum != "" && !slices.Contains(flag.EnumSlice(), value) {
		return fmt.Errorf("must be one of %s, not %q", strings.Join(flag.EnumSlice(), ", "), value)
	}
	return nil
}

// Locate adds the source of each value (file and line, variable or flag) to the
// problems that Config.CheckSettings returned.
func (s *Sources) Locate(ctx *kong.Context, err error) error {
	problems, ok := errors.AsType[Problems](err)
	if !ok {
		return err
	}
	given := givenFlags(ctx)
	located := slices.Clone(problems)
	for i, p := range located {
		for _, f := range ctx.Model.Node.Flags {
			if Name(f.Name) != p.Name {
				continue
			}
			located[i].From, located[i].Line = s.originOf(f.Name)
			if given[f.Name] {
				located[i].From = "--" + f.Name
			}
		}
	}
	return located
}

// givenFlags returns the names of the flags that were given on the command
// line.
func givenFlags(ctx *kong.Context) map[string]bool {
	given := map[string]bool{}
	for _, p := range ctx.Path {
		if p.Flag != nil && !p.Resolved {
			given[p.Flag.Name] = true
		}
	}
	return given
}

// Setting is a setting with its value and the value's source.
type Setting struct {
	Name   string
	Value  string // with secrets masked
	Source string // "default", "file", "environment" or "flag"
	Help   string
	Secret bool // the whole value is a secret
	IsSet  bool // the value is not empty
}

// Settings returns the effective value of every setting, with secrets masked.
func (s *Sources) Settings(ctx *kong.Context, c *Config) []Setting {
	given := givenFlags(ctx)
	derived := map[string]string{"database": c.DatabaseURL(), "blobs": c.BlobsURL(), "base-url": c.BaseURL, "app-url": c.AppURL}
	var all []Setting
	for _, f := range ctx.Model.Node.Flags {
		if f.Name == "help" {
			continue
		}
		one := Setting{Name: Name(f.Name), Value: settingText(f), Source: "default", Help: f.Help}
		if v, ok := derived[f.Name]; ok {
			one.Value = v
		}
		if from, ok := s.found[f.Name]; ok {
			one.Source = from
		}
		if given[f.Name] {
			one.Source = "flag"
		}
		secret := f.Tag.Get("secret")
		one.Secret = secret == "all"
		one.IsSet = one.Value != ""
		one.Value = maskSecret(secret, one.Value)
		all = append(all, one)
	}
	return all
}

// settingText returns the value of a setting in the form that the settings file
// and flags accept.
func settingText(f *kong.Flag) string {
	if !f.IsSlice() {
		return fmt.Sprint(f.Target.Interface())
	}
	var items []string
	for i := range f.Target.Len() {
		items = append(items, fmt.Sprint(f.Target.Index(i).Interface()))
	}
	return strings.Join(items, ",")
}

// maskSecret replaces a secret by asterisks: the whole value if secret is
// "all", only the password in a URL if it is "url".
func maskSecret(secret, value string) string {
	const stars = "********"
	switch {
	case secret == "" || value == "":
		return value
	case secret == "all":
		return stars
	}
	u, err := url.Parse(value)
	if err != nil {
		return stars
	}
	if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), stars)
	}
	q := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if q.Has(name) {
			q.Set(name, stars)
			u.RawQuery = q.Encode()
		}
	}
	return strings.ReplaceAll(u.String(), url.QueryEscape(stars), stars)
}
