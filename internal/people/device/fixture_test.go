package device_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/device"
)

// fixture is a database with its own clock.
type fixture struct {
	*device.Devices
	t       *testing.T
	db      *sqldb.DB
	address string       // of the database
	clock   atomic.Int64 // since start

	mu       sync.Mutex
	replayed []device.Device
}

var start = time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)

func (w *fixture) now() time.Time       { return start.Add(time.Duration(w.clock.Load())) }
func (w *fixture) at(d time.Duration)   { w.clock.Store(int64(d)) }
func (w *fixture) pass(d time.Duration) { w.clock.Add(int64(d)) }

func (w *fixture) options() device.Options {
	return device.Options{
		Key: []byte("a key for tests"), ExpiresIn: 600 * time.Second, Interval: 5 * time.Second, MaxInterval: 60 * time.Second, MaxGrants: 50_000, MaxPerNetwork: 200,
		RotateAfter: 24 * time.Hour, Grace: time.Minute, Now: w.now,
		OnReplay: func(_ context.Context, tx *sqldb.Tx, dev device.Device) error {
			tx.AfterCommit(func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.replayed = append(w.replayed, dev)
			})
			return nil
		},
	}
}

// each runs fn in a new fixture on every database, and then the checks.
func each(t *testing.T, fn func(t *testing.T, w *fixture)) {
	t.Helper()
	on(t, dbtest.Engines, fn)
}

// postgres is each for tests of row locks, on PostgreSQL only: SQLite has one
// writer.
func postgres(t *testing.T, fn func(t *testing.T, w *fixture)) {
	t.Helper()
	on(t, []string{"postgres"}, fn)
}

func on(t *testing.T, engines []string, fn func(t *testing.T, w *fixture)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := &fixture{t: t, address: dbtest.URL(t, engine)}
			w.db = dbtest.OpenAt(t, w.address, w.now)
			w.Devices = device.New(w.options())
			fn(t, w)
			if bad, err := w.db.VerifyChecks(t.Context(), device.Checks); err != nil || len(bad) != 0 {
				t.Errorf("checks = %v, %v", bad, err)
			}
		})
	}
}

func (w *fixture) write(fn func(tx *sqldb.Tx) error) error { return w.db.Write(w.t.Context(), fn) }

func (w *fixture) exec(query string, args ...any) {
	w.t.Helper()
	if err := w.write(func(tx *sqldb.Tx) error { _, err := tx.Exec(w.t.Context(), query, args...); return err }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) count(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), query, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// person creates a person.
func (w *fixture) person() (id string) {
	w.t.Helper()
	id = ids.New()
	w.exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 0)`, id)
	return id
}

func (w *fixture) tryStart(r device.Request) (c device.Codes, err error) {
	err = w.write(func(tx *sqldb.Tx) (err error) { c, err = w.StartGrant(w.t.Context(), tx, r); return err })
	return c, err
}

func (w *fixture) start() device.Codes {
	w.t.Helper()
	c, err := w.tryStart(device.Request{PluginKind: "blender", Agent: "Blender/5.0", Address: "203.0.113.7"})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *fixture) open(code, personID string) (g device.Grant, err error) {
	err = w.write(func(tx *sqldb.Tx) (err error) { g, err = w.OpenGrant(w.t.Context(), tx, code, personID); return err })
	return g, err
}

func (w *fixture) decide(code, personID string, approve bool) (g device.Grant, err error) {
	err = w.write(func(tx *sqldb.Tx) (err error) {
		g, err = w.DecideGrant(w.t.Context(), tx, device.Decision{UserCode: code, PersonID: personID, Provider: "password", Approve: approve})
		return err
	})
	return g, err
}

func (w *fixture) approve(code, personID string) {
	w.t.Helper()
	if _, err := w.decide(code, personID, true); err != nil {
		w.t.Fatal(err)
	}
}

// poll polls once. The device is returned if the grant was claimed.
func (w *fixture) poll(code string) (dev device.Device, refresh string, err error) {
	err = w.PollGrant(w.t.Context(), w.db, code, func(_ *sqldb.Tx, _ device.Grant, d device.Device, r string) error {
		dev, refresh = d, r
		return nil
	})
	return dev, refresh, err
}

// signIn signs a device in by all steps: start, approval and poll.
func (w *fixture) signIn(personID string) (dev device.Device, refresh string) {
	w.t.Helper()
	c := w.start()
	w.approve(c.UserCode, personID)
	dev, refresh, err := w.poll(c.DeviceCode)
	if err != nil {
		w.t.Fatal(err)
	}
	return dev, refresh
}

func (w *fixture) refresh(token string) (r device.Refreshed, err error) {
	err = w.write(func(tx *sqldb.Tx) (err error) { r, err = w.RefreshToken(w.t.Context(), tx, token); return err })
	return r, err
}

// alive reports whether a device may make requests.
func (w *fixture) alive(deviceID string) bool {
	w.t.Helper()
	_, err := w.CheckDevice(w.t.Context(), w.db, deviceID)
	if err != nil {
		w.want("check", err, fault.Unauthenticated)
	}
	return err == nil
}

// code returns the code of an error: "" for nil, and the text of an error that
// is not a fault.
func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Code
	}
	return fault.Code(err.Error())
}

func (w *fixture) want(name string, err error, want fault.Code) {
	w.t.Helper()
	if got := code(err); got != want {
		w.t.Errorf("%s = %q, want %q", name, got, want)
	}
}

// reason returns the reason of a refusal.
func reason(err error) any {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Details["reason"]
	}
	return nil
}

// dump returns the database's content about devices.
func (w *fixture) dump() string {
	w.t.Helper()
	var all strings.Builder
	err := w.db.Read(w.t.Context(), func(tx *sqldb.Tx) error {
		for _, query := range []string{
			`SELECT id || ' ' || device_hash || ' ' || user_hash || ' ' || plugin_kind || ' ' || agent || ' ' || address || ' ' || seen_by FROM device_grant`,
			`SELECT id || ' ' || plugin_kind || ' ' || agent || ' ' || address || ' ' || provider || ' ' || revoked_why FROM device`,
			`SELECT hash || ' ' || device_id FROM refresh_token`,
			`SELECT name || ' ' || value FROM deployment`,
		} {
			lines, err := sqldb.All(w.t.Context(), tx, query, nil, func(row sqldb.Scanner) (line string, err error) {
				err = row.Scan(&line)
				return line, err
			})
			if err != nil {
				return err
			}
			all.WriteString(strings.Join(lines, "\n"))
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all.String()
}

// whileWriting runs fn while another transaction has updated every grant and
// device and holds the locks: fn must not write.
func (w *fixture) whileWriting(fn func(ctx context.Context)) {
	w.t.Helper()
	err := w.write(func(tx *sqldb.Tx) error {
		for _, query := range []string{`UPDATE device_grant SET wrong = wrong`, `UPDATE device SET address = address`} {
			if _, err := tx.Exec(w.t.Context(), query); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		fn(ctx)
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}
