package generation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/asset"
	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/policy"
	"atelier/internal/run/run"
)

// checkedDraft is a valid draft with the values derived from it.
type checkedDraft struct {
	tool   *catalog.Tool
	filled catalog.FormInputs
	// written are the texts in the definition of a saved flow.
	written []catalog.TextInput
	n       int64 // number of results
	price   int64
	inputs  []run.Input
	stored  string // inputs as a JSON object, as stored in the database
	seed    int64

	estimated time.Duration
	retryOf   string // run whose finished steps a flow takes over, or ""
}

// unitTokens returns the price of one result. A flow itself costs nothing: the
// runs of its steps do.
func (a checkedDraft) unitTokens() int64 {
	if a.tool.IsFlow() {
		return 0
	}
	return a.tool.TokenCost(1)
}

// validator validates drafts. Validation reserves no tokens and does not count
// against limits.
type validator struct {
	db       *sqldb.DB
	catalog  *catalog.Catalog
	guard    *webhook.Guard
	settings Settings
}

// checkDraft validates a draft against its tool. If pricing is set, required
// inputs may be missing.
func (v validator) checkDraft(ctx context.Context, d Draft, pricing bool) (checkedDraft, error) {
	found, err := v.findTool(ctx, d)
	if err != nil {
		return checkedDraft{}, err
	}
	tool := found.tool
	if d.ToolHash != tool.Hash {
		return checkedDraft{}, errStaleTool(tool.Hash)
	}
	if err := errFlowProblems(tool, found.problems); err != nil {
		return checkedDraft{}, err
	}
	a := checkedDraft{tool: tool, written: found.written}
	filled, problems := tool.ParseInputs(d.Inputs, catalog.InputOptions{PriceOnly: pricing, Files: len(d.Files)})
	a.filled = filled
	if limit := v.settings.InputFiles; len(filled.Refs) > limit {
		return checkedDraft{}, TooManyFiles(limit, filled.Refs[limit].Path)
	} else if len(d.Files) > limit {
		return checkedDraft{}, TooManyFiles(limit, fmt.Sprintf("files.%d", limit))
	}
	problems = append(problems, v.findProblems(d)...)
	resolved, more, err := v.resolveFiles(ctx, d, filled.Refs)
	if err != nil {
		return checkedDraft{}, err
	}
	if problems = append(problems, more...); len(problems) > 0 {
		return checkedDraft{}, newInvalid(problems)
	}
	a.inputs = resolved
	if err := v.completeDraft(ctx, &a, d.NumResults); err != nil {
		return checkedDraft{}, err
	}
	if d.RetryOf != "" {
		before, err := v.checkRetry(ctx, d, tool)
		if err != nil {
			return checkedDraft{}, err
		}
		a.retryOf = before.ID
		if filled.Seed == nil {
			a.seed = before.Seed
		}
	}
	return a, nil
}

// foundTool is the tool of a draft. The other fields are set for saved flows.
type foundTool struct {
	tool     *catalog.Tool
	written  []catalog.TextInput // texts in its definition
	problems []catalog.Remark    // why it no longer fits its tools
}

// findTool returns the tool of a draft.
func (v validator) findTool(ctx context.Context, d Draft) (foundTool, error) {
	snapshot := v.catalog.CurrentSnapshot()
	audience := AudienceOf(d.Principal)
	tool, ok := snapshot.ViewFor(audience).ToolByID(d.ToolID)
	if ok {
		return foundTool{tool: tool}, nil
	}
	view, err := v.catalog.ViewOf(ctx, audience, d.Principal.AccountID)
	if err != nil {
		return foundTool{}, err
	}
	if tool, ok = view.ToolByID(d.ToolID); ok {
		return foundTool{tool, view.WrittenTexts(tool), view.FlowProblems(tool.ID)}, nil
	}
	step := snapshot.BlockedStep(audience, d.ToolID)
	if step == "" {
		step = view.BlockedStep(d.ToolID)
	}
	if step != "" {
		return foundTool{}, errBlockedStep(step)
	}
	return foundTool{}, errNoTool
}

// completeDraft sets what follows from the tool and the parsed inputs: the
// number of results, the price, the duration, the seed and the stored inputs.
func (v validator) completeDraft(ctx context.Context, a *checkedDraft, numResults *int64) (err error) {
	if a.n, err = a.tool.ResultCount(numResults, int64(v.settings.NumResults)); err != nil {
		return err
	}
	a.price = a.tool.TokenCost(a.n)
	a.estimated = estimateDuration(a.tool, a.n)
	if a.tool.IsFlow() {
		plan, err := v.planFlow(ctx, a.tool, a.filled)
		if err != nil {
			return err
		}
		a.n = max(1, plan.bounds.Results)
		a.price = plan.bounds.Tokens
		a.estimated = plan.estimated
	}
	a.seed = int64(rand.Uint32())
	if a.filled.Seed != nil {
		a.seed = *a.filled.Seed
	}
	a.stored, err = storedInputs(a.filled)
	return err
}

var errNoTool = fault.New(fault.NotFound, "There is no such tool.")

func errBlockedStep(step string) error {
	return fault.New(fault.Forbidden, fmt.Sprintf("The step %s of this flow uses a tool that you may not use, or that no longer exists.", step)).With("reason", "permission").With("step", step)
}

