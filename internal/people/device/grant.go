package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// State is the state of a grant, which is a request to sign in on a device.
type State string

// The states of a grant. Gone means refused, voided or revoked.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Claimed  State = "claimed"
	Gone     State = "gone"
)

// next lists the states to which a grant can change from each state.
var next = map[State][]State{
	Pending:  {Approved, Gone},
	Approved: {Claimed, Gone},
}

// Request describes a machine that requests a sign-in.
type Request struct {
	PluginKind string
	Agent      string
	Address    string
	Network    string // network of Address, for rate limits
}

// Codes contains the codes of a new sign-in request. Only their hashes are
// stored.
type Codes struct {
	DeviceCode string // secret that the machine sends when it polls
	UserCode   string // shown on the machine; the person who approves enters or compares it
	ExpiresIn  time.Duration
	Interval   time.Duration
}

// Grant is a sign-in request as it is shown to the person who approves or
// refuses it.
type Grant struct {
	ID         string
	PluginKind string
	Agent      string
	Address    string
	Created    time.Time
	Expires    time.Time
	Locked     bool // more than one person opened the grant, so it cannot be approved
	JustLocked bool // this call of OpenGrant locked the grant
}

// Decision is a person's approval or refusal of a grant.
type Decision struct {
	UserCode string
	PersonID string
	Provider string // how the person signed in: "password" or the name of an OpenID provider
	Approve  bool
}

const (
	// nearlyFull is a number of grants. When fewer than this many can be added
	// before MaxGrants is reached, new grants are created one after the other,
	// so that the limit is not exceeded. It is larger than the number of
	// concurrent requests for grants.
	nearlyFull = 1000
	// maxWrong is the number of wrong user codes on the approval page after
	// which a grant is revoked.
	maxWrong = 5
)

// maxPluginKind is the maximum length of a plugin kind that the API permits, in
// bytes.
const maxPluginKind = 32

var pluginKind = regexp.MustCompile(`^[a-z0-9_-]*$`)

var (
	errNoGrant = fault.New(fault.NotFound, "No device is waiting with this code. Check the code, or start again on your device.")
	// errRefused and errApproved are returned only to the person who refused or
	// approved the grant.
	errRefused  = fault.New(fault.Forbidden, "You refused this device, so it was not signed in. If it is yours, start again on the device.").With("reason", "refused")
	errApproved = fault.New(fault.Forbidden, "You approved this device.").With("reason", "approved")

	errDecided = fault.New(fault.Forbidden, "This code was already approved or refused.").With("reason", "decided")
	errLocked  = fault.New(fault.Forbidden, "More than one person has opened this code, so it can't be approved. Start again on your device.").
			With("reason", "locked")
)

// StartGrant creates a grant for a machine that requests a sign-in, and returns
// the codes of the grant.
func (d *Devices) StartGrant(ctx context.Context, tx *sqldb.Tx, r Request) (Codes, error) {
	longest := min(cmp.Or(d.o.PluginKindLength, maxPluginKind), maxPluginKind)
	if len(r.PluginKind) > longest || !pluginKind.MatchString(r.PluginKind) {
		return Codes{}, fault.New(fault.Invalid, fmt.Sprintf("A plugin kind must have 1 to %d of the characters a-z, 0-9, _ and -.", longest)).On("plugin_kind")
	}
	network := sanitize.Line(r.Network, maxAddress)
	if err := d.makeRoom(ctx, tx, network); err != nil {
		return Codes{}, err
	}
	codes := Codes{DeviceCode: newSecret(devicePrefix), ExpiresIn: d.o.ExpiresIn, Interval: d.o.Interval}
	g := grant{
		Grant: Grant{
			ID:         ids.New(),
			PluginKind: r.PluginKind,
			Agent:      sanitize.Line(r.Agent, maxAgent),
			Address:    sanitize.Line(r.Address, maxAddress),
			Created:    tx.Now,
			Expires:    tx.Now.Add(d.o.ExpiresIn),
		},
		state:      Pending,
		network:    network,
		deviceHash: ids.Hash(codes.DeviceCode),
		wait:       d.o.Interval,
		told:       wholeSeconds(d.o.Interval),
	}
	for {
		code := d.userCode()
		// If another grant, live or expired, has the same user code, the loop
		// generates another code. Collisions are rare, because there are
		// billions of codes.
		fresh, err := insertGrant(ctx, tx, g, d.userHash(code))
		if err != nil {
			return Codes{}, err
		}
		if fresh {
			codes.UserCode = showUserCode(code)
			return codes, nil
		}
	}
}

