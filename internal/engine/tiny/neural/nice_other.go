//go:build !linux

package neural

// yieldToOthers has no counterpart where niceness belongs to processes.
func yieldToOthers() {}
