package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// nodeCounts are how many nodes send their statements to one PostgreSQL.
var nodeCounts = []int{1, 2, 4}

// nodes measures creates on several nodes of the role API, each with as many
// clients as one node has elsewhere: what the database does for each does not
// depend on the number of nodes as long as they do not wait for each other.
func (b *bench) nodes(ctx context.Context) error {
	return b.onPostgres(ctx, func(address string) error {
		shared := settings{
			tools:    map[string]string{"tags.yaml": tags, "sketch.yaml": sketch},
			database: address,
			roles:    "api",
			more: []string{
				"ATELIER_SECRET=" + strings.Repeat("A", 43) + "=",
				"ATELIER_BLOBS=file://" + filepath.Join(b.dir, "nodes-files"),
			},
		}
		var all []*server
		defer func() {
			for _, s := range all {
				s.stop()
			}
		}()
		for i := range slices.Max(nodeCounts) {
			s, err := b.serve(ctx, fmt.Sprint("nodes-", i+1), shared)
			if err != nil {
				return err
			}
			all = append(all, s)
		}
		people, err := gather(ctx, all[0], b.people)
		if err != nil {
			return err
		}
		j, err := all[0].job(people[0].token, "Sketch", words)
		if err != nil {
			return err
		}
		if err := greet(all[0].creates(people, j)); err != nil {
			return err
		}
		for _, count := range nodeCounts {
			if err := b.createOnNodes(all[:count], people, j); err != nil {
				return err
			}
		}
		return all[0].check(ctx)
	})
}

// createOnNodes has each node create runs of its own share of the people.
func (b *bench) createOnNodes(nodes []*server, people []member, j job) error {
	before, err := b.readProcessors(nodes...)
	if err != nil {
		return err
	}
	rates := make([]float64, len(nodes))
	took := make([][]time.Duration, len(nodes))
	share := len(people) / slices.Max(nodeCounts) / connections * connections
	var group errgroup.Group
	for i, s := range nodes {
		group.Go(func() (err error) {
			creates := s.creates(people[i*share:(i+1)*share], j)
			requests := make([][]byte, len(creates))
			for k, t := range creates {
				requests[k] = t.request()
			}
			rates[i], took[i], err = measure(s.address, requests, newRota(len(requests)), b.held/4)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	after, err := b.readProcessors(nodes...)
	if err != nil {
		return err
	}
	var rate float64
	for _, r := range rates {
		rate += r
	}
	answers := slices.Concat(took...)
	fmt.Printf("%9.0f creates/s  %d node(s) of the role api with %d clients each, no worker (PostgreSQL with fsync)\n          %s\n",
		rate, len(nodes), connections, after.perAnswer(before, len(answers)))
	times(fmt.Sprintf("creates on %d node(s)", len(nodes)), "answers", answers)
	return nil
}
