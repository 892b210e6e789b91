package main

import (
	"log/slog"
	"runtime"

	"atelier/internal/web/httpd"
)

// Numbers of open files that are reserved for purposes other than client
// connections.
const (
	ownFiles        = 64 // logs, listeners, model servers, webhooks, e-mail, refused connections
	filesOfDatabase = 4  // per database connection: SQLite opens the database, its write-ahead log and its index
	filesOfRun      = 16 // per concurrent run: pipes, folders, inputs and results

	maxConnections = 10_000 // the default limit, because each connection uses memory
	lowFiles       = 256
)

// metricsConnections limits the connections of the metrics listener. The files
// that they use are counted in ownFiles.
var metricsConnections = httpd.ConnectionLimits{Total: 16, PerAddress: 8}

// redirectConnections limits the connections of the listener that redirects to
// HTTPS.
var redirectConnections = httpd.ConnectionLimits{Total: 128, PerAddress: 16}

// connectionLimits derives the limits on client connections from the settings
// and the limit on open files.
func (in *installation) connectionLimits(log *slog.Logger) httpd.ConnectionLimits {
	files := fileLimit()
	if files < lowFiles {
		log.Warn("the limit on open files is low; raise it (ulimit -n, LimitNOFILE)", "limit", files)
	}
	runs := max(in.cfg.Runs.Parallel, runtime.GOMAXPROCS(0))
	if !in.cfg.HasRole("worker") {
		runs = 0
	}
	own := ownFiles
	if in.cfg.HTTP.RedirectListen != "" {
		own += redirectConnections.Total
	}
	database := in.cfg.Connections
	if in.cfg.Pool.Replica != "" {
		database += in.cfg.Pool.ReplicaConnections
	}
	reserve := own + filesOfDatabase*database + filesOfRun*runs
	limits, fits := limitConnections(files, reserve, in.cfg.HTTP.Connections, in.cfg.HTTP.ConnectionsPerAddress)
	if !fits {
		log.Warn("http.connections exceeds the limit on open files", "wanted", in.cfg.HTTP.Connections, "connections", limits.Total, "open_files", files)
	}
	log.Info("connection limits", "connections", limits.Total, "per_address", limits.PerAddress, "open_files", files)
	return limits
}

// limitConnections divides the number of files that the process may open
// between client connections and other purposes. At most half are reserved for
// other purposes. Each connection may use two of the remaining files: its
// socket and one file of its request. wanted is the configured number of
// connections, or 0 for the default; fits reports whether that number is
// possible.
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
