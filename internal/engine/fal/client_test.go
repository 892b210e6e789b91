package fal_test

import (
	"testing"
	"time"

	"atelier/internal/engine/fal/faltest"
	"atelier/test/clients"
)

// TestTheProvidersOwnClient holds the stand-in against the client that the
// provider wrote for its API.
func TestTheProvidersOwnClient(t *testing.T) {
	t.Parallel()
	s := faltest.Start(t, faltest.Options{Takes: time.Second})
	clients.Run(t, "fal.mjs", s.URL, s.Storage, s.Key)
	if s.Leaks() != 0 {
		t.Error("the client sent its key to the host of files")
	}
}
