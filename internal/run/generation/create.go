package generation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/asset"
	"atelier/internal/file/ingest"
	"atelier/internal/money/budget"
	"atelier/internal/money/ledger"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/run/run"
)

// Created is the answer to a create.
type Created struct {
	// Response is the body, byte for byte the same for every replay.
	Response  []byte
	PollAfter time.Duration
	// Replayed is whether the answer was given before.
	Replayed bool
	// Rooms is what the rate windows have left, minute then hour.
	Rooms []ratelimit.Room
}

// Create accepts a run, or says why not. The checks come in the order that the
// interface promises; render writes the answer to a run that was accepted.
func (s *Service) Create(ctx context.Context, d Draft, render func(run.Run) ([]byte, error)) (Created, error) {
	a, err := s.check(ctx, d, false)
	if err != nil {
		return Created{}, err
	}
	said := texts(a.filled)
	if err := s.Policy.CheckRules(said); err != nil {
		return Created{}, err
	}
	if s.Policy.Asks(said) {
		c, replayed, done, err := s.moderate(ctx, d, a, said)
		if err != nil || replayed {
			return c, err
		}
		defer done()
	}
	failpoint.Hit("create.before_tx")
	if d.Key != "" && s.Settings.KeyWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.Settings.KeyWait, errInFlight)
		defer cancel()
	}
	var c Created
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		c, err = s.create(ctx, tx, d, a, render)
		return err
	})
	if err != nil {
		// Whether it was committed is unknown: with the same key one finds out.
		if errors.Is(context.Cause(ctx), errInFlight) || d.Key != "" && sqldb.LockTimedOut(err) {
			err = fault.New(fault.IdempotencyKeyConflict, "A request with this key is still being handled. Try again shortly.").
				With("reason", "in_flight").After(time.Second).Because(err)
		}
		return Created{}, err
	}
	failpoint.Hit("create.after_commit_before_reply")
	return c, nil
}

var errInFlight = errors.New("the key is in use")

// create is the one transaction of a create.
func (s *Service) create(ctx context.Context, tx *sqldb.Tx, d Draft, a accepted, render func(run.Run) ([]byte, error)) (Created, error) {
	who := d.Principal
	if err := person.Lock(ctx, tx, who.PersonID); err != nil {
		return Created{}, err
	}
	failpoint.Hit("create.after_person_lock")
	if d.Key != "" {
		if c, found, err := s.replay(ctx, tx, who.PersonID, d.Key, d.Fingerprint); err != nil || found {
			return c, err
		}
	}
	if err := still(ctx, tx, a.tool); err != nil {
		return Created{}, err
	}
	active, err := run.Active(ctx, tx, who.PersonID)
	if err != nil {
		return Created{}, err
	}
	// Those that ended while we waited for the lock ended before this one
	// begins, by their times too: who looks back must never see one too many.
	if now := s.DB.Now(); now.After(tx.Now) {
		tx.Now = now
	}
	rooms, err := s.admit(ctx, tx, who, active)
	if err != nil {
		return Created{}, err
	}
	if err := run.Enqueue(ctx, tx, a.tool.Engine.Name, who.PersonID); err != nil {
		return Created{}, err
	}
	sent, err := s.chargeFiles(ctx, tx, who.AccountID, d.Files)
	if err != nil {
		return Created{}, err
	}
	hold, err := s.reserve(ctx, tx, who, a)
	if err != nil {
		return Created{}, err
	}
	failpoint.Hit("create.after_hold")
	id, err := uuid.NewV7()
	if err != nil {
		return Created{}, err
	}
	r := run.Run{
		ID:             id.String(),
		LibraryID:      ids.New(),
		PersonID:       who.PersonID,
		AccountID:      who.AccountID,
		TeamID:         who.TeamID,
		Credential:     string(who.Credential.Kind),
		CredentialID:   who.Credential.ID,
		Plugin:         d.Plugin,
		ToolID:         a.tool.ID,
		ToolHash:       a.tool.Hash,
		Engine:         a.tool.Engine.Name,
		Inputs:         a.stored,
		Prompt:         a.filled.Prompt,
		Seed:           a.seed,
		NumResults:     a.n,
		Metadata:       d.Metadata,
		WebhookURL:     d.WebhookURL,
		Estimated:      estimate(a.tool, a.n),
		PollAfter:      s.pollAfter(a.tool),
		UnitTokens:     a.tool.Cost(1),
		TokensHeld:     hold.Tokens,
		AllowanceHeld:  hold.Allowance,
		AllowanceMonth: hold.Month,
		State:          run.Queued,
		Created:        tx.Now,
	}
	for _, f := range d.Files {
		f.Asset.AccountID = who.AccountID
		f.Asset.Created = tx.Now
		if err := asset.Insert(ctx, tx, f.Asset); err != nil {
			return Created{}, err
		}
	}
	if err := run.Add(ctx, tx, r, a.inputs); err != nil {
		return Created{}, err
	}
	failpoint.Hit("create.after_run_insert")
	c := Created{PollAfter: r.PollAfter, Rooms: rooms}
	if c.Response, err = render(r); err != nil {
		return Created{}, err
	}
	if d.Key != "" {
		if err := run.Remember(ctx, tx, who.PersonID, d.Key, run.Key{Fingerprint: d.Fingerprint, RunID: r.ID, Response: string(c.Response)}); err != nil {
			return Created{}, err
		}
	}
	if err := s.Settings.Storage.ChargeTotal(ctx, tx, who.AccountID, sent); err != nil {
		return Created{}, err
	}
	tx.AfterCommit(func() { s.Queued(r.Engine) })
	failpoint.Hit("create.before_commit")
	return c, nil
}

