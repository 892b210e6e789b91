// Package device signs people in on other machines (RFC 8628) and keeps them
// signed in until the device is revoked. A grant is a request to sign in on a
// device; its states are:
//
//	pending ──approve──▶ approved ──first poll──▶ claimed
//	   │                    │
//	 refuse        sign out everywhere
//	   └────────▶ gone ◀────┘
//
// An expired grant keeps its state and is no longer valid. Codes and tokens are
// stored as hashes. A grant is claimed once: the first poll after the approval
// returns the tokens, and every later poll returns the error that the code has
// expired. If a poll comes more than ten seconds after the claim, the code must
// have been stolen, and the device is revoked.
//
// Transactions lock rows in the order person, grant, device.
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

// Options are the settings for device sign-ins, and their dependencies.
type Options struct {
	// Key is the HMAC key that hashes user codes and derives the next refresh
	// token from the current one.
	Key []byte

	ExpiresIn   time.Duration // lifetime of the device code and the user code
	Interval    time.Duration // initial minimum time between polls
	MaxInterval time.Duration // upper limit of the interval, which grows for clients that poll too often

	// MaxGrants is the maximum number of live grants (sign-in requests);
	// MaxPerNetwork is the maximum per network. Above MaxPerNetwork, the oldest
	// grants of the network are revoked. Above MaxGrants, the oldest grants of
	// the network with the most grants are revoked.
	MaxGrants     int
	MaxPerNetwork int

	// PluginKindLength is the maximum length of a plugin kind, in bytes. 0
	// means 32, which is also the largest allowed value.
	PluginKindLength int

	RotateAfter time.Duration // age at which a refresh token is replaced
	Grace       time.Duration // how long a client that presents a replaced refresh token still receives its successor

	// Now returns the current time for polls that do not write to the database.
	Now func() time.Time
	// OnReplay is called in the transaction that revokes a device because its
	// device code was presented again long after the grant was claimed.
	OnReplay func(ctx context.Context, tx *sqldb.Tx, dev Device) error
}

// Devices manages the devices of an installation. It is safe for concurrent
// use.
type Devices struct {
	o        Options
	userCode func() string
}

// New returns the Devices with the given options.
func New(o Options) *Devices { return &Devices{o, newUserCode} }

// Device is a machine on which a person is or was signed in.
type Device struct {
	ID         string
	PersonID   string
	PluginKind string // "" if the device reported none
	Agent      string
	Address    string // IP address at the last use
	Provider   string // sign-in method of the approving person: "password" or the name of an OpenID provider
	ClientID   string // the app of a third party, or "" for a device that signed in with the device flow
	Created    time.Time
	LastUsed   time.Time
	Revoked    *time.Time
}

// DeviceStatus contains the properties of a device and its person that are
// checked at every request with an ID token.
type DeviceStatus struct {
	PersonID   string
	PluginKind string
	Provider   string
	LastUsed   time.Time
	IsApp      bool   // the device is an app of a third party
	Email      string // the person's e-mail address
	Verified   bool   // the person's e-mail address is verified
	Suspended  bool   // the person is suspended
}

// The reasons for automatic revocations.
const (
	whyReplayed = "replayed" // the device code was presented again after the grant was claimed
	whyReused   = "reused"   // a replaced refresh token was presented again
)

var (
	errNoDevice = fault.New(fault.NotFound, "There is no such device.")
	errNotLive  = fault.New(fault.Unauthenticated, "A valid credential is required.")
)

// CheckDevice returns the status of a device and its person. Every request with
// an ID token calls it, and the result is not cached: a revoked device is
// refused at the next request on every node. In a transaction it locks the
// person's row and then the device's row.
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

// TouchDevice records the time and IP address of a device's last use.
func (d *Devices) TouchDevice(ctx context.Context, tx *sqldb.Tx, deviceID, address string) error {
	return touchDevice(ctx, tx, deviceID, sanitize.Line(address, maxAddress))
}

// ListSignedIn returns the devices on which a person is signed in, newest first.
func (d *Devices) ListSignedIn(ctx context.Context, tx *sqldb.Tx, personID string) ([]Device, error) {
	return devicesOfPerson(ctx, tx, personID)
}

// After is the position after which a page of devices begins: the last device
// of the previous page.
type After struct {
	Created time.Time
	ID      string
}

// ListSignedInPage returns at most limit of the devices that ListSignedIn
// returns, starting after the given position.
func (d *Devices) ListSignedInPage(ctx context.Context, tx *sqldb.Tx, personID string, after *After, limit int) ([]Device, error) {
	return pageOfPerson(ctx, tx, personID, after, limit)
}

// ByID returns a device, even if the person has been signed out on it.
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

// RevokeDevice signs a person out on one of their devices. It returns
// errNoDevice for unknown devices and for devices of other people.
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

// RevokeAll signs a person out on all devices, and voids their approved grants
// (sign-in requests) that no device has claimed yet. It returns the number of
// devices.
//
// Approvals, claims and RevokeAll lock the person first, so they run one after
// the other. RevokeAll sees every earlier approval and claim: under READ
// COMMITTED, each statement sees all transactions that committed before it
// began, and the statements of RevokeAll begin after the lock is taken. A claim
// that comes later finds its grant voided.
func (d *Devices) RevokeAll(ctx context.Context, tx *sqldb.Tx, personID, why string) (int64, error) {
	if err := lockPerson(ctx, tx, personID); err != nil {
		return 0, err
	}
	if err := voidApproved(ctx, tx, personID); err != nil {
		return 0, err
	}
	return revokeAll(ctx, tx, personID, why)
}
