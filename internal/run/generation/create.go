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
	"atelier/internal/file/quota"
	"atelier/internal/money/budget"
	"atelier/internal/money/ledger"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/run/run"
)

// Created is the result of a request that creates a run.
type Created struct {
	// Run is the accepted run. Its ID, Created, Estimated, PollAfter and TeamID
	// never change. A response with only these fields is therefore identical
	// for every request with the same idempotency key.
	Run run.Run
	// Replayed reports whether the run was created by an earlier request with
	// the same idempotency key.
	Replayed bool
	// Rooms are the numbers of further runs that the rate limits allow: first
	// per minute, then per hour.
	Rooms []ratelimit.Room
}

// CreateRun accepts a run, or returns the reason for rejecting it. The checks
// are made in the order that the API documents.
func (s *Service) CreateRun(ctx context.Context, d Draft) (Created, error) {
	a, err := s.validator.checkDraft(ctx, d, false)
	if err != nil {
		return Created{}, err
	}
	said := policyTexts(a.filled, a.written)
	if err := s.Policy.CheckRules(said); err != nil {
		return Created{}, err
	}
	if s.Policy.NeedsModeration(said) {
		c, replayed, done, err := s.moderateDraft(ctx, d, a, said)
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
		c, err = s.createInTx(ctx, tx, d, a)
		return err
	})
	if err != nil {
		// The transaction may have been committed despite the error. Another
		// request with the same key returns the outcome of the transaction.
		if errors.Is(context.Cause(ctx), errInFlight) || d.Key != "" && sqldb.IsLockTimeout(err) {
			err = fault.New(fault.IdempotencyKeyConflict, "A request with this idempotency key is still being processed. Try again shortly.").
				With("reason", "in_flight").After(time.Second).Because(err)
		}
		return Created{}, err
	}
	failpoint.Hit("create.after_commit_before_reply")
	return c, nil
}

var errInFlight = errors.New("another request with the same idempotency key is in progress")

// createInTx checks and stores a new run. Everything that a create request
// changes is changed in this transaction.
func (s *Service) createInTx(ctx context.Context, tx *sqldb.Tx, d Draft, a checkedDraft) (Created, error) {
	who := d.Principal
	if err := person.DeferLock(ctx, tx, who.PersonID); err != nil {
		return Created{}, err
	}
	if d.Key != "" {
		if c, found, err := s.findReplay(ctx, tx, who.PersonID, d.Key, d.Fingerprint); err != nil || found {
			return c, err
		}
	}
	if d.IsRepeat {
		if c, found, err := s.findRepeated(ctx, tx, who.PersonID, d.Fingerprint); err != nil || found {
			return c, err
		}
	}
	if err := deferCheckUnchanged(ctx, tx, a.tool); err != nil {
		return Created{}, err
	}
	active, err := run.CountActive(ctx, tx, who.PersonID)
	if err != nil {
		return Created{}, err
	}
	failpoint.Hit("create.after_person_lock")
	// Other runs of the person may have ended while this transaction waited for
	// the lock. Their end times are later than the start of this transaction.
	// The time of the transaction is advanced, because otherwise the new run
	// would seem to be created before the other runs ended, and the person
	// would seem to exceed the limit of active runs.
	tx.AdvanceNow(s.DB.Now())
	rooms, err := s.countCreate(ctx, tx, who, active)
	if err != nil {
		return Created{}, err
	}
	headStart := s.Settings.Priorities.headStart(a.tool, who)
	if err := run.Enqueue(ctx, tx, a.tool.Engine.Name, who.PersonID, headStart); err != nil {
		return Created{}, err
	}
	sent, err := chargeFiles(ctx, tx, s.Settings.Storage, who.AccountID, d.Files)
	if err != nil {
		return Created{}, err
	}
	hold, err := s.holdPrice(ctx, tx, who, a)
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
		Estimated:      a.estimated,
		PollAfter:      s.pacing.pollAfter(a.tool),
		UnitTokens:     a.unitTokens(),
		TokensHeld:     hold.Tokens,
		AllowanceHeld:  hold.Allowance,
		AllowanceMonth: hold.Month,
		HeadStart:      headStart,
		RetryOf:        a.retryOf,
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
	key := d.Key
	if d.MayRepeat {
		key = repeatPrefix(d.Fingerprint) + r.ID
	}
	if key != "" {
		if err := run.StoreKey(ctx, tx, who.PersonID, key, run.Key{Fingerprint: d.Fingerprint, RunID: r.ID}); err != nil {
			return Created{}, err
		}
	}
	if err := tx.Flush(ctx); err != nil {
		return Created{}, err
	}
	failpoint.Hit("create.after_run_insert")
	if err := s.Settings.Storage.ChargeTotal(ctx, tx, who.AccountID, sent); err != nil {
		return Created{}, err
	}
	tx.AfterCommit(func() {
		if r.IsFlow() {
			s.FlowDue()
		} else {
			s.Queued(r.Engine)
		}
		s.Hub.Notify(r.AccountID)
	})
	failpoint.Hit("create.before_commit")
	return Created{Run: r, Rooms: rooms}, nil
}

// chargeFiles counts the files of a create request against the account's
// storage. It also rejects the request if the account's storage is full, since
// the results could not be stored. It locks the storage row of the account,
// which must be locked before its ledger row.
func chargeFiles(ctx context.Context, tx *sqldb.Tx, storage quota.Limits, accountID string, files []ingest.StoredFile) (bytes int64, err error) {
	for _, f := range files {
		bytes += f.Asset.StoredBytes()
	}
	if err := storage.ChargeAccount(ctx, tx, accountID, bytes); err != nil {
		return 0, err
	}
	return bytes, storage.DeferCheck(ctx, tx, accountID, 1)
}