// makeRoom revokes older grants if one more would exceed MaxPerNetwork or
// MaxGrants. For MaxGrants it revokes grants of the network with the most
// grants, so that no client can block the sign-ins of others.
//
// The count of the network's grants is exact only if grants for the same
// network are created one after the other, which the caller must ensure.
func (d *Devices) makeRoom(ctx context.Context, tx *sqldb.Tx, network string) error {
	own, err := countLiveOf(ctx, tx, network)
	if err != nil {
		return err
	}
	for ; own >= d.o.MaxPerNetwork; own-- {
		if err := endOldest(ctx, tx, network); err != nil {
			return err
		}
	}

	all, err := countLive(ctx, tx)
	if err != nil || all < d.o.MaxGrants-nearlyFull {
		return err
	}
	if err := lockStarts(ctx, tx); err != nil {
		return err
	}
	if all, err = countLive(ctx, tx); err != nil {
		return err
	}
	for ; all >= d.o.MaxGrants; all-- {
		most, err := largestNetwork(ctx, tx)
		if err != nil {
			return err
		}
		if err := endOldest(ctx, tx, most); err != nil {
			return err
		}
	}
	return nil
}

// OpenGrant returns the pending grant with the given user code and records
// which person opened it. The first person who opens it can approve it. After a
// second person has opened it, nobody can approve it, because an attacker may
// have sent the code to several people.
func (d *Devices) OpenGrant(ctx context.Context, tx *sqldb.Tx, userCode, personID string) (Grant, error) {
	g, err := d.waitingGrant(ctx, tx, userCode)
	if err != nil {
		return Grant{}, d.explainMissing(ctx, tx, err, userCode, personID)
	}
	changed, err := recordViewer(ctx, tx, g.ID, personID)
	if err != nil {
		return Grant{}, err
	}
	if g, err = d.waitingGrant(ctx, tx, userCode); err != nil {
		return Grant{}, d.explainMissing(ctx, tx, err, userCode, personID)
	}
	if g.state != Pending {
		return Grant{}, d.explainMissing(ctx, tx, errNoGrant, userCode, personID)
	}
	g.JustLocked = changed && g.Locked
	return g.Grant, nil
}

// explainMissing replaces errNoGrant with errApproved or errRefused for the
// person who approved or refused the grant. For other people the error does not
// reveal that the code existed.
func (d *Devices) explainMissing(ctx context.Context, tx *sqldb.Tx, err error, userCode, personID string) error {
	code, ok := readUserCode(userCode)
	if !ok || !errors.Is(err, errNoGrant) {
		return err
	}
	approved, found, queryErr := decisionOf(ctx, tx, d.userHash(code), personID)
	switch {
	case queryErr != nil:
		return queryErr
	case !found:
		return err
	case approved:
		return errApproved
	}
	return errRefused
}

// DecideGrant approves or refuses a grant. The first decision is final; later
// calls return an error. A grant that two people have opened can only be
// refused.
//
// An approval locks the person's row, and therefore waits for a concurrent
// sign-out on all devices. The caller must check after DecideGrant, in the same
// transaction, that the person is still signed in.
func (d *Devices) DecideGrant(ctx context.Context, tx *sqldb.Tx, by Decision) (Grant, error) {
	decide := refuseGrant
	if by.Approve {
		if err := lockPerson(ctx, tx, by.PersonID); err != nil {
			return Grant{}, err
		}
		decide = approveGrant
	}
	g, err := d.waitingGrant(ctx, tx, by.UserCode)
	if err != nil {
		return Grant{}, err
	}
	won, err := decide(ctx, tx, g.ID, by)
	if err != nil || won {
		return g.Grant, err
	}
	g, err = d.waitingGrant(ctx, tx, by.UserCode)
	switch {
	case err != nil:
		return Grant{}, err
	case g.state == Approved:
		return Grant{}, errDecided
	default:
		return Grant{}, errLocked
	}
}

// CountWrongCode counts a wrong user code on the approval page of a grant. The
// fifth one revokes the grant, and dead is true.
func (d *Devices) CountWrongCode(ctx context.Context, tx *sqldb.Tx, grantID string) (dead bool, err error) {
	counted, err := countWrong(ctx, tx, grantID)
	if err != nil {
		return false, err
	}
	if !counted {
		return false, errNoGrant
	}
	return voidWrong(ctx, tx, grantID)
}

// kept is how long a grant is stored after it has expired, so that a late poll
// with a stolen code is still detected.
const kept = 24 * time.Hour

// sweepSize is the maximum number of grants that one call of
// DeleteExpiredGrants deletes.
const sweepSize = 1000

// DeleteExpiredGrants deletes at most sweepSize grants that expired more than
// 24 hours ago, and returns their number.
func (d *Devices) DeleteExpiredGrants(ctx context.Context, tx *sqldb.Tx) (int64, error) {
	return deleteGrants(ctx, tx, tx.Now.Add(-kept), sweepSize)
}

// waitingGrant returns the grant with the given user code if it is pending or
// approved and has not expired.
func (d *Devices) waitingGrant(ctx context.Context, tx *sqldb.Tx, userCode string) (grant, error) {
	code, ok := readUserCode(userCode)
	if !ok {
		return grant{}, errNoGrant
	}
	g, err := byUserHash(ctx, tx, d.userHash(code))
	if errors.Is(err, sqldb.ErrNoRows) {
		return grant{}, errNoGrant
	}
	return g, err
}

// wholeSeconds rounds a duration up to whole seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
