package mcp

import (
	"context"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/toolschema"
	"atelier/internal/run/generation"
)

// pageSize is the number of tools in one response.
const pageSize = 50

// listTools lists the tools of the service itself, and then those of the
// catalog that the client has chosen.
func (h *Handler) listTools(ctx context.Context, params *sdk.ListToolsParams) (*sdk.ListToolsResult, error) {
	view, err := h.viewOf(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := h.listedTools(ctx, view)
	if err != nil {
		return nil, err
	}
	begin := 0
	if params != nil && params.Cursor != "" {
		if begin, err = strconv.Atoi(params.Cursor); err != nil || begin < 0 || begin > len(listed) {
			return nil, fault.New(fault.Invalid, "The cursor is not valid.")
		}
	}
	result := &sdk.ListToolsResult{
		Cacheable: sdk.Cacheable{CacheScope: "private"}, // tools differ between callers
		Tools:     []*sdk.Tool{},
	}
	if begin == 0 {
		for _, one := range ownTools {
			result.Tools = append(result.Tools, one.describe())
		}
	}
	end := min(len(listed), begin+pageSize)
	for _, t := range listed[begin:end] {
		result.Tools = append(result.Tools, h.describeTool(t))
	}
	if end < len(listed) {
		result.NextCursor = strconv.Itoa(end)
	}
	return result, nil
}

// viewOf returns the tools that the caller may use.
func (h *Handler) viewOf(ctx context.Context) (*catalog.View, error) {
	p := exchangeOf(ctx).call.Principal
	return h.Catalog.ViewOf(ctx, generation.AudienceOf(p), p.AccountID)
}

// listedTools returns the tools of the catalog that are listed: those of the
// kits that the client or the operator has chosen, or the first of all tools.
func (h *Handler) listedTools(ctx context.Context, view *catalog.View) ([]*catalog.Tool, error) {
	kits := h.Settings.Kits
	if chosen := exchangeOf(ctx).kits; len(chosen) > 0 {
		kits = strings.Split(strings.Join(chosen, ","), ",")
	}
	if len(kits) == 0 || slices.Equal(kits, []string{"all"}) {
		return view.Tools[:min(len(view.Tools), h.Settings.MaxTools)], nil
	}
	var all []*catalog.Tool
	visible := view.VisibleKits()
	for _, name := range kits {
		i := slices.IndexFunc(visible, func(k catalog.VisibleKit) bool { return k.Slug == name || k.ID == name })
		if i < 0 {
			return nil, fault.New(fault.Invalid, "There is no kit "+strconv.Quote(name)+". The kits are "+strings.Join(kitNames(visible), ", ")+".").On("kits")
		}
		for _, entry := range visible[i].Tools {
			if !slices.Contains(all, entry.Tool) {
				all = append(all, entry.Tool)
			}
		}
	}
	return all, nil
}

func kitNames(all []catalog.VisibleKit) []string {
	var names []string
	for _, k := range all {
		names = append(names, k.Slug)
	}
	return names
}

// describeTool describes a tool of the catalog.
func (h *Handler) describeTool(t *catalog.Tool) *sdk.Tool {
	no := false
	return &sdk.Tool{
		Name:        t.Slug,
		Title:       t.Name,
		Description: t.Description + " " + describePrice(t),
		InputSchema: toolschema.Of(t, int64(h.Runs.Settings.NumResults)),
		Annotations: &sdk.ToolAnnotations{Title: t.Name, DestructiveHint: &no, OpenWorldHint: &no},
	}
}

var outputNames = map[string]string{"IMG": "a picture", "VID": "a video", "AUDIO": "a sound", "ASSET_3D": "a 3D model", "TEXT": "a text"}

// describePrice says what a run of the tool makes and costs.
func describePrice(t *catalog.Tool) string {
	return "Makes " + outputNames[t.Output.Type] + "; costs " + toolschema.FormatTokens(t.TokenCost(1)) + "."
}
