package flows

import (
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/flow"
	"atelier/internal/run/savedflow"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

func readDraft(d wire.FlowDraft) savedflow.Draft {
	return savedflow.Draft{
		Name:        d.Name,
		Description: rest.ValueOrZero(d.Description),
		Fields:      asAny(rest.ValueOrZero(d.Fields)),
		Steps:       asAny(d.Steps),
		Results:     asAny(rest.ValueOrZero(d.Results)),
		Shared:      rest.ValueOrZero(d.Shared),
	}
}

func asAny[T any](list []T) []any {
	return rest.Convert(list, func(one T) any { return one })
}

// asObjects returns the objects of a list that was stored as JSON.
func asObjects(list []any) []map[string]any {
	all := make([]map[string]any, 0, len(list))
	for _, one := range list {
		object, _ := one.(map[string]any)
		all = append(all, object)
	}
	return all
}

func asTexts(list []any) []string {
	all := make([]string, 0, len(list))
	for _, one := range list {
		text, _ := one.(string)
		all = append(all, text)
	}
	return all
}

func asDraft(d savedflow.Draft) wire.FlowDraft {
	fields := asObjects(d.Fields)
	results := asTexts(d.Results)
	return wire.FlowDraft{
		Name:        d.Name,
		Description: &d.Description,
		Fields:      &fields,
		Steps:       asObjects(d.Steps),
		Results:     &results,
		Shared:      &d.Shared,
	}
}

func asSummary(f savedflow.Flow) wire.FlowSummary {
	return wire.FlowSummary{
		ID:          f.ID,
		Slug:        f.Slug,
		Name:        f.Name,
		Description: f.Draft.Description,
		TeamID:      rest.TextOrNull(f.TeamID()),
		UID:         f.PersonID,
		Version:     f.Version,
		Shared:      f.Draft.Shared,
		Created:     rest.Moment(f.Created),
		Updated:     rest.Moment(f.Updated),
	}
}

func asFlow(f savedflow.Flow) wire.Flow {
	one := asSummary(f)
	return wire.Flow{
		ID:          one.ID,
		Slug:        one.Slug,
		Name:        one.Name,
		Description: one.Description,
		TeamID:      one.TeamID,
		UID:         one.UID,
		Version:     one.Version,
		Shared:      one.Shared,
		Created:     one.Created,
		Updated:     one.Updated,
		Fields:      asObjects(f.Draft.Fields),
		Steps:       asObjects(f.Draft.Steps),
		Results:     asTexts(f.Draft.Results),
	}
}

func asVersion(v savedflow.Version) wire.FlowVersion {
	return wire.FlowVersion{
		Version:     v.Number,
		UID:         v.PersonID,
		Created:     rest.Moment(v.Created),
		Name:        v.Draft.Name,
		Description: v.Draft.Description,
		Fields:      asObjects(v.Draft.Fields),
		Steps:       asObjects(v.Draft.Steps),
		Results:     asTexts(v.Draft.Results),
	}
}

func asCheck(c savedflow.Checked) wire.FlowCheck {
	one := wire.FlowCheck{Problems: rest.Convert(c.Problems, asProblem)}
	if c.Bounds != nil {
		one.Price = &wire.FlowPrice{
			Tokens:  c.Bounds.Tokens,
			Formula: c.Bounds.Formula(),
			Steps:   rest.Convert(c.Bounds.Shares, asShare),
		}
	}
	return one
}

func asProblem(r catalog.Remark) wire.FlowProblem {
	return wire.FlowProblem{Path: r.FlowPath(), Message: r.Message}
}

func asShare(s flow.Share) wire.FlowShare {
	return wire.FlowShare{
		Step:   s.Step,
		Tool:   s.Tool,
		Runs:   s.Runs,
		Tokens: s.Tokens,
	}
}
