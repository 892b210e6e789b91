package manifestdraft

import (
	"fmt"
	"slices"
	"strings"
)

// Words in the names of safety switches: inputs that turn a model's content
// filter on or off, or make it stricter. Protective words name the filter,
// risky words name the content, and negating words reverse the meaning.
var (
	protectiveWords = []string{"safety", "safe", "moderation", "moderate", "guardrail", "guardrails", "censor", "censorship", "safetychecker", "nsfwfilter"}
	filterWords     = []string{"filter", "checker", "check", "detect", "detection", "detector", "block", "blur", "hide", "reject", "exclude", "threshold"}
	riskyWords      = []string{"nsfw", "unsafe", "uncensored", "adult"}
	negatingWords   = []string{"disable", "disabled", "skip", "bypass", "without", "no", "not", "ignore", "remove", "off"}
)

// isSafetySwitch reports whether the input with this name controls a model's
// content filter.
func isSafetySwitch(name string) bool {
	words := splitWords(name)
	return hasWord(words, protectiveWords) || hasWord(words, riskyWords) || hasWord(words, []string{"content"}) && hasWord(words, []string{"filter"})
}

// isSafeOn reports whether a boolean safety switch is safe when it is true.
func isSafeOn(name string) bool {
	words := splitWords(name)
	protects := hasWord(words, protectiveWords) || hasWord(words, filterWords)
	return protects != hasWord(words, negatingWords)
}

func hasWord(words, list []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
}

// fixSafetySwitch gives a safety switch a fixed value: the safe value for
// booleans, the model's default for other types. The value is the operator's
// decision, so the switch must not be a field that people fill in.
func (b *drafter) fixSafetySwitch(i modelInput) {
	var value any
	if i.kind == "boolean" {
		value = isSafeOn(i.name)
	} else {
		switch v := defaultValue(i.schema["default"]).(type) {
		case string, bool, int64, float64:
			value = v
		}
	}
	shown := singleLine(i.name, maxLabel)
	if value == nil {
		b.skipInput(i, "it is a safety switch without a default value")
		b.addNote("%s is not sent, so that the model's default applies: safety switches are set in the manifest (engine.with.input), not by people.", shown)
		return
	}
	if b.Fixed == nil {
		b.Fixed = map[string]any{}
	}
	b.Fixed[i.name] = value
	b.addNote("%s is fixed to %s: safety switches are set in the manifest (engine.with.input), not by people.", shown, strings.TrimSpace(fmt.Sprintf("%.40v", value)))
}

func (b *drafter) addNote(format string, args ...any) {
	b.Notes = append(b.Notes, fmt.Sprintf(format, args...))
}
