package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"atelier/internal/base/fault"
	"atelier/internal/base/sanitize"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/toolschema"
	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/web/access"
	"atelier/internal/web/api/runwait"
)

// ownTool is a tool of the service itself.
type ownTool struct {
	name        string
	title       string
	description string
	properties  toolschema.Schema
	required    []string
	isReadOnly  bool
	call        func(ctx context.Context, c *toolCall) (*sdk.CallToolResult, error)
}

func (o ownTool) describe() *sdk.Tool {
	no := false
	required := o.required
	if required == nil {
		required = []string{}
	}
	return &sdk.Tool{
		Name:        o.name,
		Title:       o.title,
		Description: o.description,
		InputSchema: toolschema.Schema{"type": "object", "properties": o.properties, "required": required, "additionalProperties": false},
		Annotations: &sdk.ToolAnnotations{Title: o.title, ReadOnlyHint: o.isReadOnly, DestructiveHint: &no, OpenWorldHint: &no},
	}
}

// The properties of the tools of the service itself.
var (
	toolProperty   = toolschema.Schema{"type": "string", "description": "Name of a tool, as search_tools returns it."}
	inputsProperty = toolschema.Schema{"type": "object", "description": "Inputs of the tool, as its schema says."}
	runProperty    = toolschema.Schema{"type": "string", "description": "Id of a run."}
	limitProperty  = toolschema.Schema{"type": "integer", "minimum": 1, "maximum": maxFound, "default": defaultFound}
)

const (
	defaultFound = 10
	maxFound     = 50
)

// ownTools are the tools of the service itself.
var ownTools = []ownTool{
	{
		name:        "search_tools",
		title:       "Search tools",
		description: "Finds tools by words in their name, description and tags, and returns their prices and the schemas of their inputs.",
		properties:  toolschema.Schema{"query": toolschema.Schema{"type": "string", "description": "Words; all tools without it."}, "limit": limitProperty},
		isReadOnly:  true,
		call:        searchTools,
	},
	{
		name:        "run_tool",
		title:       "Run a tool",
		description: "Runs a tool by its name, for tools that are not listed themselves.",
		properties:  toolschema.Schema{"tool": toolProperty, "inputs": inputsProperty},
		required:    []string{"tool"},
		call:        runNamed,
	},
	{
		name:        "preview_cost",
		title:       "Preview the cost",
		description: "Returns what a run would cost and whether it could start now. Starts nothing.",
		properties:  toolschema.Schema{"tool": toolProperty, "inputs": inputsProperty},
		required:    []string{"tool"},
		isReadOnly:  true,
		call:        previewCost,
	},
	{
		name:        "get_run",
		title:       "Get a run",
		description: "Returns the state of a run, and its results if it has ended.",
		properties: toolschema.Schema{
			"run_id": runProperty,
			"wait":   toolschema.Schema{"type": "boolean", "default": false, "description": "Wait a while for the end of the run."},
		},
		required:   []string{"run_id"},
		isReadOnly: true,
		call:       getRun,
	},
	{
		name:        "cancel_run",
		title:       "Cancel a run",
		description: "Cancels a run that has not ended.",
		properties:  toolschema.Schema{"run_id": runProperty},
		required:    []string{"run_id"},
		call:        cancelRun,
	},
	{
		name:        "list_library",
		title:       "List the library",
		description: "Lists results of earlier runs, newest first, with their library ids and links.",
		properties: toolschema.Schema{
			"search": toolschema.Schema{"type": "string", "description": "Words that the prompt contains."},
			"type":   toolschema.Schema{"enum": []string{"IMG", "VID", "AUDIO", "ASSET_3D", "TEXT"}},
			"limit":  limitProperty,
		},
		isReadOnly: true,
		call:       listLibrary,
	},
	{
		name:        "get_balance",
		title:       "Get the balance",
		description: "Returns the tokens that the account has left.",
		properties:  toolschema.Schema{},
		isReadOnly:  true,
		call:        getBalance,
	},
}

// findOwn returns the tool of the service itself with the given name.
func findOwn(name string) (ownTool, bool) {
	i := slices.IndexFunc(ownTools, func(o ownTool) bool { return o.name == name })
	if i < 0 {
		return ownTool{}, false
	}
	return ownTools[i], true
}

// readText returns an argument that must be text, or "" if it is missing.
func (c *toolCall) readText(name string) (string, error) {
	value := c.arguments[name]
	text, ok := value.(string)
	if value != nil && !ok {
		return "", fault.New(fault.Invalid, name+" must be text.").On(name)
	}
	return text, nil
}

