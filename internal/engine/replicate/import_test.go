package replicate_test

import (
	"slices"
	"testing"

	"atelier/internal/engine/manifestdraft"
	"atelier/internal/engine/replicate/replicatetest"
)

func TestImport(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	tool, err := w.engine.ImportTool(t.Context(), replicatetest.Painter, "replicate", "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := tool.YAML()
	if err != nil {
		t.Fatal(err)
	}
	with := tool.Engine.With
	if tool.Engine.Name != "replicate" || with["model"] != replicatetest.Painter || with["seed"] != "seed" || with["results"] != "num_outputs" {
		t.Errorf("engine = %+v in\n%s", tool.Engine, text)
	}
	if !slices.ContainsFunc(tool.Fields, func(f manifestdraft.Field) bool { return f.Key == "prompt" && f.Required }) || tool.Output.Type != "IMG" {
		t.Errorf("manifest =\n%s", text)
	}
	if tool, err = w.engine.ImportTool(t.Context(), replicatetest.Community, "replicate", ""); err != nil || tool.Engine.With["version"] != replicatetest.Version || tool.Engine.With["model"] != nil {
		t.Errorf("a model of the community: %+v, %v", tool.Engine, err)
	}
	for _, name := range []string{"", "painter", "../x", "acme/nothing"} {
		if _, err := w.engine.ImportTool(t.Context(), name, "replicate", ""); err == nil {
			t.Errorf("import %q = nil, want an error", name)
		}
	}
}
