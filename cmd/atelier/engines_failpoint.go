//go:build failpoint

package main

import (
	"atelier/internal/engine"
	"atelier/internal/engine/script"
)

// addTestEngines adds the engine that tests dictate to.
func addTestEngines(all map[string]engine.Pool, parallel func(int) int) {
	all["script"] = engine.Pool{Engine: script.New(), Parallel: parallel(16)}
}
