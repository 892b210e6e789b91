package openai

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"atelier/internal/engine"
)

// dialect describes how a server product deviates from the API of other
// servers. The zero dialect has no deviations.
type dialect struct {
	// calls are the API endpoints that the server has. If calls is nil, the
	// server has all endpoints.
	calls []string
	// names are the parameter names that differ from parameterNames, by API
	// endpoint and field key.
	names map[string]map[string]string
	// seedMax is the largest seed that the server accepts; 0 means no limit.
	seedMax uint32
	// batch is the maximum number of results per request; 0 means maxBatch.
	batch int
	// splitsPrompts means that the server splits the prompt of a picture at a
	// vertical bar, and that the part after the bar is the negative prompt.
	splitsPrompts bool
}

// localAI is the name of LocalAI's dialect in manifests.
const localAI = "localai"

// dialects are the dialects by their name in manifests. Servers that are not
// listed have no deviations that the engine must handle.
var dialects = map[string]dialect{
	"": {},
	localAI: {
		calls:         []string{"images", "speech", "video-sync"},
		names:         map[string]map[string]string{"images": {"steps": "step"}},
		seedMax:       math.MaxInt32, // seeds are signed numbers of 32 bits, and a negative number means a random seed
		batch:         1,             // all pictures of a request have the same seed
		splitsPrompts: true,
	},
}

// dialectOf returns the dialect of a tool's server. For the call video-sync,
// this is always LocalAI's dialect, because only LocalAI has it.
func (s manifestSetting) dialectOf() dialect {
	if s.Call == "video-sync" {
		return dialects[localAI]
	}
	return dialects[s.Dialect]
}

// checkSetting returns an error if the engine cannot use the settings.
func (s manifestSetting) checkSetting() error {
	d, known := dialects[s.Dialect]
	_, ok := callFuncs[s.Call]
	var problem error
	switch {
	case !ok:
		problem = fmt.Errorf("call: must be one of %s", strings.Join(slices.Sorted(maps.Keys(callFuncs)), ", "))
	case s.Batch < 0:
		problem = errors.New("batch: must not be negative")
	case !known:
		problem = errors.New(`dialect: must be "localai", or omitted for other servers`)
	case d.calls != nil && !slices.Contains(d.calls, s.Call):
		problem = fmt.Errorf("call: this dialect supports only the calls %s", strings.Join(d.calls, ", "))
	}
	if problem != nil {
		return engine.ErrMisconfigured.WithCause(problem)
	}
	return s.Markup.CheckSetting()
}

// joinPrompts appends the negative prompt to the prompt, for servers that split
// the prompt at a vertical bar. Bars that a person wrote become commas: people
// use both to separate parts of a prompt, and a bar would turn all text after
// it into a negative prompt.
func (t *task) joinPrompts(all map[string]any) {
	if !t.dialectOf().splitsPrompts || t.Call != "images" {
		return
	}
	textOf := func(name string) string {
		text, _ := all[name].(string)
		if _, fixed := t.Fixed[name]; fixed || t.Markup.Allowed() {
			return text
		}
		return strings.ReplaceAll(text, "|", ",")
	}

	prompt := textOf("prompt")
	if negative := textOf("negative_prompt"); negative != "" {
		prompt += "|" + negative
	}
	delete(all, "negative_prompt")
	all["prompt"] = prompt
}
