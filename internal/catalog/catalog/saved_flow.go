package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/flow"
)

// MaxFlowVersions is the number of versions that are kept of a saved flow.
const MaxFlowVersions = 100

// SavedFlow is a flow that people saved for an account. Saved flows are not part
// of snapshots: ViewOf adds them to the view of an audience.
type SavedFlow struct {
	ID         string // of the tool
	AccountID  string
	CompanyID  string // company whose teams may use it, or ""
	PersonID   string // who created it
	Name       string
	Version    int64
	Definition string // as it was saved
	Slug       string
	Hash       string // of the tool; changes with its tools too
	Created    time.Time
	Updated    time.Time

	pinned string // definition with the hashes of its tools
}

// TeamID returns the id of the team that the flow belongs to, or "" if it
// belongs to a personal account.
func (f SavedFlow) TeamID() string {
	if f.AccountID == f.PersonID {
		return ""
	}
	return f.AccountID
}

// FlowVersion is a saved version of a flow.
type FlowVersion struct {
	Number     int64
	Definition string
	PersonID   string
	Created    time.Time
}

// ParseFlow reads the definition of a flow: a manifest as an object, without the
// parts that only operators write. It returns the tool and its definition, or
// the problems.
func ParseFlow(manifest map[string]any) (t *Tool, definition string, problems []Problem) {
	definition = canonicalJSON(manifest)
	r := &manifestReader{file: "flow"}
	root := r.parseDocument([]byte(definition))
	if root == nil {
		return nil, "", r.problems
	}
	t = r.readTool(root, func(string) bool { return false })
	if len(r.problems) == 0 && !t.IsFlow() {
		r.addProblem(root, "engine.name must be %s", FlowEngine)
	}
	if t != nil {
		t.Saved = true
	}
	return t, definition, r.problems
}

// InsertFlow stores a new flow and its first version. It sets the id, slug and
// hash.
func InsertFlow(ctx context.Context, tx *sqldb.Tx, f *SavedFlow) error {
	f.ID = ids.New()
	f.Slug = "flow-" + strings.ToLower(ids.New())
	f.Version = 1
	f.Created = tx.Now
	f.Updated = tx.Now
	if err := storeFlowTool(ctx, tx, f); err != nil {
		return err
	}
	if err := insertFlow(ctx, tx, *f); err != nil {
		return err
	}
	if err := replaceFlowTools(ctx, tx, f.ID, namedTools(f.row(f.pinned))); err != nil {
		return err
	}
	return insertFlowVersion(ctx, tx, f.ID, FlowVersion{Number: 1, Definition: f.Definition, PersonID: f.PersonID})
}

// UpdateFlow stores a new version of a flow, unless its version is no longer
// f.Version. It sets the new version and hash.
func UpdateFlow(ctx context.Context, tx *sqldb.Tx, f *SavedFlow, personID string) (ok bool, err error) {
	if ok, err = updateFlow(ctx, tx, *f); err != nil || !ok {
		return false, err
	}
	f.Version++
	f.Updated = tx.Now
	if err := storeFlowTool(ctx, tx, f); err != nil {
		return false, err
	}
	if err := replaceFlowTools(ctx, tx, f.ID, namedTools(f.row(f.pinned))); err != nil {
		return false, err
	}
	return true, insertFlowVersion(ctx, tx, f.ID, FlowVersion{Number: f.Version, Definition: f.Definition, PersonID: personID})
}

// RemoveFlow deletes a flow: nobody can run it any more. ok is false if it was
// already deleted. The catalog is locked, because Apply stores the rows of flows
// that it has read before.
func RemoveFlow(ctx context.Context, tx *sqldb.Tx, f SavedFlow) (ok bool, err error) {
	if err := Lock(ctx, tx); err != nil {
		return false, err
	}
	if ok, err = deleteFlow(ctx, tx, f.ID); err != nil || !ok {
		return false, err
	}
	if err := replaceFlowTools(ctx, tx, f.ID, nil); err != nil {
		return false, err
	}
	r := f.row(f.pinned)
	r.removed = true
	return true, upsertRow(ctx, tx, toolKind, r)
}

// row returns the tool of a saved flow as it is stored. Its source has no meaning.
func (f SavedFlow) row(definition string) row {
	return row{
		id:         f.ID,
		slug:       f.Slug,
		source:     Directory,
		saved:      true,
		definition: definition,
	}
}

// storeFlowTool stores the tool of a saved flow, with the hashes of the tools
// that it names. The catalog is locked, so that these hashes stay current.
func storeFlowTool(ctx context.Context, tx *sqldb.Tx, f *SavedFlow) error {
	if err := Lock(ctx, tx); err != nil {
		return err
	}
	r := f.row(f.Definition)
	stored, err := readNamedTools(ctx, tx, r)
	if err != nil {
		return err
	}
	for _, one := range stored {
		if slices.Contains(namedTools(one), f.Slug) {
			return fault.New(fault.Invalid, "A flow cannot contain itself.").On("steps")
		}
	}
	f.pinned = newFlowPinner(stored).pinned[f.Slug]
	if f.pinned == "" {
		return fmt.Errorf("store flow %s: its definition cannot be read", f.ID)
	}
	r.definition = f.pinned
	f.Hash = hashOf(f.pinned)
	return upsertRow(ctx, tx, toolKind, r)
}

