package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
)

type showCmd struct {
	jsonFlag
	serviceFlags
	Tool string `arg:"" help:"The tool's name, as in atelier tools list, or its id." complete:"tools"`
}

func (c showCmd) Run(p *program) error {
	if c.usesService(p) {
		return c.showRemote(p)
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		all, err := p.readTools(ctx, db)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(t *catalog.Tool) bool { return t.Slug == c.Tool || t.ID == c.Tool })
		if i < 0 {
			return noSuchTool(c.Tool, all)
		}
		if c.JSON {
			return p.printResult(true, newToolRow(all[i]), "")
		}
		_, err = fmt.Fprint(p.stdout, describeTool(all[i]))
		return err
	})
}

// noSuchTool returns the error for a tool that does not exist. It lists the
// existing tools, or says which tool has this display name.
func noSuchTool(name string, all []*catalog.Tool) error {
	var slugs []string
	for _, t := range all {
		if strings.EqualFold(t.Name, name) {
			return fmt.Errorf("%q is a display name; the tool is called %s", name, t.Slug)
		}
		slugs = append(slugs, t.Slug)
	}
	if len(slugs) == 0 {
		return fmt.Errorf("there is no tool %q: the catalog is empty; atelier serve or atelier tools apply fills it", name)
	}
	slices.Sort(slugs)
	return fmt.Errorf("there is no tool %q; available tools:\n  %s", name, wrapWords(withCommas(slugs), "  ", helpColumns-2))
}

