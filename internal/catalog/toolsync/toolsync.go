// Package toolsync keeps the stored catalog in step with the manifests, and
// this node's memory in step with the stored catalog.
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
	// Every is how often Run looks for changes.
	Every time.Duration
	// Asked makes Run apply the manifests at once (SIGHUP).
	Asked <-chan struct{}
	Now   func() time.Time

	lastFingerprint uint64 // what the manifests looked like when they were last applied
}

// Result is what one pass did.
type Result struct {
	Changes  []catalog.Change
	Problems []catalog.Problem
	Warnings []catalog.Problem
	Left     []string // tools that nothing here can run
}

// Apply reads the manifests and applies what is good of them.
func (c *Curator) Apply(ctx context.Context) (Result, error) {
	set, err := catalog.Read(c.From...)
	if err != nil {
		return Result{}, err
	}
	res := Result{Problems: set.Problems, Warnings: set.Warnings, Left: set.Left()}
	if err := c.storeAssets(ctx, set.Assets); err != nil {
		return res, err
	}
	res.Changes, err = catalog.Apply(ctx, c.DB, set)
	return res, err
}

// storeAssets puts the pictures where every node finds them. They are named by
// their content, so one that is there is right.
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

// Load applies the manifests and brings the catalog into memory, for a node
// that starts. Problems with manifests do not keep it from starting.
func (c *Curator) Load(ctx context.Context) error {
	if err := c.reloadManifests(ctx); err != nil {
		return err
	}
	_, err := c.Catalog.Refresh(ctx)
	return err
}

// Run watches the manifests and the stored catalog until ctx ends. Files are
// compared by size and time rather than by the system's notices, which network
// file systems and mounted configuration do not send.
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
				c.Log.Warn("catalog could not be applied; trying again", "error", err)
				continue
			}
		}
		if changed, err := c.Catalog.Refresh(ctx); err != nil {
			c.Log.Warn("catalog could not be refreshed; serving the last one", "error", err)
		} else if changed {
			c.Log.Info("catalog loaded", "version", c.Catalog.Snapshot().Version)
		}
	}
}

// reloadManifests applies the manifests and logs what came of it. What is edited while
// it reads counts as not seen.
func (c *Curator) reloadManifests(ctx context.Context) error {
	before := c.computeFingerprint()
	res, err := c.Apply(ctx)
	for _, p := range res.Problems {
		c.Log.Error("manifest has a problem; what it described stays as it was", "at", p.String())
	}
	for _, w := range res.Warnings {
		c.Log.Warn("manifest is not as it was probably meant", "at", w.String())
	}
	if len(res.Left) > 0 {
		c.Log.Info("tools are left out whose program is missing; atelier tools doctor names it", "tools", strings.Join(res.Left, ", "))
	}
	if err != nil {
		return err
	}
	if len(res.Changes) > 0 {
		c.logChanges(res.Changes)
	}
	c.lastFingerprint = before
	return nil
}

// maxLoggedChanges is how many changes the log names. The catalog that ships has
// many more at the first start, which are counted.
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

// recentEdit is how young a file is when another edit may leave its time as it was.
const recentEdit = 2 * time.Second

// computeFingerprint changes when a file of the sources does. The content of young
// files counts too; once they are old it does not, which looks like a change
// and leads to one more pass that finds none.
func (c *Curator) computeFingerprint() uint64 {
	h := fnv.New64a()
	for _, f := range c.From {
		all, err := fs.ReadDir(f.Files, ".")
		fmt.Fprintln(h, f.Source, err)
		for _, e := range all {
			info, err := e.Info()
			if err != nil {
				continue // gone since
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
