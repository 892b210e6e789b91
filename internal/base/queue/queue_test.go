package queue_test

import (
	"flag"
	"os"
	"testing"

	"atelier/internal/base/queue/queuetest"
	"atelier/internal/base/sqldb/dbtest"
)

func TestMain(m *testing.M) {
	queuetest.Child()
	flag.Parse()
	flag.Set("test.parallel", "12") // these tests mostly wait
	os.Exit(m.Run())
}

func TestQueue(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			queuetest.Run(t, func(t *testing.T) string { return dbtest.URL(t, engine) })
		})
	}
}
