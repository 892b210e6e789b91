package workflowimport

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine/comfyui/nodegraph"
	"atelier/internal/engine/manifestdraft"
)

// settingFinder finds the model, the seeds and the settings of samplers in a
// workflow, and adds fields for them.
type settingFinder struct {
	workflow *workflow
	form     *form
	numbers  numberFields
}

// addSamplers adds fields for the model and for the settings of samplers, such
// as the steps.
func (st *settingFinder) addSamplers() {
	anyNode := func(string) bool { return true }
	st.addChoice(anyNode, "model", "Model", "MODEL_SINGLE_SELECT", "ckpt_name")
	st.numbers.addNumber(numberField{base: "steps", label: "Steps", kind: "STEPS", limit: 150}, intKind, "steps")
	st.numbers.addNumber(numberField{base: "cfg", label: "Guidance", kind: "CFG", limit: 30}, floatKind, "cfg", "cfg_scale", "guidance_scale")
	st.numbers.addNumber(numberField{base: "guidance", label: "Distilled guidance", kind: "CFG", limit: 30}, floatKind, "guidance")
	st.numbers.addNumber(numberField{
		base:     "denoise",
		label:    "Strength",
		kind:     "SLIDER",
		limit:    1,
		advanced: true,
	}, floatKind, "denoise")
	st.addStrengths()
	st.addChoice(anyNode, "sampler", "Sampler", "SINGLE_SELECT", "sampler_name")
	st.addChoice(anyNode, "scheduler", "Scheduler", "SINGLE_SELECT", "scheduler")
	for _, name := range []string{"aspect_ratio", "resolution", "size", "duration", "quality", "style", "voice", "language"} {
		st.addChoice(st.workflow.makesMedia, name, manifestdraft.Label(name), "SINGLE_SELECT", name)
	}
}

// addStrengths adds fields for the strengths of control nets, reference
// pictures and LoRAs.
func (st *settingFinder) addStrengths() {
	for _, id := range st.workflow.order {
		class := strings.ToLower(st.workflow.nodes[id].Class)
		f := numberField{kind: "SLIDER", limit: 2, advanced: true}
		var names []string
		switch {
		case strings.Contains(class, "controlnet"):
			f.base = "control_strength"
			f.label = "Control strength"
			names = []string{"strength"}
		case strings.Contains(class, "ipadapter"), strings.Contains(class, "stylemodel"), strings.Contains(class, "unclipconditioning"):
			f.base = "reference_strength"
			f.label = "Reference strength"
			names = []string{"weight", "strength"}
		case strings.Contains(class, "lora"):
			f.base = "lora_strength"
			f.label = "LoRA strength"
			names = []string{"strength_model", "strength_clip", "strength"}
		}
		for _, name := range names {
			ref := inputRef{id, name}
			f.spec = st.workflow.specOf(ref)
			if from, ok := st.workflow.followValue(ref); ok && st.workflow.live[id] && f.spec.kind == "FLOAT" {
				st.numbers.addNumberField(f, from)
			}
		}
	}
}

// addChoice adds a field for an input whose options the server lists, if there
// is more than one option and the workflow's value is one of them. It ignores
// nodes for which suits returns false.
func (st *settingFinder) addChoice(suits func(id string) bool, base, label, fieldType, input string) {
	st.workflow.eachInput([]string{combo}, func(ref, from inputRef, v any, s inputSpec) {
		if s.isUpload() || !suits(ref.id) {
			return
		}
		options := optionsOf(s, fieldType == "MODEL_SINGLE_SELECT")
		own := slices.IndexFunc(options, func(o manifestdraft.Option) bool { return o.Value == plainValue(v) })
		switch {
		case own < 0:
			st.form.leaveFixed(from, "the server's list does not have its value")
			return
		case len(options) < 2:
			st.form.leaveFixed(from, "the server has no other option")
			return
		}
		st.form.addField(base, v, []inputRef{from}, func() manifestdraft.Field {
			return manifestdraft.Field{
				Type:     fieldType,
				Label:    label,
				Options:  options,
				Default:  options[own].Value,
				Advanced: fieldType == "SINGLE_SELECT",
			}
		})
	}, input)
}

// optionsOf returns the options of a choice. The label of an option for a file
// is the file's name without its extension.
func optionsOf(s inputSpec, files bool) []manifestdraft.Option {
	const most = 500
	var options []manifestdraft.Option
	seen := map[any]bool{}
	for _, o := range s.options[:min(len(s.options), most)] {
		v := plainValue(o)
		text := fmt.Sprint(v)
		if v == nil || v == "" || seen[v] {
			continue
		}
		seen[v] = true
		if files {
			text = strings.TrimSuffix(text, path.Ext(text))
		}
		options = append(options, manifestdraft.Option{Text: truncateText(singleLine(text), 120), Value: v})
	}
	return options
}

// plainValue returns an option's value in the form that manifests use, or nil
// if it is neither text nor a number.
func plainValue(v any) any {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return nil
}

// maxSeed is the largest seed that a run can have.
const maxSeed = math.MaxUint32

// addSeeds binds the seed inputs of the workflow to the seed of the run. A node
// that accepts only smaller seeds gets a separate field.
func (st *settingFinder) addSeeds() {
	for _, id := range st.workflow.order {
		if !st.workflow.live[id] {
			continue
		}
		for _, name := range st.workflow.inputNames(id) {
			ref := inputRef{id, name}
			s := st.workflow.specOf(ref)
			if s.kind != "INT" && s.kind != "" || !hasWord(name, "seed") {
				continue
			}
			from, ok := st.workflow.followValue(ref)
			if !ok {
				continue
			}
			if v, _ := st.workflow.literalOf(from); !isNumber(v) {
				continue
			}
			if _, high, _ := s.numberBounds(); high != nil && *high < maxSeed {
				st.numbers.addNumberField(numberField{
					base:     "small_seed",
					label:    "Seed",
					kind:     "NUM",
					spec:     s,
					limit:    *high,
					advanced: true,
				}, from)
				continue
			}
			if !st.form.usedKeys[nodegraph.KeySeed] {
				st.form.createField(nodegraph.KeySeed, nodegraph.KeySeed, manifestdraft.Field{Type: "SEED", Label: "Seed", Advanced: true})
			}
			st.form.bindInput(nodegraph.KeySeed, from)
		}
	}
}
