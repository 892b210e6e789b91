package cogtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"atelier/internal/testkit/servers"
)

// place contains the paths of the Cog server's installation.
type place struct {
	source string // the folder test/cogserver
	bin    string // folder with the programs of the Python virtual environment
	dir    string // parent of the folders of running servers
}

// prepare installs the Cog server, unless the version that test/cogserver pins
// is already installed.
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
