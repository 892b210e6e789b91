//go:build !failpoint

package main

import "atelier/internal/engine"

// addTestManuals adds nothing, like addTestEngines.
func addTestManuals(map[string]engine.ManifestSpec) {}

// addTestEngines adds nothing: only builds for tests have engines that do what
// they are told.
func addTestEngines(map[string]engine.Pool, func(int) int) {}
