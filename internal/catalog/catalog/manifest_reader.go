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

// Problem is an error in a manifest and its position in the file.
type Problem struct {
	File         string
	Line, Column int
	Message      string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// manifestReader reads one YAML file. It collects all problems instead of
// stopping at the first.
type manifestReader struct {
	file      string
	problems  []Problem
	nodeCount int  // number of nodes that plainValue has visited
	stored    bool // the manifest comes from the database
	// storeAsset reads the picture with the given file name and returns its
	// digest. It is nil for manifests from the database, which already contain
	// digests.
	storeAsset func(name string) (Asset, error)
	// readInclude reads the JSON file with the given name. It is nil for
	// manifests from the database, in which the files are already merged.
	readInclude func(name string) ([]byte, error)
}

func (r *manifestReader) addProblem(n *yaml.Node, format string, args ...any) {
	line := 1
	column := 1
	if n != nil {
		line = n.Line
		column = n.Column
	}

	r.problems = append(r.problems, Problem{r.file, line, column, fmt.Sprintf(format, args...)})
}

// locateRemark converts a remark to a problem with its position in the file.
func (r *manifestReader) locateRemark(root *yaml.Node, remark Remark) Problem {
	n := root
	where := ""
	for _, step := range remark.Path {
		if index, err := strconv.Atoi(step); err == nil {
			where += "[" + step + "]"
			if n.Kind == yaml.SequenceNode && index < len(n.Content) {
				n = resolveAlias(n.Content[index])
			}
			continue
		}
		if where != "" {
			where += "."
		}

		where += step
		if i := pairIndex(n, step); n.Kind == yaml.MappingNode && i >= 0 {
			n = resolveAlias(n.Content[i+1])
		}
	}
	return Problem{r.file, max(n.Line, 1), max(n.Column, 1), pathLabel(where) + remark.Message}
}

// parseDocument returns the root node of a YAML file. It returns nil and adds a
// problem if the file is not YAML or is empty.
func (r *manifestReader) parseDocument(text []byte) *yaml.Node {
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
		r.addProblem(nil, "the file is empty")
		return nil
	}
	return doc.Content[0]
}

// Limits of one file after resolving aliases. With aliases, a few lines of YAML
// can expand to more data than fits into memory.
const (
	maxDepth = 20
	maxNodes = 50_000
)

// resolveAlias returns the node that a YAML alias refers to, or n itself if it
// is not an alias.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// mapping is a YAML mapping whose keys are read one by one. The keys that were
// not read can then be reported as unknown.
type mapping struct {
	r         *manifestReader
	node      *yaml.Node
	path      string // prefix of keys in error messages, such as "fields[2].", or ""
	keys      []*yaml.Node
	values    map[string]*yaml.Node
	knownKeys map[string]bool
}

// openMapping returns the mapping of a node. If the node is not a mapping, it
// adds a problem and returns an empty mapping.
func (r *manifestReader) openMapping(n *yaml.Node, path string) *mapping {
	n = resolveAlias(n)
	o := &mapping{
		r:         r,
		node:      n,
		path:      path,
		values:    map[string]*yaml.Node{},
		knownKeys: map[string]bool{},
	}
	if n.Kind != yaml.MappingNode {
		r.addProblem(n, "%smust be a mapping", pathLabel(path))
		return o
	}

	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if _, twice := o.values[k.Value]; twice {
			r.addProblem(k, "%s%s is set twice", path, k.Value)
			continue
		}

		o.keys = append(o.keys, k)
		o.values[k.Value] = resolveAlias(n.Content[i+1])
	}
	return o
}

// pathLabel returns the prefix of an error message about a path, such as
// "fields[2]: ".
func pathLabel(path string) string {
	if path == "" {
		return ""
	}
	return strings.TrimSuffix(path, ".") + ": "
}

func (o *mapping) reportUnknownKeys() {
	for _, k := range o.keys {
		if !o.knownKeys[k.Value] {
			o.r.addProblem(k, "%s%s is not a known setting", o.path, k.Value)
		}
	}
}

// lookupKey returns the value of a key, or nil if the key is missing or null.
// The key is then not reported as unknown.
func (o *mapping) lookupKey(key string) *yaml.Node {
	o.knownKeys[key] = true
	n := o.values[key]
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	return n
}

// addProblem adds a problem at the position of the value of key, or of the
// mapping if the key is missing.
func (o *mapping) addProblem(key, format string, args ...any) {
	n := o.values[key]
	if n == nil {
		n = o.node
	}
	o.r.addProblem(n, "%s%s: %s", o.path, key, fmt.Sprintf(format, args...))
}

func (o *mapping) hasKey(key string) bool { return o.lookupKey(key) != nil }

// requireKey returns the value of a key. It adds a problem if the key is
// missing or null.
func (o *mapping) requireKey(key string) *yaml.Node {
	n := o.lookupKey(key)
	if n == nil {
		o.addProblem(key, "is required")
	}
	return n
}

// readText reads a string of one line and at most limit characters.
func (o *mapping) readText(key string, limit int) string {
	s := o.readLongText(key, limit)
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		o.addProblem(key, "must be one line without control characters")
	}
	return s
}

