package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits and defaults of manifests.
const (
	maxFields   = 200
	maxGroups   = 4 // maximum nesting depth of groups
	maxOptions  = 500
	maxTokens   = 1_000_000
	maxResults  = 64 // limit of the API
	maxPosition = 1_000_000
	maxPriority = 10
	maxTextLen  = 100_000
	maxSide     = 100_000 // in pixels

	defaultPosition = 1000
	defaultTimeout  = 10 * time.Minute
	maxTimeout      = 24 * time.Hour
)

var (
	slugPattern    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	keyPattern     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	tagTypePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,31}$`)
	mimePattern    = regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+$`)
)

// outputTypes maps the types of results to the prefix of their MIME types.
var outputTypes = map[string]string{"IMG": "image/", "VID": "video/", "AUDIO": "audio/", "ASSET_3D": "model/", "TEXT": "text/"}

// readTool reads the manifest of a tool. knowsTag reports whether a tag exists;
// if it is nil, every tag is accepted.
func (r *manifestReader) readTool(root *yaml.Node, knowsTag func(slug string) bool) *Tool {
	o := r.openMapping(root, "")
	defer o.reportUnknownKeys()
	t := &Tool{
		Name:        o.readText("name", 80),
		Description: o.readText("description", 300),
		Avatar:      o.readAsset("avatar"),
		Tags:        o.readWords("tags"),
		Position:    o.readInteger("position", defaultPosition, 0, maxPosition),
		NumResults:  r.readNumResults(o),
		Output:      r.readOutput(o),
		Engine:      r.readEngine(o),
		Timeout:     o.readDuration("timeout", defaultTimeout, time.Second, maxTimeout),
		Priority:    o.readInteger("priority", 0, -maxPriority, maxPriority),
		Visibility:  r.readVisibility(o),
	}
	if t.Engine.Name == FlowEngine {
		r.readFlow(root, t)
		t.FlowTools = r.readFlowTools(o)
	}
	t.Price = r.readPrice(o, t)
	if t.IsFlow() && t.NumResults != nil {
		o.addProblem("num_results", "is not for flows: their steps say how many results there are")
	}
	if o.requireKey("name") != nil && strings.TrimSpace(t.Name) == "" {
		o.addProblem("name", "must not be blank")
	}

	for i, tag := range t.Tags {
		if knowsTag != nil && !knowsTag(tag) {
			r.addProblem(o.readList("tags")[i], "tags: there is no tag %s in tags.yaml", tag)
		}
	}

	form := &formReader{r: r, keys: map[string]bool{}}
	t.Fields = form.readFields(o.readList("fields"), "fields", 0)
	if len(form.keys) > maxFields {
		o.addProblem("fields", "has %d fields; at most %d are allowed", len(form.keys), maxFields)
	}
	t.OpenAI = r.readOpenAI(o, form.keys)
	return t
}

func (r *manifestReader) readPrice(o *mapping, t *Tool) Price {
	if t.IsFlow() && !r.stored {
		if o.hasKey(priceKey) {
			o.addProblem(priceKey, "is not for flows: a flow costs what its steps cost")
		}
		return Price{}
	}
	n := o.lookupKey(priceKey)
	if n == nil && t.IsFlow() {
		return Price{}
	}
	if n = o.requireKey(priceKey); n == nil {
		return Price{}
	}

	p := r.openMapping(n, "price.")
	defer p.reportUnknownKeys()
	price := Price{Type: PricingType(p.readOneOf("type", "", string(Cost), string(Free)))}
	p.requireKey("type")
	price.Tokens = p.readInteger("tokens", 0, 0, maxTokens)
	if price.Type == Cost && price.Tokens == 0 {
		p.addProblem("tokens", "must be at least 1 when the type is COST")
	}
	return price
}

func (r *manifestReader) readNumResults(o *mapping) *NumResults {
	n := o.lookupKey("num_results")
	if n == nil {
		return nil
	}

	p := r.openMapping(n, "num_results.")
	defer p.reportUnknownKeys()
	b := &NumResults{Min: p.readInteger("min", 1, 1, maxResults), Max: p.readInteger("max", 1, 1, maxResults)}
	p.requireKey("max")
	b.Default = p.readInteger("default", b.Min, 1, maxResults)
	if b.Min > b.Max {
		p.addProblem("min", "must be at most max")
	} else if b.Default < b.Min || b.Default > b.Max {
		p.addProblem("default", "must be between min and max")
	}
	return b
}

func (r *manifestReader) readOutput(o *mapping) Output {
	n := o.requireKey("output")
	if n == nil {
		return Output{}
	}

	p := r.openMapping(n, "output.")
	defer p.reportUnknownKeys()
	out := Output{Type: p.readText("type", 20), MimeTypes: p.readWords("mime_types"), Origin: Origin(p.readOneOf("origin", "", string(Trained), string(Algorithmic)))}
	prefix, known := outputTypes[out.Type]
	if !known {
		p.addProblem("type", "must be one of IMG, VID, AUDIO, ASSET_3D, TEXT")
	}
	if len(out.MimeTypes) == 0 {
		p.addProblem("mime_types", "is required")
	}

	for _, m := range out.MimeTypes {
		if !mimePattern.MatchString(m) || !strings.HasPrefix(m, prefix) {
			p.addProblem("mime_types", "%s is not a mime type of %s", m, out.Type)
		}
	}
	return out
}

