package cogtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"atelier/internal/testkit/servers"
)

// place is where things are on this machine.
type place struct {
	source string // test/cogserver
	bin    string // of the virtual environment
	dir    string // for the folders of servers
}

// prepare installs the server where the versions that test/cogserver locks are
// not on this machine yet.
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
