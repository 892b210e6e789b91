package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	openapi "atelier/api"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
)

// documentJSON returns the OpenAPI document as JSON, in its original order and
// without the extensions for the code generator.
var documentJSON = sync.OnceValues(encodeDocument)

func encodeDocument() ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(openapi.Document, &doc); err != nil {
		return nil, fmt.Errorf("read openapi document: %w", err)
	}

	var text bytes.Buffer
	if err := writeJSON(&text, &doc); err != nil {
		return nil, fmt.Errorf("encode openapi document: %w", err)
	}
	return text.Bytes(), nil
}

// isGeneratorExtension reports whether a member of the OpenAPI document is an
// extension that only oapi-codegen reads.
func isGeneratorExtension(name string) bool {
	return strings.HasPrefix(name, "x-go-") || strings.HasPrefix(name, "x-oapi-codegen-")
}

// writeJSON writes a node of the OpenAPI document as JSON. Object members keep
// their order.
func writeJSON(w *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return writeJSON(w, n.Content[0])
	case yaml.MappingNode:
		return writeObject(w, n)
	case yaml.SequenceNode:
		return writeArray(w, n)
	case yaml.ScalarNode:
		return writeScalar(w, n)
	default:
		return fmt.Errorf("line %d: aliases are not supported", n.Line)
	}
}

func writeObject(w *bytes.Buffer, n *yaml.Node) error {
	w.WriteByte('{')
	separator := ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		value := n.Content[i+1]
		if isGeneratorExtension(name.Value) {
			continue
		}

		text, err := json.Marshal(name.Value)
		if err != nil {
			return err
		}
		w.WriteString(separator)
		w.Write(text)
		w.WriteByte(':')
		separator = ","

		if err := writeJSON(w, value); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func writeArray(w *bytes.Buffer, n *yaml.Node) error {
	w.WriteByte('[')
	for i, item := range n.Content {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := writeJSON(w, item); err != nil {
			return err
		}
	}
	w.WriteByte(']')
	return nil
}

func writeScalar(w *bytes.Buffer, n *yaml.Node) error {
	if n.Tag == "!!timestamp" {
		return fmt.Errorf("line %d: the time %s must be quoted", n.Line, n.Value)
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Write(text)
	return nil
}

// document serves the OpenAPI document of the API.
type document struct {
	content    []byte
	tag        string // ETag of content
	compressed *rest.GzipCache
}

// Routes returns the route of the OpenAPI document.
func (d *document) Routes() []rest.Route {
	return []rest.Route{rest.NewRoute("GET /api/v2/openapi.json", access.Open, d.getDocument)}
}

// getDocument serves GET /api/v2/openapi.json: it returns the OpenAPI
// document.
func (d *document) getDocument(w http.ResponseWriter, r *http.Request) error {
	d.compressed.SendTagged(w, r, d.tag, d.content, nil)
	return nil
}
