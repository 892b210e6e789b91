package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"atelier/client"
	"atelier/internal/catalog/catalog"
)

// findTool returns the tool with the given slug or id, with its form. Display
// names are not accepted, because they are not unique and can change.
func findTool(ctx context.Context, service *client.Client, name string) (*client.ToolDetail, error) {
	tool, err := service.Tools.Find(ctx, name)
	missing, ok := errors.AsType[*client.ToolNotFoundError](err)
	if !ok {
		return tool, err
	}
	var slugs []string
	for _, slug := range missing.Slugs {
		slugs = append(slugs, safeSlug(slug))
	}
	switch {
	case len(slugs) == 0:
		return nil, errNoTools
	case len(missing.Displayed) > 0:
		return nil, usageError{missing}
	}
	if flow, err := findFlow(ctx, service, name); err == nil {
		return nil, fmt.Errorf("the flow %q cannot run: one of its tools no longer exists, or you may not use it; atelier flows show %s | atelier flows check - tells which", cleanText(flow.Name), safeSlug(flow.Slug))
	}
	slices.Sort(slugs)
	return nil, usageError{fmt.Errorf("there is no tool %q; available tools:\n  %s", name, wrapWords(withCommas(slugs), "  ", helpColumns-2))}
}

// catalogTool converts a tool of the service to a tool of the catalog, so that
// the rules with which the service checks inputs also check them here.
func catalogTool(t *client.ToolDetail) *catalog.Tool {
	tool := &catalog.Tool{
		ID:      t.ID,
		Slug:    safeSlug(t.Slug),
		Hash:    t.ToolFieldsHash,
		Name:    cleanText(t.Name),
		Price:   catalog.Price{Type: catalog.PricingType(t.PricingType), Tokens: t.TokensPerResult},
		Output:  catalog.Output{Type: string(t.Output.Type), MimeTypes: t.Output.MimeTypes},
		Timeout: time.Duration(t.Limits.TimeoutSeconds) * time.Second,
		Fields:  catalogFields(t.Fields),
	}
	if t.Description != nil {
		tool.Description = cleanText(*t.Description)
	}
	if n := t.NumResults; n != nil {
		tool.NumResults = &catalog.NumResults{Min: n.Min, Max: n.Max, Default: n.Default}
	}
	return tool
}

func catalogFields(nodes []client.FieldNode) []catalog.Field {
	var all []catalog.Field
	for _, n := range nodes {
		f := catalog.Field{Label: cleanText(n.Label), Children: catalogFields(n.Children)}
		if n.IsField {
			f.Key = n.FieldKey
			f.Type = catalog.FieldType(n.Type)
			f.Required = n.Required
			f.Default = plainNumbers(n.DefaultValue)
			f.Display = catalogDisplay(n.Display)
		}
		all = append(all, f)
	}
	return all
}

func catalogDisplay(d client.FieldDisplay) catalog.Display {
	display := catalog.Display{
		Min:    d.Min,
		Max:    d.Max,
		Step:   d.Step,
		Accept: d.Accept,
	}
	if d.Help != nil {
		display.Help = cleanText(*d.Help)
	}
	if d.Integer != nil {
		display.Integer = *d.Integer
	}
	for to, from := range map[*int64]*int64{&display.MaxLength: d.MaxLength, &display.MultipleOf: d.MultipleOf, &display.MaxItems: d.MaxItems} {
		if from != nil {
			*to = *from
		}
	}
	for _, list := range []*client.OptionList{d.Text, d.Radio, d.Image} {
		if list == nil {
			continue
		}
		for _, o := range list.Options {
			display.Options = append(display.Options, catalog.Option{Text: cleanText(o.Text), Value: plainNumbers(o.Value)})
		}
	}
	if d.Select != nil {
		for _, s := range d.Select.Options {
			display.Sizes = append(display.Sizes, catalog.Size{Text: cleanText(s.Text), Width: s.Width, Height: s.Height})
		}
	}
	return display
}

// plainNumbers converts the numbers of decoded JSON to those that catalog
// expects: int64 if they are whole.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case float64:
		const exact = 1 << 53
		if v == math.Trunc(v) && math.Abs(v) < exact {
			return int64(v)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			list[i] = plainNumbers(one)
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for name, one := range v {
			m[name] = plainNumbers(one)
		}
		return m
	}
	return v
}