// chargeFiles counts the files that came with a run, and refuses a run of an
// account that is full: its results could not be stored. It locks the account's
// storage, which comes before its ledger.
func (s *Service) chargeFiles(ctx context.Context, tx *sqldb.Tx, accountID string, files []ingest.Taken) (bytes int64, err error) {
	for _, f := range files {
		bytes += f.Asset.StoredBytes()
	}
	if err := s.Settings.Storage.Charge(ctx, tx, accountID, bytes); err != nil {
		return 0, err
	}
	_, err = s.Settings.Storage.Fits(ctx, tx, accountID, 1)
	return bytes, err
}

// Replay gives the answer that a key got before. Whether the request is the
// same is judged by its fingerprint.
func (s *Service) Replay(ctx context.Context, personID, key, fingerprint string) (c Created, found bool, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		c, found, err = s.replay(ctx, tx, personID, key, fingerprint)
		return err
	})
	return c, found, err
}

func (s *Service) replay(ctx context.Context, tx *sqldb.Tx, personID, key, fingerprint string) (Created, bool, error) {
	k, ok, err := run.Recall(ctx, tx, personID, key, s.Settings.KeyLifetime)
	if err != nil || !ok {
		return Created{}, false, err
	}
	if k.Fingerprint != fingerprint {
		return Created{}, false, fault.New(fault.IdempotencyKeyConflict, "This Idempotency-Key was used with another request. Use a new one.")
	}
	r, err := run.Any(ctx, tx, k.RunID)
	if err != nil {
		return Created{}, false, fmt.Errorf("replay: %w", err)
	}
	rooms, err := ratelimit.Rooms(ctx, tx, rateKey(personID), s.windows...)
	if err != nil {
		return Created{}, false, err
	}
	return Created{
		Response:  []byte(k.Response),
		PollAfter: r.PollAfter,
		Replayed:  true,
		Rooms:     rooms,
	}, true, nil
}

// Known tells whether a key has an answer already.
func (s *Service) Known(ctx context.Context, personID, key string) (known bool, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		_, known, err = run.Recall(ctx, tx, personID, key, s.Settings.KeyLifetime)
		return err
	})
	return known, err
}

// Busy refuses a request whose rate is used up, before its body is read. It
// takes nothing.
func (s *Service) Busy(ctx context.Context, personID string) error {
	return s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		full, err := ratelimit.Full(ctx, tx, rateKey(personID), s.windows...)
		if err == nil && full.Wait > 0 {
			err = tooFast(full)
		}
		return err
	})
}

func tooFast(full ratelimit.Refusal) error {
	return full.Fault("You start runs faster than is allowed. Wait a little.")
}

