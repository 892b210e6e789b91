package catalog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"atelier/internal/base/sqldb"
)

// Snapshot is the whole catalog at one version. It does not change.
type Snapshot struct {
	Version int64

	tools      []*Tool // in list order, removed ones left out
	restricted []*Tool // those of them that not everybody sees
	tags       map[string]Tag
	kits       []Kit
	names      map[string]string // of all tools by id, removed ones too

	mu       sync.RWMutex
	views    map[Audience]*View
	distinct map[string]*View // by which of the restricted tools it has, and what its role allows
}

// View is what some audiences see of a snapshot. It does not change, and all
// audiences that see the same tools have the same one.
type View struct {
	Tools []*Tool // in list order

	byID, bySlug map[string]*Tool
	byTag        map[string][]*Tool // by the tag's id
	tags         map[string]Tag
	kits         []Kit
}

// maxViews bounds the memory of one snapshot: beyond it the views are made anew.
const maxViews = 1000

// View gives what the audience sees.
func (s *Snapshot) View(a Audience) *View {
	s.mu.RLock()
	v, ok := s.views[a]
	s.mu.RUnlock()
	if ok {
		return v
	}
	seen := make([]byte, len(s.restricted))
	for i, t := range s.restricted {
		if t.Visibility.Includes(a) {
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

func (s *Snapshot) buildView(a Audience) *View {
	v := &View{
		byID:   map[string]*Tool{},
		bySlug: map[string]*Tool{},
		byTag:  map[string][]*Tool{},
		tags:   s.tags,
		kits:   s.kits,
	}
	for _, t := range s.tools {
		if !a.Sees(t) {
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

// Tools gives every tool in list order, whoever may see it.
func (s *Snapshot) Tools() []*Tool { return s.tools }

// Name gives the name of a tool, also of one that is no longer offered; "" where
// there never was one.
func (s *Snapshot) Name(id string) string { return s.names[id] }

// Tagged gives the ids of all tools with a tag, whoever may see them. A tag
// that is hidden or unknown has none.
func (s *Snapshot) Tagged(tagID string) []string {
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

// Tool finds a tool by id.
func (v *View) Tool(id string) (*Tool, bool) {
	t, ok := v.byID[id]
	return t, ok
}

// Tagged gives the tools with a tag, in list order. A tag that is hidden or
// unknown has none.
func (v *View) Tagged(tagID string) []*Tool { return v.byTag[tagID] }

// TagsOf gives the tags of a tool that may be shown, in the manifest's order.
func (v *View) TagsOf(t *Tool) []Tag {
	var shown []Tag
	for _, slug := range t.Tags {
		if g, ok := v.tags[slug]; ok && !g.Internal {
			shown = append(shown, g)
		}
	}
	return shown
}

// Tags gives the whole vocabulary that may be shown, by type, then label.
func (v *View) Tags() []Tag {
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

// Kits gives the shortlists, each with the entries that can be seen; a kit
// without any is left out. The default is the first entry where the kit's own
// cannot be seen. Tags are those of the entries, in the kit's order: clients
// make a tab of each, and one without a tool would be empty.
func (v *View) Kits() []ShownKit {
	var all []ShownKit
	for _, k := range v.kits {
		shown := ShownKit{Kit: k, Default: v.bySlug[k.Default]}
		for _, e := range k.Entries {
			if t := v.bySlug[e.Tool]; t != nil {
				shown.Tools = append(shown.Tools, ShownEntry{e, t})
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

// usedTags gives the tags that a shown tool has: those of the kit in its order,
// then others as they come.
func (k ShownKit) usedTags() []string {
	var used []string
	for _, e := range k.Tools {
		for _, tag := range e.Tags {
			if !slices.Contains(used, tag) {
				used = append(used, tag)
			}
		}
	}
	place := func(tag string) int {
		if i := slices.Index(k.Kit.Tags, tag); i >= 0 {
			return i
		}
		return len(k.Kit.Tags)
	}
	slices.SortStableFunc(used, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return used
}

// ShownKit is a kit as an audience sees it.
type ShownKit struct {
	Kit
	Default *Tool
	Tools   []ShownEntry
}

// ShownEntry is a tool in a shown kit.
type ShownEntry struct {
	KitEntry
	Tool *Tool
}

// Catalog holds the newest snapshot this node knows.
type Catalog struct {
	db  *sqldb.DB
	log *slog.Logger

	refreshing sync.Mutex
	current    atomic.Pointer[Snapshot]
	decoded    map[string]*Tool // by id and hash; guarded by refreshing

	versions versionCache
}

// New makes a catalog that is empty until the first Refresh.
func New(db *sqldb.DB, log *slog.Logger) *Catalog {
	c := &Catalog{db: db, log: log}
	c.current.Store(&Snapshot{Version: -1})
	return c
}

// Snapshot gives the newest catalog that was loaded.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Refresh loads the catalog if its version has moved and tells whether it did.
func (c *Catalog) Refresh(ctx context.Context) (bool, error) {
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
	s := &Snapshot{tags: map[string]Tag{}, names: map[string]string{}}
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
		if !r.removed {
			s.tools = append(s.tools, t)
		}
	}
	slices.SortFunc(s.tools, func(a, b *Tool) int { return a.Key().Compare(b.Key()) })
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

// buildTool makes a tool of a row. What an earlier refresh decoded is used again,
// so that one edit among a thousand tools costs one decoding.
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
	t.ID = r.id
	t.Slug = r.slug
	t.Hash = r.hash
	t.Average = r.average
	t.Recent = r.recent
	t.Created = r.created
	t.Updated = r.updated
	return &t, nil
}

// logUnreadable reports a stored item that this release does not understand.
func (c *Catalog) logUnreadable(r row, err error) {
	c.log.Error("stored catalog item cannot be read; it is left out", "slug", r.slug, "id", r.id, "error", err)
}
