package lowpriority

import "syscall"

// yieldToOthers lowers the priority of the calling thread. This works because
// on Linux each thread has its own nice value. If the system does not permit
// it, the priority stays the same.
func yieldToOthers() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10) }
