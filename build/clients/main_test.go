package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestJavaScriptNames expects the calls of the JavaScript library, which are
// written by hand, to have the names that resources.go gives them.
func TestJavaScriptNames(t *testing.T) {
	t.Parallel()
	classes := readClasses(t, "../../clients/js/dist")
	for _, r := range resources {
		property := regexp.MustCompile(`readonly ` + camelCase(r.name) + `: (\w+);`).FindStringSubmatch(classes["Client"])
		if property == nil {
			t.Errorf("the client has no %s", camelCase(r.name))
			continue
		}
		for _, c := range r.calls {
			if name := camelCase(c.name); !strings.Contains(classes[property[1]], "\n    "+name+"(") {
				t.Errorf("the client has no %s.%s", camelCase(r.name), name)
			}
		}
	}
}

// readClasses returns the declarations of all classes in a folder, by name.
func readClasses(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.d.ts"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no declarations: %v", folder, err)
	}
	classes := map[string]string{}
	class := regexp.MustCompile(`(?ms)^export declare class (\w+).*?^}`)
	for _, path := range files {
		if filepath.Base(path) == "node.d.ts" {
			continue // its Client extends the other
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range class.FindAllStringSubmatch(string(text), -1) {
			classes[match[1]] = match[0]
		}
	}
	return classes
}
