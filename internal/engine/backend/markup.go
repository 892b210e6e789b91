package backend

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"atelier/internal/engine"
)

// Markup is the value of the setting engine.with.markup: whether people may use
// a server's markup, such as extra networks, in prompts. By default they may
// not. Markup that sets parameters is always refused, because prices and limits
// depend on the parameters.
type Markup string

// allowMarkup is the value that allows extra networks and wildcards in the
// prompts of a tool.
const allowMarkup Markup = "allow"

// Allowed reports whether people may use extra networks and wildcards.
func (m Markup) Allowed() bool { return m == allowMarkup }

// CheckSetting returns an error if the setting has an unknown value.
func (m Markup) CheckSetting() error {
	if m == "" || m == "refuse" || m == allowMarkup {
		return nil
	}
	return engine.ErrMisconfigured.WithCause(errors.New(`markup: must be "refuse" or "allow"`))
}

// MarkupKind is a kind of markup in prompts that an operator may allow.
type MarkupKind struct {
	pattern *regexp.Regexp
	name    string // for the person who wrote the prompt
}

var (
	// ExtraNetworks are <lora:name:1>, <hypernet:name>, <lyco:name> and other
	// markup of AUTOMATIC1111, Forge, SD.Next, stable-diffusion.cpp and LocalAI,
	// which loads files of the server.
	ExtraNetworks = MarkupKind{regexp.MustCompile(`<[^>]*:[^>]*>`), "markup in angle brackets with a colon, such as <lora:name:1>"}
	// Wildcards are names such as __name__, which SD.Next and a common
	// extension replace with a line of a file on the server.
	Wildcards = MarkupKind{regexp.MustCompile(`(?s)__.*__`), "a wildcard, which is a name between two pairs of underscores"}
)

// alternatives removes the braces of alternatives such as {a|b}, which SD.Next
// resolves before it searches for other markup.
var alternatives = strings.NewReplacer("{", "", "}", "")

// parameterMarks are parts of sd_cpp_extra_args, written without the
// underscores. With the markup <sd_cpp_extra_args>, a prompt can set any
// parameter of stable-diffusion.cpp.
var parameterMarks = []string{"sdcpp", "cppextraargs"}

// RefuseMarkup returns an error, with a message for the person who started the
// run, if a text in the job's input values contains markup that model servers
// read as instructions. Markup of the given kinds is refused unless the
// manifest allows it; markup that sets parameters is always refused. Weights
// such as (word:1.3) are part of the prompt and never refused.
func (m Markup) RefuseMarkup(values map[string]any, kinds ...MarkupKind) error {
	var all []fieldText
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = appendTexts(all, key, values[key])
	}

	if m.Allowed() {
		kinds = nil
	}
	for i, one := range all {
		if setsParameters(one.text) {
			return markupFailure(one.key, "markup for parameters of the tool's server")
		}
		plain := alternatives.Replace(one.text)
		for _, kind := range kinds {
			if kind.pattern.MatchString(plain) {
				return markupFailure(one.key, kind.name)
			}
		}
		for _, before := range all[:i] { // markup that is split over two fields
			if setsParameters(before.text+one.text) || setsParameters(one.text+before.text) {
				return markupFailure(one.key, "markup for parameters of the tool's server")
			}
		}
	}
	return nil
}

// fieldText is a text that a person wrote in a field.
type fieldText struct{ key, text string }

func appendTexts(all []fieldText, key string, value any) []fieldText {
	switch v := value.(type) {
	case string:
		all = append(all, fieldText{key, v})
	case []any:
		for _, one := range v {
			all = appendTexts(all, key, one)
		}
	case map[string]any:
		for _, part := range slices.Sorted(maps.Keys(v)) {
			all = appendTexts(all, key, v[part])
		}
	}
	return all
}

// setsParameters reports whether a text contains a part of <sd_cpp_extra_args>,
// in upper or lower case and even with other characters in between.
func setsParameters(text string) bool {
	letters := PlainName(text)
	return slices.ContainsFunc(parameterMarks, func(mark string) bool { return strings.Contains(letters, mark) })
}

// PlainName returns the letters and digits of a text, in lower case. Texts that
// differ only in other characters have the same plain name.
func PlainName(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// markupFailure names the field and the kind of markup, but does not repeat the
// text, which must not appear in logs.
func markupFailure(key, kind string) error {
	return engine.Fail(engine.Failed, fmt.Sprintf("The text in %q contains %s. This tool accepts only plain text: remove the markup and start a new run.", key, kind))
}
