package lowpriority

import "syscall"

// yieldToOthers lowers the priority of the calling thread: on Linux a thread has
// a niceness of its own. If that is forbidden, the priority stays the same.
func yieldToOthers() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10) }
