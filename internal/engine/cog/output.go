package cog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"atelier/internal/engine/backend"
)

// outputShape describes how a model's output is interpreted. It is derived only
// from the model's schema: text that a model wrote can look like a URL, but
// must not be fetched.
type outputShape struct {
	files   bool // the output contains URLs or data: URIs
	whole   bool // the output is a list of parts of one string
	streams bool // the server sends outputs as soon as the model yields them
}

// fetchShape queries the schema of the model. If the server has no schema, the
// output of a tool that returns text is read as text.
func (e *Engine) fetchShape(ctx context.Context, outputType string) (outputShape, error) {
	short, end := e.c.WithTimeout(ctx)
	defer end()
	var doc struct {
		Paths struct {
			Predictions struct {
				Post struct {
					Streaming bool `json:"x-cog-streaming"`
				} `json:"post"`
			} `json:"/predictions"`
		} `json:"paths"`
		Components struct {
			Schemas struct {
				Output struct {
					Format  string `json:"format"`
					Display string `json:"x-cog-array-display"`
					Items   struct {
						Format string `json:"format"`
					} `json:"items"`
				} `json:"Output"`
			} `json:"schemas"`
		} `json:"components"`
	}
	err := e.c.CallJSON(short, http.MethodGet, "openapi.json", nil, &doc)
	if s, ok := errors.AsType[*backend.Status](err); ok && (s.Code == http.StatusNotFound || outputType != "TEXT") {
		err = nil // only tools that return text need the schema
	}
	if err != nil {
		return outputShape{}, backend.CallFailure(ctx, err)
	}
	o := doc.Components.Schemas.Output
	shape := outputShape{files: true, streams: doc.Paths.Predictions.Post.Streaming}
	if outputType == "TEXT" {
		shape.files = o.Format == "uri" || o.Items.Format == "uri"
		shape.whole = o.Display == "concatenate"
	}
	return shape, nil
}

// listResults returns the URLs or strings in a model's output, in order.
func (s outputShape) listResults(output json.RawMessage) ([]string, error) {
	var all []string
	err := eachLeaf(output, 0, func(text string, quoted bool) {
		if s.files && (!quoted || !isFileURL(text)) || text == "" {
			return // other values are ignored: a model may return its seed in addition to its pictures
		}
		all = append(all, text)
	})
	if s.whole && len(all) > 0 {
		all = []string{strings.Join(all, "")}
	}
	return all, err
}

func isFileURL(text string) bool {
	return strings.HasPrefix(text, "data:") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// maxDepth is the maximum nesting depth of an output. It is small because each
// level is copied.
const maxDepth = 8

// eachLeaf calls visit for every value in raw that is neither an array, an
// object nor null, in order. quoted is true for strings.
func eachLeaf(raw json.RawMessage, depth int, visit func(text string, quoted bool)) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if raw[0] == '"' {
		var text string
		err := json.Unmarshal(raw, &text)
		if err == nil {
			visit(text, true)
		}
		return err
	}
	if raw[0] != '[' && raw[0] != '{' {
		visit(string(raw), false)
		return nil
	}
	if depth == maxDepth {
		return errors.New("the output is nested too deeply")
	}
	d := json.NewDecoder(bytes.NewReader(raw)) // token by token, because decoding into a map would lose the order of keys
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		if raw[0] == '{' {
			if _, err := d.Token(); err != nil {
				return err
			}
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		if err := eachLeaf(v, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}
