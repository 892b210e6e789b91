//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var hits atomic.Int64

// Hit ends the process with SIGKILL if ATELIER_CRASH has the form name:nth and
// this is the nth call with that name.
func Hit(name string) {
	point, nth, _ := strings.Cut(os.Getenv("ATELIER_CRASH"), ":")
	if point != name {
		return
	}
	n, err := strconv.ParseInt(nth, 10, 64)
	if err != nil {
		n = 1
	}
	if hits.Add(1) == n {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
