package quota_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/quota"
)

// TestMonitor takes a disk down and up again: every change of its state is
// logged once, and what is refused follows the free space at once.
func TestMonitor(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		var free atomic.Int64
		var log bytes.Buffer
		metrics := prometheus.NewRegistry()
		m := quota.NewMonitor(quota.Options{
			DB:       db,
			Limits:   quota.Limits{Total: 1000},
			Folders:  map[string]string{"files": "/somewhere"},
			MinFree:  1000,
			WarnFree: 5000,
			Free:     func(string) (int64, error) { return free.Load(), nil },
			Log:      slog.New(slog.NewTextHandler(&log, nil)),
			Metrics:  metrics,
		})
		for _, step := range []struct {
			free            int64
			state           quota.State
			logged          string // "" for nothing
			refused, halved bool
		}{
			{6000, quota.OK, "", false, false},
			{4999, quota.Low, "disk space is low", false, false},
			{3000, quota.Low, "", false, false},
			{5001, quota.Low, "", false, false}, // at the edge
			{999, quota.Full, "disk nearly full", true, false},
			{499, quota.Full, "", true, true},
			{1001, quota.Full, "", false, false},
			{1100, quota.Low, "disk space is low", false, false},
			{5500, quota.OK, "disk space is sufficient again", false, false},
		} {
			free.Store(step.free)
			log.Reset()
			m.RefreshState(t.Context())
			m.RefreshState(t.Context())
			if lines := strings.Count(log.String(), "\n"); m.CurrentState() != step.state || !strings.Contains(log.String(), step.logged) || lines > 1 || (lines == 1) != (step.logged != "") {
				t.Errorf("%d bytes free: %s, logged %q; want %s and %q once", step.free, m.CurrentState(), log.String(), step.state, step.logged)
			}
			if err := m.CheckDisks(); fault.Is(err, fault.Unavailable) != step.refused {
				t.Errorf("%d bytes free: check = %v", step.free, err)
			}
			if err := m.CheckDisksForResults(); fault.Is(err, fault.Unavailable) != step.halved {
				t.Errorf("%d bytes free: check of results = %v", step.free, err)
			}
		}

		for _, step := range []struct {
			add   int64
			state quota.State
		}{{899, quota.OK}, {1, quota.Low}, {50, quota.Low}, {50, quota.Full}} {
			log.Reset()
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return quota.Limits{}.ChargeTotal(t.Context(), tx, "a", step.add) })
			if err != nil {
				t.Fatal(err)
			}
			m.RefreshState(t.Context())
			if m.CurrentState() != step.state {
				t.Errorf("after %d more bytes: %s, want %s", step.add, m.CurrentState(), step.state)
			}
		}
		err := testutil.GatherAndCompare(metrics, strings.NewReader(`
			# HELP atelier_storage_bytes Bytes that all accounts store, including deleted files that are not swept yet.
			# TYPE atelier_storage_bytes gauge
			atelier_storage_bytes 1000
			# HELP atelier_disk_free_bytes Free disk space in bytes, by the data on the disk.
			# TYPE atelier_disk_free_bytes gauge
			atelier_disk_free_bytes{holds="files"} 5500
		`), "atelier_storage_bytes", "atelier_disk_free_bytes")
		if err != nil {
			t.Error(err)
		}
	})
}

// TestFreeSpace asks the system about a folder that is there.
func TestFreeSpace(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := quota.NewMonitor(quota.Options{DB: db, Folders: map[string]string{"files": t.TempDir()}, MinFree: 1, Log: slog.New(slog.DiscardHandler)})
		if err := m.CheckDisks(); err != nil {
			t.Errorf("check of the temporary folder: %v", err)
		}
		m = quota.NewMonitor(quota.Options{DB: db, Folders: map[string]string{"files": t.TempDir()}, MinFree: 1 << 62, Log: slog.New(slog.DiscardHandler)})
		if err := m.CheckDisks(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("check for more than any disk has: %v", err)
		}
	})
}

// TestShards fills the installation from many accounts: to the byte, whatever
// shard they are in, and again after the limit was changed.
func TestShards(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		fill := func(l quota.Limits) (total int64) {
			errs := make([]error, 40)
			dbtest.Together(len(errs), func(i int) {
				for range 6 {
					errs[i] = db.Write(t.Context(), func(tx *sqldb.Tx) error { return l.ChargeTotal(t.Context(), tx, string(rune('a'+i)), 7) })
				}
			})
			for _, err := range errs {
				if err != nil && !fault.Is(err, fault.StorageQuotaExceeded) {
					t.Fatal(err)
				}
			}
			err := db.Read(t.Context(), func(tx *sqldb.Tx) (err error) { total, err = quota.TotalBytes(t.Context(), tx); return err })
			if err != nil {
				t.Fatal(err)
			}
			return total
		}
		if total := fill(quota.Limits{Total: 1000}); total != 994 {
			t.Errorf("%d bytes of 1000, want 994", total)
		}
		// Uneven shards: all of it in one.
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return quota.Limits{}.ChargeTotal(t.Context(), tx, "a", 506) })
		if err != nil {
			t.Fatal(err)
		}
		later := quota.Limits{Total: 2000}
		if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return later.RebalanceShards(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
		if total := fill(later); total != 1997 {
			t.Errorf("%d bytes of 2000, want 1997", total)
		}
	})
}
