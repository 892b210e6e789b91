package dbtest_test

import (
	"testing"

	"atelier/internal/base/sqldb/dbtest"
)

// TestKillAndRestart kills a server with open connections. It starts again with
// everything that was committed.
func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	s := dbtest.OwnServer(t)
	if err := s.Exec(t.Context(), `CREATE TABLE kept (n BIGINT)`); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := s.Exec(t.Context(), `SELECT 1`); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(t.Context(), `INSERT INTO kept (n) VALUES (1)`); err != nil {
		t.Error(err)
	}
}