func (r *manifestReader) readEngine(o *mapping) Engine {
	n := o.requireKey("engine")
	if n == nil {
		return Engine{}
	}

	p := r.openMapping(n, "engine.")
	defer p.reportUnknownKeys()
	e := Engine{Name: p.readText("name", 64), With: "{}"}
	if !slugPattern.MatchString(e.Name) {
		p.addProblem("name", "must be the name of an engine: lower-case letters, digits and dashes")
	}
	if include := p.lookupKey("include"); include != nil {
		r.mergeIncludes(p, include)
	}
	if with := p.lookupKey("with"); with != nil {
		if with.Kind != yaml.MappingNode {
			p.addProblem("with", "must be a mapping")
		}
		e.With = canonicalJSON(r.plainValue(with))
	}
	return e
}

func (r *manifestReader) readVisibility(o *mapping) Visibility {
	n := o.lookupKey("visibility")
	if n == nil || n.Value == "everyone" {
		return Visibility{}
	}
	if n.Kind != yaml.MappingNode {
		o.addProblem("visibility", `must be "everyone" or a mapping with companies, teams or roles`)
		return Visibility{}
	}

	p := r.openMapping(n, "visibility.")
	defer p.reportUnknownKeys()
	v := Visibility{Companies: p.readWords("companies"), Teams: p.readWords("teams"), Roles: p.readWords("roles")}
	if !v.isRestricted() {
		// An empty list must not mean "everyone", because that could show a
		// tool that should be hidden.
		o.addProblem("visibility", `lists no company, team or role; write "everyone" to show the tool to all people`)
	}
	return v
}

// digestPrefix is the prefix of a picture's digest, which replaces its file
// name in stored manifests.
const digestPrefix = "sha256:"

// readAsset reads the file name of a picture and replaces it by the digest of
// the picture, so that the stored manifest changes with the picture.
func (o *mapping) readAsset(key string) Asset {
	name := o.readText(key, 200)
	if name == "" {
		return ""
	}
	if o.r.storeAsset == nil {
		digest, ok := strings.CutPrefix(name, digestPrefix)
		if !ok {
			o.addProblem(key, "is not the digest of a stored picture")
		}
		return Asset(digest)
	}

	a, err := o.r.storeAsset(name)
	if err != nil {
		o.addProblem(key, "%v", err)
		return ""
	}

	o.values[key].Value = digestPrefix + string(a)
	return a
}

// readTags reads tags.yaml, which defines the tags.
func (r *manifestReader) readTags(root *yaml.Node) []Tag {
	var all []Tag
	o := r.openMapping(root, "")
	for _, k := range o.keys {
		n := o.lookupKey(k.Value)
		if n == nil {
			r.addProblem(k, "%s: must be a mapping", k.Value)
			continue
		}

		p := r.openMapping(n, k.Value+".")
		t := Tag{Slug: k.Value, Type: p.readText("type", 32), Label: p.readText("label", 60), Internal: p.readBoolean("internal")}
		p.reportUnknownKeys()
		if !slugPattern.MatchString(t.Slug) {
			r.addProblem(k, "%s: the name of a tag may contain only lower-case letters, digits and dashes", k.Value)
		}
		if p.requireKey("type") != nil && !tagTypePattern.MatchString(t.Type) {
			p.addProblem("type", "must be a type such as MEDIA or MODEL_FAMILY")
		}

		p.requireKey("label")
		all = append(all, t)
	}
	return all
}

// readKits reads kits.yaml, which defines the kits. knowsTool reports whether a
// tool exists; if it is nil, every tool is accepted.
func (r *manifestReader) readKits(root *yaml.Node, knowsTool func(slug string) bool) []Kit {
	var all []Kit
	o := r.openMapping(root, "")
	for _, k := range o.keys {
		if !slugPattern.MatchString(k.Value) {
			r.addProblem(k, "%s: the name of a kit may contain only lower-case letters, digits and dashes", k.Value)
		}

		n := o.lookupKey(k.Value)
		if n == nil {
			r.addProblem(k, "%s: must be a mapping", k.Value)
			continue
		}

		all = append(all, r.readKit(n, k.Value, knowsTool))
	}
	return all
}

func (r *manifestReader) readKit(n *yaml.Node, slug string, knowsTool func(slug string) bool) Kit {
	p := r.openMapping(n, slug+".")
	defer p.reportUnknownKeys()
	k := Kit{
		Slug:        slug,
		Label:       p.readText("label", 60),
		Description: p.readText("description", 300),
		Tags:        p.readWords("tags"),
		Default:     p.readText("default", 100),
	}

	p.requireKey("label")
	for i, item := range p.readList("tools") {
		e := r.openMapping(item, fmt.Sprintf("%s.tools[%d].", slug, i))
		entry := KitEntry{Tool: e.readText("tool", 100), Tags: e.readWords("tags")}
		if e.requireKey("tool") != nil && knowsTool != nil && !knowsTool(entry.Tool) {
			e.addProblem("tool", "there is no tool %s", entry.Tool)
		}

		for j, l := range e.readList("labels") {
			b := r.openMapping(l, fmt.Sprintf("%slabels[%d].", e.path, j))
			entry.Labels = append(entry.Labels, KitLabel{ID: b.readText("id", 32), Icon: b.readText("icon", 32), Label: b.readText("label", 60)})
			b.requireKey("id")
			b.requireKey("label")
			b.reportUnknownKeys()
		}

		e.reportUnknownKeys()
		k.Entries = append(k.Entries, entry)
	}
	if len(k.Entries) == 0 {
		p.addProblem("tools", "must name at least one tool")
		return k
	}
	if k.Default == "" {
		k.Default = k.Entries[0].Tool
	}
	if !slices.ContainsFunc(k.Entries, func(e KitEntry) bool { return e.Tool == k.Default }) {
		p.addProblem("default", "must be one of the kit's tools")
	}
	return k
}
