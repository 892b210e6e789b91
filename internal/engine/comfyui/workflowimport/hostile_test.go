package workflowimport_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine/comfyui/workflowimport"
)

// loopOfReroutes is a workflow of the editor in which two reroutes are linked
// to each other.
func loopOfReroutes() string {
	return `{"nodes":[
		{"id":1,"type":"Reroute","inputs":[{"name":"","type":"*","link":1}],"outputs":[{"name":"","type":"*","links":[2,3]}]},
		{"id":2,"type":"Reroute","inputs":[{"name":"","type":"*","link":2}],"outputs":[{"name":"","type":"*","links":[1]}]},
		{"id":3,"type":"SaveImage","inputs":[{"name":"images","type":"IMAGE","link":3}],"widgets_values":["x"]}],
		"links":[[1,2,0,1,0,"*"],[2,1,0,2,0,"*"],[3,1,0,3,0,"IMAGE"]]}`
}

// nestedSubgraphs is a workflow with subgraphs that each contain the next one
// several times.
func nestedSubgraphs(levels, copies int) string {
	var b strings.Builder
	b.WriteString(`{"nodes":[{"id":1,"type":"g0"},{"id":2,"type":"SaveImage","widgets_values":["x"]}],"links":[],"definitions":{"subgraphs":[`)
	for level := range levels {
		if level > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"id":"g%d","name":"level %d","nodes":[`, level, level)
		for i := range copies {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, `{"id":%d,"type":"g%d"}`, i, level+1)
		}
		b.WriteString(`],"links":[]}`)
	}
	b.WriteString(`]}}`)
	return b.String()
}

// manyNodes returns a workflow with n nodes in one of the two formats.
func manyNodes(n int, editor bool) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		if editor {
			fmt.Fprintf(&b, `{"id":%d,"type":"SaveImage"}`, i)
		} else {
			fmt.Fprintf(&b, `"%d":{"class_type":"SaveImage","inputs":{}}`, i)
		}
	}
	if editor {
		return `{"nodes":[` + b.String() + `],"links":[]}`
	}
	return `{` + b.String() + `}`
}

// longChain is a workflow of the editor with a chain of reroutes.
func longChain(n int) string {
	var nodes, links strings.Builder
	for i := range n {
		fmt.Fprintf(&nodes, `{"id":%d,"type":"Reroute","inputs":[{"name":"","type":"*","link":%d}],"outputs":[{"name":"","type":"*"}]},`, i, i)
		fmt.Fprintf(&links, `[%d,%d,0,%d,0,"*"],`, i, i-1, i)
	}
	return fmt.Sprintf(`{"nodes":[%s{"id":%d,"type":"SaveImage","inputs":[{"name":"images","type":"IMAGE","link":%d}],"widgets_values":["x"]}],"links":[%s[%d,%d,0,%d,0,"*"]]}`,
		nodes.String(), n, n, links.String(), n, n-1, n)
}

// TestHostileWorkflows refuses workflows that would take too much time or
// memory, within a short time.
func TestHostileWorkflows(t *testing.T) {
	t.Parallel()
	e := describedServer(t, "{}")
	cycle := `{"1":{"class_type":"StringConcatenate","inputs":{"string_a":["2",0],"string_b":["1",0],"delimiter":["2",0]}},
		"2":{"class_type":"StringConcatenate","inputs":{"string_a":["1",0],"string_b":["2",0],"delimiter":""}},
		"3":{"class_type":"ComfySwitchNode","inputs":{"switch":["3",0],"on_true":["3",0],"on_false":["3",0]}},
		"4":{"class_type":"CLIPTextEncode","inputs":{"text":["1",0],"clip":["4",0]}},
		"5":{"class_type":"KSampler","inputs":{"positive":["6",0],"negative":["6",1],"seed":["3",0],"latent_image":["5",0]}},
		"6":{"class_type":"ControlNetApplyAdvanced","inputs":{"positive":["6",0],"negative":["6",1],"image":["5",0]}},
		"7":{"class_type":"SaveImage","inputs":{"images":["5",0],"filename_prefix":["1",0]}}}`
	for _, tt := range []struct{ name, data, want string }{
		{"reroutes in a circle", loopOfReroutes(), "form a loop"},
		{"a subgraph that contains itself", strings.Replace(nestedSubgraphs(1, 1), `"type":"g1"`, `"type":"g0"`, 1), "the subgraph level 0 contains itself"},
		{"subgraphs that contain each other", strings.Replace(nestedSubgraphs(2, 1), `"type":"g2"`, `"type":"g0"`, 1), "contains itself"},
		{"deep subgraphs", nestedSubgraphs(40, 1), "more than 16 levels"},
		{"subgraphs that multiply", nestedSubgraphs(12, 10), "more than 10000 nodes"},
		{"100,000 nodes of the editor", manyNodes(100_000, true), "100000 nodes; at most 10000"},
		{"100,000 nodes in API format", manyNodes(100_000, false), "100000 nodes; at most 10000"},
		{"a long chain of reroutes", longChain(9000), "form a loop"},
		{"deep JSON", strings.Repeat(`{"nodes":[`, 20_000), "not JSON"},
		{"wrong types", `{"nodes":[null,{"id":{},"type":3}],"links":3}`, "not valid in the format of the editor"},
		{"a workflow of 40 MB", `{"1":{"class_type":"A","inputs":{"a":"` + strings.Repeat("x", 40<<20) + `"}}}`, "larger than 32 MB"},
		{"a cycle in API format", cycle, ""},
		{"5,000 nodes in API format", manyNodes(5000, false), "saves nothing"},
	} {
		begun := time.Now()
		_, _, err := e.ImportTool(t.Context(), workflowimport.Request{Data: []byte(tt.data), File: "x.json"})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: import = %v, want %q", tt.name, err, tt.want)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s: refused after %v", tt.name, took)
		}
	}
}