// readLimit returns the argument limit.
func (c *toolCall) readLimit() (int, error) {
	value := c.arguments["limit"]
	if value == nil {
		return defaultFound, nil
	}
	n, ok := value.(int64)
	if !ok || n < 1 || n > maxFound {
		return 0, fault.New(fault.Invalid, fmt.Sprintf("limit must be between 1 and %d.", maxFound)).On("limit")
	}
	return int(n), nil
}

// structured returns a result with a text for models and an object for
// programs.
func structured(text string, object any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: object}
}

// foundTool describes a tool that search_tools finds.
type foundTool struct {
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Output      string            `json:"output"`
	Tokens      int64             `json:"tokens_per_result"`
	InputSchema toolschema.Schema `json:"input_schema"`
}

func searchTools(ctx context.Context, c *toolCall) (*sdk.CallToolResult, error) {
	query, err := c.readText("query")
	if err != nil {
		return nil, err
	}
	limit, err := c.readLimit()
	if err != nil {
		return nil, err
	}
	view, err := c.handler.viewOf(ctx)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.ToLower(query))
	found := []foundTool{}
	lines := []string{}
	matches := 0
	for _, t := range view.Tools {
		if !matchesWords(view, t, words) {
			continue
		}
		if matches++; matches > limit {
			continue
		}
		found = append(found, foundTool{
			Name:        t.Slug,
			Title:       t.Name,
			Description: t.Description,
			Output:      t.Output.Type,
			Tokens:      t.TokenCost(1),
			InputSchema: toolschema.Of(t, int64(c.handler.Runs.Settings.NumResults)),
		})
		lines = append(lines, fmt.Sprintf("%s: %s %s Inputs: %s.", t.Slug, t.Description, describePrice(t), strings.Join(inputNames(t), ", ")))
	}
	text := strings.Join(lines, "\n")
	switch {
	case matches == 0:
		text = "No tool matches. Try other words, or none."
	case matches > limit:
		text += fmt.Sprintf("\n%d more match.", matches-limit)
	}
	return structured(text, map[string]any{"tools": found, "matches": matches}), nil
}

