package catalog

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"
)

// FuzzStored holds that what is accepted as a manifest can be read back from
// the database, and says the same there.
func FuzzStored(f *testing.F) {
	all, err := filepath.Glob(filepath.Join("..", "..", "..", "tools", "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range append(all, filepath.Join("testdata", "everything", "everything.yaml")) {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	base := "price: {type: FREE}\noutput: {type: TEXT, mime_types: [text/plain]}\nengine: {name: e, with: {a: "
	for _, odd := range []string{"!!str 1", "1e400", "0x1F", "0o17", "1_000", "99999999999999999999", "-0", "-0.0", ".5", "~", "yes", "2026-01-01", `"\u2028\x85\ufeff\x7f"`, "!!binary aGk=", "'it''s'", "|\n  x"} {
		f.Add(base + odd + "}}\nname: N\n")
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := Read(ManifestFolder{Source: Directory, Files: fstest.MapFS{"x.yaml": {Data: []byte(text)}}})
		if err != nil {
			t.Fatal(err)
		}
		e, ok := set.tools["x"]
		if !ok {
			return
		}
		read := func(definition string) (tool *Tool, again string) {
			tool, err := decodeStored(definition, func(r *manifestReader, n *yaml.Node) *Tool {
				again = canonicalJSON(r.plainValue(n))
				return r.readTool(n, nil)
			})
			if err != nil {
				t.Fatalf("%s cannot be read back: %v", definition, err)
			}
			return tool, again
		}
		stored, again := read(e.definition)
		if again != e.definition {
			t.Errorf("stored as %s, read back as %s", e.definition, again)
		}
		r := &manifestReader{storeAsset: func(string) (Asset, error) { return "", nil }}
		if direct := r.readTool(r.parseDocument([]byte(text)), nil); len(direct.Avatar) == 0 && stored.Avatar == "" && !reflect.DeepEqual(direct, stored) {
			t.Errorf("the manifest says %+v, the stored one %+v", direct, stored)
		}
	})
}
