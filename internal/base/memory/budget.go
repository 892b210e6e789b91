// Package memory limits how much memory a process uses for decoding pictures:
// for uploads and results that are being stored, and in the shipped tools.
//
//	Acquire(owner, bytes, lane) ─▶ queue of that owner ─▶ slot in the lane and bytes of the budget ─▶ Reservation
//
// A request states how many bytes it needs before it allocates any. Each lane
// has its own slots and its own limit on the budget, so that small pictures
// never wait for large ones, and storing a picture never waits for a tool.
// Within a lane the owners are served round-robin, regardless of how many
// requests each has waiting.
package memory

import (
	"context"
	"errors"
	"slices"
	"sync"

	"atelier/internal/base/lowpriority"
)

// Lane is a class of requests that has its own slots.
type Lane int

// The lanes. Each lane may use less of the budget than the lanes listed before
// it, so that it always leaves some memory for them.
const (
	Quick     Lane = iota // decoding a picture of usual size
	Tool                  // running a tool
	Large                 // decoding a large picture
	LargeTool             // running a tool on large pictures
	lanes
)

// LargeBytes is the number of bytes above which a request counts as large.
// Decoding a photograph of about 20 megapixels needs less.
const LargeBytes = 64 << 20

// maxWaiting is the maximum number of waiting requests per owner in the lanes
// Quick and Large.
const maxWaiting = 32

// The errors of Acquire, in addition to the error of its context.
var (
	ErrNeverFits = errors.New("the request needs more memory than its lane (a share of the memory budget) can ever provide")
	ErrCrowded   = errors.New("too many requests of this owner are waiting for memory")
)

// Budget is a number of bytes that concurrent requests share. It is safe for
// concurrent use.
type Budget struct {
	total int64

	mu    sync.Mutex
	used  int64
	lanes [lanes]lane
}

// lane has the slots of one class of requests and the requests that wait for
// them.
type lane struct {
	slots    int   // maximum number of concurrent requests; 0 means unlimited
	perOwner int   // maximum number of concurrent requests per owner; 0 means unlimited
	waiting  int   // maximum number of waiting requests per owner; 0 means unlimited
	share    int64 // a request is admitted only if the bytes used by all lanes, including it, do not exceed this limit

	busy        int
	busyByOwner map[string]int       // number of slots in use, by owner
	queues      map[string][]*waiter // waiting requests by owner; owners without waiting requests have no entry
	order       []string             // the owners with waiting requests; the first is served next
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
		// One owner can use all cores, and a slot remains for other owners.
		Quick: {slots: cores + 1, perOwner: cores, waiting: maxWaiting, share: b.total},
		// No limit on slots: the worker pools of the engines already limit how
		// many tools run.
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

// MaxBytes returns the maximum number of bytes that one request in a lane can
// reserve.
func (b *Budget) MaxBytes(l Lane) int64 { return b.lanes[l].share }

// Request is a request to reserve memory.
type Request struct {
	Owner string // the id of a person, or the IP address of an anonymous client
	Bytes int64
	Lane  Lane
}

// Reservation is memory that was reserved with Acquire. Release returns it.
type Reservation struct {
	budget  *Budget
	request Request
	once    sync.Once
}

// Acquire reserves memory, and waits for it until ctx ends. The caller must
// release the reservation. It must not call Acquire while it has another
// reservation, because two callers that each wait for more memory could
// deadlock.
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
	case <-w.ready: // the memory was reserved at the moment when the context ended
		b.returnMemory(r)
	default:
		l.removeWaiter(r.Owner, slices.Index(l.queues[r.Owner], w))
		b.admitWaiting() // the removed request may have blocked others
	}
	return nil, ctx.Err()
}

// Release returns the memory to the budget. Further calls have no effect.
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

// admitWaiting admits waiting requests of each lane, in order, while there is
// enough memory. It does not skip a request that does not fit yet: otherwise
// smaller requests could delay it forever.
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

// nextOwner returns the index in l.order of the next owner that may use a slot.
// It returns -1 if there is none.
func (l *lane) nextOwner() int {
	if l.slots > 0 && l.busy >= l.slots {
		return -1
	}
	return slices.IndexFunc(l.order, func(owner string) bool { return l.perOwner == 0 || l.busyByOwner[owner] < l.perOwner })
}

// removeWaiter removes the i-th waiting request of an owner.
func (l *lane) removeWaiter(owner string, i int) {
	l.queues[owner] = slices.Delete(l.queues[owner], i, i+1)
	if len(l.queues[owner]) == 0 {
		delete(l.queues, owner)
		at := slices.Index(l.order, owner)
		l.order = slices.Delete(l.order, at, at+1)
	}
}

type reservationKey struct{}

// WithReservation returns a context that carries a reservation. Functions that
// get this context may use the reserved memory instead of reserving their own.
func WithReservation(ctx context.Context, h *Reservation) context.Context {
	return context.WithValue(ctx, reservationKey{}, h)
}

// Covers reports whether the context carries a reservation of at least the
// given number of bytes.
func Covers(ctx context.Context, bytes int64) bool {
	h, ok := ctx.Value(reservationKey{}).(*Reservation)
	return ok && h != nil && bytes <= h.request.Bytes
}

// laneNames are the names of the lanes in Prometheus metrics.
var laneNames = [lanes]string{Quick: "quick", Tool: "tool", Large: "large", LargeTool: "large_tool"}

// Stats is the current use of a budget.
type Stats struct {
	Total, Used int64          // bytes
	Waiting     map[string]int // number of waiting requests, by the name of the lane
}

// Stats returns the current use of the budget.
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
