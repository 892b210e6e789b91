// Command report runs "go test" and reports: a line for each package, the
// failures in full, the slowest tests, and how many tests ran on each database.
//
//	report go test ARGUMENTS [-- go test ARGUMENTS]
//
// Several commands run at the same time and make one report.
//
// A test in which something took too long (watch.Took) runs again, alone, when
// all others have ended. So does every test that failed, if the processor of a
// virtual machine was given to others for more than a tenth of the time. The
// report names these tests. A test that fails again, a panic, a data race and a
// build error fail in any case.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"atelier/internal/testkit/watch"
)

// event is a line of the output of go test -json.
type event struct {
	Action, Package, Test, Output string
	Key                           string // of an attribute
	Elapsed                       float64
}

// counts are the outcomes of some tests.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(action string) {
	switch action {
	case "pass":
		c.passed++
	case "fail":
		c.failed++
	case "skip":
		c.skipped++
	}
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

func main() {
	start := time.Now()
	before := readProcessorTimes()
	r := newReader()

	var commands sync.WaitGroup
	for _, args := range split(os.Args[1:]) {
		commands.Go(func() { r.run(args) })
	}
	commands.Wait()

	for _, s := range slices.Sorted(maps.Keys(r.skips)) {
		fmt.Println("skipped:", s)
	}
	if len(r.failures) > 0 {
		fmt.Println("\nfailed:")
		for _, f := range r.failures {
			fmt.Println(f)
		}
	}
	fmt.Println("\nslowest tests:")
	for _, e := range r.slowest() {
		fmt.Printf("%6.1fs  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	fmt.Printf("\nin %v\nSQLite: %v\nPostgreSQL: %v\n%v\n", time.Since(start).Round(time.Second), r.sqlite, r.postgres, r.all)
	share := readProcessorTimes().stolenSince(before)
	if r.mayRunAgain(share > stolenLimit) {
		fmt.Printf("\nthe tests that failed run again, alone (others had %.0f %% of the processor)\n", 100*share)
		r.broken = !runAgain(r.failed)
		r.failed = nil
	}
	if r.broken || len(r.failed) > 0 {
		os.Exit(1)
	}
}

// split separates commands at "--".
func split(args []string) [][]string {
	i := slices.Index(args, "--")
	if i < 0 {
		return [][]string{args}
	}
	return append([][]string{args[:i]}, split(args[i+1:])...)
}

// reader collects the events of all commands.
type reader struct {
	mu                    sync.Mutex
	all, sqlite, postgres counts
	output                map[string][]string // by package and test, until the test passes
	skips                 map[string]bool     // reasons for skipped tests
	top                   []event             // tests that passed or failed
	failures              []string            // failed tests with what they found
	late                  map[string]bool     // tests that are no part of another and in which something took too long
	failed                []failedTest        // failed tests that are no part of another
	broken                bool                // something failed other than tests
	fatal                 bool                // a test wrote of a panic or a data race
}

func newReader() *reader {
	return &reader{output: map[string][]string{}, skips: map[string]bool{}, late: map[string]bool{}}
}

// run runs one command and reads its events.
func (r *reader) run(args []string) {
	args = slices.Insert(slices.Clone(args), slices.Index(args, "test")+1, "-json")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		r.fail()
		return
	}

	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // the compiler's messages
			continue
		}
		r.take(e, args)
	}
	if cmd.Wait() != nil && !r.hasFailed(args) {
		r.fail()
	}
}

// hasFailed reports whether a test of a command failed.
func (r *reader) hasFailed(command []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.failed, func(t failedTest) bool { return slices.Equal(t.command, command) })
}

func (r *reader) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}

// mayRunAgain reports whether tests failed, nothing else is wrong, and the
// machine can be the reason: in each of them something took too long, or all of
// them had too little of the processor.
func (r *reader) mayRunAgain(isStarved bool) bool {
	if len(r.failed) == 0 || r.broken || r.fatal {
		return false
	}
	return isStarved || !slices.ContainsFunc(r.failed, func(t failedTest) bool { return !t.isLate })
}

// slowest returns the twenty tests that took longest.
func (r *reader) slowest() []event {
	slices.SortFunc(r.top, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	return r.top[:min(20, len(r.top))]
}

func (r *reader) take(e event, command []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		r.output[key] = append(r.output[key], e.Output)
		r.fatal = r.fatal || isFatal(e.Output)
		return
	case "attr":
		name, _, _ := strings.Cut(e.Test, "/")
		if e.Key == watch.LateAttribute {
			r.late[e.Package+" "+name] = true
		}
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	if e.Action == "fail" {
		fmt.Print(strings.Join(r.output[key], ""))
		if e.Test != "" {
			r.failures = append(r.failures, strings.Join(append([]string{key}, findings(r.output[key])...), "\n"))
		}
	}
	if e.Action == "skip" && e.Test != "" {
		r.skips[e.Package+": "+reason(r.output[key])] = true
	}
	delete(r.output, key)
	if e.Action == "fail" && e.Test != "" && !strings.Contains(e.Test, "/") {
		r.failed = append(r.failed, failedTest{command: command, pkg: e.Package, name: e.Test, isLate: r.late[key]})
	}
	if e.Test == "" {
		if e.Action == "fail" && !slices.ContainsFunc(r.failed, func(t failedTest) bool { return t.pkg == e.Package }) {
			r.broken = true // not by a test: it was not built, or ended early
		}
		if e.Action != "skip" {
			fmt.Printf("%-4s  %-45s %6.1fs\n", e.Action, e.Package, e.Elapsed)
		}
		return
	}
	r.all.add(e.Action)
	if e.Action != "skip" {
		r.top = append(r.top, e)
	}
	for part := range strings.SplitSeq(e.Test, "/") {
		switch part {
		case "sqlite":
			r.sqlite.add(e.Action)
		case "postgres":
			r.postgres.add(e.Action)
		}
	}
}

// findings returns the first lines of what a test logged, each cut short: the
// output in full can be long, and precedes the rest of the report.
func findings(output []string) []string {
	var lines []string
	for _, line := range output {
		if strings.Contains(line, ".go:") && len(lines) < 10 {
			line = strings.TrimRight(line, "\n")
			lines = append(lines, line[:min(300, len(line))])
		}
	}
	return lines
}

// reason returns the reason that a skipped test logged.
func reason(output []string) string {
	for _, line := range output {
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			_, text, _ = strings.Cut(text, ": ")
			return strings.TrimSpace(text)
		}
	}
	return "no reason given"
}
