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

// Options are the settings of a Monitor, which watches disks and storage.
type Options struct {
	DB     *sqldb.DB
	Limits Limits
	// Folders are the folders whose disks are watched. The keys are names for
	// logs and metrics.
	Folders map[string]string
	// MinFree is the free space, in bytes, below which uploads and runs are
	// refused. WarnFree is the free space below which the monitor logs a
	// warning. 0 disables the respective check.
	MinFree, WarnFree int64
	// Free returns the free space of a folder's disk in bytes. Default:
	// FreeSpace.
	Free    func(folder string) (int64, error)
	Log     *slog.Logger
	Metrics prometheus.Registerer // if nil, there are no metrics
}

// Monitor watches the free space of disks and the number of bytes that the
// installation stores. It logs a warning when a disk is nearly full or the
// installation near its limit, and refuses writes that would fill a disk,
// because the database must never run out of space.
type Monitor struct {
	Options

	stored prometheus.Gauge
	limit  prometheus.Gauge
	free   *prometheus.GaugeVec

	mu    sync.Mutex
	disks map[string]State // state of each disk, by name of its folder
	total State
}

// State describes how full a disk or the installation's quota is.
type State string

// The states. A disk is full if its free space is below MinFree, the
// installation if it has reached its limit.
const (
	OK   State = "ok"
	Low  State = "low"
	Full State = "full"
)

const (
	checkInterval = 15 * time.Second
	// lowPercent is the percentage of the installation's limit at which the
	// state becomes Low.
	lowPercent = 90
	// retryAfter is the Retry-After value of errors while a disk is full.
	retryAfter = time.Minute
)

// NewMonitor returns a monitor and registers its metrics. It watches nothing
// until Run is called.
func NewMonitor(o Options) *Monitor {
	if o.Free == nil {
		o.Free = FreeSpace
	}

	m := &Monitor{
		Options: o,
		stored:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "atelier_storage_bytes", Help: "Bytes that all accounts store, including deleted files that are not swept yet."}),
		limit:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "atelier_storage_limit_bytes", Help: "Bytes that all accounts may store; 0 for no limit."}),
		free:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "atelier_disk_free_bytes", Help: "Free disk space in bytes, by the data on the disk."}, []string{"holds"}),
		disks:   map[string]State{},
		total:   OK,
	}

	m.limit.Set(float64(o.Limits.Total))
	if o.Metrics != nil {
		o.Metrics.MustRegister(m.stored, m.limit, m.free)
	}
	return m
}

// Run refreshes the state periodically until ctx is cancelled.
func (m *Monitor) Run(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		m.RefreshState(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// RefreshState determines the state of all disks and of the installation once,
// updates the metrics, and logs changes of state.
func (m *Monitor) RefreshState(ctx context.Context) {
	for name, folder := range m.Folders {
		free, err := m.Free(folder)
		if err != nil {
			if !errors.Is(err, errors.ErrUnsupported) {
				m.Log.Debug("could not read the free disk space", "holds", name, "error", err)
			}
			continue
		}

		m.free.WithLabelValues(name).Set(float64(free))
		m.updateDisk(name, folder, free)
	}

	var bytes int64
	err := m.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		bytes, err = TotalBytes(ctx, tx)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			m.Log.Debug("could not read the total size of stored files", "error", err)
		}
		return
	}

	m.stored.Set(float64(bytes))
	m.updateTotal(bytes)
}

// updateDisk stores the state of a disk and logs a change. name is the name of
// the folder, and free the free space in bytes.
func (m *Monitor) updateDisk(name, folder string, free int64) {
	m.mu.Lock()
	before, seen := m.disks[name]
	now := diskState(before, free, m.MinFree, m.WarnFree)
	m.disks[name] = now
	m.mu.Unlock()

	attributes := []any{"holds", name, "folder", folder, "free_bytes", free, "min_free_bytes", m.MinFree}
	switch {
	case now == before || !seen && now == OK:
	case now == Full:
		m.Log.Error("disk nearly full; uploads and runs are refused", attributes...)
	case now == Low:
		m.Log.Warn("disk space is low", attributes...)
	default:
		m.Log.Info("disk space is sufficient again", attributes...)
	}
}

// diskState returns the next state of a disk. To return to a better state, a
// disk needs 10 % more free space than to stay in it, so that a disk near the
// threshold does not cause repeated log messages.
func diskState(before State, free, minFree, warnFree int64) State {
	if before == Full {
		minFree += minFree / 10
	}
	if before == Full || before == Low {
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

// updateTotal determines the state of the installation from its number of
// stored bytes, saves the state, and logs a change.
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
	before := m.total
	m.total = now
	m.mu.Unlock()

	switch {
	case now == before:
	case now == OK:
		m.Log.Info("total size of stored files is below the limit storage.total_bytes again", "bytes", bytes, "limit_bytes", limit)
	default:
		m.Log.Warn("total size of stored files has reached the limit storage.total_bytes", "bytes", bytes, "limit_bytes", limit)
	}
}

// CurrentState returns the worst state of all disks and of the installation.
func (m *Monitor) CurrentState() State {
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

// CheckDisks returns an error while a disk has less than MinFree bytes free.
func (m *Monitor) CheckDisks() error { return m.checkFree(m.MinFree) }

// CheckDisksForResults returns an error while a disk has less than half of
// MinFree bytes free. Results of accepted runs may use the first half; the
// other half is for the database.
func (m *Monitor) CheckDisksForResults() error { return m.checkFree(m.MinFree / 2) }

func (m *Monitor) checkFree(minFree int64) error {
	if minFree <= 0 {
		return nil
	}
	for _, folder := range m.Folders {
		// If the free space is unknown, nothing is refused.
		if free, err := m.Free(folder); err == nil && free < minFree {
			return fault.New(fault.Unavailable, "The disk of this installation is nearly full. Try again later.").
				With("reason", "disk_full").After(retryAfter)
		}
	}
	return nil
}
