package nodes

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob/blobtest"
)

// rounds is how often TestRollingRestart restarts every node.
var rounds = flag.Int("rounds", 1, "how often the rolling restart goes round all nodes")

// endLimit is the longest time in which all runs end after the load.
const endLimit = 5 * time.Minute

// TestRollingRestart restarts two API nodes and two workers, one after the
// other, under load: no request fails, every run succeeds, and no stream misses
// the end of a run.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	bucket := blobtest.S3(t)
	c := newCluster(t, dbtest.Bare(t, "postgres"), pictureTool, &bucket)
	nodes := []*node{c.newNode("api-1", "api", ""), c.newNode("api-2", "api", ""), c.newNode("worker-1", "worker", ""), c.newNode("worker-2", "worker", "")}
	p := startProxy(t, nodes[0].address, nodes[1].address)
	for _, n := range nodes {
		n.launch(p.URL)
	}
	for _, n := range nodes {
		n.awaitStart()
	}
	for _, n := range nodes[:2] {
		p.awaitReady(t, n.address)
	}
	token := c.newToken()
	tool, hash := findTool(t, p.URL, token)
	l := newLoad(p.URL, token, tool, hash)

	working, stopWork := context.WithCancel(t.Context())
	limit, cancel := context.WithCancel(t.Context())
	defer cancel()
	var workers, followers sync.WaitGroup
	for range 2 {
		workers.Go(func() { l.pollRuns(working) })
		workers.Go(func() { l.streamRuns(working) })
	}
	seen := make([]map[string]bool, 2)
	followed, stopFollowing := context.WithCancel(t.Context())
	defer stopFollowing()
	for i := range seen {
		followers.Go(func() { seen[i] = l.followAccount(followed, limit) })
	}

	for range *rounds {
		for _, n := range nodes {
			n.stop()
			n.start(p.URL)
			p.awaitReady(t, n.address)
		}
	}

	stopWork()
	workers.Wait()
	stopFollowing()
	timer := time.AfterFunc(endLimit, cancel)
	followers.Wait()
	timer.Stop()

	t.Logf("%d creates, %d polls, %d files, %d stream connections, %d of them moved to another node; %d and %d requests by node, %d connections refused",
		l.creates.Load(), l.polls.Load(), l.files.Load(), l.streams.Load(), l.reconnects.Load(), p.backends[0].served.Load(), p.backends[1].served.Load(), p.refused.Load())
	for _, text := range append(l.failures, p.failures...) {
		t.Error(text)
	}
	if l.reconnects.Load() == 0 || l.files.Load() == 0 {
		t.Error("no stream was told to reconnect, or no run ended: the test shows nothing")
	}
	for i, ended := range seen {
		for id := range l.created {
			if !ended[id] {
				t.Errorf("stream %d of the account did not see the end of run %s", i+1, id)
			}
		}
	}
	c.check()
}