// errFlowProblems returns an error that names the first step which does not fit
// its tool, or nil if there are no problems.
func errFlowProblems(tool *catalog.Tool, problems []catalog.Remark) error {
	if len(problems) == 0 {
		return nil
	}
	e := fault.New(fault.Invalid, "This flow no longer fits its tools. Open it, and save it again.")
	for _, one := range problems {
		path := one.FlowPath()
		parts := strings.Split(path, ".")
		message := one.Message
		if i, err := strconv.Atoi(parts[min(1, len(parts)-1)]); err == nil && parts[0] == "steps" {
			message = fmt.Sprintf("step %s: %s", tool.Flow.Steps[i].ID, message)
		}
		e.Fields = append(e.Fields, fault.Field{Path: path, Message: message})
	}
	return e
}

func errStaleTool(live string) error {
	return fault.New(fault.ToolSchemaStale, "The tool has changed since you read it. Read it again.").With("expected_tool_fields_hash", live)
}

// deferCheckUnchanged makes the transaction fail if t is no longer the current
// version of the tool. Another node may have changed it since the draft was
// validated. The check is made with the next statement.
func deferCheckUnchanged(ctx context.Context, tx *sqldb.Tx, t *catalog.Tool) error {
	return catalog.DeferLiveHash(ctx, tx, t.ID, func(live string, ok bool) error {
		switch {
		case !ok:
			return errNoTool
		case live != t.Hash:
			return errStaleTool(live)
		}
		return nil
	})
}

// findProblems validates the metadata, the webhook URL and the plugin name of a
// draft.
func (v validator) findProblems(d Draft) []fault.Field {
	var all []fault.Field
	if len(d.Metadata) > v.settings.MetadataBytes {
		all = append(all, fault.Field{Path: "metadata", Message: fmt.Sprintf("Must be at most %d bytes when written without spaces.", v.settings.MetadataBytes)})
	}
	if d.WebhookURL != "" {
		if problem := v.guard.CheckURL(d.WebhookURL); problem != "" {
			all = append(all, fault.Field{Path: "webhook_url", Message: problem})
		}
	}
	if utf8.RuneCountInString(d.Plugin) > v.settings.PluginLength || strings.ContainsFunc(d.Plugin, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		all = append(all, fault.Field{Path: "plugin", Message: fmt.Sprintf("Must be one line of at most %d characters.", v.settings.PluginLength)})
	}
	return all
}

func newInvalid(problems []fault.Field) error {
	e := fault.New(fault.Invalid, "Some fields of the request are invalid.")
	e.Fields = problems
	return e
}

// TooManyFiles returns the error for a request with more input files than
// allowed. path names the first file beyond the limit.
func TooManyFiles(limit int, path string) error {
	return fault.New(fault.TooManyInputFiles, fmt.Sprintf("A run takes at most %d input files.", limit)).With("limit", limit).With("path", path)
}

// resolveFiles looks up the files that the inputs refer to. It finds only files
// of the account that pays for the run.
func (v validator) resolveFiles(ctx context.Context, d Draft, refs []catalog.Ref) (inputs []run.Input, problems []fault.Field, err error) {
	if len(refs) == 0 {
		return nil, nil, nil
	}
	err = v.db.Read(ctx, func(tx *sqldb.Tx) error {
		inputs = nil
		problems = nil
		for _, ref := range refs {
			var a asset.Asset
			if ref.Kind == catalog.Multipart {
				a = d.Files[ref.FileIndex].Asset
			} else {
				var err error
				a, err = library.ResolveReference(ctx, tx, d.Principal.AccountID, string(ref.Kind), ref.ID)
				if f := asNotFound(err); f != nil {
					problems = append(problems, fault.Field{Path: ref.Path, Message: f.Message})
					continue
				}
				if err != nil {
					return err
				}
			}
			if problem := describeMisfit(a, ref); problem != "" {
				problems = append(problems, fault.Field{Path: ref.Path, Message: problem})
				continue
			}
			inputs = append(inputs, run.Input{Field: ref.Field, Index: ref.Index, AssetID: a.ID})
		}
		return nil
	})
	return inputs, problems, err
}

func asNotFound(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.NotFound {
		return f
	}
	return nil
}

// describeMisfit returns a message that says why a field does not accept a
// file, or "" if the field accepts it.
func describeMisfit(a asset.Asset, ref catalog.Ref) string {
	if a.Type != ref.MediaType {
		return "Must be " + mediaNames[ref.MediaType] + "."
	}
	if len(ref.Accept) > 0 && !slices.Contains(ref.Accept, a.MimeType) {
		return "Must be one of " + strings.Join(ref.Accept, ", ") + "."
	}
	return ""
}

var mediaNames = map[string]string{"IMG": "a picture", "VID": "a video", "AUDIO": "a sound file", "ASSET_3D": "a 3D model"}

// storedInputs converts inputs to the JSON object that is stored with the run
// and shown in the library. It contains the values, including defaults, and
// references to files as the client sent them.
func storedInputs(f catalog.FormInputs) (string, error) {
	all := make(map[string]any, len(f.Values)+len(f.Refs))
	for key, v := range f.Values {
		all[key] = v
	}
	for _, ref := range f.Refs {
		one := map[string]any{"kind": string(ref.Kind)}
		if ref.Kind == catalog.Multipart {
			one["file_index"] = ref.FileIndex
		} else {
			one["id"] = ref.ID
		}
		switch before := all[ref.Field].(type) {
		case nil:
			if ref.List {
				all[ref.Field] = []any{one}
			} else {
				all[ref.Field] = one
			}
		case []any:
			all[ref.Field] = append(before, one)
		}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// policyTexts returns the texts of the inputs, and those in the definition of a
// saved flow, for the content policy.
func policyTexts(f catalog.FormInputs, written []catalog.TextInput) []policy.Text {
	var all []policy.Text
	for _, t := range slices.Concat(f.Texts, written) {
		all = append(all, policy.Text{Path: t.Path, Value: t.Value})
	}
	return all
}
