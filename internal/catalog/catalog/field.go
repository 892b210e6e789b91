package catalog

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Field is a node in the tree of a tool's form. It is a group with children, or
// a leaf with a key and a type.
type Field struct {
	Label    string
	Children []Field // only for a group

	Key      string // "" for a group
	Type     FieldType
	Required bool
	Default  any // nil, string, bool, int64, float64, []any or map[string]any
	Display  Display
}

// Display describes how a leaf of a form is displayed, and limits its value.
// Zero values are omitted.
type Display struct {
	Help, Placeholder string
	Advanced          bool
	Content           string // sanitized HTML of an HTML leaf

	Min, Max, Step *float64
	Integer        bool

	MaxLength int64

	Options []Option
	ShowAs  string // how options are displayed: text, radio or image

	Sizes      []Size
	MultipleOf int64

	Accept   []string
	MaxItems int64
}

// Option is a choice of a select field.
type Option struct {
	Text  string
	Value any // string, int64 or float64
	Image Asset
}

// Size is a choice of a WIDTH_HEIGHT field.
type Size struct {
	Text          string
	Width, Height int64
}

// FieldType is the type of a form field as the API names it, such as PROMPT.
type FieldType string

// fieldFamily groups field types that have the same display settings and the
// same validation.
type fieldFamily int

const (
	textFamily fieldFamily = iota + 1
	numberFamily
	seedFamily
	boolFamily
	selectFamily
	multiSelectFamily
	sizeFamily
	mediaFamily
	mediaListFamily
	noValueFamily // only displayed, without a value
)

// fieldTypes maps the field types of the API to their families.
var fieldTypes = map[FieldType]fieldFamily{
	"PROMPT": textFamily, "NEG_PROMPT": textFamily, "TEXT": textFamily, "TEXT_AREA": textFamily,
	"SLIDER": numberFamily, "UPSCALE_FACTOR_SLIDER": numberFamily, "CFG": numberFamily, "STEPS": numberFamily, "NUM": numberFamily,
	"SEED": seedFamily, "BOOLEAN": boolFamily,
	"SINGLE_SELECT": selectFamily, "MODEL_SINGLE_SELECT": selectFamily, "MULTI_SELECT": multiSelectFamily,
	"WIDTH_HEIGHT": sizeFamily,
	"IMG":          mediaFamily, "VIDEO": mediaFamily, "AUDIO": mediaFamily, "ASSET_3D": mediaFamily, "IMGS": mediaListFamily,
	"HEADER": noValueFamily, "HTML": noValueFamily,
}

// IsInteger reports whether the field accepts only whole numbers.
func (f *Field) IsInteger() bool {
	return f.Display.Integer || f.Type == "STEPS" || f.Type == "SEED"
}

// maxSeed is the maximum seed, 2^32-1.
const maxSeed = math.MaxUint32

// CheckValue returns a message that says why a value is invalid for the field,
// or "" if it is valid. Values have the types of decoded YAML or JSON: string,
// bool, int64, float64, []any, map[string]any. It does not validate references
// to files.
func (f *Field) CheckValue(value any) string {
	switch fieldTypes[f.Type] {
	case textFamily:
		return f.textProblem(value)
	case numberFamily, seedFamily:
		return f.numberProblem(value)
	case boolFamily:
		if _, ok := value.(bool); !ok {
			return "must be true or false"
		}
	case selectFamily:
		if _, ok := f.findOption(value); !ok {
			return "must be one of the options: " + f.optionList()
		}
	case multiSelectFamily:
		return f.multiProblem(value)
	case sizeFamily:
		return f.sizeProblem(value)
	case noValueFamily:
		return "must not have a value"
	default:
		return "must be a reference to a file"
	}
	return ""
}

func (f *Field) textProblem(value any) string {
	s, ok := value.(string)
	if !ok {
		return "must be text"
	}
	if limit := f.Display.MaxLength; limit > 0 && int64(utf8.RuneCountInString(s)) > limit {
		return fmt.Sprintf("must have at most %d characters", limit)
	}
	return ""
}

func (f *Field) numberProblem(value any) string {
	n, ok := ToFloat(value)
	if !ok {
		return "must be a number"
	}
	if f.IsInteger() && n != math.Trunc(n) {
		return "must be a whole number"
	}

	low := f.Display.Min
	high := f.Display.Max
	if f.Type == "SEED" {
		zero := 0.0
		top := float64(maxSeed)
		low = &zero
		high = &top
	}
	if low != nil && n < *low {
		return "must be at least " + formatNumber(*low)
	}
	if high != nil && n > *high {
		return "must be at most " + formatNumber(*high)
	}
	return ""
}

