package api

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	"atelier/internal/catalog/catalog"
	"atelier/internal/web/api/wire"
)

// This file turns the catalog's types into the wire's.

func (s *Server) asTool(v *catalog.View, t *catalog.Tool) wire.Tool {
	return wire.Tool{
		ID:                  t.ID,
		Slug:                t.Slug,
		Name:                t.Name,
		Description:         orNull(t.Description),
		AvatarURL:           s.pictureURL(t.Avatar),
		AverageGenInSeconds: seconds(t.Average),
		ToolTags:            asTags(v.TagsOf(t)),
		PricingType:         wire.PricingType(t.Price.Type),
		TokensPerResult:     t.Price.Tokens,
	}
}

func (s *Server) asDetail(v *catalog.View, t *catalog.Tool) wire.ToolDetail {
	list := s.asTool(v, t)
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
		Fields:              s.asFields(t.ID, "", t.Fields),
		Output:              wire.ToolOutput{Type: wire.Medium(t.Output.Type), MimeTypes: t.Output.MimeTypes},
		Limits:              wire.ToolLimits{TimeoutSeconds: int64(t.Timeout.Seconds())},
		Created:             moment(t.Created),
		Updated:             moment(t.Updated),
	}
	if n := t.NumResults; n != nil {
		d.NumResults = &wire.NumResults{Min: n.Min, Max: n.Max, Default: n.Default}
	}
	return d
}

// asFields writes the form. path names the group that the fields are in.
func (s *Server) asFields(toolID, path string, fields []catalog.Field) []wire.FieldNode {
	nodes := make([]wire.FieldNode, 0, len(fields))
	for i, f := range fields {
		if f.Key == "" {
			at := fmt.Sprintf("%s/%d", path, i)
			nodes = append(nodes, wire.FieldGroup{
				UUID: nodeID(toolID, "group"+at), IsField: false, Label: f.Label, Children: s.asFields(toolID, at, f.Children),
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
			Display:      s.asDisplay(&f),
		})
	}
	return nodes
}

func (s *Server) asDisplay(f *catalog.Field) wire.FieldDisplay {
	d := f.Display
	w := wire.FieldDisplay{
		Help:        orNull(d.Help),
		Placeholder: orNull(d.Placeholder),
		Advanced:    &d.Advanced,
		Content:     contentOf(f),
		Min:         d.Min,
		Max:         d.Max,
		Step:        d.Step,
		MaxLength:   orAbsent(d.MaxLength),
		MultipleOf:  orAbsent(d.MultipleOf),
		MaxItems:    orAbsent(d.MaxItems),
	}
	if f.Integer() {
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
			list.Options = append(list.Options, wire.Option{Text: o.Text, Value: o.Value, ImageURL: s.pictureURL(o.Image)})
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

// contentOf gives what an HTML field shows, nil for other types.
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

// asTagList writes the vocabulary, which comes ordered by type.
func asTagList(tags []catalog.Tag) wire.ToolTagList {
	list := wire.ToolTagList{Data: asTags(tags), Types: []string{}}
	for i, g := range tags {
		if i == 0 || tags[i-1].Type != g.Type {
			list.Types = append(list.Types, g.Type)
		}
	}
	return list
}

func (s *Server) asKitList(v *catalog.View) wire.KitList {
	list := wire.KitList{Data: []wire.Kit{}}
	for _, k := range v.Kits() {
		kit := wire.Kit{
			ID:            k.ID,
			Label:         k.Label,
			Description:   orNull(k.Description),
			KitTags:       words(k.Tags),
			DefaultToolID: k.Default.ID,
		}
		for _, e := range k.Tools {
			entry := wire.KitTool{Tool: s.asTool(v, e.Tool), KitTags: words(e.Tags), Labels: []wire.KitLabel{}}
			for _, l := range e.Labels {
				entry.Labels = append(entry.Labels, wire.KitLabel{ID: l.ID, Icon: l.Icon, Label: l.Label})
			}
			kit.Tools = append(kit.Tools, entry)
		}
		list.Data = append(list.Data, kit)
	}
	return list
}

func (s *Server) pictureURL(a catalog.Asset) *string {
	if a == "" {
		return nil
	}
	u := s.BaseURL + "/catalog/" + string(a) + ".png"
	return &u
}

// nodeID gives a node of a form the same UUID on every node and at every
// reload (RFC 9562 section 5.8: our own scheme).
func nodeID(toolID, path string) string {
	b := sha256.Sum256([]byte(toolID + "\x00" + path))
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// seconds is a span as the wire has it: whole, at least one, null for none.
func seconds(d time.Duration) *int {
	if d == 0 {
		return nil
	}
	n := max(1, int(math.Round(d.Seconds())))
	return &n
}

// moment is a time as the wire has it, in UTC and whole seconds.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func orAbsent(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func words(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