// readNamedTools returns a flow and the tools that it names, directly or through
// other flows, by slug.
func readNamedTools(ctx context.Context, tx *sqldb.Tx, first row) (map[string]row, error) {
	all := map[string]row{first.slug: first}
	missing := namedTools(first)
	for range flow.MaxDepth + 1 {
		missing = slices.DeleteFunc(missing, func(slug string) bool { _, ok := all[slug]; return ok })
		if len(missing) == 0 {
			break
		}
		found, err := readRowsBySlug(ctx, tx, missing)
		if err != nil {
			return nil, err
		}
		missing = nil
		for slug, r := range found {
			all[slug] = r
			missing = append(missing, namedTools(r)...)
		}
	}
	return all, nil
}

// namedTools returns the slugs of the tools that a stored flow names.
func namedTools(r row) []string {
	t, err := decodeTool(r.definition)
	if err != nil || !t.IsFlow() {
		return nil
	}
	return t.Flow.Tools()
}

// ViewOf returns what an audience may use in an account: its view of the
// catalog, with the flows that were saved for the account or shared with the
// company.
func (c *Catalog) ViewOf(ctx context.Context, a Audience, accountID string) (*View, error) {
	snapshot := c.CurrentSnapshot()
	base := snapshot.ViewFor(a)
	if accountID == "" {
		return base, nil
	}
	saved, err := readFlowTools(ctx, c.db, accountID, a.CompanyID)
	if err != nil || len(saved) == 0 {
		return base, err
	}
	var flows strings.Builder
	for _, r := range saved {
		flows.WriteString(r.id + " " + r.hash + "\n")
	}
	key := mergedKey{base: base, flows: flows.String()}
	if v, ok := snapshot.findMerged(key); ok {
		return v, nil
	}
	own := map[string]*Tool{}
	for _, r := range saved {
		t, err := c.ToolVersion(ctx, r.hash)
		if err != nil {
			c.logUnreadable(r, err)
			continue
		}
		one := r.tool(*t)
		one.Saved = true
		own[r.slug] = one
	}
	v := mergeView(base, a, own)
	snapshot.keepMerged(key, v)
	return v, nil
}

// mergeView returns a view with the saved flows that the audience can run.
func mergeView(base *View, a Audience, own map[string]*Tool) *View {
	v := *base
	v.Tools = slices.Clone(base.Tools)
	v.byID = maps.Clone(base.byID)
	v.bySlug = maps.Clone(base.bySlug)
	v.blockedSteps = map[string]string{}
	v.flowProblems = map[string][]Remark{}
	find := func(slug string) *Tool {
		if t := own[slug]; t != nil {
			return t
		}
		return base.bySlug[slug]
	}
	for _, slug := range sortedKeys(own) {
		t := own[slug]
		if a.Blocked.hasID(t.ID) {
			continue
		}
		if step := findBlockedStep(t, find, flow.MaxDepth); step != "" {
			v.blockedSteps[t.ID] = step
			continue
		}
		if problems := findProblems(t, find, flow.MaxDepth); len(problems) > 0 {
			v.flowProblems[t.ID] = problems
		}
		v.Tools = append(v.Tools, t)
		v.byID[t.ID] = t
		v.bySlug[t.Slug] = t
	}
	slices.SortFunc(v.Tools, func(x, y *Tool) int { return x.SortKey().Compare(y.SortKey()) })
	return &v
}

// findProblems returns why a saved flow cannot run with the current versions of
// its tools.
func findProblems(t *Tool, find func(slug string) *Tool, limit int) []Remark {
	problems := t.CheckFlow(func(slug, _ string) *Tool { return find(slug) })
	for i, step := range t.Flow.Steps {
		for _, slug := range step.ToolSlugs() {
			named := find(slug)
			if named.Saved && limit > 0 && len(findProblems(named, find, limit-1)) > 0 {
				problems = append(problems, Remark{[]string{"steps", strconv.Itoa(i), "tool"}, "the flow " + named.Name + " has problems"})
			}
		}
	}
	return problems
}

// WrittenTexts returns the texts that people wrote in a saved flow, and in saved
// flows that it uses: constants of steps, and defaults of fields. Operators
// wrote those of other tools.
func (v *View) WrittenTexts(t *Tool) []TextInput {
	return v.writtenTexts(t, "", flow.MaxDepth)
}

func (v *View) writtenTexts(t *Tool, prefix string, limit int) (all []TextInput) {
	if !t.Saved || limit == 0 {
		return nil
	}
	for _, f := range t.Leaves() {
		if text, ok := f.Default.(string); ok {
			all = append(all, TextInput{prefix + "fields." + f.Key, text})
		}
	}
	for _, step := range t.Flow.Steps {
		path := prefix + "steps." + step.ID + "."
		texts := step.Texts()
		for _, key := range sortedKeys(texts) {
			for _, text := range texts[key] {
				all = append(all, TextInput{path + "inputs." + key, text})
			}
		}
		for _, slug := range step.ToolSlugs() {
			if named := v.bySlug[slug]; named != nil {
				all = append(all, v.writtenTexts(named, path, limit-1)...)
			}
		}
	}
	return all
}