// toolRow is a tool with its input form as "tools show" prints it in JSON.
type toolRow struct {
	ID          string         `json:"id"`
	Slug        string         `json:"slug"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	PricingType string         `json:"pricing_type"`
	Tokens      int64          `json:"tokens_per_result"`
	NumResults  *numResultsRow `json:"num_results"`
	OutputType  string         `json:"output_type"`
	MimeTypes   []string       `json:"mime_types"`
	Engine      string         `json:"engine,omitempty"`
	Timeout     int64          `json:"timeout_seconds"`
	Hash        string         `json:"tool_fields_hash"`
	Fields      []fieldRow     `json:"fields"`
}

type numResultsRow struct {
	Min     int64 `json:"min"`
	Max     int64 `json:"max"`
	Default int64 `json:"default"`
}

// fieldRow is a field of an input form that takes a value.
type fieldRow struct {
	Key        string      `json:"key"`
	Type       string      `json:"type"`
	Label      string      `json:"label"`
	Help       string      `json:"help,omitempty"`
	Required   bool        `json:"required"`
	Default    any         `json:"default"`
	Min        *float64    `json:"min,omitempty"`
	Max        *float64    `json:"max,omitempty"`
	Step       *float64    `json:"step,omitempty"`
	Integer    bool        `json:"integer,omitempty"`
	MaxLength  int64       `json:"max_length,omitempty"`
	Options    []optionRow `json:"options,omitempty"`
	Sizes      []sizeRow   `json:"sizes,omitempty"`
	MultipleOf int64       `json:"multiple_of,omitempty"`
	Accept     []string    `json:"accept,omitempty"`
	MaxItems   int64       `json:"max_items,omitempty"`
}

type optionRow struct {
	Value any    `json:"value"`
	Text  string `json:"text"`
}

type sizeRow struct {
	Width  int64 `json:"width"`
	Height int64 `json:"height"`
}

func newToolRow(t *catalog.Tool) toolRow {
	row := toolRow{
		ID:          t.ID,
		Slug:        t.Slug,
		Name:        t.Name,
		Description: t.Description,
		PricingType: string(t.Price.Type),
		Tokens:      t.Price.Tokens,
		OutputType:  t.Output.Type,
		MimeTypes:   t.Output.MimeTypes,
		Engine:      t.Engine.Name,
		Timeout:     int64(t.Timeout.Seconds()),
		Hash:        t.Hash,
		Fields:      []fieldRow{},
	}
	if n := t.NumResults; n != nil {
		row.NumResults = &numResultsRow{n.Min, n.Max, n.Default}
	}
	for _, f := range inputFields(t.Fields) {
		field := fieldRow{
			Key:        f.Key,
			Type:       string(f.Type),
			Label:      f.Label,
			Help:       f.Display.Help,
			Required:   f.Required,
			Default:    f.Default,
			Min:        f.Display.Min,
			Max:        f.Display.Max,
			Step:       f.Display.Step,
			Integer:    f.IsInteger(),
			MaxLength:  f.Display.MaxLength,
			MultipleOf: f.Display.MultipleOf,
			Accept:     f.Display.Accept,
			MaxItems:   f.Display.MaxItems,
		}
		for _, o := range f.Display.Options {
			field.Options = append(field.Options, optionRow{o.Value, o.Text})
		}
		for _, s := range f.Display.Sizes {
			field.Sizes = append(field.Sizes, sizeRow{s.Width, s.Height})
		}
		row.Fields = append(row.Fields, field)
	}
	return row
}

// inputFields returns the fields of an input form that take a value, including
// those inside groups.
func inputFields(fields []catalog.Field) (all []catalog.Field) {
	for _, f := range fields {
		if f.Key == "" {
			all = append(all, inputFields(f.Children)...)
			continue
		}
		if f.Type != "HEADER" && f.Type != "HTML" {
			all = append(all, f)
		}
	}
	return all
}

// describeTool returns a description of the inputs, outputs and price of a
// tool.
func describeTool(t *catalog.Tool) string {
	var b strings.Builder
	write := func(name, text string) {
		const column = 10
		indent := strings.Repeat(" ", column)
		fmt.Fprintf(&b, "%-*s%s\n", column, name, wrapWords(strings.Fields(text), indent, helpColumns-column))
	}
	fmt.Fprintf(&b, "%s: %s\n", t.Slug, t.Name)
	if t.Description != "" {
		fmt.Fprintln(&b, wrapWords(strings.Fields(t.Description), "", helpColumns))
	}
	fmt.Fprintln(&b)
	price := "free"
	if t.Price.Type == catalog.Cost {
		price = countNoun(int(t.Price.Tokens), "token", "tokens") + " for each result"
	}
	write("price", price)
	results := "1"
	if n := t.NumResults; n != nil {
		results = fmt.Sprintf("%d to %d in one run", n.Min, n.Max)
	}
	write("results", results)
	write("makes", t.Output.Type+": "+strings.Join(t.Output.MimeTypes, ", "))
	if t.Engine.Name != "" { // a service does not say it
		write("engine", t.Engine.Name)
	}
	write("id", t.ID)

	example := "atelier run " + t.Slug
	fmt.Fprint(&b, "\nFields (* = required):\n")
	for _, f := range inputFields(t.Fields) {
		key := f.Key
		if f.Required {
			key += "*"
			example += fmt.Sprintf(" %q", f.Key+"="+exampleOf(f))
		}
		const indent = "      "
		fmt.Fprintf(&b, "  %s\n%s%s\n", key, indent, wrapWords(strings.Fields(describeField(f)), indent, helpColumns-len(indent)))
	}
	fmt.Fprintf(&b, "\nRun it with:\n  %s\n", example)
	return b.String()
}

// describeField returns a description of the values that a field accepts.
func describeField(f catalog.Field) string {
	d := f.Display
	var text string
	switch f.Type {
	case "PROMPT", "NEG_PROMPT", "TEXT", "TEXT_AREA":
		text = "text"
		if d.MaxLength > 0 {
			text += fmt.Sprintf(" of at most %d characters", d.MaxLength)
		}
	case "SLIDER", "UPSCALE_FACTOR_SLIDER", "CFG", "STEPS", "NUM", "SEED":
		text = describeNumber(f)
	case "BOOLEAN":
		text = "true or false"
	case "SINGLE_SELECT", "MODEL_SINGLE_SELECT":
		text = "one of " + listOptions(d.Options)
	case "MULTI_SELECT":
		text = "some of " + listOptions(d.Options) + ", separated by commas"
	case "WIDTH_HEIGHT":
		text = describeSizes(d)
	case "IMG":
		text = "@FILE, a picture"
	case "IMGS":
		text = "@FILE,@FILE,… for pictures"
	case "VIDEO":
		text = "@FILE, a video"
	case "AUDIO":
		text = "@FILE, an audio file"
	case "ASSET_3D":
		text = "@FILE, a 3D model"
	}
	if len(d.Accept) > 0 {
		text += " (" + strings.Join(d.Accept, ", ") + ")"
	}
	if d.MaxItems > 0 {
		text += fmt.Sprintf("; at most %d", d.MaxItems)
	}
	switch {
	case f.Default != nil:
		text += "; default " + describeDefault(f.Default)
	case f.Type == "SEED":
		text += "; default random"
	}
	return text
}

func describeNumber(f catalog.Field) string {
	text := "a number"
	if f.IsInteger() {
		text = "a whole number"
	}
	low := f.Display.Min
	high := f.Display.Max
	switch {
	case f.Type == "SEED":
		text += " from 0 to 4294967295"
	case low != nil && high != nil:
		text += " from " + formatNumber(*low) + " to " + formatNumber(*high)
	case low != nil:
		text += " of at least " + formatNumber(*low)
	case high != nil:
		text += " of at most " + formatNumber(*high)
	}
	return text
}

func describeSizes(d catalog.Display) string {
	var words []string
	for _, s := range d.Sizes {
		words = append(words, fmt.Sprintf("%dx%d", s.Width, s.Height))
	}
	text := "WIDTHxHEIGHT"
	if len(words) > 0 {
		text += ": " + strings.Join(words, ", ")
	}
	if d.Min != nil && d.Max != nil {
		text += fmt.Sprintf("; any width and height from %s to %s pixels", formatNumber(*d.Min), formatNumber(*d.Max))
		if d.MultipleOf > 1 {
			text += fmt.Sprintf(", in multiples of %d", d.MultipleOf)
		}
	}
	return text
}

func listOptions(all []catalog.Option) string {
	var words []string
	for _, o := range all {
		words = append(words, fmt.Sprint(o.Value))
	}
	return strings.Join(words, ", ")
}

func describeDefault(v any) string {
	switch v := v.(type) {
	case string:
		return cmp.Or(v, "nothing")
	case map[string]any:
		return fmt.Sprintf("%vx%v", v["width"], v["height"])
	case []any:
		var words []string
		for _, one := range v {
			words = append(words, fmt.Sprint(one))
		}
		return cmp.Or(strings.Join(words, ","), "nothing")
	}
	return fmt.Sprint(v)
}

// exampleOf returns a valid value for a field, or a placeholder.
func exampleOf(f catalog.Field) string {
	d := f.Display
	switch {
	case f.Default != nil:
		return describeDefault(f.Default)
	case len(d.Options) > 0:
		return fmt.Sprint(d.Options[0].Value)
	case len(d.Sizes) > 0:
		return fmt.Sprintf("%dx%d", d.Sizes[0].Width, d.Sizes[0].Height)
	case d.Min != nil:
		return formatNumber(*d.Min)
	}
	switch f.Type {
	case "IMG", "IMGS", "VIDEO", "AUDIO", "ASSET_3D":
		return "@FILE"
	}
	return "…"
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
