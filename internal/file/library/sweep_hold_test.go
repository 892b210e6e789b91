package library_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/library"
)

// TestHeldFilesStay keeps the bytes of files that nobody has any more for as
// long as somebody copies them.
func TestHeldFilesStay(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		u := w.upload(anna, anna, "a")
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
		first, err := library.HoldSweep(w.Context(), w.DB)
		w.OK(err)
		second, err := library.HoldSweep(w.Context(), w.DB)
		w.OK(err)

		w.Pass(time.Minute)
		w.lib.OrphanAge = time.Second
		w.sweep()
		if w.there(u.Asset) != 1 {
			w.Error("held bytes were removed")
		}
		w.OK(first.ReleaseHold(w.Context()))
		w.sweep()
		if w.there(u.Asset) != 1 {
			w.Error("bytes were removed that another still holds")
		}
		called, off := context.WithCancel(w.Context())
		off()
		w.OK(second.ReleaseHold(called))
		w.sweep()
		if w.there(u.Asset) != 0 {
			w.Error("bytes are left that nobody holds")
		}
	})
}

// TestHoldsEnd lets the hold of a process that died end by itself, and tells one
// that lived on.
func TestHoldsEnd(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		u := w.upload(anna, anna, "a")
		w.OK(w.lib.DeleteUpload(w.Context(), viewerOf(anna), anna, u.ID))
		hold, err := library.HoldSweep(w.Context(), w.DB)
		w.OK(err)
		w.Pass(2 * time.Hour)
		w.sweep()
		if w.there(u.Asset) != 0 {
			w.Error("a hold that nobody renews lasts for two hours")
		}
		if err := hold.ReleaseHold(w.Context()); !errors.Is(err, library.ErrHoldExpired) {
			w.Errorf("release = %v, want that it lapsed", err)
		}
	})
}

// TestHoldsOfACopy are none.
func TestHoldsOfACopy(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		hold, err := library.HoldSweep(w.Context(), w.DB)
		w.OK(err)
		w.Do(func(tx *sqldb.Tx) error { return library.DeleteSweepHolds(w.Context(), tx) })
		if err := hold.ReleaseHold(w.Context()); !errors.Is(err, library.ErrHoldExpired) {
			w.Errorf("release = %v, want that it lapsed", err)
		}
	})
}
