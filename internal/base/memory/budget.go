// Package memory limits the memory of a process that is used for decoding
// pictures: by uploads and results that are being ingested, and by the shipped
// tools.
//
//	Acquire(owner, bytes, lane) ─▶ queue of that owner ─▶ slot in the lane and bytes of the budget ─▶ Reservation
//
// A request states the number of bytes that it needs before it allocates any.
// Each lane has slots of its own and a share of the budget, so that small
// pictures never wait for large ones, and the ingestion of a picture never waits
// for a tool. Within a lane, owners are served in turn, regardless of how many
// requests each has waiting.
package memory

import (
	"context"
	"errors"
	"slices"
	"sync"

	"atelier/internal/base/lowpriority"
)

// Lane is a kind of work with slots of its own.
type Lane int

// The lanes. Each lane may use less of the budget than the lanes before it, so
// that some memory is always left for the earlier lanes.
const (
	Quick     Lane = iota // reading a picture of usual size
	Tool                  // running a tool
	Large                 // reading a large picture
	LargeTool             // running a tool on large pictures
	lanes
)

// LargeBytes is the size from which work counts as large: decoding a photograph
// of about 20 megapixels needs less.
const LargeBytes = 64 << 20

// maxWaiting is the longest queue of one owner in a lane for ingested files.
const maxWaiting = 32

// Failures of Acquire. It also fails with the error of its context.
var (
	ErrNeverFits = errors.New("more memory than the lane ever has")
	ErrCrowded   = errors.New("too many requests of this owner wait for memory")
)

// Budget is a number of bytes and the slots to use them. It is safe for concurrent
// use.
type Budget struct {
	total int64

	mu    sync.Mutex
	used  int64
	lanes [lanes]lane
}

// lane has the slots of one kind of work and the queues for them.
type lane struct {
	slots    int   // 0: any number
	perOwner int   // slots per owner; 0: any number
	waiting  int   // waiting requests per owner; 0: any number
	share    int64 // limit on the use of all lanes together after a request of this lane was admitted

	busy        int
	busyByOwner map[string]int       // slots by owner
	queues      map[string][]*waiter // by owner; no queue is empty
	order       []string             // owners with a queue; the first is served next
}

type waiter struct {
	bytes int64
	ready chan struct{} // closed when the memory is reserved
}

// NewBudget returns a budget of the given number of bytes.
func NewBudget(bytes int64) *Budget { return newBudget(bytes, lowpriority.Cores()) }

func newBudget(bytes int64, cores int) *Budget {
	b := &Budget{total: max(bytes, 1)}
	b.lanes = [lanes]lane{
		// One owner leaves a slot to other owners and can still use all cores.
		Quick: {slots: cores + 1, perOwner: cores, waiting: maxWaiting, share: b.total},
		// The pools of engines limit the number of tools that run or wait.
		Tool:      {share: b.total - b.total/16},
		Large:     {slots: max(1, cores/2), waiting: maxWaiting, share: b.total - b.total/8},
		LargeTool: {slots: max(1, cores/2), share: b.total - b.total*3/8},
	}
	for i := range b.lanes {
		b.lanes[i].busyByOwner = map[string]int{}
		b.lanes[i].queues = map[string][]*waiter{}
	}
	return b
}

// MaxBytes returns the largest number of bytes that a request of a lane can reserve.
func (b *Budget) MaxBytes(l Lane) int64 { return b.lanes[l].share }

// Request is a request for memory.
type Request struct {
	Owner string // the person, or the address of an anonymous caller
	Bytes int64
	Lane  Lane
}

// Reservation is reserved memory.
type Reservation struct {
	budget  *Budget
	request Request
	once    sync.Once
}

