package cog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// shape is how an output is to be read. Only the schema tells: a text that a
// model wrote can look like an address, and is not to be fetched.
type shape struct {
	files bool // it holds addresses or data: URIs
	whole bool // its list is one text in pieces
}

// shape asks the server about its model's output. Where it does not say, that
// is text.
func (e *Engine) shape(ctx context.Context) (shape, error) {
	short, end := e.c.WithTimeout(ctx)
	defer end()
	var doc struct {
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
	if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusNotFound {
		return shape{}, nil
	}
	o := doc.Components.Schemas.Output
	return shape{files: o.Format == "uri" || o.Items.Format == "uri", whole: o.Display == "concatenate"}, backend.CallFailure(ctx, err)
}

// results gives the addresses, or the texts, that an output holds, in order.
func (s shape) results(output json.RawMessage) ([]string, error) {
	var all []string
	err := leaves(output, 0, func(text string, quoted bool) {
		if s.files && (!quoted || !address(text)) || text == "" {
			return // a model may tell its seed beside its pictures
		}
		all = append(all, text)
	})
	if s.whole && len(all) > 0 {
		all = []string{strings.Join(all, "")}
	}
	return all, err
}

func address(text string) bool {
	return strings.HasPrefix(text, "data:") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// maxDepth bounds how deep an output may be nested: each level is copied.
const maxDepth = 8

// leaves calls give with every single value of a JSON text, in order. null is
// none.
func leaves(raw json.RawMessage, depth int, give func(text string, quoted bool)) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if raw[0] == '"' {
		var text string
		err := json.Unmarshal(raw, &text)
		if err == nil {
			give(text, true)
		}
		return err
	}
	if raw[0] != '[' && raw[0] != '{' {
		give(string(raw), false)
		return nil
	}
	if depth == maxDepth {
		return errors.New("the output is nested too deeply")
	}
	d := json.NewDecoder(bytes.NewReader(raw)) // a map would lose the order
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
		if err := leaves(v, depth+1, give); err != nil {
			return err
		}
	}
	return nil
}

// hand gives one result to the sink.
func (e *Engine) hand(ctx context.Context, as shape, result string, out engine.Sink) error {
	if !as.files {
		return out.Output(ctx, engine.Result{Data: strings.NewReader(result)})
	}
	return e.c.DeliverFile(ctx, result, out)
}
