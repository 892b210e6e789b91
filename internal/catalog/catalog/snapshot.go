package catalog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/flow"
)

// Snapshot is the whole catalog at one version. It is immutable.
type Snapshot struct {
	Version int64

	tools      []*Tool // in list order (see SortKey), without removed tools
	restricted []*Tool // tools with restricted visibility
	tags       map[string]Tag
	kits       []Kit
	names      map[string]string // names of tools by ID, including removed tools
	bySlug     map[string]*Tool  // without removed tools
	idBySlug   map[string]string // IDs of tools, including removed tools

	mu       sync.RWMutex
	views    map[Audience]*View
	merged   map[mergedKey]*View // views with saved flows (see ViewOf)
	distinct map[string]*View    // views by a key that contains the visible restricted tools and the allowed and blocked tools of the role
}

// View is the part of a snapshot that an audience may see. It is immutable.
// Audiences that see the same tools use the same view.
type View struct {
	Tools []*Tool // in list order (see SortKey)

	byID, bySlug map[string]*Tool
	byTag        map[string][]*Tool // by tag ID
	tags         map[string]Tag
	kits         []Kit
	blockedSteps map[string]string // the first step that cannot run, by the id of a saved flow
	flowProblems map[string][]Remark
}

// maxViews is the maximum number of cached views. When it is reached, the cache
// is emptied.
const maxViews = 1000

// ViewFor returns the part of the catalog that an audience may see. Views are
// cached.
func (s *Snapshot) ViewFor(a Audience) *View {
	s.mu.RLock()
	v, ok := s.views[a]
	s.mu.RUnlock()
	if ok {
		return v
	}

	seen := make([]byte, len(s.restricted))
	for i, t := range s.restricted {
		if t.Visibility.IncludesAudience(a) {
			seen[i] = 1
		}
	}

	seen = fmt.Appendf(seen, "%s|%s", a.Allowed, a.Blocked)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.views) >= maxViews || s.views == nil {
		s.views = map[Audience]*View{}
	}
	if len(s.distinct) >= maxViews || s.distinct == nil {
		s.distinct = map[string]*View{}
	}

	v, ok = s.distinct[string(seen)]
	if !ok {
		v = s.buildView(a)
		s.distinct[string(seen)] = v
	}

	s.views[a] = v
	return v
}

// mergedKey names a view with saved flows.
type mergedKey struct {
	base  *View
	flows string // ids and hashes
}

func (s *Snapshot) findMerged(key mergedKey) (*View, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.merged[key]
	return v, ok
}

func (s *Snapshot) keepMerged(key mergedKey, v *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.merged) >= maxViews || s.merged == nil {
		s.merged = map[mergedKey]*View{}
	}
	s.merged[key] = v
}

func (s *Snapshot) buildView(a Audience) *View {
	v := &View{
		byID:   map[string]*Tool{},
		bySlug: map[string]*Tool{},
		byTag:  map[string][]*Tool{},
		tags:   s.tags,
		kits:   s.kits,
	}
	find := s.finderFor(a)
	for _, t := range s.tools {
		if !a.CanSee(t) || findBlockedStep(t, find, flow.MaxDepth) != "" {
			continue
		}

		v.Tools = append(v.Tools, t)
		v.byID[t.ID] = t
		v.bySlug[t.Slug] = t
		for _, g := range v.TagsOf(t) {
			v.byTag[g.ID] = append(v.byTag[g.ID], t)
		}
	}
	return v
}

// AllTools returns all tools in list order (see SortKey), without checking
// visibility.
func (s *Snapshot) AllTools() []*Tool { return s.tools }

// CurrentTool returns the slug and the tool with an ID, without checking
// visibility. The tool is nil if there is none any more.
func (s *Snapshot) CurrentTool(id string) (slug string, t *Tool) {
	for _, t := range s.tools {
		if t.ID == id {
			return t.Slug, t
		}
	}
	return "", nil
}

// ToolName returns the name of a tool, even if the tool was removed. It returns
// "" if the ID is unknown.
func (s *Snapshot) ToolName(id string) string { return s.names[id] }

// TaggedToolIDs returns the IDs of all tools with a tag, without checking
// visibility. It returns none for internal and unknown tags.
func (s *Snapshot) TaggedToolIDs(tagID string) []string {
	var ids []string
	for _, g := range s.tags {
		if g.ID != tagID || g.Internal {
			continue
		}
		for _, t := range s.tools {
			if slices.Contains(t.Tags, g.Slug) {
				ids = append(ids, t.ID)
			}
		}
	}
	return ids
}

// ToolByID returns the tool with the given ID. ok is false if it does not exist
// or is not visible.
func (v *View) ToolByID(id string) (*Tool, bool) {
	t, ok := v.byID[id]
	return t, ok
}