// admit counts a create: in the rate windows, and against the runs that go on.
func (s *Service) admit(ctx context.Context, tx *sqldb.Tx, who principal.Principal, active int64) ([]ratelimit.Room, error) {
	rooms, full, err := ratelimit.Admit(ctx, tx, rateKey(who.PersonID), s.windows...)
	if err != nil {
		return nil, err
	}
	if full.Wait > 0 {
		return nil, tooFast(full)
	}
	if active >= int64(s.Settings.ActiveRuns) {
		return nil, activeCap(active, s.Settings.ActiveRuns)
	}
	return rooms, nil
}

func activeCap(active int64, most int) *fault.Error {
	return fault.New(fault.ActiveRunCap, "You have as many runs going as is allowed. Wait for one to finish.").
		With("active", active).With("limit", most).After(time.Second)
}

// reserve holds what the run may cost, within what the role may spend and what
// the team planned to.
func (s *Service) reserve(ctx context.Context, tx *sqldb.Tx, who principal.Principal, a accepted) (ledger.Hold, error) {
	hold, err := ledger.Reserve(ctx, tx, who.AccountID, a.price, s.Settings.MonthlyAllowance)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.InsufficientBalance {
		required, _ := f.Details["required"].(int64)
		available, _ := f.Details["available"].(int64)
		err = s.tooFewTokens(who, required, available)
	}
	if err != nil {
		return ledger.Hold{}, err
	}
	left, limited, err := spendLeft(ctx, tx, who)
	if err == nil && limited && hold.Tokens > left {
		err = overspent(hold.Tokens, left)
	}
	if err != nil {
		return ledger.Hold{}, err
	}
	// The account is locked: what others hold stays as it is. They may have paid
	// while we waited for it, in a month that had not begun when tx did.
	if left, limited, err = budgetLeft(ctx, tx, who, hold, s.DB.Now()); err == nil && limited && left < 0 {
		err = overBudget(hold.Tokens, left+hold.Tokens)
	}
	return hold, err
}

// tooFewTokens refuses a run that the account cannot pay, and says what to do
// about it.
func (s *Service) tooFewTokens(who principal.Principal, required, available int64) *fault.Error {
	has := "your account has"
	then := `Ask the operator of this installation for more, who has "atelier admin grant" for it.`
	switch {
	case who.TeamID != "":
		has = "the team has"
		then = "An admin of the team can ask the operator of this installation for more."
	case s.Settings.TopUp > 0:
		then = "Claim your free top-up if you have not yet, or ask the operator of this installation for more."
	}
	unit := "tokens"
	if required == 1 {
		unit = "token"
	}
	return fault.New(fault.InsufficientBalance, fmt.Sprintf("This run needs %d %s and %s %d. %s", required, unit, has, available, then)).
		With("required", required).With("available", available)
}

// budgetLeft is what a hard budget of the team leaves at a moment. A run that is
// free asks for nothing of it.
func budgetLeft(ctx context.Context, tx *sqldb.Tx, who principal.Principal, h ledger.Hold, at time.Time) (left int64, limited bool, err error) {
	if who.TeamID == "" || h.Tokens == 0 {
		return 0, false, nil
	}
	return budget.Left(ctx, tx, who.TeamID, at)
}

func overBudget(required, left int64) *fault.Error {
	return fault.New(fault.InsufficientBalance, "The budget of this team does not allow that much in this month. Ask an admin of the team.").
		With("required", required).With("available", max(left, 0)).With("reason", "budget")
}

// spendLeft is what the person's role lets them spend of the team's tokens now.
func spendLeft(ctx context.Context, tx *sqldb.Tx, who principal.Principal) (left int64, limited bool, err error) {
	if who.Role.Spend == nil {
		return 0, false, nil
	}
	spent, err := run.Spent(ctx, tx, who.AccountID, who.PersonID, tx.Now.Add(-who.Role.Spend.Window))
	return max(who.Role.Spend.Tokens-spent, 0), true, err
}

func overspent(required, left int64) *fault.Error {
	return fault.New(fault.InsufficientBalance, "Your role in this team may not spend that much now. Wait, or ask an admin of the team.").
		With("required", required).With("available", left).With("reason", "spending_window")
}

// estimate is how long n results of the tool take, in whole seconds; 0 where
// nobody knows yet.
func estimate(t *catalog.Tool, n int64) time.Duration {
	if t.Average == 0 {
		return 0
	}
	all := time.Duration(n) * t.Average
	return max(all.Round(time.Second), time.Second)
}
