package neural

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"atelier/internal/testkit/watch"
)

// A thread that comes after others never goes back to Go, where it would slow
// down somebody's request: it ends with its crew.
func TestThreadsEndWithTheirCrew(t *testing.T) {
	t.Parallel()
	c := newWorkerPool([]*worker{{}, {}, {}})
	ids := make([]int, 3)
	var here sync.WaitGroup
	here.Add(len(ids))
	if err := c.runTask(func() {
		c.runParallel(len(ids), func(_ *worker, i int) {
			ids[i] = syscall.Gettid()
			here.Done()
			here.Wait() // so that everybody takes one part
		})
	}); err != nil {
		t.Fatal(err)
	}
	niceness := func(id int) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", id))
		if err != nil {
			return "ended"
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		return strings.Fields(rest)[16]
	}
	for _, id := range ids {
		if n := niceness(id); n != "10" {
			t.Errorf("a thread of the crew has niceness %s", n)
		}
	}
	c.stopWorkers()
	for _, id := range ids {
		if id == os.Getpid() {
			continue // the process's first thread cannot end; Go lets it sleep
		}
		watch.Until(t, "the end of a thread", func() bool { return niceness(id) == "ended" })
	}
}
