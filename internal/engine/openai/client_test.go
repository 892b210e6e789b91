package openai_test

import (
	"testing"

	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai/openaitest"
	"atelier/test/clients"
)

// TestTheProvidersOwnClient checks the stand-in with the client that OpenAI
// publishes for its API.
func TestTheProvidersOwnClient(t *testing.T) {
	t.Parallel()
	s := openaitest.Start(t, openaitest.Options{Key: key})
	clients.Run(t, "openai.mjs", s.URL, key)
	s.Set(enginetest.Busy)
	clients.Run(t, "openai.mjs", s.URL, key, "busy")
}
