package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/run/run"
)

// The numbers of workers and of backends that the part claims compares.
var (
	claimWorkers  = []int{1, 2, 4}
	claimBackends = []int{1, 10, 100}
)

const (
	claimPeople      = 16 // each waits for one run of every backend
	claimParallel    = 4  // the limit of a backend, on all workers together
	claimConnections = 16 // of a worker, the default of the program
)

// claims measures how many runs workers claim each second on PostgreSQL: as a
// worker does it, with a limit per backend on all workers together and one claim
// at a time for each backend. Every run is returned to the queue at once, in a
// transaction of its own, so that the queue is always the same.
func (b *bench) claims(ctx context.Context) error {
	ctx = sqldb.WithLimit(ctx, time.Hour) // of one transaction
	return b.onPostgres(ctx, func(address string) error {
		if err := b.queueClaims(ctx, address); err != nil {
			return err
		}
		var workers []*sqldb.DB
		defer func() {
			for _, db := range workers {
				db.Close()
			}
		}()
		for range claimWorkers[len(claimWorkers)-1] {
			db, err := sqldb.Open(ctx, address, sqldb.Options{MaxConns: claimConnections, Now: time.Now})
			if err != nil {
				return err
			}
			workers = append(workers, db)
		}

		rates := map[[2]int][]float64{} // by number of workers and of backends
		for range b.rounds {
			for _, w := range claimWorkers {
				for _, n := range claimBackends {
					rate, err := claimFor(ctx, b.span, workers[:w], n)
					if err != nil {
						return fmt.Errorf("%d workers, %d backends: %w", w, n, err)
					}
					rates[[2]int{w, n}] = append(rates[[2]int{w, n}], rate)
				}
			}
		}
		printClaims(rates)
		return nil
	})
}

// printClaims prints the median rates, and their ratios to those of one worker.
func printClaims(rates map[[2]int][]float64) {
	fmt.Println("claims a second, each run returned at once (PostgreSQL with fsync), and the ratio to one worker with as many backends")
	fmt.Printf("  %-10s", "workers")
	for _, n := range claimBackends {
		fmt.Printf("%15d backends", n)
	}
	fmt.Println()
	for _, w := range claimWorkers {
		fmt.Printf("  %-10d", w)
		for _, n := range claimBackends {
			var ratios []float64
			for i, rate := range rates[[2]int{w, n}] {
				ratios = append(ratios, rate/rates[[2]int{1, n}][i])
			}
			fmt.Printf("%15.0f %8.2f", median(rates[[2]int{w, n}]), median(ratios))
		}
		fmt.Println()
	}
	fmt.Println()
}

// claimBackend returns the name of a backend of the part claims.
func claimBackend(i int) string { return fmt.Sprintf("backend-%d", i) }

// queueClaims queues one run of every person for every backend.
func (b *bench) queueClaims(ctx context.Context, address string) error {
	s, err := b.serve(ctx, "claims", settings{tools: map[string]string{"tags.yaml": tags, "sketch.yaml": sketch}, database: address, roles: "api"})
	if err != nil {
		return err
	}
	defer s.stop()
	people, err := gather(ctx, s, claimPeople)
	if err != nil {
		return err
	}
	j, err := s.job(people[0].token, "Sketch", words)
	if err != nil {
		return err
	}
	if err := greet(s.creates(people, j)); err != nil { // one run of each person, to copy
		return err
	}
	db, err := sqldb.Open(ctx, address, sqldb.Options{MaxConns: 1, Now: time.Now})
	if err != nil {
		return err
	}
	defer db.Close()
	for _, p := range people {
		if err := db.Write(ctx, func(tx *sqldb.Tx) error { return queueForAll(ctx, tx, p) }); err != nil {
			return err
		}
	}
	return nil
}

// queueForAll copies the newest run of a person for every backend.
func queueForAll(ctx context.Context, tx *sqldb.Tx, p member) error {
	newest, err := run.List(ctx, tx, p.id, run.Filter{}, nil, 1)
	if err != nil {
		return err
	}
	if len(newest) == 0 {
		return fmt.Errorf("%s has no run", p.id)
	}
	for i := range claimBackends[len(claimBackends)-1] {
		r := newest[0]
		r.ID = ids.New()
		r.LibraryID = ids.New()
		r.Engine = claimBackend(i)
		if err := run.Enqueue(ctx, tx, r.Engine, r.PersonID, 0); err != nil {
			return err
		}
		if err := run.Add(ctx, tx, r, nil); err != nil {
			return err
		}
	}
	return nil
}

// claimFor lets the workers claim runs of n backends for a while and returns the
// number of claims each second.
func claimFor(ctx context.Context, span time.Duration, workers []*sqldb.DB, n int) (float64, error) {
	var claims atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for w, db := range workers {
		for i := range n {
			group.Go(func() error {
				for time.Since(began) < span {
					claimed, err := claimAndReturn(ctx, db, fmt.Sprint("worker-", w), claimBackend(i))
					if err != nil {
						return err
					}
					if claimed {
						claims.Add(1)
					}
				}
				return nil
			})
		}
	}
	err := group.Wait()
	return float64(claims.Load()) / time.Since(began).Seconds(), err
}

// claimAndReturn claims a run and puts it back into the queue. It reports false
// if another worker was first.
func claimAndReturn(ctx context.Context, db *sqldb.DB, worker, engine string) (claimed bool, err error) {
	var lease run.Lease
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		r, _, ok, err := run.Claim(ctx, tx, run.ClaimOptions{Engine: engine, Worker: worker, Lease: time.Minute, Limit: claimParallel})
		claimed = ok
		lease = run.Lease{ID: r.ID, Attempt: r.Attempt}
		return err
	})
	if err != nil || !claimed {
		return false, err
	}
	return true, db.Write(ctx, func(tx *sqldb.Tx) error {
		ok, err := run.Requeue(ctx, tx, lease, run.Returned)
		if err == nil && !ok {
			return errors.New("the lease is gone")
		}
		return err
	})
}
