package catalog

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Problem is something wrong in a manifest.
type Problem struct {
	File         string
	Line, Column int
	Message      string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// reader walks one YAML file and collects every problem instead of stopping at
// the first.
type reader struct {
	file     string
	problems []Problem
	nodes    int // looked at by plain
	// asset takes a picture that the manifest names and gives its digest. It
	// is nil for what comes from the database, which has digests already.
	asset func(name string) (Asset, error)
	// include reads a JSON file that the manifest names; nil like asset.
	include func(name string) ([]byte, error)
}

func (r *reader) problem(n *yaml.Node, format string, args ...any) {
	line := 1
	column := 1
	if n != nil {
		line = n.Line
		column = n.Column
	}
	r.problems = append(r.problems, Problem{r.file, line, column, fmt.Sprintf(format, args...)})
}

// at says where in a file something is remarked on.
func (r *reader) at(root *yaml.Node, remark Remark) Problem {
	n := root
	where := ""
	for _, step := range remark.Path {
		if place, err := strconv.Atoi(step); err == nil {
			where += "[" + step + "]"
			if n.Kind == yaml.SequenceNode && place < len(n.Content) {
				n = follow(n.Content[place])
			}
			continue
		}
		if where != "" {
			where += "."
		}
		where += step
		if i := pair(n, step); n.Kind == yaml.MappingNode && i >= 0 {
			n = follow(n.Content[i+1])
		}
	}
	return Problem{r.file, max(n.Line, 1), max(n.Column, 1), label(where) + remark.Message}
}

// parse gives the root of a file with one document, nil after a problem.
func (r *reader) parse(text []byte) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		line := 1
		message := strings.TrimPrefix(err.Error(), "yaml: ")
		if _, err := fmt.Sscanf(message, "line %d:", &line); err == nil {
			_, message, _ = strings.Cut(message, ": ")
		}
		r.problems = append(r.problems, Problem{r.file, line, 1, "not YAML: " + message})
		return nil
	}
	if len(doc.Content) == 0 {
		r.problem(nil, "the file is empty")
		return nil
	}
	return doc.Content[0]
}

// Bounds of one file, aliases followed: a few lines of YAML can stand for more
// than any memory holds.
const (
	maxDepth = 20
	maxNodes = 50_000
)

// follow gives the node an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// object is a mapping whose keys are read one by one; end reports those that
// nobody asked for.
type object struct {
	r     *reader
	node  *yaml.Node
	path  string // "" or "fields[2]."
	keys  []*yaml.Node
	value map[string]*yaml.Node
	asked map[string]bool
}

// object opens a mapping. Something else is a problem and reads as empty.
func (r *reader) object(n *yaml.Node, path string) *object {
	n = follow(n)
	o := &object{
		r:     r,
		node:  n,
		path:  path,
		value: map[string]*yaml.Node{},
		asked: map[string]bool{},
	}
	if n.Kind != yaml.MappingNode {
		r.problem(n, "%smust be a mapping", label(path))
		return o
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if _, twice := o.value[k.Value]; twice {
			r.problem(k, "%s%s stands here twice", path, k.Value)
			continue
		}
		o.keys = append(o.keys, k)
		o.value[k.Value] = follow(n.Content[i+1])
	}
	return o
}

// label names a path at the start of a message.
func label(path string) string {
	if path == "" {
		return ""
	}
	return strings.TrimSuffix(path, ".") + ": "
}

func (o *object) end() {
	for _, k := range o.keys {
		if !o.asked[k.Value] {
			o.r.problem(k, "%s%s is not a known setting", o.path, k.Value)
		}
	}
}

// get gives the value of a key, nil where it is absent or null.
func (o *object) get(key string) *yaml.Node {
	o.asked[key] = true
	n := o.value[key]
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	return n
}

// problem reports one with the value of key, or with the whole where the key
// is absent.
func (o *object) problem(key, format string, args ...any) {
	n := o.value[key]
	if n == nil {
		n = o.node
	}
	o.r.problem(n, "%s%s: %s", o.path, key, fmt.Sprintf(format, args...))
}

func (o *object) has(key string) bool { return o.get(key) != nil }

// need is get for a key that must be there.
func (o *object) need(key string) *yaml.Node {
	n := o.get(key)
	if n == nil {
		o.problem(key, "is required")
	}
	return n
}

// text reads text of at most limit characters on one line.
func (o *object) text(key string, limit int) string {
	s := o.longText(key, limit)
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		o.problem(key, "must be one line without control characters")
	}
	return s
}

