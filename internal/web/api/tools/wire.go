package tools

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	"atelier/internal/catalog/catalog"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// This file converts the catalog's types to the types of package wire.

func (h *Handler) asTool(v *catalog.View, t *catalog.Tool) wire.Tool {
	return wire.Tool{
		ID:                  t.ID,
		Slug:                t.Slug,
		Name:                t.Name,
		Description:         rest.TextOrNull(t.Description),
		AvatarURL:           h.pictureURL(t.Avatar),
		AverageGenInSeconds: averageSeconds(t.AverageDuration),
		ToolTags:            asTags(v.TagsOf(t)),
		PricingType:         wire.PricingType(t.Price.Type),
		TokensPerResult:     t.Price.Tokens,
	}
}

func (h *Handler) asDetail(v *catalog.View, t *catalog.Tool) wire.ToolDetail {
	list := h.asTool(v, t)
	d := wire.ToolDetail{
		ID:                  list.ID,
		Slug:                list.Slug,
		Name:                list.Name,
		Description:         list.Description,
		AvatarURL:           list.AvatarURL,
		AverageGenInSeconds: list.AverageGenInSeconds,
		ToolTags:            list.ToolTags,
		PricingType:         list.PricingType,
		TokensPerResult:     list.TokensPerResult,
		ToolFieldsHash:      t.Hash,
		Fields:              h.asFields(t.ID, "", t.Fields),
		Output:              wire.ToolOutput{Type: wire.Medium(t.Output.Type), MimeTypes: t.Output.MimeTypes},
		Limits:              wire.ToolLimits{TimeoutSeconds: int64(t.Timeout.Seconds())},
		Created:             rest.Moment(t.Created),
		Updated:             rest.Moment(t.Updated),
	}
	if n := t.NumResults; n != nil {
		d.NumResults = &wire.NumResults{Min: n.Min, Max: n.Max, Default: n.Default}
	}
	return d
}

// asFields converts the fields of an input form to their API representation.
// path identifies the group that contains the fields.
func (h *Handler) asFields(toolID, path string, fields []catalog.Field) []wire.FieldNode {
	nodes := make([]wire.FieldNode, 0, len(fields))
	for i, f := range fields {
		if f.Key == "" {
			at := fmt.Sprintf("%s/%d", path, i)
			nodes = append(nodes, wire.FieldGroup{
				UUID:     nodeID(toolID, "group"+at),
				IsField:  false,
				Label:    f.Label,
				Children: h.asFields(toolID, at, f.Children),
			})
			continue
		}
		nodes = append(nodes, wire.FieldLeaf{
			UUID:         nodeID(toolID, "field/"+f.Key),
			IsField:      true,
			FieldKey:     f.Key,
			Type:         wire.FieldType(f.Type),
			Label:        f.Label,
			Required:     f.Required,
			DefaultValue: f.Default,
			Content:      contentOf(&f),
			Display:      h.asDisplay(&f),
		})
	}
	return nodes
}

func (h *Handler) asDisplay(f *catalog.Field) wire.FieldDisplay {
	d := f.Display
	w := wire.FieldDisplay{
		Help:        rest.TextOrNull(d.Help),
		Placeholder: rest.TextOrNull(d.Placeholder),
		Advanced:    &d.Advanced,
		Content:     contentOf(f),
		Min:         d.Min,
		Max:         d.Max,
		Step:        d.Step,
		MaxLength:   rest.NumberOrNull(d.MaxLength),
		MultipleOf:  rest.NumberOrNull(d.MultipleOf),
		MaxItems:    rest.NumberOrNull(d.MaxItems),
	}
	if f.IsInteger() {
		whole := true
		w.Integer = &whole
		if w.Step == nil {
			one := 1.0
			w.Step = &one
		}
	}
	if len(d.Accept) > 0 {
		w.Accept = &d.Accept
	}
	if len(d.Options) > 0 {
		list := &wire.OptionList{}
		for _, o := range d.Options {
			list.Options = append(list.Options, wire.Option{Text: o.Text, Value: o.Value, ImageURL: h.pictureURL(o.Image)})
		}
		switch d.ShowAs {
		case "radio":
			w.Radio = list
		case "image":
			w.Image = list
		default:
			w.Text = list
		}
	}
	if len(d.Sizes) > 0 {
		w.Select = &wire.SizeList{}
		for _, z := range d.Sizes {
			w.Select.Options = append(w.Select.Options, wire.Size{Text: z.Text, Width: z.Width, Height: z.Height})
		}
	}
	return w
}

// contentOf returns the text of a field of type HTML, and nil for other types.
func contentOf(f *catalog.Field) *string {
	if f.Type != "HTML" {
		return nil
	}
	return &f.Display.Content
}

func asTags(tags []catalog.Tag) []wire.ToolTag {
	all := make([]wire.ToolTag, 0, len(tags))
	for _, g := range tags {
		all = append(all, wire.ToolTag{ID: g.ID, Type: g.Type, Label: g.Label})
	}
	return all
}

// asTagList converts tags, which must be ordered by type, to their API
// representation.
func asTagList(tags []catalog.Tag) wire.ToolTagList {
	list := wire.ToolTagList{Data: asTags(tags), Types: []string{}}
	for i, g := range tags {
		if i == 0 || tags[i-1].Type != g.Type {
			list.Types = append(list.Types, g.Type)
		}
	}
	return list
}

func (h *Handler) asKitList(v *catalog.View) wire.KitList {
	list := wire.KitList{Data: []wire.Kit{}}
	for _, k := range v.VisibleKits() {
		kit := wire.Kit{
			ID:            k.ID,
			Label:         k.Label,
			Description:   rest.TextOrNull(k.Description),
			KitTags:       rest.ListOrEmpty(k.Tags),
			DefaultToolID: k.Default.ID,
		}
		for _, e := range k.Tools {
			entry := wire.KitTool{Tool: h.asTool(v, e.Tool), KitTags: rest.ListOrEmpty(e.Tags), Labels: []wire.KitLabel{}}
			for _, l := range e.Labels {
				entry.Labels = append(entry.Labels, wire.KitLabel{ID: l.ID, Icon: l.Icon, Label: l.Label})
			}
			kit.Tools = append(kit.Tools, entry)
		}
		list.Data = append(list.Data, kit)
	}
	return list
}

// pictureURL returns the URL of a picture of the catalog. It returns nil if
// there is no picture.
func (h *Handler) pictureURL(a catalog.Asset) *string {
	if a == "" {
		return nil
	}
	u := h.BaseURL + "/catalog/" + string(a) + ".png"
	return &u
}

// nodeID returns the UUID of an element of an input form. It is the same on
// every server node and after every reload of the catalog (version 8, RFC 9562
// section 5.8).
func nodeID(toolID, path string) string {
	b := sha256.Sum256([]byte(toolID + "\x00" + path))
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// averageSeconds returns a duration rounded to seconds, but at least 1. It
// returns nil for zero.
func averageSeconds(d time.Duration) *int {
	if d == 0 {
		return nil
	}
	n := max(1, int(math.Round(d.Seconds())))
	return &n
}
