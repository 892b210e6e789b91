package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"go.yaml.in/yaml/v3"

	openapi "atelier/api"
)

// documentJSON is the OpenAPI document as it is served.
func documentJSON() ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(openapi.Document, &doc); err != nil {
		return nil, fmt.Errorf("read openapi document: %w", err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode openapi document: %w", err)
	}
	return text, nil
}

func (s *Server) getDocument(w http.ResponseWriter, _ *http.Request) error {
	send(w, http.StatusOK, s.document)
	return nil
}
