// Command bench measures the program against the least that could do the same,
// in one run on one machine: only ratios mean anything.
//
//	go run ./test/bench                       everything, some minutes
//	go run ./test/bench -only creates,status  parts of it
//	go run ./test/bench -only growth -rows 1000,100000,10000000
//	go run ./test/bench -only capacity,nodes -short   a minute or two, to see that it works
//
// A figure that misses its target is marked and named again at the end; the
// command fails only where something could not be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// connections is how many ask at once.
const connections = 16

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 3 && os.Args[1] == "bare" {
		if err := bare(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "draw" {
		if err := draw(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := execute(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run of this command.
type bench struct {
	dir    string
	rounds int
	span   time.Duration
	people int
	old    int
	oldPG  bool
	rows   string
	on     string
	missed []string // names of figures
	held   time.Duration
	many   int
	open   int

	built    map[string]string // programs by their build tags
	postgres *postgres
}

// parts are what can be measured by itself, in this order.
var parts = []struct {
	name string
	do   func(*bench, context.Context) error
}{
	{"tools", (*bench).tools},
	{"creates", (*bench).creates},
	{"status", (*bench).status},
	{"latency", (*bench).runLatency},
	{"doors", (*bench).doors},
	{"flows", (*bench).flows},
	{"commands", (*bench).commands},
	{"history", (*bench).history},
	{"growth", (*bench).growth},
	{"reports", (*bench).reports},
	{"calls", (*bench).calls},
	{"capacity", (*bench).capacity},
	{"nodes", (*bench).nodes},
	{"workers", (*bench).workers},
	{"claims", (*bench).claims},
	{"memory", (*bench).memory},
	{"engines", (*bench).engines},
	{"kernels", (*bench).kernels},
	{"drawing", (*bench).drawing},
}

func execute(ctx context.Context) error {
	b := &bench{built: map[string]string{}}
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	only := flag.String("only", strings.Join(names, ","), "parts to measure")
	flag.IntVar(&b.rounds, "rounds", 15, "rounds of each side") // short ones that take turns: the machine is never the same for long
	flag.DurationVar(&b.span, "span", time.Second, "length of a round")
	flag.IntVar(&b.people, "people", 2048, "people who create runs, a multiple of 16, at least 64")
	flag.IntVar(&b.old, "old", 1_000_000, "old runs of the parts history and reports")
	flag.BoolVar(&b.oldPG, "old-postgres", false, "do the parts history and reports on PostgreSQL as well")
	flag.StringVar(&b.rows, "rows", "1000,100000", "numbers of old runs that the part growth compares, in ascending order")
	flag.StringVar(&b.on, "on", "sqlite,postgres", "databases of the part growth")
	flag.DurationVar(&b.held, "held", time.Minute, "how long the part capacity holds each load")
	flag.IntVar(&b.many, "devices", 10_000, "polling devices of the part capacity, a multiple of 16")
	flag.IntVar(&b.open, "streams", 1008, "event streams of the part capacity, a multiple of 16")
	short := flag.Bool("short", false, "few rounds, people, devices and streams, for seconds only: to see that the command works, not to measure")
	flag.Parse()
	if *short {
		b.rounds, b.people, b.held, b.many, b.open = 3, 256, 8*time.Second, 160, 16
	}
	if flag.NArg() > 0 || b.rounds < 1 || b.people < 4*connections || b.people%connections != 0 || b.many < connections || b.many%connections != 0 || b.open < connections || b.open%connections != 0 || b.open > b.many {
		return errors.New("wrong flags; see -help")
	}
	chosen := strings.Split(*only, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no part %q, only %s", name, strings.Join(names, ", "))
		}
	}
	dir, err := os.MkdirTemp("", "atelier-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fmt.Printf("%d connections, %d rounds of %v each, taking turns; the median of the rounds' ratios counts\n\n", connections, b.rounds, b.span)
	for _, p := range parts {
		if !slices.Contains(chosen, p.name) {
			continue
		}
		if err := p.do(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if len(b.missed) > 0 {
		fmt.Println("not what they should be:")
		for _, name := range b.missed {
			fmt.Println("  " + name)
		}
	}
	return nil
}

// build gives the program, built with these tags.
func (b *bench) build(ctx context.Context, tags string) (string, error) {
	if path, ok := b.built[tags]; ok {
		return path, nil
	}
	path := filepath.Join(b.dir, "atelier"+tags)
	if out, err := exec.CommandContext(ctx, "go", "build", "-tags", tags, "-o", path, "atelier/cmd/atelier").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	b.built[tags] = path
	return path, nil
}
