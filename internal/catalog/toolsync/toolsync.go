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

// Syncer reads the manifests of some sources and applies them.
type Syncer struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Catalog *catalog.Catalog
	Folders []catalog.ManifestFolder
	Log     *slog.Logger
	// Interval is the interval at which Run checks for changes.
	Interval time.Duration
	// Reload makes Run apply the manifests at once (SIGHUP).
	Reload <-chan struct{}
	Now    func() time.Time

	lastFingerprint uint64 // fingerprint of the manifests that were applied last
}

// Report is the result of applying the manifests once.
type Report struct {
	Changes     []catalog.Change
	Problems    []catalog.Problem
	Warnings    []catalog.Problem
	Unavailable []string // slugs of tools that this node cannot run
}

// ApplyManifests reads the manifests and applies the valid ones.
func (c *Syncer) ApplyManifests(ctx context.Context) (Report, error) {
	set, err := catalog.Read(c.Folders...)
	if err != nil {
		return Report{}, err
	}

	result := Report{Problems: set.Problems, Warnings: set.Warnings, Unavailable: set.UnavailableTools()}
	if err := c.storeAssets(ctx, set.Assets); err != nil {
		return result, err
	}

	result.Changes, err = catalog.Apply(ctx, c.DB, set)
	return result, err
}

// storeAssets stores pictures in the blob store, where all nodes find them.
// Their keys are hashes of their content, so an existing one is never replaced.
func (c *Syncer) storeAssets(ctx context.Context, assets map[catalog.Asset][]byte) error {
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

// LoadCatalog applies the manifests and loads the catalog when a node starts. Problems
// in manifests do not stop it.
func (c *Syncer) LoadCatalog(ctx context.Context) error {
	if err := c.reloadManifests(ctx); err != nil {
		return err
	}
	_, err := c.Catalog.RefreshSnapshot(ctx)
	return err
}

// Run watches the manifests and the stored catalog until ctx ends. It compares
// names, sizes and times of files, because network file systems and mounted
// configuration do not send change notifications.
func (c *Syncer) Run(ctx context.Context) {
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		apply := false
		select {
		case <-ctx.Done():
			return
		case <-c.Reload:
			apply = true
		case <-tick.C:
		}
		if apply || c.computeFingerprint() != c.lastFingerprint {
			if err := c.reloadManifests(ctx); err != nil {
				c.Log.Warn("could not apply the manifests to the catalog; retrying", "error", err)
				continue
			}
		}
		if changed, err := c.Catalog.RefreshSnapshot(ctx); err != nil {
			c.Log.Warn("could not reload the catalog; serving the previous version", "error", err)
		} else if changed {
			c.Log.Info("catalog loaded", "version", c.Catalog.CurrentSnapshot().Version)
		}
	}
}

// reloadManifests applies the manifests and logs the result. Edits during the
// call count as a new change.
func (c *Syncer) reloadManifests(ctx context.Context) error {
	before := c.computeFingerprint()
	result, err := c.ApplyManifests(ctx)
	for _, p := range result.Problems {
		c.Log.Error("manifest has a problem; the stored items stay unchanged", "at", p.String())
	}

	for _, w := range result.Warnings {
		c.Log.Warn("manifest probably contains a mistake", "at", w.String())
	}
	if len(result.Unavailable) > 0 {
		c.Log.Info("tools left out because their program is missing; run atelier tools doctor", "tools", strings.Join(result.Unavailable, ", "))
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

func (c *Syncer) logChanges(all []catalog.Change) {
	counts := map[string]int{}
	var names []string
	for _, ch := range all {
		counts[ch.Action]++
		names = append(names, ch.Action+" "+ch.Kind+" "+ch.Slug)
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
func (c *Syncer) computeFingerprint() uint64 {
	h := fnv.New64a()
	for _, f := range c.Folders {
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
