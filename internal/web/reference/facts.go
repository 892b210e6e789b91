package reference

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fact is something that holds for a value: words, what they are about, and
// more words.
type fact struct {
	Text  string
	Codes []string
	More  string
}

// facts lists what a schema says about a value beyond its type.
func (b *builder) facts(s *schema) []fact { return b.factsAt(s, 0) }

func (b *builder) factsAt(s *schema, depth int) []fact {
	if s == nil || s.Bool != nil || depth > maxDepth {
		return nil
	}
	var fs []fact
	add := func(text string, codes ...string) { fs = append(fs, fact{Text: text, Codes: codes}) }
	value := func(text string, n yaml.Node) {
		if !n.IsZero() {
			add(text, literal(&n))
		}
	}
	if s.Ref != "" {
		if _, ok := b.component(s.Ref); !ok {
			fs = b.factsAt(b.target(s.Ref), depth+1)
		}
	}
	if len(s.Enum) > 0 {
		var all []string
		for _, n := range s.Enum {
			all = append(all, literal(&n))
		}
		add("one of", all...)
	}
	value("always", s.Const)
	for _, text := range []string{
		within(s.Minimum, s.ExclusiveMinimum, s.Maximum, s.ExclusiveMaximum, ""),
		within(s.MinLength, yaml.Node{}, s.MaxLength, yaml.Node{}, "character"),
		within(s.MinItems, yaml.Node{}, s.MaxItems, yaml.Node{}, "item"),
		within(s.MinProperties, yaml.Node{}, s.MaxProperties, yaml.Node{}, "field"),
	} {
		if text != "" {
			add(text)
		}
	}
	value("a multiple of", s.MultipleOf)
	if s.Pattern != "" {
		add("matches", s.Pattern)
	}
	if s.UniqueItems {
		add("no item twice")
	}
	if s.ContentEncoding != "" {
		add("encoded as", s.ContentEncoding)
	}
	if s.ContentMediaType != "" && s.ContentMediaType != "application/octet-stream" { // which says no more than bytes
		add("content is", s.ContentMediaType)
	}
	value("default", s.Default)
	if shown := examplesOf(s); len(shown) > 0 && isScalar(shown[0]) {
		value("for example", shown[0])
	}
	b.objectFacts(s, add)
	for _, part := range s.AllOf {
		if part != nil && part.Ref == "" {
			fs = append(fs, b.factsAt(part, depth+1)...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Other)) {
		if n := s.Other[key]; shows(key) {
			add(key, compact(plain(&n)))
		}
	}
	if s.Items != nil && s.Items.Ref == "" {
		for _, f := range b.factsAt(s.Items, depth+1) {
			fs = append(fs, fact{"each " + f.Text, f.Codes, f.More})
		}
	}
	return fs
}

// objectFacts adds what a schema says about an object as a whole.
func (b *builder) objectFacts(s *schema, add func(string, ...string)) {
	if more := s.AdditionalProperties; more != nil && more.Bool != nil {
		if *more.Bool {
			add("may have any other fields")
		} else {
			add("no other fields")
		}
	}
	if p := s.Discriminator.PropertyName; p != "" {
		add("told apart by", p)
		for _, m := range s.Discriminator.Mapping {
			name := m.Value
			if known, ok := b.component(name); ok {
				name = known
			}
			add("where "+p+" is "+m.Key+":", name)
		}
	}
	var unlisted []string
	for _, name := range s.Required {
		if _, listed := s.Properties.get(name); !listed && len(s.AllOf) == 0 {
			unlisted = append(unlisted, name)
		}
	}
	if len(unlisted) > 0 {
		add("requires", unlisted...)
	}
}

// shows tells whether a keyword without a place of its own is for readers.
func shows(key string) bool {
	return !strings.HasPrefix(key, "x-") && !strings.HasPrefix(key, "$") && key != "xml" && key != "externalDocs"
}

// within words two bounds, of which each may be absent or exclusive.
func within(low, above, high, below yaml.Node, unit string) string {
	var parts []string
	last := high.Value
	switch {
	case !low.IsZero() && low.Value == high.Value:
		parts = []string{"exactly " + low.Value}
	case !low.IsZero() && !high.IsZero():
		parts = []string{low.Value + " to " + high.Value}
	case !low.IsZero():
		parts = []string{"at least " + low.Value}
		last = low.Value
	case !high.IsZero():
		parts = []string{"at most " + high.Value}
	}
	if !above.IsZero() {
		parts = append(parts, "more than "+above.Value)
	}
	if !below.IsZero() {
		parts = append(parts, "less than "+below.Value)
	}
	text := strings.Join(parts, ", ")
	if text == "" || unit == "" {
		return text
	}
	if last != "1" {
		unit += "s"
	}
	return text + " " + unit
}

func isScalar(n yaml.Node) bool { return original(&n).Kind == yaml.ScalarNode }

// examplesOf lists the values that a schema itself gives as examples.
func examplesOf(s *schema) []yaml.Node {
	if len(s.Examples) == 0 && !s.Example.IsZero() {
		return []yaml.Node{s.Example}
	}
	return s.Examples
}
