package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Bounds of a manifest.
const (
	maxFields   = 200
	maxGroups   = 4 // groups inside groups
	maxOptions  = 500
	maxTokens   = 1_000_000
	maxResults  = 64 // of the interface
	maxPosition = 1_000_000
	maxTextLen  = 100_000
	maxSide     = 100_000 // of a size to choose, in pixels

	defaultPosition = 1000
	defaultTimeout  = 10 * time.Minute
	maxTimeout      = 24 * time.Hour
)

var (
	slugForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	keyForm  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	typeForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,31}$`)
	mimeForm = regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+$`)
)

// outputTypes are what runs can give, each with the start of its mime types.
var outputTypes = map[string]string{"IMG": "image/", "VID": "video/", "AUDIO": "audio/", "ASSET_3D": "model/", "TEXT": "text/"}

// tool reads a manifest. knows tells which tags there are; nil allows any.
func (r *reader) tool(root *yaml.Node, knows func(tag string) bool) *Tool {
	o := r.object(root, "")
	defer o.end()
	t := &Tool{
		Name:        o.text("name", 80),
		Description: o.text("description", 300),
		Avatar:      o.asset("avatar"),
		Tags:        o.words("tags"),
		Position:    o.integer("position", defaultPosition, 0, maxPosition),
		Price:       r.price(o),
		NumResults:  r.numResults(o),
		Output:      r.output(o),
		Engine:      r.engine(o),
		Timeout:     o.span("timeout", defaultTimeout, time.Second, maxTimeout),
		Visibility:  r.visibility(o),
	}
	if o.need("name") != nil && strings.TrimSpace(t.Name) == "" {
		o.problem("name", "must not be blank")
	}
	for i, tag := range t.Tags {
		if knows != nil && !knows(tag) {
			r.problem(o.list("tags")[i], "tags: there is no tag %s in tags.yaml", tag)
		}
	}
	form := &formReader{r: r, keys: map[string]bool{}}
	t.Fields = form.fields(o.list("fields"), "fields", 0)
	if len(form.keys) > maxFields {
		o.problem("fields", "has %d fields, at most %d are allowed", len(form.keys), maxFields)
	}
	return t
}

func (r *reader) price(o *object) Price {
	n := o.need("price")
	if n == nil {
		return Price{}
	}
	p := r.object(n, "price.")
	defer p.end()
	price := Price{Type: PricingType(p.oneOf("type", "", string(Cost), string(Free)))}
	p.need("type")
	price.Tokens = p.integer("tokens", 0, 0, maxTokens)
	if price.Type == Cost && price.Tokens == 0 {
		p.problem("tokens", "must be at least 1 when the type is COST")
	}
	return price
}

func (r *reader) numResults(o *object) *NumResults {
	n := o.get("num_results")
	if n == nil {
		return nil
	}
	p := r.object(n, "num_results.")
	defer p.end()
	b := &NumResults{Min: p.integer("min", 1, 1, maxResults), Max: p.integer("max", 1, 1, maxResults)}
	p.need("max")
	b.Default = p.integer("default", b.Min, 1, maxResults)
	if b.Min > b.Max {
		p.problem("min", "must not be above max")
	} else if b.Default < b.Min || b.Default > b.Max {
		p.problem("default", "must be between min and max")
	}
	return b
}

func (r *reader) output(o *object) Output {
	n := o.need("output")
	if n == nil {
		return Output{}
	}
	p := r.object(n, "output.")
	defer p.end()
	out := Output{Type: p.text("type", 20), MimeTypes: p.words("mime_types"), Origin: Origin(p.oneOf("origin", "", string(Trained), string(Algorithmic)))}
	prefix, known := outputTypes[out.Type]
	if !known {
		p.problem("type", "must be one of IMG, VID, AUDIO, ASSET_3D, TEXT")
	}
	if len(out.MimeTypes) == 0 {
		p.problem("mime_types", "is required")
	}
	for _, m := range out.MimeTypes {
		if !mimeForm.MatchString(m) || !strings.HasPrefix(m, prefix) {
			p.problem("mime_types", "%s is not a mime type of %s", m, out.Type)
		}
	}
	return out
}

func (r *reader) engine(o *object) Engine {
	n := o.need("engine")
	if n == nil {
		return Engine{}
	}
	p := r.object(n, "engine.")
	defer p.end()
	e := Engine{Name: p.text("name", 64), With: "{}"}
	if !slugForm.MatchString(e.Name) {
		p.problem("name", "must be the name of an engine: small letters, digits and dashes")
	}
	if include := p.get("include"); include != nil {
		r.includes(p, include)
	}
	if with := p.get("with"); with != nil {
		if with.Kind != yaml.MappingNode {
			p.problem("with", "must be a mapping")
		}
		e.With = canonical(r.plain(with))
	}
	return e
}

