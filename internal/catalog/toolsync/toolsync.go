// Package toolsync applies manifests of tools to the catalog in the database,
// and reloads the catalog of this node when the database changes.
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

// Syncer reads folders of manifests and applies them to the catalog in the
// database.
type Syncer struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Catalog *catalog.Catalog
	Folders []catalog.ManifestFolder
	Log     *slog.Logger
	// Interval is the interval at which Run checks for changes.
	Interval time.Duration
	// Reload receives a value when the manifests must be applied immediately
	// (after SIGHUP).
	Reload <-chan struct{}
	Now    func() time.Time

	lastFingerprint uint64 // fingerprint of the files that were applied last
}

// Report is the result of applying the manifests once.
type Report struct {
	Changes     []catalog.Change
	Problems    []catalog.Problem
	Warnings    []catalog.Problem
	Unavailable []string // slugs of tools that this node cannot run
}

// ApplyManifests reads all manifests and applies the valid ones to the catalog
// in the database.
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

// storeAssets stores pictures in the blob store, where all nodes can read them.
// Existing pictures are not replaced, because their keys are hashes of their
// content.
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

// LoadCatalog applies the manifests and loads the catalog when a node starts.
// Problems in manifests are only logged.
func (c *Syncer) LoadCatalog(ctx context.Context) error {
	if err := c.reloadManifests(ctx); err != nil {
		return err
	}
	_, err := c.Catalog.RefreshSnapshot(ctx)
	return err
}

// Run applies changed manifests and reloads the changed catalog until ctx ends.
// It finds changes by comparing names, sizes and modification times of files,
// because network file systems and mounted configuration do not send change
// notifications.
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

// reloadManifests applies the manifests and logs the result. Files that change
// during the call are applied again by a later call.
func (c *Syncer) reloadManifests(ctx context.Context) error {
	before := c.computeFingerprint()
	result, err := c.ApplyManifests(ctx)
	for _, p := range result.Problems {
		c.Log.Error("manifest is invalid; its catalog items stay unchanged", "at", p.String())
	}

	for _, w := range result.Warnings {
		c.Log.Warn("manifest may contain a mistake", "at", w.String())
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

// maxLoggedChanges is the maximum number of changes that are logged one by one.
// If there are more, as at the first start, only the numbers of added, changed
// and removed items are logged.
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
	c.Log.Debug("full list of changed catalog items", "items", strings.Join(names, ", "))
}

// recentEdit is the time after an edit of a file during which another edit may
// not change the modification time of the file.
const recentEdit = 2 * time.Second

// computeFingerprint returns a hash that changes whenever a file in the folders
// changes. It covers names, sizes and modification times, and the content of
// recently edited files. When a file is no longer recently edited, the hash
// changes once more, and the manifests are applied again without effect.
func (c *Syncer) computeFingerprint() uint64 {
	h := fnv.New64a()
	for _, f := range c.Folders {
		all, err := fs.ReadDir(f.Files, ".")
		fmt.Fprintln(h, f.Source, err)
		for _, e := range all {
			info, err := e.Info()
			if err != nil {
				continue // the file was removed in the meantime
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
