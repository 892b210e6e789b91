package replicate_test

import (
	"testing"
	"time"

	"atelier/internal/engine/replicate/replicatetest"
	"atelier/test/clients"
)

// TestTheProvidersOwnClient holds the stand-in against the client that the
// provider wrote for its API.
func TestTheProvidersOwnClient(t *testing.T) {
	t.Parallel()
	s := replicatetest.Start(t, replicatetest.Options{Takes: 500 * time.Millisecond})
	clients.Run(t, "replicate.mjs", s.URL, s.Token)
	if s.Leaks() != 0 {
		t.Error("the client sent its token to the host of files")
	}
}