func (r *reader) visibility(o *object) Visibility {
	n := o.get("visibility")
	if n == nil || n.Value == "everyone" {
		return Visibility{}
	}
	if n.Kind != yaml.MappingNode {
		o.problem("visibility", "must be everyone, or a mapping with companies, teams or roles")
		return Visibility{}
	}
	p := r.object(n, "visibility.")
	defer p.end()
	v := Visibility{Companies: p.words("companies"), Teams: p.words("teams"), Roles: p.words("roles")}
	if !v.limited() {
		// Reading this as "everyone" would show a tool that was to be hidden.
		o.problem("visibility", "names nobody; write everyone to show the tool to all")
	}
	return v
}

// digestPrefix marks an asset that has been taken in.
const digestPrefix = "sha256:"

// asset reads the name of a picture and replaces it by its digest, so that the
// stored manifest changes when the picture does.
func (o *object) asset(key string) Asset {
	name := o.text(key, 200)
	if name == "" {
		return ""
	}
	if o.r.asset == nil {
		digest, ok := strings.CutPrefix(name, digestPrefix)
		if !ok {
			o.problem(key, "is not a digest")
		}
		return Asset(digest)
	}
	a, err := o.r.asset(name)
	if err != nil {
		o.problem(key, "%v", err)
		return ""
	}
	o.value[key].Value = digestPrefix + string(a)
	return a
}

// tags reads the vocabulary.
func (r *reader) tags(root *yaml.Node) []Tag {
	var all []Tag
	o := r.object(root, "")
	for _, k := range o.keys {
		n := o.get(k.Value)
		if n == nil {
			r.problem(k, "%s: must be a mapping", k.Value)
			continue
		}
		p := r.object(n, k.Value+".")
		t := Tag{Slug: k.Value, Type: p.text("type", 32), Label: p.text("label", 60), Internal: p.boolean("internal")}
		p.end()
		if !slugForm.MatchString(t.Slug) {
			r.problem(k, "%s: a tag's name has small letters, digits and dashes", k.Value)
		}
		if p.need("type") != nil && !typeForm.MatchString(t.Type) {
			p.problem("type", "must be a word such as MEDIA or MODEL_FAMILY")
		}
		p.need("label")
		all = append(all, t)
	}
	return all
}

// kits reads the shortlists. knows tells which tools there are; nil allows any.
func (r *reader) kits(root *yaml.Node, knows func(tool string) bool) []Kit {
	var all []Kit
	o := r.object(root, "")
	for _, k := range o.keys {
		if !slugForm.MatchString(k.Value) {
			r.problem(k, "%s: a kit's name has small letters, digits and dashes", k.Value)
		}
		n := o.get(k.Value)
		if n == nil {
			r.problem(k, "%s: must be a mapping", k.Value)
			continue
		}
		all = append(all, r.kit(n, k.Value, knows))
	}
	return all
}

func (r *reader) kit(n *yaml.Node, slug string, knows func(tool string) bool) Kit {
	p := r.object(n, slug+".")
	defer p.end()
	k := Kit{
		Slug:        slug,
		Label:       p.text("label", 60),
		Description: p.text("description", 300),
		Tags:        p.words("tags"),
		Default:     p.text("default", 100),
	}
	p.need("label")
	for i, item := range p.list("tools") {
		e := r.object(item, fmt.Sprintf("%s.tools[%d].", slug, i))
		entry := KitEntry{Tool: e.text("tool", 100), Tags: e.words("tags")}
		if e.need("tool") != nil && knows != nil && !knows(entry.Tool) {
			e.problem("tool", "there is no tool %s", entry.Tool)
		}
		for j, l := range e.list("labels") {
			b := r.object(l, fmt.Sprintf("%slabels[%d].", e.path, j))
			entry.Labels = append(entry.Labels, KitLabel{ID: b.text("id", 32), Icon: b.text("icon", 32), Label: b.text("label", 60)})
			b.need("id")
			b.need("label")
			b.end()
		}
		e.end()
		k.Entries = append(k.Entries, entry)
	}
	if len(k.Entries) == 0 {
		p.problem("tools", "must name at least one tool")
		return k
	}
	if k.Default == "" {
		k.Default = k.Entries[0].Tool
	}
	if !slices.ContainsFunc(k.Entries, func(e KitEntry) bool { return e.Tool == k.Default }) {
		p.problem("default", "must be one of the kit's tools")
	}
	return k
}
