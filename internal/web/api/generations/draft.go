package generations

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/base/sanitize"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/rest"
)

// parseDraft parses the payload of a create request, which must be well-formed
// JSON. Its error lists all invalid fields.
func parseDraft(body []byte) (d generation.Draft, err error) {
	var fields map[string]jsontext.Value
	if jsontext.Value(body).Kind() != '{' || json.Unmarshal(body, &fields) != nil {
		return d, rest.InvalidBody().Field("body", "Must be an object.")
	}
	r := bodyReader{fields: fields}
	r.refuseNearMisses()

	d.ToolID = r.readText("tool_id", true)
	d.ToolHash = r.readText("tool_fields_hash", true)
	d.WebhookURL = r.readText("webhook_url", false)
	d.Plugin = r.readText("plugin", false)
	d.RetryOf = r.readText("retry_of", false)
	d.NumResults = r.readInteger("num_results")
	if v := r.readObject("inputs"); v != nil {
		d.Inputs = rest.ReadValue(jsontext.NewDecoder(bytes.NewReader(v))).(map[string]any)
	}
	if v := r.readObject("metadata"); v != nil {
		// Remove white space and unnecessary escapes, but keep numbers as
		// written.
		text, err := jsontext.AppendFormat(nil, v)
		if err != nil {
			return d, err
		}
		d.Metadata = string(text)
	}

	if len(r.problems) > 0 {
		e := rest.InvalidBody()
		e.Fields = r.problems
		return d, e
	}
	return d, nil
}

// bodyReader reads the fields of a JSON object and collects all errors. A null
// field counts as absent.
type bodyReader struct {
	fields   map[string]jsontext.Value
	problems []fault.Field
}

func (r *bodyReader) addProblem(name, message string) {
	r.problems = append(r.problems, fault.Field{Path: name, Message: message})
}

// draftFields are the names of the known fields of a create request.
var draftFields = []string{"inputs", "metadata", "num_results", "plugin", "retry_of", "tool_fields_hash", "tool_id", "webhook_url"}

// refuseNearMisses adds an error for unknown names that are probably misspelled
// known names, because ignoring such a field would start, and charge for, a run
// that the caller did not intend. Other unknown names are ignored.
func (r *bodyReader) refuseNearMisses() {
	for _, name := range slices.Sorted(maps.Keys(r.fields)) {
		if len(r.problems) == rest.MaxProblems {
			return
		}
		if slices.Contains(draftFields, name) {
			continue
		}
		if foldName(name) == "teamid" {
			r.addProblem(sanitize.Line(name, 80), "Send the team as the query parameter team_id.")
			continue
		}
		for _, known := range draftFields {
			if nearlyEqual(name, known) {
				r.addProblem(sanitize.Line(name, 80), "There is no such field. Did you mean "+known+"?")
				break
			}
		}
	}
}

// nearlyEqual reports whether a name equals a known name except for case, "_"
// and "-", or differs from it in at most two letters.
func nearlyEqual(name, known string) bool {
	const maxDistance = 2
	if len(name) > 2*len(known) {
		return false
	}
	return min(sanitize.EditDistance(foldName(name), foldName(known)), sanitize.EditDistance(name, known)) <= maxDistance
}

// foldName returns a name in lower case and without "_" and "-".
func foldName(name string) string { return separators.Replace(strings.ToLower(name)) }

var separators = strings.NewReplacer("_", "", "-", "")

// fieldValue returns the value of a field, or nil if it is absent or null.
func (r *bodyReader) fieldValue(name string) jsontext.Value {
	v := r.fields[name]
	if v == nil || v.Kind() == 'n' {
		return nil
	}
	return v
}

func (r *bodyReader) readText(name string, required bool) (s string) {
	v := r.fieldValue(name)
	switch {
	case v == nil && required:
		r.addProblem(name, "This field is required.")
	case v == nil:
	case v.Kind() != '"':
		r.addProblem(name, "Must be text.")
	default:
		_ = json.Unmarshal(v, &s) // cannot fail: v is a JSON string
	}
	return s
}

func (r *bodyReader) readInteger(name string) *int64 {
	v := r.fieldValue(name)
	if v == nil {
		return nil
	}
	if v.Kind() == '0' {
		switch n := rest.ParseNumber(string(v)).(type) {
		case int64:
			return &n
		case float64:
			if n == math.Trunc(n) {
				// Larger numbers are refused later, so the value may be
				// clamped.
				whole := int64(min(max(n, -math.MaxInt32), math.MaxInt32))
				return &whole
			}
		}
	}
	r.addProblem(name, "Must be a whole number.")
	return nil
}

func (r *bodyReader) readObject(name string) jsontext.Value {
	v := r.fieldValue(name)
	if v != nil && v.Kind() != '{' {
		r.addProblem(name, "Must be an object.")
		return nil
	}
	return v
}
