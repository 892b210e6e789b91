package clients_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// operation is a group of requests that fail in the same ways.
type operation string

const (
	create   operation = "create"
	upload   operation = "upload"
	wait     operation = "wait" // event streams
	refresh  operation = "refresh"
	download operation = "download"
	other    operation = "other" // mostly reads
)

// operationOf returns the operation that a request belongs to.
func operationOf(r *http.Request) operation {
	path := strings.TrimPrefix(r.URL.Path, "/api/v2")
	switch {
	case r.Method == http.MethodPost && path == "/generate":
		return create
	case strings.HasPrefix(path, "/uploads") && r.Method != http.MethodGet:
		return upload
	case strings.HasSuffix(path, "/events"):
		return wait
	case path == "/auth/token/refresh":
		return refresh
	case strings.HasPrefix(path, "/media/"):
		return download
	}
	return other
}

// fault is something that the proxy does to a request or its answer.
type fault string

const (
	none              fault = ""
	resetBefore       fault = "reset before the request"
	answerLost        fault = "answer lost"
	answerCut         fault = "answer cut"
	status408         fault = "status 408"
	status429         fault = "status 429"
	status503         fault = "status 503"
	status500         fault = "status 500"
	failedAfter       fault = "status 500 after the request was done"
	slowAnswer        fault = "slow answer"
	uploadCut         fault = "upload cut"
	eventsCut         fault = "event stream cut"
	downloadCut       fault = "download cut"
	downloadShortened fault = "download ends early without an error"
)

// decks has the faults of each operation. Each one comes up once before the
// first comes up again, so that a short run sees them all.
var decks = map[operation][]fault{
	create: {
		none, none, none, none, none, none, none, none, resetBefore, answerLost, answerLost, answerCut,
		status408, status429, status503, status500, failedAfter, failedAfter, slowAnswer,
	},
	upload: {
		none, none, none, uploadCut, uploadCut, resetBefore, answerLost, status503, failedAfter, slowAnswer,
	},
	wait: {
		none, none, none, none, eventsCut, eventsCut, eventsCut, resetBefore, status408, status429, status503, status500, slowAnswer,
	},
	refresh: {
		none, none, none, resetBefore, answerLost, answerLost, answerCut, status429, status503, status500, slowAnswer,
	},
	download: {
		none, none, none, none, none, downloadCut, downloadCut, downloadCut, downloadShortened, resetBefore, status429, status503, status500, slowAnswer,
	},
	other: {
		none, none, none, none, none, none, resetBefore, answerLost, answerCut, status408, status429, status503, status500, slowAnswer,
	},
}

// faults lists every fault once.
func faults() []fault {
	var all []fault
	for _, deck := range decks {
		all = append(all, deck...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(f fault) bool { return f == none })
}

// largeBody is the size from which the first request is always cut, because a
// driver sends only one such file.
const largeBody = 1 << 20

// inRow is how many requests of one call fail in a row at most. Clients may
// give up after some attempts, so there has to be a limit.
const inRow = 3

// plan decides which requests fail. The same seed gives the same faults to the
// first, second, third… request of an operation.
type plan struct {
	seed uint64

	mu       sync.Mutex
	rounds   map[operation]uint64
	left     map[operation][]fault
	failed   map[string]int // faults in a row, by call
	cutLarge bool
}

func newPlan(seed uint64) *plan {
	return &plan{
		seed:   seed,
		rounds: map[operation]uint64{},
		left:   map[operation][]fault{},
		failed: map[string]int{},
	}
}

// choose returns the fault of a request.
func (p *plan) choose(op operation, r *http.Request) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if op == upload && r.ContentLength >= largeBody && !p.cutLarge {
		p.cutLarge = true
		return uploadCut
	}
	call := r.Method + " " + r.URL.Path + " " + r.Header.Get("Idempotency-Key")
	if p.failed[call] >= inRow {
		delete(p.failed, call)
		return none
	}
	f := p.draw(op)
	if f == uploadCut && r.ContentLength == 0 {
		f = resetBefore
	}
	if f == none || f == slowAnswer {
		delete(p.failed, call)
	} else {
		p.failed[call]++
	}
	return f
}

// draw takes the next fault of an operation's deck.
func (p *plan) draw(op operation) fault {
	if len(p.left[op]) == 0 {
		deck := append([]fault(nil), decks[op]...)
		name := fnv.New64()
		name.Write([]byte(op))
		chance := rand.New(rand.NewPCG(p.seed, name.Sum64()+p.rounds[op]))
		chance.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		p.left[op] = deck
		p.rounds[op]++
	}
	f := p.left[op][0]
	p.left[op] = p.left[op][1:]
	return f
}

func TestPlan(t *testing.T) {
	t.Parallel()
	request := func(method, path string, length int64) *http.Request {
		r := httptest.NewRequest(method, path, nil)
		r.ContentLength = length
		return r
	}
	draw := func(seed uint64) []fault {
		p := newPlan(seed)
		var all []fault
		for i := range 200 {
			r := request(http.MethodPost, "/api/v2/generate", 100)
			r.Header.Set("Idempotency-Key", fmt.Sprint(i))
			all = append(all, p.choose(operationOf(r), r))
		}
		return all
	}
	if !slices.Equal(draw(1), draw(1)) {
		t.Error("the same seed gives different faults")
	}
	if slices.Equal(draw(1), draw(2)) {
		t.Error("different seeds give the same faults")
	}
	for _, f := range decks[create] {
		if !slices.Contains(draw(1)[:len(decks[create])], f) {
			t.Errorf("the first deck has no %q", f)
		}
	}

	p := newPlan(3)
	failed := 0
	for range 1000 {
		r := request(http.MethodGet, "/api/v2/tools", 0)
		if f := p.choose(operationOf(r), r); f == none || f == slowAnswer {
			failed = 0
		} else if failed++; failed > inRow {
			t.Fatalf("a call failed %d times in a row", failed)
		}
	}

	r := request(http.MethodPatch, "/api/v2/uploads/resumable/x", largeBody)
	if f := p.choose(operationOf(r), r); f != uploadCut {
		t.Errorf("the first large body gets %q", f)
	}
}