// readLongText reads a string of at most limit characters, which may have
// several lines.
func (o *mapping) readLongText(key string, limit int) string {
	n := o.lookupKey(key)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		o.addProblem(key, "must be text (put it in quotes)")
		return ""
	}
	if c := utf8.RuneCountInString(n.Value); c > limit {
		o.addProblem(key, "has %d characters; at most %d are allowed", c, limit)
	}
	return n.Value
}

// readInteger reads a whole number from low to high. It returns def if the key
// is missing or the value is invalid.
func (o *mapping) readInteger(key string, def, low, high int64) int64 {
	n := o.lookupKey(key)
	if n == nil {
		return def
	}

	v, ok := scalarValue(n).(int64)
	if !ok {
		o.addProblem(key, "must be a whole number")
		return def
	}
	if v < low || v > high {
		o.addProblem(key, "must be between %d and %d", low, high)
		return def
	}
	return v
}

// readFloat reads a number. It returns nil if the key is missing or the value
// is invalid.
func (o *mapping) readFloat(key string) *float64 {
	n := o.lookupKey(key)
	if n == nil {
		return nil
	}

	v, ok := ToFloat(scalarValue(n))
	if !ok {
		o.addProblem(key, "must be a number")
		return nil
	}
	return &v
}

func (o *mapping) readBoolean(key string) bool {
	n := o.lookupKey(key)
	if n == nil {
		return false
	}

	v, ok := scalarValue(n).(bool)
	if !ok {
		o.addProblem(key, "must be true or false")
	}
	return v
}

// readDuration reads a duration from low to high, such as 90s or 10m, or a
// number of seconds. It returns def if the key is missing or the value is
// invalid.
func (o *mapping) readDuration(key string, def, low, high time.Duration) time.Duration {
	n := o.lookupKey(key)
	if n == nil {
		return def
	}

	d, err := time.ParseDuration(n.Value)
	if seconds, whole := scalarValue(n).(int64); whole && seconds <= math.MaxInt64/int64(time.Second) {
		d = time.Duration(seconds) * time.Second
		err = nil
	}
	if err != nil {
		o.addProblem(key, "must be a duration such as 90s or 10m")
		return def
	}
	if d < low || d > high {
		o.addProblem(key, "must be between %v and %v", low, high)
		return def
	}
	return d
}

// readOneOf reads one of the given words. It returns def if the key is missing
// or the value is invalid.
func (o *mapping) readOneOf(key, def string, words ...string) string {
	n := o.lookupKey(key)
	if n == nil {
		return def
	}
	if !slices.Contains(words, n.Value) {
		o.addProblem(key, "must be one of %s", strings.Join(words, ", "))
		return def
	}
	return n.Value
}

// readList returns the items of a list, or nil if the key is missing.
func (o *mapping) readList(key string) []*yaml.Node {
	n := o.lookupKey(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		o.addProblem(key, "must be a list")
		return nil
	}
	return n.Content
}

// readWords reads a list of strings without duplicates.
func (o *mapping) readWords(key string) []string {
	var all []string
	for _, n := range o.readList(key) {
		n = resolveAlias(n)
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "":
			o.r.addProblem(n, "%s%s: must be a list of non-empty strings", o.path, key)
		case slices.Contains(all, n.Value):
			o.r.addProblem(n, "%s%s: %s occurs twice", o.path, key, n.Value)
		default:
			all = append(all, n.Value)
		}
	}
	return all
}

// scalarValue converts a YAML scalar to string, bool, int64, uint64 (if it does
// not fit into int64) or float64. It returns nil for null and for nodes that
// are not scalars.
func scalarValue(n *yaml.Node) any {
	n = resolveAlias(n)
	if n.Kind != yaml.ScalarNode {
		return nil
	}

	switch n.Tag {
	case "!!int":
		var v int64
		if n.Decode(&v) == nil {
			return v
		}

		var u uint64 // seeds of some models exceed int64
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
			// 2.0 is stored as 2. At 2^53 and above, one float64 can represent
			// several integers, so it is not converted.
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

// plainValue converts a YAML node to a scalar, []any or map[string]any. It adds
// a problem if the node is too large or nested too deeply.
func (r *manifestReader) plainValue(n *yaml.Node) any { return r.plainValueAt(n, 0) }

func (r *manifestReader) plainValueAt(n *yaml.Node, depth int) any {
	n = resolveAlias(n)
	if r.nodeCount++; depth > maxDepth || r.nodeCount > maxNodes {
		if r.nodeCount <= maxNodes+1 {
			r.addProblem(n, "the file is too large or nested too deeply")
			r.nodeCount = maxNodes + 1
		}
		return nil
	}

	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			list = append(list, r.plainValueAt(c, depth+1))
		}
		return list
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if _, twice := m[n.Content[i].Value]; twice {
				r.addProblem(n.Content[i], "%s is set twice", n.Content[i].Value)
			}
			m[n.Content[i].Value] = r.plainValueAt(n.Content[i+1], depth+1)
		}
		return m
	}
	return scalarValue(n)
}
