package node_test

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/node"
	"atelier/internal/testkit/watch"
)

func list(w dbtest.Fixture) []node.Node {
	w.Helper()
	return dbtest.Get(w, func(tx *sqldb.Tx) ([]node.Node, error) { return node.List(w.Context(), tx) })
}

func TestReports(t *testing.T) {
	dbtest.EachFixture(t, nil, func(w dbtest.Fixture) {
		engines := []node.Engine{
			{Name: "image", Available: true, Capacity: 2, Running: 1},
			{Name: "server", Capacity: 1, Failure: &node.Failure{Code: "ENGINE_UNAVAILABLE", Message: "refused", At: w.Now()}},
		}
		worker := &node.Reporter{
			DB:      w.DB,
			Log:     slog.New(slog.DiscardHandler),
			Node:    node.Node{ID: "worker", Version: "2", Roles: []string{"api", "worker"}, Started: w.Now()},
			Engines: func() []node.Engine { return engines },
		}
		w.OK(worker.ReportNow(w.Context()))
		w.Pass(time.Minute)
		api := &node.Reporter{DB: w.DB, Log: worker.Log, Node: node.Node{ID: "api", Version: "3", Roles: []string{"api"}, Started: w.Now()}}
		w.OK(api.ReportNow(w.Context()))

		all := list(w)
		want := []node.Node{api.Node, worker.Node}
		want[0].Seen = w.Now()
		want[1].Seen = w.Now().Add(-time.Minute)
		want[1].Engines = engines
		if !reflect.DeepEqual(all, want) {
			w.Fatalf("nodes = %+v, want %+v", all, want)
		}
		if !all[0].IsLive(w.Now()) || all[1].IsLive(w.Now()) {
			w.Errorf("live = %t, %t, want only the node that has just reported", all[0].IsLive(w.Now()), all[1].IsLive(w.Now()))
		}

		engines = engines[:1]
		w.OK(worker.ReportNow(w.Context()))
		if all := list(w); len(all) != 2 || !all[1].IsLive(w.Now()) || len(all[1].Engines) != 1 {
			w.Errorf("nodes after a second report = %+v", all)
		}

		w.Pass(node.KeptFor + time.Second)
		w.OK(api.ReportNow(w.Context()))
		rows, err := sqldb.One[int64](w.Context(), w.DB, `SELECT count(*) FROM node`)
		if err != nil || rows != 1 {
			w.Errorf("%d rows, %v, want the silent node to be deleted", rows, err)
		}
	})
}

// TestReporterRemovesItsNode stops a reporter after its first report.
func TestReporterRemovesItsNode(t *testing.T) {
	dbtest.EachFixture(t, nil, func(w dbtest.Fixture) {
		ctx, stop := context.WithCancel(w.Context())
		defer stop()
		reporter := &node.Reporter{
			DB:   w.DB,
			Log:  slog.New(slog.DiscardHandler),
			Node: node.Node{ID: "worker", Version: "2", Roles: []string{"worker"}, Started: w.Now()},
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			reporter.Run(ctx)
		}()

		watch.Until(w.T, "the first report", func() bool { return len(list(w)) == 1 })
		stop()
		<-done
		if all := list(w); len(all) != 0 {
			w.Errorf("nodes after the end = %+v, want none", all)
		}
	})
}
