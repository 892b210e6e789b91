package manifestdraft_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"atelier/internal/engine/manifestdraft"
)

// TestTextsSurviveYAML checks that texts with line breaks and spaces at odd
// places, such as prompts, are the same after they were written and read.
func TestTextsSurviveYAML(t *testing.T) {
	t.Parallel()
	parts := []string{"\n", " ", "\t", "a", "- ", ": ", "#", "<<", "\u2028", "é"}
	texts := []string{""}
	for range 3 {
		for _, text := range texts {
			for _, part := range parts {
				texts = append(texts, text+part)
			}
		}
	}
	fields := make([]manifestdraft.Field, len(texts))
	for i, text := range texts {
		fields[i] = manifestdraft.Field{Key: "x", Default: text, Options: []manifestdraft.Option{{Value: text}}}
	}
	document, err := manifestdraft.Tool{Fields: fields}.YAML()
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Fields []struct {
			Default string
			Options []struct{ Value string }
		}
	}
	if err := yaml.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if read.Fields[i].Default != text || read.Fields[i].Options[0].Value != text {
			t.Errorf("text = %q and %q, want %q", read.Fields[i].Default, read.Fields[i].Options[0].Value, text)
		}
	}
}
