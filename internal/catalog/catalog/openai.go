package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// OpenAI is the part openai of a manifest. It says how the OpenAI-compatible
// interface calls the tool, where that does not follow from the fields of the
// tool.
type OpenAI struct {
	// Models are names of models under which the tool can be called, in
	// addition to its slug.
	Models []string
	// Fields has the key of the field that a parameter of the interface sets,
	// by the name of the parameter.
	Fields map[string]string
	// Values translates values of a parameter to values of its field, by the
	// name of the parameter and its value.
	Values map[string]map[string]any
}

// OpenAIParameters are the parameters of the OpenAI-compatible interface that a
// manifest can map to a field.
var OpenAIParameters = []string{
	"background", "image", "input", "input_reference", "instructions", "mask", "output_format", "prompt", "quality", "response_format", "seconds", "size", "speed", "style", "voice",
}

const maxModels = 20

var modelPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,79}$`)

// readOpenAI reads the part openai. keys are the keys of the tool's fields.
func (r *manifestReader) readOpenAI(o *mapping, keys map[string]bool) (part OpenAI) {
	n := o.lookupKey("openai")
	if n == nil {
		return part
	}

	p := r.openMapping(n, "openai.")
	defer p.reportUnknownKeys()
	part.Models = p.readWords("models")
	if len(part.Models) > maxModels {
		p.addProblem("models", "has %d models; at most %d are allowed", len(part.Models), maxModels)
	}
	for _, model := range part.Models {
		if !modelPattern.MatchString(model) {
			p.addProblem("models", "%s is not the name of a model", model)
		}
	}
	if fields := p.lookupKey("fields"); fields != nil {
		part.Fields = map[string]string{}
		r.eachParameter(fields, "openai.fields.", func(q *mapping, parameter string) {
			key := q.readText(parameter, 64)
			if !keys[key] {
				q.addProblem(parameter, "the tool has no field %s", key)
			}
			part.Fields[parameter] = key
		})
	}
	if values := p.lookupKey("values"); values != nil {
		part.Values = map[string]map[string]any{}
		r.eachParameter(values, "openai.values.", func(q *mapping, parameter string) {
			translated, ok := r.plainValue(q.lookupKey(parameter)).(map[string]any)
			if !ok {
				q.addProblem(parameter, "must be a mapping from values of the parameter to values of the field")
			}
			part.Values[parameter] = translated
		})
	}
	return part
}

// eachParameter calls read with every parameter that a mapping has as a key.
func (r *manifestReader) eachParameter(n *yaml.Node, path string, read func(q *mapping, parameter string)) {
	q := r.openMapping(n, path)
	defer q.reportUnknownKeys()
	for _, parameter := range slices.Sorted(maps.Keys(q.values)) {
		switch value := q.lookupKey(parameter); {
		case !slices.Contains(OpenAIParameters, parameter):
			q.addProblem(parameter, "is not a parameter; the parameters are %s", strings.Join(OpenAIParameters, ", "))
		case value == nil:
			q.addProblem(parameter, "must not be empty")
		default:
			read(q, parameter)
		}
	}
}
