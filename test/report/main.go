// Command report runs "go test" and tells how it went: a line a package, the
// failures in full, and how many tests ran on each database.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
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
	args := os.Args[1:]
	args = slices.Insert(slices.Clone(args), slices.Index(args, "test")+1, "-json")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	r := reader{output: map[string][]string{}, skips: map[string]bool{}}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // what the compiler says
			continue
		}
		r.take(e)
	}
	err = cmd.Wait()
	for _, s := range slices.Sorted(maps.Keys(r.skips)) {
		fmt.Println("skipped:", s)
	}
	fmt.Printf("\nin %v\nSQLite: %v\nPostgreSQL: %v\n%v\n", time.Since(start).Round(time.Second), r.sqlite, r.postgres, r.all)
	if err != nil || r.all.failed > 0 {
		os.Exit(1)
	}
}

// reader follows the events of a run.
type reader struct {
	all, sqlite, postgres counts
	output                map[string][]string // by package and test, until it passed
	skips                 map[string]bool     // the reasons
}

func (r *reader) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		r.output[key] = append(r.output[key], e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	if e.Action == "fail" {
		fmt.Print(strings.Join(r.output[key], ""))
	}
	if e.Action == "skip" && e.Test != "" {
		r.skips[e.Package+": "+reason(r.output[key])] = true
	}
	delete(r.output, key)
	if e.Test == "" {
		if e.Action != "skip" {
			fmt.Printf("%-4s  %-45s %6.1fs\n", e.Action, e.Package, e.Elapsed)
		}
		return
	}
	r.all.add(e.Action)
	for part := range strings.SplitSeq(e.Test, "/") {
		switch part {
		case "sqlite":
			r.sqlite.add(e.Action)
		case "postgres":
			r.postgres.add(e.Action)
		}
	}
}

// reason finds what a skipped test said.
func reason(output []string) string {
	for _, line := range output {
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			_, text, _ = strings.Cut(text, ": ")
			return strings.TrimSpace(text)
		}
	}
	return "no reason given"
}
