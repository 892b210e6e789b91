package main

import (
	"log/slog"
	"math"
	"runtime"
	"syscall"

	"atelier/internal/web/httpd"
)

// How many open files are kept free for everything but clients' connections.
const (
	ownFiles        = 64 // logs, listeners, model servers, webhooks, mail, refused connections
	filesOfDatabase = 4  // of each connection: SQLite has the file, its log and its index
	filesOfRun      = 16 // of each run at once: pipes, folders, inputs and results

	maxConnections = 10_000 // by default: each takes memory as well
	lowFiles       = 256
)

// metricsConnections bound those of the metrics listener. They are in ownFiles.
var metricsConnections = httpd.ConnectionLimits{Total: 16, PerAddress: 8}

// redirectConnections bound those of the redirect to HTTPS, which are short.
var redirectConnections = httpd.ConnectionLimits{Total: 128, PerAddress: 16}

// connectionLimits derives the limits on clients' connections from the settings
// and the limit on open files.
func (p *program) connectionLimits(log *slog.Logger) httpd.ConnectionLimits {
	files := fileLimit()
	if files < lowFiles {
		log.Warn("the limit on open files is low; raise it (ulimit -n, LimitNOFILE)", "limit", files)
	}
	runs := max(p.cfg.Runs.Parallel, runtime.GOMAXPROCS(0))
	if !p.cfg.Has("worker") {
		runs = 0
	}
	own := ownFiles
	if p.cfg.HTTP.RedirectListen != "" {
		own += redirectConnections.Total
	}
	reserve := own + filesOfDatabase*p.cfg.Connections + filesOfRun*runs
	limits, fits := limitConnections(files, reserve, p.cfg.HTTP.Connections, p.cfg.HTTP.ConnectionsPerAddress)
	if !fits {
		log.Warn("http.connections is more than the limit on open files allows", "wanted", p.cfg.HTTP.Connections, "connections", limits.Total, "open_files", files)
	}
	log.Info("connections are limited", "connections", limits.Total, "per_address", limits.PerAddress, "open_files", files)
	return limits
}

// limitConnections divides the open files: up to half are the reserve, and of
// the rest every connection may have one and its request another. It tells
// whether the wanted number fits; 0 wants the default.
func limitConnections(files, reserve, wanted, perAddress int) (limits httpd.ConnectionLimits, fits bool) {
	reserve = min(reserve, files/2)
	most := max((files-reserve)/2, 1)
	limits.Total = min(most, maxConnections)
	if wanted > 0 {
		limits.Total = min(most, wanted)
	}
	limits.PerAddress = perAddress
	if perAddress == 0 {
		limits.PerAddress = max(limits.Total/8, min(limits.Total, 8))
	}
	limits.PerAddress = min(limits.PerAddress, limits.Total)
	return limits, wanted <= most
}

// fileLimit is how many files this process may have open. Package os has raised
// the soft limit to the hard one when the program started.
func fileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return lowFiles
	}
	return int(min(limit.Cur, math.MaxInt32)) //nolint:gosec // bounded
}
