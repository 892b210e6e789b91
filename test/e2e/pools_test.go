package e2e

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"atelier/internal/testkit/watch"
)

// readPools reads the load of all pools from the metrics address of a server. It
// returns "" while the database of the server is too slow.
func readPools(t *testing.T, address string) string {
	t.Helper()
	res, err := http.Get("http://" + address + "/pools")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		return ""
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("pools = %d %s", res.StatusCode, body)
	}
	return string(body)
}

// TestPools has a run wait for a worker of its pool, while a worker of another
// pool is idle. Several nodes share a PostgreSQL database.
func TestPools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "backends.yaml", "far: {engine: exec, command: [/bin/true], pool: gpu}\n")
	address := freeAddress(t)
	s := newStage(t, "postgres", "ATELIER_BACKENDS="+filepath.Join(dir, "backends.yaml"))
	token := s.token("anna@example.com")
	s.grant("--email", "anna@example.com", 100)
	serve := s.serve("--roles", "api", "--metrics.listen", address)
	serve.token = token
	far := s.serve("--roles", "worker", "--pools", "gpu", "--metrics.listen", "off")

	made, err := serve.create(token, "", serve.order(1, picture), nil)
	if err != nil || made.StatusCode != 202 {
		t.Fatalf("create = %v, %v", made, err)
	}
	watch.Until(t, "the figures of both pools", func() bool {
		pools := readPools(t, address)
		return strings.Contains(pools, `{"name":"cpu","workers":0,"capacity":0,"running":0,"waiting":1,`) && strings.Contains(pools, `{"name":"gpu","workers":1,"capacity":1,"running":0,"waiting":0,`)
	})

	near := s.serve("--roles", "worker", "--pools", "cpu", "--metrics.listen", "off")
	for id, r := range serve.settled(token, "") {
		if r["status"] != "succeeded" {
			t.Errorf("run %s = %v", id, r)
		}
	}
	near.stop()
	far.stop()
	serve.stop()
	s.check()
}
