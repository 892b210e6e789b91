// Package openaimap decides which endpoints of the OpenAI-compatible interface
// can run a tool, and converts their parameters to the inputs of the tool. Both
// follow from the types of the tool's fields and, where these leave a choice,
// from the part openai of its manifest.
//
//	parameter              field
//	prompt, input          the first PROMPT, else the first required text, else the first text
//	image, input_reference the fields for pictures, in the order of the form, without the mask
//	mask                   the picture whose key is mask
//	size                   the first WIDTH_HEIGHT
//	speed                  the number whose key is speed; 1 means its default
//	others                 the field with the key of the parameter
//
// Further parameters of a request set the fields that have these keys.
package openaimap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"atelier/internal/catalog/catalog"
)

// Endpoint is the path of an endpoint below /v1/.
type Endpoint string

// The endpoints that run tools.
const (
	Generations Endpoint = "images/generations"
	Edits       Endpoint = "images/edits"
	Variations  Endpoint = "images/variations"
	Speech      Endpoint = "audio/speech"
	Videos      Endpoint = "videos"
)

// Endpoints are all endpoints that run tools.
var Endpoints = []Endpoint{Generations, Edits, Variations, Speech, Videos}

// shape is what an endpoint sends and returns.
type shape struct {
	output  string // media type of the results
	text    string // parameter with the text, or ""
	picture string // parameter with pictures, or ""
	// needsPicture reports whether the endpoint always sends a picture.
	needsPicture bool
	mask         bool
	// settings are the parameters that set a field if the tool has one for
	// them, and have no effect otherwise.
	settings []string
}

var shapes = map[Endpoint]shape{
	Generations: {
		output:   "IMG",
		text:     "prompt",
		settings: []string{"size", "quality", "style", "background", "output_format", "output_compression", "moderation"},
	},
	Edits: {
		output:       "IMG",
		text:         "prompt",
		picture:      "image",
		needsPicture: true,
		mask:         true,
		settings:     []string{"size", "quality", "background", "output_format", "output_compression", "input_fidelity", "moderation"},
	},
	Variations: {
		output:       "IMG",
		picture:      "image",
		needsPicture: true,
		settings:     []string{"size"},
	},
	Speech: {
		output:   "AUDIO",
		text:     "input",
		settings: []string{"voice", "speed", "instructions", "response_format"},
	},
	Videos: {
		output:   "VID",
		text:     "prompt",
		picture:  "input_reference",
		settings: []string{"size", "seconds"},
	},
}

// outputNames names the results of tools in messages.
var outputNames = map[string]string{"IMG": "pictures", "AUDIO": "sound", "VID": "videos", "ASSET_3D": "3D models", "TEXT": "text"}

// Mapping is the way in which an endpoint calls a tool.
type Mapping struct {
	Tool     *catalog.Tool
	Endpoint Endpoint

	shape
	fields   map[string]*catalog.Field // the field that each parameter sets, except for pictures
	pictures []*catalog.Field          // the fields for pictures, in the order in which they are filled
}

// New returns the way in which an endpoint calls a tool. The error says why it
// cannot.
func New(t *catalog.Tool, e Endpoint) (*Mapping, error) {
	m := &Mapping{Tool: t, Endpoint: e, shape: shapes[e], fields: map[string]*catalog.Field{}}
	if t.Output.Type != m.output {
		return nil, fmt.Errorf("it makes %s", outputNames[t.Output.Type])
	}
	if err := m.mapFields(); err != nil {
		return nil, err
	}
	if err := m.checkRequired(); err != nil {
		return nil, err
	}
	return m, nil
}

// All returns the mappings of all endpoints that can call a tool.
func All(t *catalog.Tool) []*Mapping {
	var all []*Mapping
	for _, e := range Endpoints {
		if m, err := New(t, e); err == nil {
			all = append(all, m)
		}
	}
	return all
}

