//go:build !linux

package lowpriority

// yieldToOthers has no counterpart where niceness belongs to processes.
func yieldToOthers() {}
