package fal_test

import (
	"slices"
	"strings"
	"testing"

	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
	"atelier/internal/engine/manifestdraft"
)

func TestImport(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	w.engine = w.with(t, w.URL, fal.Options{Catalog: call(t, w.Catalog, "")})
	tool, err := w.engine.ImportTool(t.Context(), faltest.Painter, "fal", "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := tool.YAML()
	if err != nil {
		t.Fatal(err)
	}
	with := tool.Engine.With
	if tool.Engine.Name != "fal" || with["endpoint"] != faltest.Painter || with["seed"] != "seed" || with["results"] != "num_images" {
		t.Errorf("engine = %+v in\n%s", tool.Engine, text)
	}
	if !slices.ContainsFunc(tool.Fields, func(f manifestdraft.Field) bool { return f.Key == "prompt" && f.Required }) || tool.Output.Type != "IMG" {
		t.Errorf("manifest =\n%s", text)
	}
}

func TestImportsThatFail(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	if _, err := w.engine.ImportTool(t.Context(), faltest.Painter, "fal", ""); err == nil || !strings.Contains(err.Error(), "catalog") {
		t.Errorf("import without a catalog = %v", err)
	}
	w.engine = w.with(t, w.URL, fal.Options{Catalog: call(t, w.Catalog, "")})
	for _, name := range []string{"", "painter", "../x/y", "fal-ai/nothing"} {
		if _, err := w.engine.ImportTool(t.Context(), name, "fal", ""); err == nil {
			t.Errorf("import %q = nil, want an error", name)
		}
	}
}