// mapFields finds the field of each parameter of the endpoint.
func (m *Mapping) mapFields() error {
	leaves := m.Tool.Leaves()
	byKey := map[string]*catalog.Field{}
	for _, f := range leaves {
		byKey[f.Key] = f
	}
	find := func(parameter string, otherwise func() *catalog.Field) {
		if f := byKey[m.Tool.OpenAI.Fields[parameter]]; f != nil {
			m.fields[parameter] = f
		} else if f := otherwise(); f != nil {
			m.fields[parameter] = f
		}
	}

	if m.text != "" {
		find(m.text, func() *catalog.Field { return textField(leaves) })
		if f := m.fields[m.text]; f != nil && !isText(f) {
			return fmt.Errorf("its field %s, which the manifest names for %s, is no text", f.Key, m.text)
		}
	}
	if m.mask {
		find("mask", func() *catalog.Field {
			if f := byKey["mask"]; f != nil && f.Type == "IMG" {
				return f
			}
			return nil
		})
		if f := m.fields["mask"]; f != nil && f.Type != "IMG" {
			return fmt.Errorf("its field %s, which the manifest names for mask, is no picture", f.Key)
		}
	}
	if m.picture != "" {
		for _, f := range leaves {
			if f.MediaType() == "IMG" && f != m.fields["mask"] {
				m.pictures = append(m.pictures, f)
			}
		}
		if first := byKey[m.Tool.OpenAI.Fields[m.picture]]; first != nil {
			if first.MediaType() != "IMG" {
				return fmt.Errorf("its field %s, which the manifest names for %s, is no picture", first.Key, m.picture)
			}
			m.pictures = append([]*catalog.Field{first}, slices.DeleteFunc(m.pictures, func(f *catalog.Field) bool { return f == first })...)
		}
	}
	for _, parameter := range m.settings {
		find(parameter, func() *catalog.Field {
			if parameter == "size" {
				return firstOf(leaves, func(f *catalog.Field) bool { return f.Type == "WIDTH_HEIGHT" })
			}
			if f := byKey[parameter]; f != nil && !f.IsMedia() && f != m.fields[m.text] {
				return f
			}
			return nil
		})
	}
	return nil
}

// checkRequired returns an error if the endpoint cannot send what the tool
// requires, or sends a picture that the tool has no field for.
func (m *Mapping) checkRequired() error {
	if m.needsPicture && len(m.pictures) == 0 {
		return errors.New("it has no field for a picture")
	}
	if m.Endpoint == Speech && m.fields[m.text] == nil {
		return errors.New("it has no field for a text")
	}
	for _, f := range m.Tool.Leaves() {
		switch {
		case !f.Required || f == m.fields["mask"] || slices.Contains(m.pictures, f):
		case f.IsMedia():
			return fmt.Errorf("it requires a file in the field %s", f.Key)
		case m.Endpoint == Variations && isText(f) && f.Default == nil:
			return fmt.Errorf("it requires a text in the field %s", f.Key)
		}
	}
	return nil
}

// Remarks says which parameters of the endpoint have no effect although clients
// always send them, and which fields clients must send besides.
func (m *Mapping) Remarks() []string {
	var all []string
	if m.text != "" && m.fields[m.text] == nil {
		all = append(all, m.text+" is not used")
	}
	var more []string
	for _, f := range m.Tool.Leaves() {
		if f.Required && f.Default == nil && !f.IsMedia() && !m.sets(f) {
			more = append(more, f.Key)
		}
	}
	if len(more) > 0 {
		all = append(all, "also requires "+strings.Join(more, ", "))
	}
	return all
}

// sets reports whether a parameter sets the field.
func (m *Mapping) sets(field *catalog.Field) bool {
	for _, f := range m.fields {
		if f == field {
			return true
		}
	}
	return false
}

// maxPictures returns the largest number of pictures of one request, or 0 if
// there is no limit.
func (m *Mapping) maxPictures() int64 {
	n := int64(0)
	for _, f := range m.pictures {
		switch {
		case !f.IsList():
			n++
		case f.Display.MaxItems == 0:
			return 0
		default:
			n += f.Display.MaxItems
		}
	}
	return n
}

// KeyOf returns the key of the field that a parameter sets, or "" if there is
// none.
func (m *Mapping) KeyOf(parameter string) string {
	if f := m.fields[parameter]; f != nil {
		return f.Key
	}
	return ""
}

func isText(f *catalog.Field) bool {
	switch f.Type {
	case "PROMPT", "TEXT_AREA", "TEXT":
		return true
	}
	return false
}

// textField returns the field for the text of a request, or nil.
func textField(leaves []*catalog.Field) *catalog.Field {
	for _, fits := range []func(f *catalog.Field) bool{
		func(f *catalog.Field) bool { return f.Type == "PROMPT" },
		func(f *catalog.Field) bool { return isText(f) && f.Required },
		func(f *catalog.Field) bool { return f.Type == "TEXT_AREA" },
	} {
		if f := firstOf(leaves, fits); f != nil {
			return f
		}
	}
	return nil
}

func firstOf(leaves []*catalog.Field, fits func(*catalog.Field) bool) *catalog.Field {
	if i := slices.IndexFunc(leaves, fits); i >= 0 {
		return leaves[i]
	}
	return nil
}
