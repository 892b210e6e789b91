//go:build failpoint

package main

import (
	"atelier/internal/engine"
	"atelier/internal/engine/scriptengine"
)

// addTestManuals adds the manual of that engine: it takes anything.
func addTestManuals(all map[string]engine.ManifestSpec) { all["script"] = engine.ManifestSpec{} }

// addTestEngines adds the engine that tests dictate to.
func addTestEngines(all map[string]engine.Pool, parallel func(int) int) {
	all["script"] = engine.Pool{Engine: scriptengine.New(), Parallel: parallel(16)}
}