// matchesWords reports whether the name, description and tags of a tool contain
// all words.
func matchesWords(view *catalog.View, t *catalog.Tool, words []string) bool {
	text := t.Slug + " " + t.Name + " " + t.Description
	for _, tag := range view.TagsOf(t) {
		text += " " + tag.Label
	}
	text = strings.ToLower(text)
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// inputNames returns the keys of the inputs of a tool; * marks required ones.
func inputNames(t *catalog.Tool) []string {
	var all []string
	for _, f := range t.Leaves() {
		name := f.Key
		if f.Required && f.Default == nil {
			name += "*"
		}
		all = append(all, name)
	}
	return all
}

// readInputs returns the argument inputs.
func (c *toolCall) readInputs() (map[string]any, error) {
	value := c.arguments["inputs"]
	if value == nil {
		return map[string]any{}, nil
	}
	inputs, ok := value.(map[string]any)
	if !ok {
		return nil, fault.New(fault.Invalid, "inputs must be an object.").On("inputs")
	}
	return inputs, nil
}

func runNamed(ctx context.Context, c *toolCall) (*sdk.CallToolResult, error) {
	name, err := c.readText("tool")
	if err != nil {
		return nil, err
	}
	inputs, err := c.readInputs()
	if err != nil {
		return nil, err
	}
	return c.runTool(ctx, name, inputs)
}

func previewCost(ctx context.Context, c *toolCall) (*sdk.CallToolResult, error) {
	name, err := c.readText("tool")
	if err != nil {
		return nil, err
	}
	inputs, err := c.readInputs()
	if err != nil {
		return nil, err
	}
	t, err := c.findTool(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, call, err := c.exchange.call.Authorize(ctx, access.Pricing)
	if err != nil {
		return nil, err
	}
	d := generation.Draft{Principal: call.Principal}
	err = c.fillDraft(&d, t, withoutFiles(t, inputs))
	if err != nil {
		return nil, err
	}
	cost, err := c.handler.Runs.PriceDraft(ctx, d)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("The run costs %d tokens.", cost.Tokens)
	if cost.FreeAllowance > 0 {
		text = fmt.Sprintf("The run costs %d tokens, and %d of the free allowance.", cost.Tokens, cost.FreeAllowance)
	}
	if cost.Blocked != "" {
		text += " It cannot start now: " + cost.Blocked
	}
	return structured(text, map[string]any{
		"total_tokens":        cost.Tokens,
		"free_allowance_used": cost.FreeAllowance,
		"tokens_per_result":   cost.PerResult,
		"can_run":             cost.Blocked == "",
		"blocking_reason":     cost.Blocked,
	}), nil
}

// withoutFiles returns inputs without files, which do not change the price.
func withoutFiles(t *catalog.Tool, inputs map[string]any) map[string]any {
	for _, f := range t.Leaves() {
		if f.IsMedia() {
			inputs = without(inputs, f.Key)
		}
	}
	return inputs
}

// findRun returns the run that the argument run_id names.
func (c *toolCall) findRun(ctx context.Context) (generation.Record, error) {
	id, err := c.readText("run_id")
	if err != nil {
		return generation.Record{}, err
	}
	return c.handler.Runs.GetStatus(ctx, c.exchange.call.Principal.AccountID, sanitize.Line(id, 40))
}

func getRun(ctx context.Context, c *toolCall) (*sdk.CallToolResult, error) {
	rec, err := c.findRun(ctx)
	if err != nil {
		return nil, err
	}
	wait, ok := c.arguments["wait"].(bool)
	if c.arguments["wait"] != nil && !ok {
		return nil, fault.New(fault.Invalid, "wait must be true or false.").On("wait")
	}
	if wait && !rec.State.IsEnded() {
		return c.awaitRun(ctx, runwait.Client{Call: c.exchange.call, KeepRun: true}, rec.ID)
	}
	return c.resultOf(ctx, rec)
}

func cancelRun(ctx context.Context, c *toolCall) (*sdk.CallToolResult, error) {
	rec, err := c.findRun(ctx)
	if err != nil {
		return nil, err
	}
	rec, hadEnded, err := c.handler.Runs.CancelRun(ctx, c.exchange.call.Principal, rec.ID)
	if err != nil {
		return nil, err
	}
	text := "The run " + rec.ID + " is being cancelled."
	if hadEnded {
		text = "The run " + rec.ID + " had already ended: " + string(rec.State) + "."
	}
	return structured(text, c.describeRun(rec)), nil
}

// libraryItem describes an item of the library to programs.
type libraryItem struct {
	fileResult
	Created string `json:"created"`
	Prompt  string `json:"prompt,omitempty"`
	Tool    string `json:"tool,omitempty"`
	RunID   string `json:"run_id"`
}

func listLibrary(ctx context.Context, c *toolCall) (*sdk.CallToolResult, error) {
	h := c.handler
	var filter library.Filter
	var err error
	if filter.Search, err = c.readText("search"); err != nil {
		return nil, err
	}
	if filter.Type, err = c.readText("type"); err != nil {
		return nil, err
	}
	limit, err := c.readLimit()
	if err != nil {
		return nil, err
	}
	who := c.exchange.call.Principal
	items, err := h.Library.ListItems(ctx, who, filter, nil, limit)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, i := range items {
		ids = append(ids, i.ToolID)
	}
	tools, err := h.Catalog.ToolNames(ctx, ids)
	if err != nil {
		return nil, err
	}
	all := []libraryItem{}
	lines := []string{}
	for _, i := range items {
		one := libraryItem{
			fileResult: fileResult{
				LibraryID: i.ID,
				MimeType:  i.MimeType,
				Size:      i.Size,
				Width:     int64(i.Width),
				Height:    int64(i.Height),
				Note:      i.Note,
			},
			Created: i.Created.UTC().Format("2006-01-02T15:04:05Z"),
			Prompt:  i.Prompt,
			Tool:    tools[i.ToolID],
			RunID:   i.RequestID,
		}
		if !i.Expired {
			one.URL = h.Links.SignURL(library.KindResult, i.ResultID, library.VariantFile, who.PersonID, i.Names.ByVariant(library.VariantFile))
		}
		all = append(all, one)
		lines = append(lines, fmt.Sprintf("%s (%s, %s, %s) %s", one.LibraryID, one.Tool, one.MimeType, one.Created, strconv.Quote(one.Prompt)))
	}
	text := strings.Join(lines, "\n")
	if len(lines) == 0 {
		text = "The library has no such item."
	}
	return structured(text, map[string]any{"items": all}), nil
}

func getBalance(ctx context.Context, c *toolCall) (*sdk.CallToolResult, error) {
	who := c.exchange.call.Principal
	p, err := c.handler.Profiles.GetProfile(ctx, who)
	if err != nil {
		return nil, err
	}
	for _, a := range p.Accounts {
		if a.ID != who.AccountID {
			continue
		}
		b := a.Balance
		return structured(fmt.Sprintf("%d tokens, %d of them held by runs that have not ended; %d left of the free allowance.", b.Tokens, b.Held, b.FreeAllowanceLeft),
			map[string]any{"tokens": b.Tokens, "held": b.Held, "free_allowance_left": b.FreeAllowanceLeft}), nil
	}
	return nil, fault.New(fault.NotFound, "This account has no balance.")
}
