package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"atelier/internal/catalog/catalog"
	"atelier/tools"
)

// TestSuggestedSizes looks at the lists of fields that take free sizes only.
func TestSuggestedSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ settings, want string }{
		{"min: 64, max: 4096", "1024x1024 1024x768 768x1024 1024x576 576x1024"},
		{"min: 64, max: 2048, multiple_of: 64, default: {width: 512, height: 768}", "512x768 768x768 768x576 576x768 768x448 448x768"},
		{"min: 256, max: 300", "300x300 300x256 256x300"},
		{"min: 500, max: 600, multiple_of: 256", "512x512"},
		{"min: 500, max: 500", "500x500"},
		{"min: 10, max: 20, multiple_of: 32", ""},
		{"min: 0, max: 1e300", "1024x1024 1024x768 768x1024 1024x576 576x1024"},
		{"min: 1, max: 1e300, default: {width: 1e200, height: 1e200}", "100000x100000 100000x75000 75000x100000 100000x56250 56250x100000"},
		{"min: 64, max: 4096, sizes: [{text: A, width: 7, height: 9}]", "7x9"},
		{"sizes: [{text: A, width: 7, height: 9}]", "7x9"},
	} {
		field := form(t, "key: x, label: X, type: WIDTH_HEIGHT, "+c.settings).Fields[0]
		var got []string
		for _, s := range field.Display.Sizes {
			got = append(got, fmt.Sprintf("%dx%d", s.Width, s.Height))
			if p := field.CheckValue(map[string]any{"width": s.Width, "height": s.Height}); p != "" {
				t.Errorf("%s: %v %s", c.settings, s, p)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.settings, got, c.want)
		}
	}
}

// TestShippedSizes demands a list that somebody chose of every shipped form.
func TestShippedSizes(t *testing.T) {
	t.Parallel()
	found := 0
	var look func(slug string, fields []catalog.Field)
	look = func(slug string, fields []catalog.Field) {
		for _, f := range fields {
			look(slug, f.Children)
			if f.Type != "WIDTH_HEIGHT" {
				continue
			}
			found++
			if len(f.Display.Sizes) == 0 || strings.Contains(f.Display.Sizes[0].Text, "×") {
				t.Errorf("%s: %s has no sizes of its own: %v", slug, f.Key, f.Display.Sizes)
			}
		}
	}
	for slug, tool := range read(t, tools.Files).AllTools() {
		look(slug, tool.Fields)
	}
	if found < 8 {
		t.Errorf("found %d fields of sizes, want at least 8", found)
	}
}