// CheckRate returns an error if the rate limit of a person is used up. It is
// called before the body of a create request is read, and does not count the
// request.
func (s *Service) CheckRate(ctx context.Context, personID string) error {
	return s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		full, err := ratelimit.Peek(ctx, tx, rateKey(personID), s.windows...)
		if err == nil && full.Wait > 0 {
			err = errTooFast(full)
		}
		return err
	})
}

func errTooFast(full ratelimit.Refusal) error {
	return full.Fault("You start runs faster than allowed. Wait and try again.")
}

// countCreate counts a create request in the rate limits, and checks the limit
// of active runs. active is the number of active runs of the person.
func (s *Service) countCreate(ctx context.Context, tx *sqldb.Tx, who principal.Principal, active int64) ([]ratelimit.Room, error) {
	rooms, full, err := ratelimit.Admit(ctx, tx, rateKey(who.PersonID), s.windows...)
	if err != nil {
		return nil, err
	}
	if full.Wait > 0 {
		return nil, errTooFast(full)
	}
	if active >= int64(s.Settings.ActiveRuns) {
		return nil, errActiveCap(active, s.Settings.ActiveRuns)
	}
	return rooms, nil
}

func errActiveCap(active int64, limit int) *fault.Error {
	return fault.New(fault.ActiveRunCap, "You have reached the limit of active runs. Wait for one to finish.").
		With("active", active).With("limit", limit).After(time.Second)
}

// holdPrice places a hold on the price of a run: it reserves the tokens in the
// ledger until the run ends. It returns an error if the price exceeds the
// spending limit of the person's role or the budget of the team.
func (s *Service) holdPrice(ctx context.Context, tx *sqldb.Tx, who principal.Principal, a checkedDraft) (ledger.Hold, error) {
	hold, err := ledger.Reserve(ctx, tx, who.AccountID, a.price, s.Settings.MonthlyAllowance)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.InsufficientBalance {
		required, _ := f.Details["required"].(int64)
		available, _ := f.Details["available"].(int64)
		err = errTooFewTokens(s.Settings.TopUp, who, required, available)
	}
	if err != nil {
		return ledger.Hold{}, err
	}
	left, limited, err := spendLeft(ctx, tx, who)
	if err == nil && limited && hold.Tokens > left {
		err = errOverspent(hold.Tokens, left)
	}
	if err != nil {
		return ledger.Hold{}, err
	}
	// The account is locked, so no other transaction can reserve tokens. But
	// runs may have been settled while this transaction waited for the lock,
	// possibly in a month that began after the start of the transaction. The
	// current time of the database is therefore used instead of the time of the
	// transaction.
	if left, limited, err = budgetLeft(ctx, tx, who, hold, s.DB.Now()); err == nil && limited && left < 0 {
		err = errOverBudget(hold.Tokens, left+hold.Tokens)
	}
	return hold, err
}

// errTooFewTokens returns the error for a run that the account cannot pay for.
// The message explains how to get more tokens.
func errTooFewTokens(topUp int64, who principal.Principal, required, available int64) *fault.Error {
	has := "your account has"
	then := `Ask the operator of this installation for more; the command is "atelier admin grant".`
	switch {
	case who.TeamID != "":
		has = "the team has"
		then = "An admin of the team can ask the operator of this installation for more."
	case topUp > 0:
		then = "Claim your free top-up if you have not yet, or ask the operator of this installation for more."
	}
	unit := "tokens"
	if required == 1 {
		unit = "token"
	}
	return fault.New(fault.InsufficientBalance, fmt.Sprintf("This run needs %d %s and %s %d. %s", required, unit, has, available, then)).
		With("required", required).With("available", available)
}

// budgetLeft returns the number of tokens that the hard budget of the team
// still allows the team to spend at the given time. limited is false if there
// is no hard budget, or the run costs no tokens.
func budgetLeft(ctx context.Context, tx *sqldb.Tx, who principal.Principal, h ledger.Hold, at time.Time) (left int64, limited bool, err error) {
	if who.TeamID == "" || h.Tokens == 0 {
		return 0, false, nil
	}
	return budget.Left(ctx, tx, who.TeamID, at)
}

func errOverBudget(required, left int64) *fault.Error {
	return fault.New(fault.InsufficientBalance, "This run exceeds the budget of this team for this month. Ask an admin of the team.").
		With("required", required).With("available", max(left, 0)).With("reason", "budget")
}

// spendLeft returns the number of tokens of the team that the person's role
// allows them to spend now. limited is false if the role has no limit.
func spendLeft(ctx context.Context, tx *sqldb.Tx, who principal.Principal) (left int64, limited bool, err error) {
	if who.Role.Spend == nil {
		return 0, false, nil
	}
	spent, err := run.Spent(ctx, tx, who.AccountID, who.PersonID, tx.Now.Add(-who.Role.Spend.Window))
	return max(who.Role.Spend.Tokens-spent, 0), true, err
}

func errOverspent(required, left int64) *fault.Error {
	return fault.New(fault.InsufficientBalance, "This run exceeds the spending limit of your role in this team. Wait, or ask an admin of the team.").
		With("required", required).With("available", left).With("reason", "spending_window")
}

// estimateDuration returns how long n results of the tool are expected to take,
// in whole seconds. It returns 0 if no run of the tool has been timed.
func estimateDuration(t *catalog.Tool, n int64) time.Duration {
	if t.AverageDuration == 0 {
		return 0
	}
	all := time.Duration(n) * t.AverageDuration
	return max(all.Round(time.Second), time.Second)
}
