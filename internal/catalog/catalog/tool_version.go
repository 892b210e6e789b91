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

// maxVersions bounds the memory of versions: when it is full all are dropped.
const maxVersions = 1000

// versionCache are tools as they were, decoded, by hash.
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

// addVersion gives the version that counts: another may have been quicker.
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

// Version gives the tool that had a hash, whatever became of it since. It says
// what the manifest said: id, slug, times and average are not of a version. The
// tool is shared and must not be changed.
func (c *Catalog) Version(ctx context.Context, hash string) (*Tool, error) {
	if t, ok := c.versions.findVersion(hash); ok {
		return t, nil
	}
	definition, err := versionDefinition(ctx, c.db, hash)
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "There is no such version of a tool.")
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

// decodeTool reads a stored manifest.
func decodeTool(definition string) (*Tool, error) {
	return decodeStored(definition, func(d *manifestReader, n *yaml.Node) *Tool { return d.readTool(n, nil) })
}
