//go:build failpoint

package main

import (
	"atelier/internal/engine"
	"atelier/internal/engine/scriptengine"
)

// addTestManuals adds the manifest specification of the script engine, which
// accepts any manifest.
func addTestManuals(all map[string]engine.ManifestSpec) { all["script"] = engine.ManifestSpec{} }

// addTestEngines adds the script engine, whose behaviour the tests control.
func addTestEngines(all map[string]engine.Slots, parallel func(int) int) {
	all["script"] = engine.Slots{Engine: scriptengine.New(), Parallel: parallel(16)}
}
