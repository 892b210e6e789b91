package api

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/base/sanitize"
	"atelier/internal/run/generation"
)

// draftOf reads the body of a create request, which is well-formed JSON, and
// reports every problem with its shape at once.
func draftOf(body []byte) (d generation.Draft, err error) {
	var fields map[string]jsontext.Value
	if jsontext.Value(body).Kind() != '{' || json.Unmarshal(body, &fields) != nil {
		return d, fault.New(fault.Invalid, "The body is not as it should be.").Field("body", "Must be an object.")
	}
	r := bodyReader{fields: fields}
	r.refuseNearMisses()
	d.ToolID = r.text("tool_id", true)
	d.ToolHash = r.text("tool_fields_hash", true)
	d.WebhookURL = r.text("webhook_url", false)
	d.Plugin = r.text("plugin", false)
	d.NumResults = r.whole("num_results")
	if v := r.object("inputs"); v != nil {
		d.Inputs = plainValue(jsontext.NewDecoder(bytes.NewReader(v))).(map[string]any)
	}
	if v := r.object("metadata"); v != nil {
		// Without spaces and needless escapes, numbers untouched.
		text, err := jsontext.AppendFormat(nil, v)
		if err != nil {
			return d, err
		}
		d.Metadata = string(text)
	}
	if len(r.problems) > 0 {
		e := fault.New(fault.Invalid, "The body is not as it should be.")
		e.Fields = r.problems
		return d, e
	}
	return d, nil
}

// bodyReader takes an object apart. null is as good as absent.
type bodyReader struct {
	fields   map[string]jsontext.Value
	problems []fault.Field
}

func (r *bodyReader) problem(name, message string) {
	r.problems = append(r.problems, fault.Field{Path: name, Message: message})
}

// draftFields are the names that a create takes.
var draftFields = []string{"inputs", "metadata", "num_results", "plugin", "tool_fields_hash", "tool_id", "webhook_url"}

// refuseNearMisses reports unknown names that were most likely meant to be known
// ones, since a silent miss costs the caller tokens. Other unknown names are
// ignored.
func (r *bodyReader) refuseNearMisses() {
	for _, name := range slices.Sorted(maps.Keys(r.fields)) {
		if len(r.problems) == maxProblems {
			return
		}
		if slices.Contains(draftFields, name) {
			continue
		}
		if foldName(name) == "teamid" {
			r.problem(sanitize.Line(name, 80), "This belongs in the query: ?team_id=…")
			continue
		}
		for _, known := range draftFields {
			if nearlyEqual(name, known) {
				r.problem(sanitize.Line(name, 80), "There is no such field. Did you mean "+known+"?")
				break
			}
		}
	}
}

// nearlyEqual tells whether a name equals a known one apart from case, "_" and
// "-", or is one or two letters away from it.
func nearlyEqual(name, known string) bool {
	const most = 2
	if len(name) > 2*len(known) {
		return false
	}
	return min(sanitize.EditDistance(foldName(name), foldName(known)), sanitize.EditDistance(name, known)) <= most
}

// foldName gives a name without what writers of names differ in.
func foldName(name string) string { return separators.Replace(strings.ToLower(name)) }

var separators = strings.NewReplacer("_", "", "-", "")

func (r *bodyReader) value(name string) jsontext.Value {
	v := r.fields[name]
	if v == nil || v.Kind() == 'n' {
		return nil
	}
	return v
}

func (r *bodyReader) text(name string, required bool) (s string) {
	v := r.value(name)
	switch {
	case v == nil && required:
		r.problem(name, "This field is required.")
	case v == nil:
	case v.Kind() != '"':
		r.problem(name, "Must be text.")
	default:
		_ = json.Unmarshal(v, &s) // it is a string
	}
	return s
}

func (r *bodyReader) whole(name string) *int64 {
	v := r.value(name)
	if v == nil {
		return nil
	}
	if v.Kind() == '0' {
		switch n := number(string(v)).(type) {
		case int64:
			return &n
		case float64:
			if n == math.Trunc(n) {
				// Beyond what can be counted it is too large all the same.
				whole := int64(min(max(n, -math.MaxInt32), math.MaxInt32))
				return &whole
			}
		}
	}
	r.problem(name, "Must be a whole number.")
	return nil
}

func (r *bodyReader) object(name string) jsontext.Value {
	v := r.value(name)
	if v != nil && v.Kind() != '{' {
		r.problem(name, "Must be an object.")
		return nil
	}
	return v
}

// plainValue reads a well-formed value: string, bool, nil, int64, float64,
// []any or map[string]any.
func plainValue(d *jsontext.Decoder) any {
	token, err := d.ReadToken()
	if err != nil {
		panic(err) // it was well-formed
	}
	switch token.Kind() {
	case '{':
		object := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				panic(err)
			}
			key := name.String()
			object[key] = plainValue(d)
		}
		_, _ = d.ReadToken()
		return object
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			list = append(list, plainValue(d))
		}
		_, _ = d.ReadToken()
		return list
	case '"':
		return token.String()
	case '0':
		return number(token.String())
	case 't', 'f':
		return token.Bool()
	}
	return nil
}

// number reads a JSON number: as int64 where it is written as a whole one that
// fits. One too large for a float64 is infinite, which no field takes.
func number(text string) any {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}
