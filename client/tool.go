package client

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// ToolNotFoundError is returned for a tool that the account does not have.
type ToolNotFoundError struct {
	Name  string
	Slugs []string // of the tools that the account has
	// Displayed are the slugs of tools whose display name is Name. Display
	// names are not unique and can change, so they name no tool.
	Displayed []string
}

func (e *ToolNotFoundError) Error() string {
	if len(e.Displayed) > 0 {
		return fmt.Sprintf("%q is a display name; the tool is called %s", e.Name, strings.Join(e.Displayed, " or "))
	}
	return fmt.Sprintf("there is no tool %q", e.Name)
}

// idPattern is the form of an id, namePattern that of an id or a slug.
var (
	idPattern   = regexp.MustCompile(`^[A-Za-z0-9]{20}$`)
	namePattern = regexp.MustCompile(`^([A-Za-z0-9]{20}|[a-z0-9]+(-[a-z0-9]+)*)$`)
)

// Find returns the tool with the given slug or id, with its form. It returns a
// *ToolNotFoundError if the account has no such tool.
func (g *ToolsCalls) Find(ctx context.Context, name string) (*ToolDetail, error) {
	if namePattern.MatchString(name) {
		tool, err := g.Get(ctx, name)
		if err == nil || !HasCode(err, CodeNotFound) {
			return tool, err
		}
	}
	missing := &ToolNotFoundError{Name: name}
	for t, err := range g.All(ctx, ToolsListParams{}) {
		if err != nil {
			return nil, err
		}
		missing.Slugs = append(missing.Slugs, t.Slug)
		if strings.EqualFold(t.Name, name) {
			missing.Displayed = append(missing.Displayed, t.Slug)
		}
	}
	return nil, missing
}

// InputFields returns the fields of the form that take a value, including those
// inside groups.
func (t *ToolDetail) InputFields() []FieldNode {
	var all []FieldNode
	var walk func([]FieldNode)
	walk = func(nodes []FieldNode) {
		for _, n := range nodes {
			if n.IsField && n.Type != FieldTypeHeader && n.Type != FieldTypeHTML {
				all = append(all, n)
			}
			walk(n.Children)
		}
	}
	walk(t.Fields)
	return all
}
