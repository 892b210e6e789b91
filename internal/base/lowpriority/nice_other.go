//go:build !linux

package lowpriority

// yieldToOthers does nothing on systems where niceness is a property of the
// process.
func yieldToOthers() {}