// ToolByName returns the tool with the given ID or, if there is none, with the
// given slug. ok is false if it does not exist or is not visible.
func (v *View) ToolByName(name string) (*Tool, bool) {
	if t, ok := v.byID[name]; ok {
		return t, true
	}
	t, ok := v.bySlug[name]
	return t, ok
}

// BlockedStep returns the first step of a saved flow whose tool does not exist
// any more or may not be used, and "" if there is none.
func (v *View) BlockedStep(toolID string) string { return v.blockedSteps[toolID] }

// FlowProblems returns why a saved flow no longer fits the tools that it names.
func (v *View) FlowProblems(toolID string) []Remark { return v.flowProblems[toolID] }

// ToolBySlug returns the tool with the given slug. ok is false if it does not
// exist or is not visible.
func (v *View) ToolBySlug(slug string) (*Tool, bool) {
	t, ok := v.bySlug[slug]
	return t, ok
}

// ToolsByTag returns the visible tools with a tag, in list order (see SortKey).
// It returns none for internal and unknown tags.
func (v *View) ToolsByTag(tagID string) []*Tool { return v.byTag[tagID] }

// TagsOf returns the tags of a tool, in the order of its manifest. Internal
// tags are left out.
func (v *View) TagsOf(t *Tool) []Tag {
	var shown []Tag
	for _, slug := range t.Tags {
		if g, ok := v.tags[slug]; ok && !g.Internal {
			shown = append(shown, g)
		}
	}
	return shown
}

