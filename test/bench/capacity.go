package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"atelier/internal/base/sqldb"
)

// devicePoll is how often each of the polling devices asks.
const devicePoll = 10 * time.Second

// capacity measures a node with everything on: PostgreSQL with fsync, all roles,
// a worker that executes the runs, metrics.
func (b *bench) capacity(ctx context.Context) error {
	most, err := raiseFileLimit()
	if err != nil {
		return err
	}
	return b.onPostgres(ctx, func(address string) error {
		s, err := b.serve(ctx, "capacity", settings{
			tags:     "failpoint",
			tools:    map[string]string{"tags.yaml": tags, "noop.yaml": noop},
			database: address,
			more: []string{
				"ATELIER_METRICS_LISTEN=127.0.0.1:0",
				"ATELIER_HTTP_CONNECTIONS=20000",
				"ATELIER_HTTP_CONNECTIONS_PER_ADDRESS=20000",
				"ATELIER_SHUTDOWN_TIMEOUT=2s",
			},
		})
		if err != nil {
			return err
		}
		defer s.stop()
		people, err := gather(ctx, s, b.many)
		if err != nil {
			return err
		}
		j, err := s.job(people[0].token, "Noop", `{}`)
		if err != nil {
			return err
		}
		all := s.creates(people, j)
		if err := b.holdRate(s, "creates accepted, while a worker executes them", all); err != nil {
			return err
		}
		polls, err := createPolls(s.target, all)
		if err != nil {
			return err
		}
		if err := b.waitForEnd(ctx, s); err != nil {
			return err
		}
		if err := b.holdRate(s, "polls of ended runs", polls); err != nil {
			return err
		}
		if len(polls) > most {
			fmt.Printf("the limit on open files allows %d devices instead of %d\n", most, len(polls))
			polls = polls[:most]
		}
		if err := b.pollDevices(ctx, s, polls); err != nil {
			return err
		}
		if err := b.openStreams(ctx, s, people); err != nil {
			return err
		}
		return s.check(ctx)
	})
}

// openFiles is enough for a connection of each device: the server counts two
// files for each.
const openFiles = 65536

// raiseFileLimit lets this process and the servers that it starts open as many
// files as many connections need, if it may. It returns how many connections
// the limit allows.
func raiseFileLimit() (connections int, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	wanted := syscall.Rlimit{Cur: max(limit.Cur, openFiles), Max: max(limit.Max, openFiles)}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &wanted) == nil {
		limit = wanted
	}
	const other = 200 // files of the server that are no connections
	return (int(limit.Cur) - other) / 2, nil
}

// holdRate sends requests as fast as they are answered, for as long as the flag
// held says, and prints the rate and the times.
func (b *bench) holdRate(s *server, what string, all []target) error {
	requests := make([][]byte, len(all))
	for i, t := range all {
		requests[i] = t.request()
	}
	before, err := b.readProcessors(s)
	if err != nil {
		return err
	}
	rate, took, err := measure(all[0].address, requests, newRota(len(all)), b.held)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	after, err := b.readProcessors(s)
	if err != nil {
		return err
	}
	fmt.Printf("%9.0f a second, held for %v on %d connections (PostgreSQL with fsync, everything on)\n          %s\n",
		rate, b.held, connections, after.perAnswer(before, len(took)))
	times(what, "answers", took)
	return nil
}

// createPath creates a run and returns the path of its status.
func createPath(t target) (string, error) {
	w, err := dial(t.address)
	if err != nil {
		return "", err
	}
	defer w.Close()
	return createOn(w, t)
}

func createOn(w *wire, t target) (string, error) {
	var body bytes.Buffer
	if err := w.ask(t.request(), &body); err != nil {
		return "", err
	}
	var made struct {
		StatusURL string `json:"status_url"`
	}
	if err := json.Unmarshal(body.Bytes(), &made); err != nil {
		return "", err
	}
	u, err := url.Parse(made.StatusURL)
	if err != nil {
		return "", err
	}
	return u.Path, nil
}

// createPolls creates a run for each of the targets and returns the requests
// that poll them.
func createPolls(server target, creates []target) ([]target, error) {
	polls := make([]target, len(creates))
	var group errgroup.Group
	for i := range connections {
		group.Go(func() error {
			w, err := dial(server.address)
			if err != nil {
				return err
			}
			defer w.Close()
			for k := i; k < len(creates); k += connections {
				path, err := createOn(w, creates[k])
				if err != nil {
					return err
				}
				polls[k] = server.with(path)
				polls[k].token = creates[k].token
			}
			return nil
		})
	}
	return polls, group.Wait()
}

// endLimit is how long waitForEnd waits at most.
const endLimit = 15 * time.Minute

