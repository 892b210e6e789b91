package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/flow"
)

// Change is one change that Apply made to the stored catalog.
type Change struct {
	Kind   string // tool, tool_tag or kit
	Slug   string
	ID     string
	Action string // added, changed or removed
}

// Apply updates the stored catalog to match the set, in one transaction. Items
// from sources that are not in the set, and items whose manifest has a problem,
// stay unchanged. The pictures of the set must be stored before Apply is
// called.
func Apply(ctx context.Context, db *sqldb.DB, s *Set) ([]Change, error) {
	var changes []Change
	err := db.Write(ctx, func(tx *sqldb.Tx) error {
		changes = nil
		if err := Lock(ctx, tx); err != nil {
			return err
		}

		for _, k := range []kind{tagKind, toolKind, kitKind} {
			made, err := s.applyKind(ctx, tx, k)
			if err != nil {
				return err
			}

			changes = append(changes, made...)
			if k == toolKind {
				if changes, err = updateFlows(ctx, tx, changes); err != nil {
					return err
				}
			}
			failpoint.Hit("catalog.mid")
		}
		if len(changes) == 0 {
			return nil
		}
		return incrementVersion(ctx, tx)
	})
	if err != nil {
		return nil, fmt.Errorf("apply catalog: %w", err)
	}
	return changes, nil
}

func (s *Set) applyKind(ctx context.Context, tx *sqldb.Tx, k kind) ([]Change, error) {
	stored, err := readRows(ctx, tx, k)
	if err != nil {
		return nil, err
	}

	var changes []Change
	wanted := s.entriesOf(k)
	for _, slug := range sortedKeys(wanted) {
		want := wanted[slug]
		have, known := stored[slug]
		what := "changed"
		switch {
		case !known:
			have = row{id: ids.New(), slug: slug}
			what = "added"
		case !slices.Contains(s.sources, have.source) && !have.removed:
			continue // the stored item comes from a manifest folder of another server node, and takes precedence over the built-in item
		case !have.removed && have.source != want.source && s.brokenLists[listFile{k, have.source}]:
			continue // the stored item comes from a list file that is invalid now; the built-in item must not replace the stored one
		case !have.removed && withoutPins(have.definition) == want.definition && have.source == want.source:
			continue
		case have.removed:
			what = "added"
		}

		have.source = want.source
		have.definition = want.definition
		have.removed = false
		if err := upsertRow(ctx, tx, k, have); err != nil {
			return nil, err
		}

		changes = append(changes, Change{string(k), slug, have.id, what})
	}

	for _, slug := range sortedKeys(stored) {
		have := stored[slug]
		_, still := wanted[slug]
		if still || have.removed || k == toolKind && (s.brokenTools[slug] || s.unknown[slug]) || s.brokenLists[listFile{k, have.source}] || !slices.Contains(s.sources, have.source) {
			continue
		}

		have.removed = true
		if err := upsertRow(ctx, tx, k, have); err != nil {
			return nil, err
		}

		changes = append(changes, Change{string(k), slug, have.id, "removed"})
	}
	return changes, nil
}

// updateFlows updates the hashes of tools in the manifests of all flows, also of
// those that the set does not contain and of saved flows. It adds the changes of
// the catalog to the changes.
func updateFlows(ctx context.Context, tx *sqldb.Tx, changes []Change) ([]Change, error) {
	stored, err := readRows(ctx, tx, toolKind)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, c := range changes {
		if c.Kind == string(toolKind) {
			changed = append(changed, c.Slug)
		}
	}
	updated, err := storePinned(ctx, tx, stored)
	if err != nil {
		return nil, err
	}
	for _, have := range updated {
		if !slices.Contains(changed, have.slug) {
			changed = append(changed, have.slug)
			changes = append(changes, Change{string(toolKind), have.slug, have.id, "changed"})
		}
	}
	return changes, updateSavedFlows(ctx, tx, stored, changed)
}

// updateSavedFlows updates the hashes of tools in the manifests of saved flows
// that use changed tools, directly or through other saved flows.
func updateSavedFlows(ctx context.Context, tx *sqldb.Tx, stored map[string]row, changed []string) error {
	hasUsers := false
	for range flow.MaxDepth {
		if len(changed) == 0 {
			break
		}
		users, err := readFlowsUsing(ctx, tx, changed)
		if err != nil {
			return err
		}
		hasUsers = hasUsers || len(users) > 0
		changed = nil
		for _, r := range users {
			named, err := readNamedTools(ctx, tx, r)
			if err != nil {
				return err
			}
			maps.Copy(stored, named)
			changed = append(changed, r.slug)
		}
	}
	if !hasUsers {
		return nil
	}
	_, err := storePinned(ctx, tx, stored)
	return err
}

// storePinned stores the manifests of flows in which hashes of tools are not
// current, and returns these flows. It updates the rows in stored.
func storePinned(ctx context.Context, tx *sqldb.Tx, stored map[string]row) (updated []row, err error) {
	pinned := newFlowPinner(stored).pinned
	for _, slug := range sortedKeys(pinned) {
		have := stored[slug]
		if have.definition == pinned[slug] {
			continue
		}
		have.definition = pinned[slug]
		have.hash = hashOf(have.definition)
		if err := upsertRow(ctx, tx, toolKind, have); err != nil {
			return nil, err
		}
		stored[slug] = have
		updated = append(updated, have)
	}
	return updated, nil
}

// AssetFolder is the prefix of the blob keys of pictures of the catalog. These
// pictures are never deleted.
const AssetFolder = "catalog"

// AssetKey returns the blob key of a picture of the catalog.
func AssetKey(a Asset) string { return AssetFolder + "/" + string(a) + ".png" }