// Acquire waits for memory until ctx ends. The caller must release the
// reservation, and must not have another one: two such callers would deadlock.
func (b *Budget) Acquire(ctx context.Context, r Request) (*Reservation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.Bytes = max(r.Bytes, 1)
	w := &waiter{bytes: r.Bytes, ready: make(chan struct{})}

	b.mu.Lock()
	l := &b.lanes[r.Lane]
	switch waiting := len(l.queues[r.Owner]); {
	case r.Bytes > l.share:
		b.mu.Unlock()
		return nil, ErrNeverFits
	case l.waiting > 0 && waiting >= l.waiting:
		b.mu.Unlock()
		return nil, ErrCrowded
	case waiting == 0:
		l.order = append(l.order, r.Owner)
	}
	l.queues[r.Owner] = append(l.queues[r.Owner], w)
	b.admitWaiting()
	b.mu.Unlock()

	select {
	case <-w.ready:
		return &Reservation{budget: b, request: r}, nil
	case <-ctx.Done():
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready: // the context ended and the memory was reserved
		b.returnMemory(r)
	default:
		l.removeWaiter(r.Owner, slices.Index(l.queues[r.Owner], w))
		b.admitWaiting() // the request may have blocked others
	}
	return nil, ctx.Err()
}

// Release frees the memory. Only the first call counts.
func (h *Reservation) Release() {
	h.once.Do(func() {
		h.budget.mu.Lock()
		defer h.budget.mu.Unlock()
		h.budget.returnMemory(h.request)
	})
}

func (b *Budget) returnMemory(r Request) {
	l := &b.lanes[r.Lane]
	b.used -= r.Bytes
	l.busy--
	if l.busyByOwner[r.Owner]--; l.busyByOwner[r.Owner] == 0 {
		delete(l.busyByOwner, r.Owner)
	}
	b.admitWaiting()
}

// admitWaiting admits the next requests of each lane while there is room. It
// does not skip a request that needs more than is free: such a request would
// wait forever.
func (b *Budget) admitWaiting() {
	for i := range b.lanes {
		for l := &b.lanes[i]; ; {
			at := l.nextOwner()
			if at < 0 {
				break
			}
			owner := l.order[at]
			w := l.queues[owner][0]
			if b.used+w.bytes > l.share {
				break
			}
			b.used += w.bytes
			l.busy++
			l.busyByOwner[owner]++
			l.order = append(slices.Delete(l.order, at, at+1), owner)
			l.removeWaiter(owner, 0)
			close(w.ready)
		}
	}
}

// nextOwner returns the index in order of the next owner with a free slot, or
// -1.
func (l *lane) nextOwner() int {
	if l.slots > 0 && l.busy >= l.slots {
		return -1
	}
	return slices.IndexFunc(l.order, func(owner string) bool { return l.perOwner == 0 || l.busyByOwner[owner] < l.perOwner })
}

// removeWaiter removes a waiter from an owner's queue.
func (l *lane) removeWaiter(owner string, i int) {
	l.queues[owner] = slices.Delete(l.queues[owner], i, i+1)
	if len(l.queues[owner]) == 0 {
		delete(l.queues, owner)
		at := slices.Index(l.order, owner)
		l.order = slices.Delete(l.order, at, at+1)
	}
}

type reservationKey struct{}

// WithReservation passes a reservation on: calls with the context may use the memory
// instead of a reservation of their own.
func WithReservation(ctx context.Context, h *Reservation) context.Context {
	return context.WithValue(ctx, reservationKey{}, h)
}

// Covers reports whether the context has a reservation of at least bytes.
func Covers(ctx context.Context, bytes int64) bool {
	h, ok := ctx.Value(reservationKey{}).(*Reservation)
	return ok && h != nil && bytes <= h.request.Bytes
}

// laneNames are the names of the lanes in metrics.
var laneNames = [lanes]string{Quick: "quick", Tool: "tool", Large: "large", LargeTool: "large_tool"}

// Stats are the figures of a budget.
type Stats struct {
	Total, Used int64          // bytes
	Waiting     map[string]int // requests, by the name of their lane
}

// Stats returns the figures of the budget.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{Total: b.total, Used: b.used, Waiting: map[string]int{}}
	for i := range b.lanes {
		n := 0
		for _, queue := range b.lanes[i].queues {
			n += len(queue)
		}
		s.Waiting[laneNames[i]] = n
	}
	return s
}
