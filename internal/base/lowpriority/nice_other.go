//go:build !linux

package lowpriority

// yieldToOthers does nothing, because on other systems the nice value applies
// to the whole process.
func yieldToOthers() {}