// longText reads text that may have lines.
func (o *object) longText(key string, limit int) string {
	n := o.get(key)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		o.problem(key, "must be text (put it in quotes)")
		return ""
	}
	if c := utf8.RuneCountInString(n.Value); c > limit {
		o.problem(key, "has %d characters, at most %d are allowed", c, limit)
	}
	return n.Value
}

// integer reads a whole number within bounds, def where it is absent.
func (o *object) integer(key string, def, low, high int64) int64 {
	n := o.get(key)
	if n == nil {
		return def
	}
	v, ok := scalar(n).(int64)
	if !ok {
		o.problem(key, "must be a whole number")
		return def
	}
	if v < low || v > high {
		o.problem(key, "must be between %d and %d", low, high)
		return def
	}
	return v
}

// float reads a number, nil where it is absent.
func (o *object) float(key string) *float64 {
	n := o.get(key)
	if n == nil {
		return nil
	}
	v, ok := number(scalar(n))
	if !ok {
		o.problem(key, "must be a number")
		return nil
	}
	return &v
}

func (o *object) boolean(key string) bool {
	n := o.get(key)
	if n == nil {
		return false
	}
	v, ok := scalar(n).(bool)
	if !ok {
		o.problem(key, "must be true or false")
	}
	return v
}

// span reads a length of time: 90s, 10m or plain seconds.
func (o *object) span(key string, def, low, high time.Duration) time.Duration {
	n := o.get(key)
	if n == nil {
		return def
	}
	d, err := time.ParseDuration(n.Value)
	if seconds, whole := scalar(n).(int64); whole && seconds <= math.MaxInt64/int64(time.Second) {
		d = time.Duration(seconds) * time.Second
		err = nil
	}
	if err != nil {
		o.problem(key, "must be a length of time such as 90s or 10m")
		return def
	}
	if d < low || d > high {
		o.problem(key, "must be between %v and %v", low, high)
		return def
	}
	return d
}

// oneOf reads one of some words.
func (o *object) oneOf(key, def string, words ...string) string {
	n := o.get(key)
	if n == nil {
		return def
	}
	if !slices.Contains(words, n.Value) {
		o.problem(key, "must be one of %s", strings.Join(words, ", "))
		return def
	}
	return n.Value
}

// list gives the items of a list, none where it is absent.
func (o *object) list(key string) []*yaml.Node {
	n := o.get(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		o.problem(key, "must be a list")
		return nil
	}
	return n.Content
}

// words reads a list of texts without repeats.
func (o *object) words(key string) []string {
	var all []string
	for _, n := range o.list(key) {
		n = follow(n)
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "":
			o.r.problem(n, "%s%s: must hold words only", o.path, key)
		case slices.Contains(all, n.Value):
			o.r.problem(n, "%s%s: %s stands here twice", o.path, key, n.Value)
		default:
			all = append(all, n.Value)
		}
	}
	return all
}

// scalar gives a single value as string, bool, int64, uint64 where that is too
// small, or float64; nil for null and for what is no single value.
func scalar(n *yaml.Node) any {
	n = follow(n)
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	switch n.Tag {
	case "!!int":
		var v int64
		if n.Decode(&v) == nil {
			return v
		}
		var u uint64 // seeds of some models are
		if n.Decode(&u) == nil {
			return u
		}
		var f float64
		if n.Decode(&f) == nil {
			return f
		}
	case "!!float":
		var v float64
		if n.Decode(&v) == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			// 2.0 is 2, here and after it was stored. Beyond 2^53 a float is
			// no longer one certain whole number.
			if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
				return int64(v)
			}
			return v
		}
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return v
		}
	case "!!null":
		return nil
	}
	return n.Value
}

// plain gives any value as scalar, []any and map[string]any.
func (r *reader) plain(n *yaml.Node) any { return r.plainAt(n, 0) }

func (r *reader) plainAt(n *yaml.Node, depth int) any {
	n = follow(n)
	if r.nodes++; depth > maxDepth || r.nodes > maxNodes {
		if r.nodes <= maxNodes+1 {
			r.problem(n, "the file is too large or nested too deeply")
			r.nodes = maxNodes + 1
		}
		return nil
	}
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			list = append(list, r.plainAt(c, depth+1))
		}
		return list
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if _, twice := m[n.Content[i].Value]; twice {
				r.problem(n.Content[i], "%s stands here twice", n.Content[i].Value)
			}
			m[n.Content[i].Value] = r.plainAt(n.Content[i+1], depth+1)
		}
		return m
	}
	return scalar(n)
}
