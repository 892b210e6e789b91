package catalog_test

import (
	"strings"
	"testing"

	"atelier/internal/catalog/catalog"
)

const flow = "name: Flow\nprice: {type: FREE}\noutput: {type: IMG, mime_types: [image/png]}\n"

// only reads the files and gives their one tool.
func only(t *testing.T, all ...string) *catalog.Tool {
	t.Helper()
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: files(all...)})
	if err != nil || len(set.Problems) > 0 {
		t.Fatalf("read: %v %v", set.Problems, err)
	}
	for _, tool := range set.AllTools() {
		return tool
	}
	t.Fatal("there is no tool")
	return nil
}

// TestIncludedFiles has the workflow of a tool in a file of its own, with what
// other programs write and YAML would not take: tabs, and numbers beyond int64.
func TestIncludedFiles(t *testing.T) {
	t.Parallel()
	graph := "{\n\t\"3\": {\"class_type\": \"KSampler\",\t\"inputs\": {\"seed\": 18446744073709551615, \"cfg\": 8.0, \"denoise\": 0.75, \"model\": [\"4\", 0], \"text\": \"a \\/ b\"}}\n}\n"
	for name, manifest := range map[string]string{
		"beside other settings": flow + "engine:\n  name: studio\n  with: {bind: {seed: [3.seed]}}\n  include: {workflow: flow.json}\n",
		"before them":           flow + "engine: {include: {workflow: flow.json}, name: studio, with: {bind: {seed: [3.seed]}}}\n",
	} {
		tool := only(t, "flow.yaml", manifest, "flow.json", graph)
		want := `{"bind":{"seed":["3.seed"]},"workflow":{"3":{"class_type":"KSampler","inputs":{"cfg":8,"denoise":0.75,"model":["4",0],"seed":18446744073709551615,"text":"a / b"}}}}`
		if tool.Engine.With != want {
			t.Errorf("%s: with = %s\nwant   %s", name, tool.Engine.With, want)
		}
	}
	alone := only(t, "flow.yaml", flow+"engine: {name: studio, include: {workflow: flow.json}}\n", "flow.json", `{"1":{}}`)
	if alone.Engine.With != `{"workflow":{"1":{}}}` {
		t.Errorf("without other settings: with = %s", alone.Engine.With)
	}
}

func TestIncludesThatCannotBe(t *testing.T) {
	t.Parallel()
	for include, want := range map[string]string{
		"{workflow: none.json}":                     "there is no file none.json",
		"{workflow: ../flow.json}":                  "must be the name of a .json file",
		"{workflow: flow.yaml}":                     "must be the name of a .json file",
		"{workflow: bad.json}":                      "is not JSON",
		"{workflow: two.json}":                      "is not JSON",
		"{workflow: huge.json}":                     "bytes; at most",
		"{bind: good.json}":                         "is also set in engine.with",
		"[good.json]":                               "must be a mapping",
		"{workflow: deep.json}":                     "nested too deeply",
		"{workflow: [good.json]}":                   "must be text",
		"{workflow: good.json, workflow: bad.json}": "is set twice",
	} {
		set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: files(
			"flow.yaml", flow+"engine: {name: studio, with: {bind: {}}, include: "+include+"}\n",
			"good.json", "{}", "bad.json", "{", "two.json", "{}}", "huge.json", `"`+strings.Repeat("x", 2<<20)+`"`,
			"deep.json", strings.Repeat("[", 100)+strings.Repeat("]", 100),
		)})
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Problems) == 0 || !strings.Contains(set.Problems[0].String(), want) {
			t.Errorf("%s: %v, want %q", include, set.Problems, want)
		}
		if set.Len() != 0 {
			t.Errorf("%s: there is a tool all the same", include)
		}
	}
}

// TestOffers leaves out what nothing can run, and kits bear that.
func TestOffers(t *testing.T) {
	t.Parallel()
	all := files(
		"here.yaml", flow+"engine: {name: image}\n", "gone.yaml", flow+"engine: {name: video}\n", "other.yaml", flow+"engine: {name: music}\n",
		"kits.yaml", "all: {label: All, tools: [{tool: here}, {tool: gone}, {tool: other}]}\n",
	)
	offers := map[string]catalog.Availability{"video": catalog.Unavailable, "music": catalog.UnknownAvailability}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Builtin, Files: all, EngineAvailability: func(engine string) catalog.Availability { return offers[engine] }})
	if err != nil || len(set.Problems) > 0 {
		t.Fatalf("read: %v %v", set.Problems, err)
	}
	if set.Len() != 1 || len(set.UnavailableTools()) != 1 || set.UnavailableTools()[0] != "gone" {
		t.Errorf("%d tools, left %v", set.Len(), set.UnavailableTools())
	}
}
