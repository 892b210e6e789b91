package memory

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// unknown is the default budget in bytes if the memory of the machine is
	// unknown.
	unknown = 512 << 20
	// least is the smallest default budget in bytes. It is enough to decode a
	// photograph from a phone.
	least = 128 << 20
)

// DefaultBytes returns the default budget in bytes: half of the memory of the
// machine or the container. The other half is for everything else, including
// the programs that tools run.
func DefaultBytes() int64 { return defaultBytes(os.DirFS("/")) }

func defaultBytes(root fs.FS) int64 {
	whole, ok := machineBytes(root)
	if !ok {
		return unknown
	}
	return max(whole/2, least)
}

// collectPercent is the value for debug.SetGCPercent. It lets the heap grow to
// five times the live data between garbage collections. The live heap is a few
// megabytes, and collecting it after each doubling would take a tenth of the
// processor time under load. SetRuntimeLimit keeps a large heap from growing
// that much.
const collectPercent = 400

// SetCollectorPercent makes garbage collections rarer than Go's default, unless
// the environment variable GOGC is set.
func SetCollectorPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
}

// SetRuntimeLimit sets Go's soft memory limit to one and a half times the
// budget, at least 256 MiB above it, unless the environment variable GOMEMLIMIT
// is set. It returns the limit in effect, in bytes.
func SetRuntimeLimit(budget int64) int64 {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(runtimeLimit(budget))
	}
	return debug.SetMemoryLimit(-1)
}

func runtimeLimit(budget int64) int64 { return budget + max(budget/2, 256<<20) }

// machineBytes returns the memory of the machine in bytes, or the limit of the
// control group if that is lower. The second result is false if neither is
// known.
func machineBytes(root fs.FS) (int64, bool) {
	whole := int64(math.MaxInt64)
	for line := range strings.Lines(readText(root, "proc/meminfo")) {
		if text, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64); err == nil {
				whole = kb << 10
			}
		}
	}
	for _, file := range limitFiles(readText(root, "proc/self/cgroup")) {
		// "max" (which does not parse as a number) and numbers near 2^63 mean
		// no limit.
		if n, err := strconv.ParseInt(strings.TrimSpace(readText(root, file)), 10, 64); err == nil && n > 0 {
			whole = min(whole, n)
		}
	}
	return whole, whole < math.MaxInt64
}

// limitFiles returns the paths of the files with the memory limits of the
// process's control group and its parents, for cgroups version 1 and 2 (see
// cgroups(7)). groups is the content of /proc/self/cgroup. The parents are
// included because inside a container the process's own group is often mounted
// as the root.
func limitFiles(groups string) []string {
	var files []string
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var folder, name string
		switch {
		case parts[0] == "0" && parts[1] == "":
			folder = "sys/fs/cgroup"
			name = "memory.max"
		case strings.Contains(","+parts[1]+",", ",memory,"):
			folder = "sys/fs/cgroup/memory"
			name = "memory.limit_in_bytes"
		default:
			continue
		}
		// The leading slash makes Clean remove every "..", so that the path
		// stays below the folder.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			files = append(files, path.Join(folder, at, name))
			if at == "/" {
				break
			}
		}
	}
	return files
}

// readText returns the content of a file, or "" if it cannot be read.
func readText(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(b)
}
