// Package toolsync applies manifests to the stored catalog, and refreshes this
// node's snapshot when the stored catalog changes.
package toolsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
)

// Curator reads the manifests of some sources and applies them.
type Curator struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Catalog *catalog.Catalog
	From    []catalog.From
	Log     *slog.Logger
	// Every is the interval at which Run checks for changes.
	Every time.Duration
	// Asked makes Run apply the manifests at once (SIGHUP).
	Asked <-chan struct{}
	Now   func() time.Time

	lastFingerprint uint64 // fingerprint of the manifests that were applied last
}

// Result is the result of applying the manifests once.
type Result struct {
	Changes  []catalog.Change
	Problems []catalog.Problem
	Warnings []catalog.Problem
	Left     []string // slugs of tools that this node cannot run
}

// Apply reads the manifests and applies the valid ones.
func (c *Curator) Apply(ctx context.Context) (Result, error) {
	set, err := catalog.Read(c.From...)
	if err != nil {
		return Result{}, err
	}

	result := Result{Problems: set.Problems, Warnings: set.Warnings, Left: set.Left()}
	if err := c.storeAssets(ctx, set.Assets); err != nil {
		return result, err
	}

	result.Changes, err = catalog.Apply(ctx, c.DB, set)
	return result, err
}

// storeAssets stores pictures in the blob store, where all nodes find them.
// Their keys are hashes of their content, so an existing one is never replaced.
func (c *Curator) storeAssets(ctx context.Context, assets map[catalog.Asset][]byte) error {
	for a, data := range assets {
		_, err := c.Blobs.Stat(ctx, catalog.AssetKey(a))
		if errors.Is(err, blob.ErrNotFound) {
			_, err = c.Blobs.Put(ctx, catalog.AssetKey(a), bytes.NewReader(data))
		}
		if err != nil {
			return fmt.Errorf("store picture: %w", err)
		}
	}
	return nil
}

// Load applies the manifests and loads the catalog when a node starts. Problems
// in manifests do not stop it.
func (c *Curator) Load(ctx context.Context) error {
	if err := c.reloadManifests(ctx); err != nil {
		return err
	}
	_, err := c.Catalog.Refresh(ctx)
	return err
}

// Run watches the manifests and the stored catalog until ctx ends. It compares
// names, sizes and times of files, because network file systems and mounted
// configuration do not send change notifications.
func (c *Curator) Run(ctx context.Context) {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		apply := false
		select {
		case <-ctx.Done():
			return
		case <-c.Asked:
			apply = true
		case <-tick.C:
		}
		if apply || c.computeFingerprint() != c.lastFingerprint {
			if err := c.reloadManifests(ctx); err != nil {
				c.Log.Warn("catalog not applied; retrying", "error", err)
				continue
			}
		}
		if changed, err := c.Catalog.Refresh(ctx); err != nil {
			c.Log.Warn("catalog not refreshed; serving the previous version", "error", err)
		} else if changed {
			c.Log.Info("catalog loaded", "version", c.Catalog.Snapshot().Version)
		}
	}
}

// reloadManifests applies the manifests and logs the result. Edits during the
// call count as a new change.
func (c *Curator) reloadManifests(ctx context.Context) error {
	before := c.computeFingerprint()
	result, err := c.Apply(ctx)
	for _, p := range result.Problems {
		c.Log.Error("manifest has a problem; the stored items stay unchanged", "at", p.String())
	}

	for _, w := range result.Warnings {
		c.Log.Warn("manifest has a probable mistake", "at", w.String())
	}
	if len(result.Left) > 0 {
		c.Log.Info("tools left out because their program is missing; run atelier tools doctor", "tools", strings.Join(result.Left, ", "))
	}
	if err != nil {
		return err
	}
	if len(result.Changes) > 0 {
		c.logChanges(result.Changes)
	}

	c.lastFingerprint = before
	return nil
}

// maxLoggedChanges is the maximum number of changes that the log lists. At the
// first start the whole built-in catalog is new, and only the counts are
// logged.
const maxLoggedChanges = 5

func (c *Curator) logChanges(all []catalog.Change) {
	counts := map[string]int{}
	var names []string
	for _, ch := range all {
		counts[ch.What]++
		names = append(names, ch.What+" "+ch.Kind+" "+ch.Slug)
	}

	attributes := []any{"added", counts["added"], "changed", counts["changed"], "removed", counts["removed"]}
	if len(names) <= maxLoggedChanges {
		attributes = append(attributes, "items", strings.Join(names, ", "))
	}

	c.Log.Info("catalog changed", attributes...)
	c.Log.Debug("catalog changes", "items", strings.Join(names, ", "))
}

// recentEdit is the age below which another edit may leave the modification
// time unchanged.
const recentEdit = 2 * time.Second

// computeFingerprint returns a value that changes with every file of the
// sources. It includes the content of recently edited files. When they are no
// longer recent, the value changes once more, which causes one pass without
// changes.
func (c *Curator) computeFingerprint() uint64 {
	h := fnv.New64a()
	for _, f := range c.From {
		all, err := fs.ReadDir(f.Files, ".")
		fmt.Fprintln(h, f.Source, err)
		for _, e := range all {
			info, err := e.Info()
			if err != nil {
				continue // removed meanwhile
			}

			fmt.Fprintln(h, e.Name(), info.Size(), info.ModTime().UnixNano())
			if c.Now().Sub(info.ModTime()) < recentEdit && info.Mode().IsRegular() {
				text, _ := fs.ReadFile(f.Files, e.Name())
				h.Write(text)
			}
		}
	}
	return h.Sum64()
}
