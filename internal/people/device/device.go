// Package device signs people in on other machines (RFC 8628) and keeps them
// signed in there until somebody revokes the device.
//
//	pending ──approve──▶ approved ──first poll──▶ claimed
//	   │                    │
//	 refuse        sign out everywhere
//	   └────────▶ gone ◀────┘
//
// A grant whose time is over stays in its state and counts for nothing. Codes
// and tokens are stored as hashes. A claim happens once: the poll that wins
// carries the tokens, every later one finds the code gone. One that comes much
// later means that the code was stolen, and the device goes too.
//
// Locks are taken in the order person, grant, device.
package device

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Options are the rules of an installation.
type Options struct {
	// Key keys the hashes of user codes and makes the successors of refresh
	// tokens.
	Key []byte

	ExpiresIn   time.Duration // of both codes
	Interval    time.Duration // between polls, at first
	MaxInterval time.Duration // to which it grows for a client in a hurry

	// MaxGrants is how many grants wait at once, MaxPerNetwork how many of one
	// network. Beyond it the oldest of that network go, and of the network
	// with most where all are too many.
	MaxGrants     int
	MaxPerNetwork int

	// PluginKindLength is the longest plugin kind that a device may name, at most
	// the API's limit of 32; 0 for that limit.
	PluginKindLength int

	RotateAfter time.Duration // age at which a refresh token is replaced
	Grace       time.Duration // for which a replaced one still gives its successor

	// Now is the clock of polls that write nothing.
	Now func() time.Time
	// Replayed hears, in the transaction that revokes it, of a device whose
	// code was presented again long after its claim.
	OnReplay func(ctx context.Context, tx *sqldb.Tx, dev Device) error
}

// Devices are the devices of an installation. It is safe for concurrent use.
type Devices struct {
	o        Options
	userCode func() string
}

// New makes the devices that follow the rules.
func New(o Options) *Devices { return &Devices{o, newUserCode} }

// Device is a machine on which somebody is signed in.
type Device struct {
	ID         string
	PersonID   string
	PluginKind string // empty where it did not say
	Agent      string
	Address    string // where it was last seen
	Provider   string // how the person who approved it had signed in
	Created    time.Time
	LastUsed   time.Time
	Revoked    *time.Time
}

// DeviceStatus is what a request needs to know about its device and person.
type DeviceStatus struct {
	PersonID   string
	PluginKind string
	Provider   string
	LastUsed   time.Time
	Verified   bool // the person's mail address
	Suspended  bool // the person
}

// Why we revoke devices on our own.
const (
	whyReplayed = "replayed" // the device code was presented again
	whyReused   = "reused"   // a refresh token was, after it had been replaced
)

var (
	errNoDevice = fault.New(fault.NotFound, "There is no such device.")
	errNotLive  = fault.New(fault.Unauthenticated, "This call needs a valid credential.")
)

// CheckDevice reads a device and its person afresh. Every request with an ID token
// asks this, and nothing remembers the answer: a device that was revoked is
// refused at the next request on every node. In a transaction both rows are
// locked, the person first.
func (d *Devices) CheckDevice(ctx context.Context, q sqldb.Querier, deviceID string) (DeviceStatus, error) {
	if !ids.Valid(deviceID) {
		return DeviceStatus{}, errNotLive
	}
	l, err := readLive(ctx, q, deviceID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return DeviceStatus{}, errNotLive
	}
	return l, err
}

// TouchDevice records that a device was used, and from where.
func (d *Devices) TouchDevice(ctx context.Context, tx *sqldb.Tx, deviceID, address string) error {
	return touchDevice(ctx, tx, deviceID, sanitize.Line(address, maxAddress))
}

// ListSignedIn returns the devices on which a person is signed in, newest first.
func (d *Devices) ListSignedIn(ctx context.Context, tx *sqldb.Tx, personID string) ([]Device, error) {
	return devicesOfPerson(ctx, tx, personID)
}

// After is where a page of devices begins.
type After struct {
	Created time.Time
	ID      string
}

// ListSignedInPage is List for so many devices, from after on.
func (d *Devices) ListSignedInPage(ctx context.Context, tx *sqldb.Tx, personID string, after *After, limit int) ([]Device, error) {
	return pageOfPerson(ctx, tx, personID, after, limit)
}

// ByID returns a device, also one that is signed out.
func ByID(ctx context.Context, tx *sqldb.Tx, id string) (Device, error) {
	if !ids.Valid(id) {
		return Device{}, errNoDevice
	}
	d, err := byID(ctx, tx, id)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Device{}, errNoDevice
	}
	return d, err
}

// RevokeDevice signs a person out on one of their devices. A device of somebody else
// is as unknown as one that never was.
func (d *Devices) RevokeDevice(ctx context.Context, tx *sqldb.Tx, personID, deviceID, why string) error {
	if !ids.Valid(deviceID) {
		return errNoDevice
	}
	n, err := revokeDevice(ctx, tx, personID, deviceID, why)
	if err == nil && n == 0 {
		return errNoDevice
	}
	return err
}

// RevokeAll signs a person out on all devices, and voids what they approved
// and no device has claimed yet. It says how many devices that were.
//
// An approval and a claim lock the person first, as this does, so the three
// happen one after the other. What was approved or claimed before is there for
// the statements here to find: with READ COMMITTED each of them sees all that
// was committed before it began, and they begin with the lock in hand. A claim
// that comes after finds its grant gone.
func (d *Devices) RevokeAll(ctx context.Context, tx *sqldb.Tx, personID, why string) (int64, error) {
	if err := lockPerson(ctx, tx, personID); err != nil {
		return 0, err
	}
	if err := voidApproved(ctx, tx, personID); err != nil {
		return 0, err
	}
	return revokeAll(ctx, tx, personID, why)
}
