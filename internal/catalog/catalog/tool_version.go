package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// maxVersions is the maximum number of cached tool versions. When it is
// reached, the cache is emptied.
const maxVersions = 1000

// versionCache caches decoded versions of tools by hash.
type versionCache struct {
	mu     sync.RWMutex
	byHash map[string]*Tool
}

func (v *versionCache) findVersion(hash string) (*Tool, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t, ok := v.byHash[hash]
	return t, ok
}

// addVersion adds a tool version to the cache. If a concurrent call has already
// added the same version, it returns the version in the cache.
func (v *versionCache) addVersion(t *Tool) *Tool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if first, ok := v.byHash[t.Hash]; ok {
		return first
	}
	if len(v.byHash) >= maxVersions || v.byHash == nil {
		v.byHash = map[string]*Tool{}
	}

	v.byHash[t.Hash] = t
	return t
}

// ToolVersion returns the version of a tool with the given hash, even if the
// tool was changed or removed later. It contains only the data of the manifest;
// ID, slug, times and durations are not set. The returned tool is cached and
// must not be changed.
func (c *Catalog) ToolVersion(ctx context.Context, hash string) (*Tool, error) {
	if t, ok := c.versions.findVersion(hash); ok {
		return t, nil
	}

	definition, err := versionDefinition(ctx, c.db, hash)
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "This version of the tool does not exist.")
	}
	if err != nil {
		return nil, fmt.Errorf("read tool version: %w", err)
	}

	t, err := decodeTool(definition)
	if err != nil {
		return nil, fmt.Errorf("read tool version %s: %w", hash, err)
	}

	t.Hash = hash
	return c.versions.addVersion(t), nil
}

// decodeTool decodes the stored manifest of a tool.
func decodeTool(definition string) (*Tool, error) {
	return decodeStored(definition, func(d *manifestReader, n *yaml.Node) *Tool { return d.readTool(n, nil) })
}
