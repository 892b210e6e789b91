package lowpriority

import "syscall"

// yieldToOthers returns the calling thread come after others: on Linux a thread
// has a niceness of its own. Where that is forbidden, it stays as it is.
func yieldToOthers() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10) }
