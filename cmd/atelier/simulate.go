package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"atelier/internal/operate/simulate"
)

type simulateCmd struct {
	jsonFlag
	File     string         `arg:"" help:"Scenario in YAML; - reads standard input. docs/scaling.md describes it."`
	Duration time.Duration  `placeholder:"DURATION" help:"Simulated time, such as 8h (default: as in the file)."`
	Seed     uint64         `default:"1" help:"Seed of the random arrivals and durations."`
	Rate     float64        `default:"1" help:"Factor for the requests of all people, such as 2 for twice as many."`
	Workers  map[string]int `placeholder:"NAME=COUNT" help:"Number of workers in an entry of the file, such as gpu=3."`
}

// Run simulates a scenario and prints the waiting times.
func (c simulateCmd) Run(p *program) error {
	s, err := c.readScenario(p.streams)
	if err != nil {
		return usageError{err}
	}
	result, err := simulate.Simulate(p.ctx, s, c.Seed)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printResult(true, result, "")
	}
	return printSimulation(p.streams, result)
}

// readScenario reads the scenario and applies the flags that change it.
func (c simulateCmd) readScenario(s streams) (simulate.Scenario, error) {
	var text []byte
	var err error
	name := c.File
	if name == "-" {
		name = "standard input"
		text, err = io.ReadAll(s.stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return simulate.Scenario{}, err
	}
	scenario, err := simulate.ReadScenario(bytes.NewReader(text), simulate.Changes{
		Duration: c.Duration,
		Rate:     c.Rate,
		Workers:  c.Workers,
	})
	if err != nil {
		return simulate.Scenario{}, fmt.Errorf("%s:\n%w", name, err)
	}
	return scenario, nil
}

// printSimulation prints the tables of a result.
func printSimulation(s streams, r simulate.Result) error {
	seconds := func(n float64) string {
		return time.Duration(n * float64(time.Second)).Round(100 * time.Millisecond).String()
	}
	percent := func(share float64) string { return fmt.Sprintf("%.0f %%", math.Round(share*100)) }
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	waits := func(w simulate.Waits) []string {
		return []string{seconds(w.Mean), seconds(w.P50), seconds(w.P95), seconds(w.P99), seconds(w.Longest)}
	}

	pools := [][]string{{"POOL", "WORKERS", "CAPACITY", "LOAD", "BUSY", "RUNS", "WAITING", "MEAN", "P50", "P95", "P99", "LONGEST"}}
	longest := [][]string{{"POOL", "PERSON", "TOOL", "CREATED AT", "WAITED"}}
	for _, p := range r.Pools {
		row := []string{p.Name, strconv.Itoa(p.Workers), strconv.Itoa(p.Capacity), percent(p.Load), percent(p.Utilisation), number(p.Runs), number(p.Waiting)}
		pools = append(pools, append(row, waits(p.Wait)...))
		for _, one := range p.Longest {
			waited := seconds(one.Wait)
			if !one.Started {
				waited += " so far"
			}
			longest = append(longest, []string{p.Name, one.Person, one.Tool, seconds(one.Created), waited})
		}
	}
	people := [][]string{{"PEOPLE", "COUNT", "RUNS", "REFUSED", "WAITING", "MEAN", "P50", "P95", "P99", "LONGEST"}}
	for _, g := range r.People {
		row := []string{g.Name, strconv.Itoa(g.Count), number(g.Runs), number(g.Refused), number(g.Waiting)}
		people = append(people, append(row, waits(g.Wait)...))
	}

	summary := fmt.Sprintf("simulated %s with the seed %d: %s created, %s refused (limits.active_runs)",
		seconds(r.Duration), r.Seed, countNoun(int(r.Created), "run", "runs"), number(r.Refused))
	if err := s.printResult(false, nil, summary+"\n\nHow long runs waited for their start, by pool:"); err != nil {
		return err
	}
	if err := s.printTable(pools); err != nil {
		return err
	}
	if err := s.printResult(false, nil, "\nBy people:"); err != nil {
		return err
	}
	if err := s.printTable(people); err != nil {
		return err
	}
	if err := s.printResult(false, nil, "\nThe people who waited longest:"); err != nil {
		return err
	}
	if err := s.printTable(longest); err != nil {
		return err
	}
	for _, p := range r.Pools {
		if p.Load < 1 {
			continue
		}
		text := fmt.Sprintf("\nThe pool %s gets more work than it can do: its queue grows as long as people create this many runs.", p.Name)
		if err := s.printResult(false, nil, text); err != nil {
			return err
		}
	}
	return nil
}
