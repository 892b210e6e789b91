package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
)

// Delivery describes how far the delivery of a run's event is.
type Delivery struct {
	ID    string // the webhook-id
	RunID string
	Host  string // host of the receiver, with its port unless that is 443
	State
	Created time.Time
	Last    Attempt   // the last attempt; zero before the first one
	Next    time.Time // when the next attempt is due; zero if there is none
}

// DeliveryCursor is the position of the last delivery of a page in a list.
type DeliveryCursor struct {
	Created time.Time
	ID      string
}

// PublicStates are the states of deliveries in API responses.
var PublicStates = []string{statePending, Delivered, stateFailing, Exhausted, Gone}

// The states in API responses that are not stored.
const (
	statePending = "pending" // waiting for the first attempt
	stateFailing = "failing" // waiting for the next attempt
)

// ListDeliveries returns at most limit deliveries of events about an account's
// runs, newest first. state is one of PublicStates, or "" for all deliveries.
// after is the position of the last delivery of the previous page, or nil for
// the first page.
func ListDeliveries(ctx context.Context, db *sqldb.DB, accountID, state string, after *DeliveryCursor, limit int) (all []Delivery, err error) {
	if state != "" && !slices.Contains(PublicStates, state) {
		return nil, fmt.Errorf("list deliveries: there is no state %q", state)
	}
	err = sqldb.ReadList(ctx, db, after == nil, func(tx *sqldb.Tx) (err error) {
		all, err = listDeliveries(ctx, tx, accountID, state, after, limit)
		return err
	})
	return all, err
}
