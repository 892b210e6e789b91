package cogtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"atelier/internal/testkit/servers"
)

// place contains the paths of the server's files on this machine.
type place struct {
	source string // test/cogserver
	bin    string // programs of the virtual environment
	dir    string // parent of the servers' folders
}

// prepare installs the server unless the versions that test/cogserver locks are
// on this machine already.
var prepare = sync.OnceValues(func() (place, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	source, err := servers.Source(ctx, "cogserver")
	if err != nil {
		return place{}, fmt.Errorf("cog, the prediction server for tests, %w: %w", servers.ErrMissing, err)
	}
	bin, err := servers.Python(ctx, source, "cog")
	if err != nil {
		return place{}, fmt.Errorf("cog, the prediction server for tests: %w", err)
	}
	dir, err := servers.Dir("", "atelier-cog-")
	return place{source: source, bin: bin, dir: dir}, err
})
