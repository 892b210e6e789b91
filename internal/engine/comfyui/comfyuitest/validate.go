package comfyuitest

import (
	"bytes"
	_ "embed" // for object_info.json
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed object_info.json
var objectInfo []byte

type classInfo struct {
	Input struct {
		Required map[string][]json.RawMessage `json:"required"`
	} `json:"input"`
	Output     []string `json:"output"`
	OutputNode bool     `json:"output_node"`
}

// takes parses the specification of a node's input. It returns the input's
// type, the options of a choice, and the range of a number.
func takes(spec []json.RawMessage) (kind string, options []string, low, high *float64) {
	if json.Unmarshal(spec[0], &kind) != nil {
		kind = "COMBO"
		_ = json.Unmarshal(spec[0], &options)
	}
	if len(spec) > 1 {
		var about struct {
			Options  []string `json:"options"`
			Min, Max *float64
		}
		_ = json.Unmarshal(spec[1], &about)
		low = about.Min
		high = about.Max
		if options == nil {
			options = about.Options
		}
	}
	return kind, options, low, high
}

type node struct {
	Class  string         `json:"class_type"`
	Inputs map[string]any `json:"inputs"`
}

// verdict is the result of validating a prompt: the reasons for its refusal,
// or the nodes to run.
type verdict struct {
	kind, message, details string
	nodeErrors             dict
	nodes                  map[string]node
	outputs                []string
}

func (s *Server) validate(raw json.RawMessage) verdict {
	var nodes map[string]node
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&nodes); err != nil {
		return verdict{kind: "invalid_prompt", message: "Cannot execute because the prompt is not understood", details: err.Error()}
	}
	var outputs []string
	for id, n := range nodes {
		info, ok := s.info[n.Class]
		if !ok {
			return verdict{kind: "invalid_prompt", message: fmt.Sprintf("Cannot execute because node %s does not exist.", n.Class), details: "Node ID '#" + id + "'"}
		}
		if info.OutputNode {
			outputs = append(outputs, id)
		}
	}
	if len(outputs) == 0 {
		return verdict{kind: "prompt_no_outputs", message: "Prompt has no outputs"}
	}
	slices.Sort(outputs)
	c := checker{s: s, nodes: nodes, found: map[string][]dict{}, good: map[string]bool{}}
	var fine []string
	errors := dict{}
	var lines []string
	for _, id := range outputs {
		if c.check(id, 0) {
			fine = append(fine, id)
			continue
		}
		for bad, reasons := range c.found {
			if len(reasons) == 0 {
				continue
			}
			if _, ok := errors[bad]; !ok {
				errors[bad] = dict{"errors": reasons, "dependent_outputs": []string{id}, "class_type": nodes[bad].Class}
			}
			for _, r := range reasons {
				lines = append(lines, fmt.Sprintf("%v: %v", r["message"], r["details"]))
			}
		}
	}
	if len(fine) == 0 {
		return verdict{kind: "prompt_outputs_failed_validation", message: "Prompt outputs failed validation", details: strings.Join(lines, "\n"), nodeErrors: errors}
	}
	return verdict{nodeErrors: errors, nodes: nodes, outputs: fine}
}

// checker validates the nodes that an output node depends on.
type checker struct {
	s     *Server
	nodes map[string]node
	found map[string][]dict
	good  map[string]bool
}

func (c *checker) check(id string, depth int) bool {
	if good, seen := c.good[id]; seen {
		return good
	}
	n, ok := c.nodes[id]
	if !ok || depth > 100 {
		return false
	}
	good := true
	problem := func(kind, message, details string) {
		c.found[id] = append(c.found[id], dict{"type": kind, "message": message, "details": details, "extra_info": dict{}})
		good = false
	}
	required := c.s.info[n.Class].Input.Required
	for name, spec := range required {
		kind, options, low, high := takes(spec)
		v, ok := n.Inputs[name]
		if !ok {
			problem("required_input_missing", "Required input is missing", name)
			continue
		}
		if list, ok := v.([]any); ok {
			if !c.link(list, kind, depth, func(t, m string) { problem(t, m, name) }) {
				good = false
			}
			continue
		}
		if _, ok := v.(map[string]any); ok {
			problem("invalid_input_type", "Failed to convert an input value to a "+kind+" value", name)
			continue
		}
		switch kind {
		case "INT", "FLOAT":
			f, err := json.Number(printed(v)).Float64()
			if err != nil {
				problem("invalid_input_type", "Failed to convert an input value to a "+kind+" value", name+", "+printed(v))
				continue
			}
			if low != nil && f < *low {
				problem("value_smaller_than_min", fmt.Sprintf("Value %v smaller than min of %v", v, *low), name)
			}
			if high != nil && f > *high {
				problem("value_bigger_than_max", fmt.Sprintf("Value %v bigger than max of %v", v, *high), name)
			}
		case "COMBO":
			if loads(n.Class) {
				if _, ok := c.s.input(printed(v)); !ok {
					problem("custom_validation_failed", "Custom validation failed for node", name+" - Invalid file: "+printed(v))
				}
			} else if !slices.Contains(options, printed(v)) {
				problem("value_not_in_list", "Value not in list", fmt.Sprintf("%s: '%v' not in %v", name, v, options))
			}
		case "STRING", "BOOLEAN":
		default:
			problem("invalid_input_type", "A link is needed", name)
		}
	}
	c.good[id] = good
	return good
}

func loads(class string) bool {
	return strings.Contains(class, "Load") && !strings.Contains(class, "Loader")
}

// link checks a link to another node's output, which is written as [node,
// slot].
func (c *checker) link(list []any, kind string, depth int, problem func(kind, message string)) bool {
	if len(list) != 2 {
		problem("bad_linked_input", "Bad linked input, must be a length-2 list of [node_id, slot_index]")
		return false
	}
	from := printed(list[0])
	slot, err := json.Number(printed(list[1])).Int64()
	out := c.s.info[c.nodes[from].Class].Output
	if err != nil || slot < 0 || int(slot) >= len(out) || kind != "*" && out[slot] != kind {
		problem("return_type_mismatch", "Return type mismatch between linked nodes")
		return false
	}
	return c.check(from, depth+1)
}
