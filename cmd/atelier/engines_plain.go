//go:build !failpoint

package main

import "atelier/internal/engine"

// addTestManuals does nothing, because only builds for tests have the script
// engine.
func addTestManuals(map[string]engine.ManifestSpec) {}

// addTestEngines does nothing, because only builds for tests have the script
// engine.
func addTestEngines(map[string]engine.Slots, func(int) int) {}