// PublicTags returns all tags that are not internal, sorted by type, then
// label.
func (v *View) PublicTags() []Tag {
	var all []Tag
	for _, g := range v.tags {
		if !g.Internal {
			all = append(all, g)
		}
	}

	slices.SortFunc(all, func(a, b Tag) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Label, b.Label), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// VisibleKits returns the kits with their visible tools. Kits without visible
// tools are left out. If the default tool of a kit is not visible, its first
// visible tool is the default. A kit has only the tags of its visible tools,
// because clients show a tab for each tag.
func (v *View) VisibleKits() []VisibleKit {
	var all []VisibleKit
	for _, k := range v.kits {
		shown := VisibleKit{Kit: k, Default: v.bySlug[k.Default]}
		for _, e := range k.Entries {
			if t := v.bySlug[e.Tool]; t != nil {
				shown.Tools = append(shown.Tools, VisibleKitEntry{e, t})
			}
		}
		if len(shown.Tools) == 0 {
			continue
		}
		if shown.Default == nil {
			shown.Default = shown.Tools[0].Tool
		}

		shown.Tags = shown.usedTags()
		all = append(all, shown)
	}
	return all
}

// usedTags returns the tags of the kit's visible tools: first the tags that the
// kit lists, in the order of the list, then all other tags.
func (k VisibleKit) usedTags() []string {
	var used []string
	for _, e := range k.Tools {
		for _, tag := range e.Tags {
			if !slices.Contains(used, tag) {
				used = append(used, tag)
			}
		}
	}

	position := func(tag string) int {
		if i := slices.Index(k.Kit.Tags, tag); i >= 0 {
			return i
		}
		return len(k.Kit.Tags)
	}

	slices.SortStableFunc(used, func(a, b string) int { return cmp.Compare(position(a), position(b)) })
	return used
}

// VisibleKit is a kit with the tools that are visible to an audience.
type VisibleKit struct {
	Kit
	Default *Tool
	Tools   []VisibleKitEntry
}

// VisibleKitEntry is a visible tool of a kit.
type VisibleKitEntry struct {
	KitEntry
	Tool *Tool
}

// Catalog provides the newest snapshot that this node has loaded.
type Catalog struct {
	db  *sqldb.DB
	log *slog.Logger

	refreshing sync.Mutex
	current    atomic.Pointer[Snapshot]
	decoded    map[string]*Tool // decoded tools by ID and hash; guarded by the mutex refreshing

	versions versionCache
}

// New returns a catalog that is empty until the first refresh.
func New(db *sqldb.DB, log *slog.Logger) *Catalog {
	c := &Catalog{db: db, log: log}
	c.current.Store(&Snapshot{Version: -1})
	return c
}

// CurrentSnapshot returns the snapshot that was loaded last.
func (c *Catalog) CurrentSnapshot() *Snapshot { return c.current.Load() }

// ToolNames returns the names of tools by id, without unknown ids. It includes
// removed tools and the saved flows of all accounts, also deleted ones. It reads
// from the database only if the snapshot does not know all ids.
func (c *Catalog) ToolNames(ctx context.Context, ids []string) (names map[string]string, err error) {
	snapshot := c.CurrentSnapshot()
	names, unknown := snapshot.knownNames(ids)
	if len(unknown) == 0 {
		return names, nil
	}
	err = c.db.Read(ctx, func(tx *sqldb.Tx) error {
		names, err = snapshot.ToolNames(ctx, tx, ids)
		return err
	})
	return names, err
}

// ToolNames is like Catalog.ToolNames, within a transaction.
func (s *Snapshot) ToolNames(ctx context.Context, tx *sqldb.Tx, ids []string) (map[string]string, error) {
	names, unknown := s.knownNames(ids)
	if len(unknown) == 0 {
		return names, nil
	}
	saved, err := FlowNames(ctx, tx, unknown)
	if err != nil {
		return nil, fmt.Errorf("read names of saved flows: %w", err)
	}
	maps.Copy(names, saved)
	return names, nil
}

// knownNames returns the names that the snapshot knows, and the other ids.
func (s *Snapshot) knownNames(ids []string) (names map[string]string, unknown []string) {
	names = make(map[string]string, len(ids))
	for _, id := range ids {
		if name := s.ToolName(id); name != "" {
			names[id] = name
		} else if id != "" && !slices.Contains(unknown, id) {
			unknown = append(unknown, id)
		}
	}
	return names, unknown
}

// RefreshSnapshot loads the catalog from the database if its version has
// changed, and reports whether it did.
func (c *Catalog) RefreshSnapshot(ctx context.Context) (bool, error) {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	var version int64
	if err := c.db.QueryRow(ctx, versionQuery).Scan(&version); err != nil {
		return false, fmt.Errorf("read catalog version: %w", err)
	}
	if version == c.current.Load().Version {
		return false, nil
	}

	next, err := c.loadSnapshot(ctx)
	if err != nil {
		return false, fmt.Errorf("load catalog: %w", err)
	}

	c.current.Store(next)
	return true, nil
}

func (c *Catalog) loadSnapshot(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{tags: map[string]Tag{}, names: map[string]string{}, bySlug: map[string]*Tool{}, idBySlug: map[string]string{}}
	var tools, tags, kits map[string]row
	err := c.db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		if err = tx.QueryRow(ctx, versionQuery).Scan(&s.Version); err != nil {
			return err
		}
		if tools, err = readRows(ctx, tx, toolKind); err != nil {
			return err
		}
		if tags, err = readRows(ctx, tx, tagKind); err != nil {
			return err
		}

		kits, err = readRows(ctx, tx, kitKind)
		return err
	})
	if err != nil {
		return nil, err
	}

	decoded := map[string]*Tool{}
	for _, r := range tools {
		t, err := c.buildTool(r)
		if err != nil {
			if !r.removed {
				c.logUnreadable(r, err)
			}
			continue
		}

		decoded[r.id+r.hash] = t
		s.names[t.ID] = t.Name
		s.idBySlug[t.Slug] = t.ID
		if !r.removed {
			s.tools = append(s.tools, t)
			s.bySlug[t.Slug] = t
		}
	}

	slices.SortFunc(s.tools, func(a, b *Tool) int { return a.SortKey().Compare(b.SortKey()) })
	for _, t := range s.tools {
		if t.Visibility.isRestricted() {
			s.restricted = append(s.restricted, t)
		}
	}

	for _, slug := range sortedKeys(tags) {
		if r := tags[slug]; !r.removed {
			g, err := decodeTag(r)
			if err != nil {
				c.logUnreadable(r, err)
				continue
			}
			s.tags[slug] = g
		}
	}

	for _, slug := range sortedKeys(kits) {
		if r := kits[slug]; !r.removed {
			k, err := decodeKit(r)
			if err != nil {
				c.logUnreadable(r, err)
				continue
			}
			s.kits = append(s.kits, k)
		}
	}

	c.decoded = decoded
	return s, nil
}

// buildTool builds a tool from its row in the database. It reuses tools that an
// earlier refresh decoded, so that only changed manifests are decoded.
func (c *Catalog) buildTool(r row) (*Tool, error) {
	var t Tool
	if before, ok := c.decoded[r.id+r.hash]; ok {
		t = *before
	} else {
		read, err := decodeTool(r.definition)
		if err != nil {
			return nil, err
		}
		t = *read
	}

	return r.tool(t), nil
}

// tool completes a decoded tool with the other columns of its row.
func (r row) tool(t Tool) *Tool {
	t.ID = r.id
	t.Slug = r.slug
	t.Hash = r.hash
	t.AverageDuration = r.average
	t.RecentDuration = r.recent
	t.Created = r.created
	t.Updated = r.updated
	return &t
}

// logUnreadable logs a stored item that this release of the program cannot
// decode.
func (c *Catalog) logUnreadable(r row, err error) {
	c.log.Error("stored catalog item is unreadable and was skipped", "slug", r.slug, "id", r.id, "error", err)
}
