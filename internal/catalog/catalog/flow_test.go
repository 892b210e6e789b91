package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"atelier/internal/catalog/catalog"
)

const pictureOutput = "output: {type: IMG, mime_types: [image/png]}\n"

// flowTools are tools for flows.
var flowTools = map[string]string{
	"draw": "name: Draw\nprice: {type: COST, tokens: 2}\nnum_results: {min: 1, max: 4}\n" + pictureOutput + "engine: {name: image}\n" +
		"fields: [{key: prompt, type: PROMPT, label: P, required: true, max_length: 100}, {key: style, type: SINGLE_SELECT, label: S, default: a, options: [{text: A, value: a}, {text: B, value: b}]}]\n",
	"enlarge": "name: Enlarge\nprice: {type: COST, tokens: 3}\n" + pictureOutput + "engine: {name: image}\n" +
		"fields: [{key: picture, type: IMG, label: P, required: true, accept: [image/png]}, {key: factor, type: NUM, label: F, integer: true, min: 2, max: 4, default: 2}]\n",
	"sheet": "name: Sheet\nprice: {type: FREE}\n" + pictureOutput + "engine: {name: image}\nfields: [{key: pictures, type: IMGS, label: P, required: true, max_items: 3}]\n",
	"tune":  "name: Tune\nprice: {type: FREE}\noutput: {type: AUDIO, mime_types: [audio/wav]}\nengine: {name: music}\n",
	"inner": "name: Inner\nprice: {type: FREE}\n" + pictureOutput + "engine: {name: image}\nvisibility: {roles: [designer]}\n",
}

func readFlow(t *testing.T, text string) []string {
	t.Helper()
	files := fstest.MapFS{"flow.yaml": {Data: []byte("name: Flow\n" + text)}}
	for slug, tool := range flowTools {
		files[slug+".yaml"] = &fstest.MapFile{Data: []byte(tool)}
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range set.Problems {
		_, message, _ := strings.Cut(p.String(), "flow.yaml:")
		_, message, _ = strings.Cut(message, ": ")
		all = append(all, message)
	}
	return all
}

func TestFlowProblems(t *testing.T) {
	t.Parallel()
	const form = "fields: [{key: prompt, type: PROMPT, label: P, required: true, max_length: 100}, {key: photo, type: IMG, label: P}, {key: n, type: NUM, label: N, integer: true, min: 1, max: 4, default: 1}," +
		" {key: long, type: TEXT, label: L}, {key: photos, type: IMGS, label: P, required: true}]\n"
	flow := func(steps string) string {
		return pictureOutput + form + "engine: {name: flow, with: {steps: [" + steps + "]}}\n"
	}
	const draw = "{id: a, tool: draw, inputs: {prompt: {field: prompt}}}"
	if problems := readFlow(t, flow(draw+", {id: b, tool: enlarge, inputs: {picture: {step: a}, factor: 4}}")); len(problems) > 0 {
		t.Fatalf("a valid flow: %q", problems)
	}
	for _, c := range []struct{ text, want string }{
		{flow("{id: a, tool: paint}"), "engine.with.steps[0].tool: there is no tool paint"},
		{flow("{id: a, tool: draw}"), "engine.with.steps[0].inputs: the field prompt of draw is required"},
		{flow("{id: a, tool: draw, inputs: {prompt: x, size: 3}}"), "engine.with.steps[0].inputs.size: the tool draw has no field size"},
		{flow("{id: a, tool: draw, inputs: {prompt: {field: none}}}"), "engine.with.steps[0].inputs.prompt: the flow has no field none"},
		{flow("{id: a, tool: draw, inputs: {prompt: {field: long}}}"), "engine.with.steps[0].inputs.prompt: takes at most 100 characters; set max_length of the field long of the flow"},
		{flow("{id: a, tool: draw, inputs: {prompt: {field: n}}}"), "engine.with.steps[0].inputs.prompt: is a PROMPT; the field n of the flow is a NUM"},
		{flow("{id: a, tool: draw, inputs: {prompt: x, style: c}}"), "engine.with.steps[0].inputs.style: must be one of the options: a, b"},
		{flow("{id: a, tool: draw, num_results: 9, inputs: {prompt: x}}"), "engine.with.steps[0].num_results: the tool draw makes 1 to 4 results"},
		{flow("{id: a, tool: enlarge, inputs: {picture: x}}"), "engine.with.steps[0].inputs.picture: must be a file: a field or a result of a step"},
		{flow("{id: a, tool: enlarge, inputs: {picture: {field: photo}}}"), "engine.with.steps[0].inputs.picture: takes image/png; set accept of the field photo of the flow"},
		{flow("{id: a, tool: tune}, {id: b, tool: enlarge, inputs: {picture: {step: a}}}"), "engine.with.steps[1].inputs.picture: takes IMG, not AUDIO"},
		{flow("{id: a, tool: tune}"), "engine.with.results: the step a makes AUDIO; output.type of the flow is IMG"},
		{flow(draw + ", {id: b, tool: enlarge, inputs: {picture: {step: a, result: all}}}"), "engine.with.steps[1].inputs.picture: takes one file; write result: first"},
		{flow(draw + ", {id: b, tool: enlarge, when: {field: n, is: 2}, inputs: {picture: {step: a}}}"), "engine.with.results: no step in results always runs; the flow could end without a result"},
		{flow(draw + ", {id: b, tool: draw, when: {field: n, is: 2}, inputs: {prompt: x}}, {id: c, tool: enlarge, inputs: {picture: {step: b}}}"),
			"engine.with.steps[2].inputs.picture: is required, but can be without a value; add first_of with a source that always has one"},
		{flow("{id: a, tool: draw, num_results: 4, inputs: {prompt: x}}, {id: b, tool: sheet, inputs: {pictures: {step: a, result: all}}}"), "engine.with.steps[1].inputs.pictures: takes at most 3 files, but can get 4"},
		{flow("{id: a, tool: draw, num_results: 4, inputs: {prompt: x}}, {id: b, tool: enlarge, for_each: {step: a}, max: 2, inputs: {picture: {item: true}}}"), "engine.with.steps[1].max: is 2, but the list can have 4 items"},
		{flow("{id: a, tool: draw, for_each: {field: prompt}, max: 2, inputs: {prompt: x}}"), "engine.with.steps[0].for_each: the field prompt is no list of files"},
		{flow("{id: a, tool: inner}"), "engine.with.steps[0].tool: not everyone who may use the flow may use the tool inner; restrict the visibility of the flow in the same way"},
		{flow("{id: a, tool: flow, inputs: {prompt: x, photos: {field: photos}}}"), "engine.with.steps[0].tool: with flow flows are nested more than 4 deep, or the flow contains itself"},
		{flow(draw+"\n") + "price: {type: FREE}\n", "price: is not for flows: a flow costs what its steps cost"},
		{flow(draw) + "num_results: {max: 2}\n", "num_results: is not for flows: their steps say how many results there are"},
		{flow(draw) + "flow_tools: {draw: x}\n", "flow_tools: is set by the program"},
		{flow("{id: a, tool: draw, inputs: {prompt: {step: b}}}"), "engine.with.steps[0].inputs.prompt: there is no step b; the steps are a"},
		{flow(draw + ", {id: b, tool: enlarge, inputs: {picture: {step: a}}, otherwise: {tool: tune}}"), "engine.with.steps[1].otherwise: enlarge makes IMG and tune makes AUDIO; both must make the same"},
	} {
		if problems := readFlow(t, c.text); !slices.Contains(problems, c.want) {
			t.Errorf("%s: %q\nwant %q", c.text, problems, c.want)
		}
	}
}