// waitForEnd waits until no run waits or is executed.
func (b *bench) waitForEnd(ctx context.Context, s *server) error {
	db, err := sqldb.Open(ctx, s.databaseURL(), sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		return err
	}
	defer db.Close()
	for end := time.Now().Add(endLimit); ; {
		var n int64
		if err := db.QueryRow(ctx, `SELECT count(*) FROM run WHERE stage IN ('queued', 'running')`).Scan(&n); err != nil || n == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d runs have not ended after %v", n, endLimit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// pollDevices has many devices poll, each on a connection of its own and at a
// fixed interval.
func (b *bench) pollDevices(ctx context.Context, s *server, polls []target) error {
	before, err := memoryOf(s.process.Pid, "VmRSS")
	if err != nil {
		return err
	}
	wires := make([]*wire, len(polls))
	defer func() {
		for _, w := range wires {
			if w != nil {
				w.Close()
			}
		}
	}()
	var mu sync.Mutex
	var took []time.Duration
	var group errgroup.Group
	begin := time.Now()
	end := begin.Add(b.held)
	for i, t := range polls {
		group.Go(func() error {
			request := t.request()
			at := begin.Add(time.Duration(i) * devicePoll / time.Duration(len(polls)))
			for ; at.Before(end); at = at.Add(devicePoll) {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Until(at)):
				}
				if wires[i] == nil { // the server closes connections that send nothing for some seconds
					c, err := net.Dial("tcp", s.address)
					if err != nil {
						return fmt.Errorf("connection %d: %w", i, err)
					}
					wires[i] = &wire{c, bufio.NewReaderSize(c, 4096)} // a small buffer, because there are many
				}
				if err := wires[i].ask(request, io.Discard); err != nil {
					return fmt.Errorf("device %d: %w", i, err)
				}
				mu.Lock()
				took = append(took, time.Since(at)) // from when it was due: a late one counts in full
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	after, err := memoryOf(s.process.Pid, "VmRSS")
	if err != nil {
		return err
	}
	fmt.Printf("%9d devices with a connection each, a poll every %v for %v, none failed; the server's memory %d MiB before, %d MiB after\n",
		len(polls), devicePoll, b.held, before>>20, after>>20)
	times("polls of devices, from the time when they were due", "polls", took)
	return nil
}

// streamLimit is how long an event stream may take to begin.
const streamLimit = time.Minute

// openStreams polls runs that have not ended, as fast as polls are answered, and
// then opens an event stream of each and reads its first event.
func (b *bench) openStreams(ctx context.Context, s *server, people []member) error {
	j, err := s.job(people[0].token, "Noop", `{"script": "[{\"wait\": \"10m\"}]"}`)
	if err != nil {
		return err
	}
	polls, err := createPolls(s.target, s.creates(people[:b.open], j))
	if err != nil {
		return err
	}
	if err := b.holdRate(s, "polls of runs that have not ended", polls); err != nil {
		return err
	}
	before, err := memoryOf(s.process.Pid, "VmRSS")
	if err != nil {
		return err
	}
	var wires []*wire
	defer func() {
		for _, w := range wires {
			w.Close()
		}
	}()
	var took []time.Duration
	for _, t := range polls {
		c, err := net.Dial("tcp", t.address)
		if err != nil {
			return err
		}
		w := &wire{c, bufio.NewReaderSize(c, 4096)}
		wires = append(wires, w)
		t.path += "/events"
		begin := time.Now()
		if err := c.SetDeadline(begin.Add(streamLimit)); err != nil {
			return err
		}
		if _, err := w.Write(t.request()); err != nil {
			return err
		}
		for {
			line, err := w.in.ReadString('\n')
			if err != nil {
				return fmt.Errorf("event stream: %w", err)
			}
			if strings.HasPrefix(line, "event:") {
				break
			}
		}
		took = append(took, time.Since(begin))
	}
	after, err := memoryOf(s.process.Pid, "VmRSS")
	if err != nil {
		return err
	}
	fmt.Printf("%9d event streams open; the server's memory %d MiB before, %d MiB with them (%d KiB each)\n",
		len(wires), before>>20, after>>20, (after-before)>>10/int64(len(wires)))
	times("opening an event stream, to its first event", "streams", took)
	return ctx.Err()
}

// slowRuns is how many runs of the one-second tool each worker gets, and
// slowParallel how many it executes at a time.
const (
	slowRuns     = 40
	slowParallel = 4
)

// workers measures the effect of a second worker on a tool that takes a second.
func (b *bench) workers(ctx context.Context) error {
	return b.onPostgres(ctx, func(address string) error {
		shared := settings{
			tags:     "failpoint",
			tools:    map[string]string{"tags.yaml": tags, "noop.yaml": noop},
			database: address,
			more: []string{
				"ATELIER_SECRET=" + strings.Repeat("A", 43) + "=",
				"ATELIER_BLOBS=file://" + filepath.Join(b.dir, "workers-files"),
				fmt.Sprint("ATELIER_RUNS_PARALLEL=", slowParallel),
			},
		}
		shared.roles = "api"
		api, err := b.serve(ctx, "workers-api", shared)
		if err != nil {
			return err
		}
		defer api.stop()
		people, err := gather(ctx, api, slowRuns)
		if err != nil {
			return err
		}
		j, err := api.job(people[0].token, "Noop", `{"script": "[{\"wait\": \"1s\"}, {\"output\": {\"kind\": \"png\"}}]"}`)
		if err != nil {
			return err
		}
		shared.roles = "worker"
		rates := [2]float64{}
		for i := range rates {
			w, err := b.serve(ctx, fmt.Sprint("workers-", i+1), shared)
			if err != nil {
				return err
			}
			defer w.stop()
			count := slowRuns * (i + 1)
			creates := api.creates(people, j)
			begin := time.Now()
			if _, err := createPolls(api.target, append(creates, creates...)[:count]); err != nil {
				return err
			}
			if err := b.waitForEnd(ctx, api); err != nil {
				return err
			}
			rates[i] = float64(count) / time.Since(begin).Seconds()
			fmt.Printf("%9.2f runs/s  %d of a tool that takes 1 s, %d worker(s) with %d places each (PostgreSQL)\n", rates[i], count, i+1, slowParallel)
		}
		ratio := rates[1] / rates[0]
		name := "a second worker on a tool of one second"
		fmt.Printf("%9.2f ratio, at least 1.90: %s\n\n", ratio, b.verdict(name, ratio >= 1.9, "BELOW"))
		return errors.Join(api.check(ctx), ctx.Err())
	})
}
