package backend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"sync"

	"atelier/internal/engine"
)

// maxCompared is a size in bytes. Results of this size or larger are not
// compared, because they would have to be in memory as a whole.
const maxCompared = 32 << 20

// DropCopies returns a sink that passes a job's results to out, except copies:
// results with the same bytes as an earlier one. A server without seeds, or one
// that ignores them, may make the same result again and again; the run then has
// fewer results than requested, and nobody pays for copies.
func DropCopies(j engine.Job, out engine.Sink) engine.Sink {
	if j.NumResults < 2 {
		return out
	}
	return &copyFilter{Sink: out, seen: map[[sha256.Size]byte]bool{}}
}

type copyFilter struct {
	engine.Sink

	mu   sync.Mutex
	seen map[[sha256.Size]byte]bool
}

// Output passes a result on unless it is a copy.
func (f *copyFilter) Output(ctx context.Context, r engine.Result) error {
	start, err := io.ReadAll(io.LimitReader(r.Data, maxCompared))
	if err != nil {
		return err
	}
	if len(start) < maxCompared && f.isCopy(sha256.Sum256(start)) {
		return ctx.Err()
	}
	r.Data = io.MultiReader(bytes.NewReader(start), r.Data)
	return f.Sink.Output(ctx, r)
}

func (f *copyFilter) isCopy(digest [sha256.Size]byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.seen[digest]
	f.seen[digest] = true
	return known
}
