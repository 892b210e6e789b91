package quota

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// Options are what a Monitor looks at.
type Options struct {
	DB     *sqldb.DB
	Limits Limits
	// Folders are those on disks of this machine, by what lies in them.
	Folders map[string]string
	// MinFree is the free space below which nothing new is taken, WarnFree the
	// one below which the log warns; 0 is none.
	MinFree, WarnFree int64
	// Free gives the free space of a folder, nil for what the system says.
	Free    func(folder string) (int64, error)
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: none
}

// Monitor watches the free space of disks and the count of the installation.
// It warns once when either gets low, and refuses what would fill the disk, so
// that the database never finds it full.
type Monitor struct {
	Options

	stored prometheus.Gauge
	limit  prometheus.Gauge
	free   *prometheus.GaugeVec

	mu    sync.Mutex
	disks map[string]State // by folder
	total State
}

// State is how much room there is.
type State string

// The states. A disk is full from MinFree on, the installation at its limit.
const (
	OK   State = "ok"
	Low  State = "low"
	Full State = "full"
)

const (
	checkInterval = 15 * time.Second
	// lowPercent is how much of its limit the installation stores when the log
	// warns.
	lowPercent = 90
	// retryAfter is what callers are told to wait while a disk is full.
	retryAfter = time.Minute
)

// NewMonitor makes a monitor.
func NewMonitor(o Options) *Monitor {
	if o.Free == nil {
		o.Free = FreeSpace
	}
	m := &Monitor{
		Options: o,
		stored:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "atelier_storage_bytes", Help: "Bytes that all accounts store, deleted files included until they are swept."}),
		limit:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "atelier_storage_limit_bytes", Help: "Bytes that all accounts may store; 0 for no limit."}),
		free:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "atelier_disk_free_bytes", Help: "Free space of the disk, by what it holds."}, []string{"holds"}),
		disks:   map[string]State{},
		total:   OK,
	}
	m.limit.Set(float64(o.Limits.Total))
	if o.Metrics != nil {
		o.Metrics.MustRegister(m.stored, m.limit, m.free)
	}
	return m
}

// Run looks until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		m.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look looks once, sets the metrics, and logs what has changed.
func (m *Monitor) Look(ctx context.Context) {
	for name, folder := range m.Folders {
		free, err := m.Free(folder)
		if err != nil {
			if !errors.Is(err, errors.ErrUnsupported) {
				m.Log.Debug("free disk space is unknown", "holds", name, "error", err)
			}
			continue
		}
		m.free.WithLabelValues(name).Set(float64(free))
		m.updateDisk(name, folder, free)
	}

	var bytes int64
	err := m.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		bytes, err = Total(ctx, tx)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			m.Log.Debug("stored bytes are unknown", "error", err)
		}
		return
	}
	m.stored.Set(float64(bytes))
	m.updateTotal(bytes)
}

// updateDisk logs a disk whose state has changed.
func (m *Monitor) updateDisk(name, folder string, free int64) {
	m.mu.Lock()
	was, seen := m.disks[name]
	now := diskState(was, free, m.MinFree, m.WarnFree)
	m.disks[name] = now
	m.mu.Unlock()

	attributes := []any{"holds", name, "folder", folder, "free_bytes", free, "min_free_bytes", m.MinFree}
	switch {
	case now == was || !seen && now == OK:
	case now == Full:
		m.Log.Error("disk nearly full; uploads and runs are refused", attributes...)
	case now == Low:
		m.Log.Warn("disk space is low", attributes...)
	default:
		m.Log.Info("disk has room again", attributes...)
	}
}

// diskState is the state of a disk that had one before. A better state takes a
// tenth more than a worse one, so that a disk at the edge is not told of again
// and again.
func diskState(was State, free, minFree, warnFree int64) State {
	if was == Full {
		minFree += minFree / 10
	}
	if was == Full || was == Low {
		warnFree += warnFree / 10
	}
	switch {
	case free < minFree:
		return Full
	case free < warnFree:
		return Low
	}
	return OK
}

// updateTotal logs the count of the installation when its state has changed.
func (m *Monitor) updateTotal(bytes int64) {
	limit := m.Limits.Total
	now := OK
	switch {
	case limit == 0:
	case bytes >= limit:
		now = Full
	case bytes >= limit/100*lowPercent:
		now = Low
	}

	m.mu.Lock()
	was := m.total
	m.total = now
	m.mu.Unlock()

	switch {
	case now == was:
	case now == OK:
		m.Log.Info("stored files are well below storage.total_bytes again", "bytes", bytes, "limit_bytes", limit)
	default:
		m.Log.Warn("stored files reach storage.total_bytes", "bytes", bytes, "limit_bytes", limit)
	}
}

// State is the worst that the last look found.
func (m *Monitor) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := append(slices.Collect(maps.Values(m.disks)), m.total)
	switch {
	case slices.Contains(states, Full):
		return Full
	case slices.Contains(states, Low):
		return Low
	}
	return OK
}

// Check refuses while a disk has less than MinFree.
func (m *Monitor) Check() error { return m.checkFree(m.MinFree) }

// CheckResults refuses results while a disk has less than half of MinFree: runs
// that were accepted before can end, and the other half is for the database.
func (m *Monitor) CheckResults() error { return m.checkFree(m.MinFree / 2) }

func (m *Monitor) checkFree(least int64) error {
	if least <= 0 {
		return nil
	}
	for _, folder := range m.Folders {
		// What cannot be known refuses nobody.
		if free, err := m.Free(folder); err == nil && free < least {
			return fault.New(fault.Unavailable, "The disk of this installation is nearly full. Try again later.").
				With("reason", "disk_full").After(retryAfter)
		}
	}
	return nil
}
