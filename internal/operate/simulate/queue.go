package simulate

import (
	"container/heap"
	"math"
	"time"

	"atelier/internal/run/run"
)

// queuedRun is a run that has been created. Times are simulated times since the
// start.
type queuedRun struct {
	id        int64 // ascending in the order of creation
	person    int
	group     int
	tool      string
	created   time.Duration
	headStart time.Duration
	duration  time.Duration
}

// engineQueue has the waiting runs of an engine, and chooses the next one by the
// rule that package run implements in SQL: Enqueue is add, Claim is next. Tests
// compare the two. The rule cannot be shared as code, because in the product it
// is the order of an index that several nodes read.
type engineQueue struct {
	turns   map[int]*turn // by person
	ordered turnHeap      // turns of the people with waiting runs
}

// turn is the counterpart of a row in the table run_turn.
type turn struct {
	person    int
	served    time.Duration
	since     time.Duration
	headStart time.Duration
	waiting   runHeap
	position  int // in the heap of turns
}

// neverServed is the field served of a person without a claim.
const neverServed = time.Duration(math.MinInt64)

func newEngineQueue() *engineQueue { return &engineQueue{turns: map[int]*turn{}} }

// add queues a run.
func (q *engineQueue) add(now time.Duration, r *queuedRun) {
	t := q.turns[r.person]
	if t == nil {
		t = &turn{person: r.person, served: neverServed}
		q.turns[r.person] = t
	}
	if len(t.waiting) > 0 {
		t.headStart = max(t.headStart, r.headStart)
		heap.Push(&t.waiting, r)
		heap.Fix(&q.ordered, t.position)
		return
	}
	t.since = max(t.served, now-run.ServedLately)
	t.headStart = r.headStart
	heap.Push(&t.waiting, r)
	heap.Push(&q.ordered, t)
}

// next removes and returns the run that is executed next, or nil if none waits.
func (q *engineQueue) next(now time.Duration) *queuedRun {
	if len(q.ordered) == 0 {
		return nil
	}
	t := q.ordered[0]
	r := heap.Pop(&t.waiting).(*queuedRun)
	t.served = now
	t.since = now
	if len(t.waiting) == 0 {
		t.headStart = 0
		heap.Pop(&q.ordered)
		return r
	}
	t.headStart = t.waiting[0].headStart
	heap.Fix(&q.ordered, 0)
	return r
}

// remaining returns the runs that wait, in no particular order.
func (q *engineQueue) remaining() (all []*queuedRun) {
	for _, t := range q.ordered {
		all = append(all, t.waiting...)
	}
	return all
}

// turnHeap has the turn that comes next first.
type turnHeap []*turn

func (h turnHeap) Len() int { return len(h) }

func (h turnHeap) Less(i, j int) bool {
	a := h[i].since - h[i].headStart
	b := h[j].since - h[j].headStart
	return a < b || a == b && h[i].person < h[j].person
}

func (h turnHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position = i
	h[j].position = j
}

// Push implements heap.Interface.
func (h *turnHeap) Push(x any) {
	t := x.(*turn)
	t.position = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

// runHeap has the run of a person that comes next first.
type runHeap []*queuedRun

func (h runHeap) Len() int { return len(h) }

func (h runHeap) Less(i, j int) bool {
	a := h[i].created - h[i].headStart
	b := h[j].created - h[j].headStart
	return a < b || a == b && h[i].id < h[j].id
}

func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *runHeap) Push(x any) { *h = append(*h, x.(*queuedRun)) }

// Pop implements heap.Interface.
func (h *runHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}
