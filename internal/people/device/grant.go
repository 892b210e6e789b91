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

// State is how far a grant has come.
type State string

// The states of a grant.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Claimed  State = "claimed"
	Gone     State = "gone"
)

// next lists the only moves a grant can make.
var next = map[State][]State{
	Pending:  {Approved, Gone},
	Approved: {Claimed, Gone},
}

// Request is what is known of a machine that asks to be signed in.
type Request struct {
	PluginKind string
	Agent      string
	Address    string
	Network    string // what the address counts by
}

// Codes are the answer to a request. They exist nowhere else.
type Codes struct {
	DeviceCode string // secret, for polling
	UserCode   string // for a person to compare
	ExpiresIn  time.Duration
	Interval   time.Duration
}

// Grant is a request as a person sees it who is asked to approve it.
type Grant struct {
	ID         string
	PluginKind string
	Agent      string
	Address    string
	Created    time.Time
	Expires    time.Time
	Locked     bool // more than one person opened it: nobody may approve
	JustLocked bool // by this call
}

// Decision is what a person says about a grant.
type Decision struct {
	UserCode string
	PersonID string
	Provider string // how the person has signed in
	Approve  bool
}

const (
	// nearlyFull is how close to MaxGrants starts begin to go one by one, so
	// that no more get in than should. It is more than there are at once.
	nearlyFull = 1000
	// maxWrong is how many failed confirmations end a grant.
	maxWrong = 5
)

// maxPluginKind is the longest plugin kind that the API allows.
const maxPluginKind = 32

var pluginKind = regexp.MustCompile(`^[a-z0-9_-]*$`)

var (
	errNoGrant = fault.New(fault.NotFound, "No device waits with this code. Check it, or start again on your device.")
	// The person who asks has decided themselves.
	errRefused  = fault.New(fault.Forbidden, "You refused this device: it was not signed in. If it is yours, start again there.").With("reason", "refused")
	errApproved = fault.New(fault.Forbidden, "You approved this device.").With("reason", "approved")

	errDecided = fault.New(fault.Forbidden, "Somebody has decided about this code already.").With("reason", "decided")
	errLocked  = fault.New(fault.Forbidden, "More than one person has opened this code, so nobody can approve it. Start again on your device.").
			With("reason", "locked")
)

// StartGrant makes the codes for a machine that asks to be signed in.
func (d *Devices) StartGrant(ctx context.Context, tx *sqldb.Tx, r Request) (Codes, error) {
	longest := min(cmp.Or(d.o.PluginKindLength, maxPluginKind), maxPluginKind)
	if len(r.PluginKind) > longest || !pluginKind.MatchString(r.PluginKind) {
		return Codes{}, fault.New(fault.Invalid, fmt.Sprintf("A plugin kind has 1 to %d of a-z, 0-9, _ and -.", longest)).On("plugin_kind")
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
		// Another grant may have the code, perhaps one whose time is over. There
		// are so many codes that the next is free.
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

// makeRoom has older grants end where one more would be too many: of the
// network that asks, or of the one that has most. So nobody can keep others from
// starting, and a network loses the more the more it has.
//
// What the network has is exact where its starts come one after the other,
// which is for the caller to see to.
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

// OpenGrant returns the grant that waits with a code and remembers who has seen it.
// The first person may approve it. When another one comes, somebody may be
// sending the code around, and from then on nobody may.
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

// explainMissing replaces errNoGrant for a person who has decided about the code
// themselves. Nobody else learns that it ever was.
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

// DecideGrant approves or refuses a grant. Of several decisions the first counts,
// and the others are told. A locked grant can be refused only.
//
// An approval locks the person, and so waits for a sign-out everywhere that is
// under way. Whether the person is still signed in must be read after it, in
// the same transaction.
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

// CountWrongCode counts that somebody who opened a grant confirmed another
// code. After five of them the grant is gone.
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

// kept is how long a grant stays after its time: a code that was stolen may
// come back late.
const kept = 24 * time.Hour

// sweepSize is how many grants a sweep deletes at most.
const sweepSize = 1000

// DeleteExpiredGrants deletes grants that ended long ago, and returns how many.
func (d *Devices) DeleteExpiredGrants(ctx context.Context, tx *sqldb.Tx) (int64, error) {
	return deleteGrants(ctx, tx, tx.Now.Add(-kept), sweepSize)
}

// waitingGrant returns the grant that was started with a user code and whose time is
// not over, pending or approved.
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

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