func (f *Field) multiProblem(value any) string {
	list, ok := value.([]any)
	if !ok {
		return "must be a list of options"
	}
	if limit := f.Display.MaxItems; limit > 0 && int64(len(list)) > limit {
		return fmt.Sprintf("must have at most %d options", limit)
	}

	var chosen []any
	for _, v := range list {
		own, ok := f.findOption(v)
		if !ok {
			return "must contain only the options: " + f.optionList()
		}
		if slices.Contains(chosen, own) {
			return "must not repeat an option"
		}

		chosen = append(chosen, own)
	}
	return ""
}

const sizeMessage = "must be a width and a height in whole pixels"

func (f *Field) sizeProblem(value any) string {
	m, ok := value.(map[string]any)
	w, okW := ToFloat(m["width"])
	h, okH := ToFloat(m["height"])
	if !ok || !okW || !okH || len(m) != 2 || w != math.Trunc(w) || h != math.Trunc(h) {
		return sizeMessage
	}

	for _, s := range f.Display.Sizes {
		if float64(s.Width) == w && float64(s.Height) == h {
			return ""
		}
	}

	low := f.Display.Min
	high := f.Display.Max
	if low == nil || high == nil {
		return "must be one of the sizes: " + f.sizeList()
	}
	if min(w, h) < *low || max(w, h) > *high {
		return fmt.Sprintf("must have a width and a height between %s and %s pixels", formatNumber(*low), formatNumber(*high))
	}
	if m := float64(f.Display.MultipleOf); m > 0 && (math.Mod(w, m) != 0 || math.Mod(h, m) != 0) {
		return fmt.Sprintf("must have a width and a height that are multiples of %v pixels", m)
	}
	return ""
}

// maxListed is the maximum number of options or sizes that an error message
// lists.
const maxListed = 20

// optionList returns the values of the field's options for an error message,
// separated by commas.
func (f *Field) optionList() string {
	var words []string
	for _, o := range f.Display.Options {
		words = append(words, fmt.Sprint(o.Value))
	}
	return joinFirst(words)
}

// sizeList returns the field's sizes for an error message, separated by commas.
func (f *Field) sizeList() string {
	var words []string
	for _, s := range f.Display.Sizes {
		words = append(words, fmt.Sprintf("%dx%d", s.Width, s.Height))
	}
	return joinFirst(words)
}

// joinFirst joins the first maxListed words by commas and appends the number of
// omitted words.
func joinFirst(words []string) string {
	text := strings.Join(words[:min(len(words), maxListed)], ", ")
	if more := len(words) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// findOption returns the option value that a value from a request selects. A
// numeric string also matches the option with that number, because web forms
// send only strings. If another option equals the string itself, that option
// takes precedence.
func (f *Field) findOption(value any) (own any, ok bool) {
	for _, o := range f.Display.Options {
		if isSameOption(o.Value, value) {
			return o.Value, true
		}
	}

	text, isText := value.(string)
	if !isText {
		return nil, false
	}

	for _, o := range f.Display.Options {
		if n, isNumber := ToFloat(o.Value); isNumber && isTextOfNumber(text, n) {
			return o.Value, true
		}
	}
	return nil, false
}

// isTextOfNumber reports whether text is a JSON number with the value n (RFC
// 8259, section 6).
func isTextOfNumber(text string, n float64) bool {
	const maxLength = 40
	if len(text) > maxLength || !json.Valid([]byte(text)) {
		return false
	}

	read, err := strconv.ParseFloat(text, 64)
	return err == nil && read == n
}

// resolveOptions replaces the values of a select field in a request by the
// values of the selected options (see findOption). The value must be valid.
func (f *Field) resolveOptions(value any) any {
	switch fieldTypes[f.Type] {
	case selectFamily:
		own, _ := f.findOption(value)
		return own
	case multiSelectFamily:
		list := slices.Clone(value.([]any))
		for i := range list {
			list[i], _ = f.findOption(list[i])
		}
		return list
	default:
		return value
	}
}

// formatNumber formats a number for an error message, without an exponent
// unless it is very large or very small.
func formatNumber(v float64) string {
	if size := math.Abs(v); size < 1e15 && (v == 0 || size > 1e-6) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// isSameOption compares option values: 1 and 1.0 are equal, 1 and "1" are not.
func isSameOption(a, b any) bool {
	if x, ok := ToFloat(a); ok {
		y, ok := ToFloat(b)
		return ok && x == y
	}

	x, okX := a.(string)
	y, okY := b.(string)
	return okX && okY && x == y
}

// ToFloat returns a number of a decoded YAML or JSON value. ok is false if the
// value is no number.
func ToFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	return 0, false
}
