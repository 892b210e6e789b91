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

// versions are tools as they were, decoded, by hash.
type versions struct {
	mu   sync.RWMutex
	kept map[string]*Tool
}

func (v *versions) get(hash string) (*Tool, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t, ok := v.kept[hash]
	return t, ok
}

// keep gives the version that counts: another may have been quicker.
func (v *versions) keep(t *Tool) *Tool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if first, ok := v.kept[t.Hash]; ok {
		return first
	}
	if len(v.kept) >= maxVersions || v.kept == nil {
		v.kept = map[string]*Tool{}
	}
	v.kept[t.Hash] = t
	return t
}

// Version gives the tool that had a hash, whatever became of it since. It says
// what the manifest said: id, slug, times and average are not of a version. The
// tool is shared and must not be changed.
func (c *Catalog) Version(ctx context.Context, hash string) (*Tool, error) {
	if t, ok := c.versions.get(hash); ok {
		return t, nil
	}
	definition, err := version(ctx, c.db, hash)
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
	return c.versions.keep(t), nil
}

// decodeTool reads a stored manifest.
func decodeTool(definition string) (*Tool, error) {
	return decode(definition, func(d *reader, n *yaml.Node) *Tool { return d.tool(n, nil) })
}
