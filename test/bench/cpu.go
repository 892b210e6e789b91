package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc (USER_HZ, 100 on all platforms
// of Linux that Go supports).
const tick = 10 * time.Millisecond

// cpuTime is how much processor time a process and its children have used so
// far. Unlike a rate, it hardly depends on what else the machine does.
func cpuTime(pid int) (time.Duration, error) {
	own, _, err := processTime(pid)
	if err != nil {
		return 0, err
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, path := range all {
		child, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			return 0, err
		}
		used, parent, err := processTime(child)
		if err == nil && parent == pid { // one that has ended is counted by its parent
			own += used
		}
	}
	return own, nil
}

// processTime reads /proc/PID/stat (proc(5)): the time of the process and of the
// children that have ended, and its parent.
func processTime(pid int) (used time.Duration, parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name of the program, in parentheses, may contain anything.
	_, after, ok := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), ") ")
	fields := strings.Fields(after)
	if !ok || len(fields) < 15 {
		return 0, 0, fmt.Errorf("unexpected %q", text)
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, err
	}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		used += time.Duration(n) * tick
	}
	return used, parent, nil
}

// processors are the processor times of some servers and of their database.
type processors struct{ nodes, database time.Duration }

func (b *bench) readProcessors(nodes ...*server) (p processors, err error) {
	for _, s := range nodes {
		used, err := cpuTime(s.process.Pid)
		if err != nil {
			return p, err
		}
		p.nodes += used
	}
	p.database, err = cpuTime(b.postgres.PID)
	return p, err
}

// perAnswer says what each of n answers cost since the earlier reading, with
// all that happened beside them.
func (p processors) perAnswer(before processors, n int) string {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(n) }
	nodes, database := ms(p.nodes-before.nodes), ms(p.database-before.database)
	return fmt.Sprintf("processor time of each: %.2f ms on nodes, %.2f ms on the database, so a processor of the database is good for %.0f a second", nodes, database, 1000/database)
}
