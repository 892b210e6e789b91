//go:build !failpoint

package main

import "atelier/internal/engine"

// addTestManuals does nothing, like addTestEngines.
func addTestManuals(map[string]engine.ManifestSpec) {}

// addTestEngines does nothing: only builds for tests have engines with scripted
// behaviour.
func addTestEngines(map[string]engine.Pool, func(int) int) {}
