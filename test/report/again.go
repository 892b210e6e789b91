package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// stolenLimit is the share of the processor's time above which tests that
// failed run again.
const stolenLimit = 0.1

// failedTest is a test that failed, and the command that ran it.
type failedTest struct {
	command   []string
	pkg, name string
	isLate    bool // something took too long
}

// runAgain runs each test again, alone, and reports whether all of them pass.
func runAgain(failed []failedTest) bool {
	passed := true
	for _, t := range failed {
		args := t.againCommand()
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			passed = false
			fmt.Printf("%s %s failed again:\n%s\n", t.pkg, t.name, out)
			continue
		}
		fmt.Printf("%s %s passed when it ran alone\n", t.pkg, t.name)
	}
	return passed
}

// againCommand returns the command that runs the test alone: the first one with
// its flags, but without its packages.
func (t failedTest) againCommand() []string {
	args := slices.DeleteFunc(slices.Clone(t.command), func(arg string) bool { return arg == "-json" || isPackage(arg) })
	return append(args, "-count=1", "-parallel=1", "-run", "^"+regexp.QuoteMeta(t.name)+"$", t.pkg)
}

// isPackage reports whether an argument of "go test" is a package of this
// repository.
func isPackage(arg string) bool {
	return arg == "atelier" || strings.HasPrefix(arg, "atelier/") || strings.HasPrefix(arg, "./")
}

// isFatal reports whether a line of output tells of something that is wrong
// however slow the machine is.
func isFatal(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.Contains(line, "WARNING: DATA RACE")
}

// processorTimes are the times of a virtual machine's processor since its start.
type processorTimes struct {
	all, stolen float64
}

// readProcessorTimes reads the times, which are 0 on systems other than Linux.
func readProcessorTimes() processorTimes {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTimes{}
	}
	return parseProcessorTimes(string(text))
}

// parseProcessorTimes reads the first line of /proc/stat: user, nice, system,
// idle, iowait, irq, softirq, steal.
func parseProcessorTimes(text string) (p processorTimes) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	for i := 1; i < min(len(fields), 9); i++ {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return processorTimes{}
		}
		p.all += n
		if i == 8 {
			p.stolen = n
		}
	}
	return p
}

// stolenSince returns the share of the time since before that others had.
func (p processorTimes) stolenSince(before processorTimes) float64 {
	if p.all <= before.all {
		return 0
	}
	return (p.stolen - before.stolen) / (p.all - before.all)
}
