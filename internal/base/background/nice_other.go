//go:build !linux

package background

// yieldToOthers has no counterpart where niceness belongs to processes.
func yieldToOthers() {}
