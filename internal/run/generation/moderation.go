package generation

import (
	"context"
	"sync"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/people/principal"
	"atelier/internal/run/policy"
	"atelier/internal/run/run"
)

// The moderator is an external server that takes time and may cost money, so it
// is called only for create requests that would otherwise be accepted:
//
//	read: key, rate, cap, balance ──▶ room for n ──▶ fewer than n in progress? ──▶ call ──▶ transaction of the create
//	      ▲                                               │ no                                 │
//	      └──────────────── one of them ended ◀───────────┴────────────────────────────────────┘
//
// Nothing is locked in the database while the moderator is called, and the
// transaction repeats all checks. Each node counts only its own requests in
// progress. Several nodes together may therefore call the moderator more often
// than runs can be accepted: each node up to n times.

// moderationWait is how long a create request waits for other create requests
// of the same person.
const moderationWait = 8 * time.Second

// moderations are the create requests on this node that are being moderated, by
// person.
type moderations struct {
	mu     sync.Mutex
	people map[string]*personModeration
}

// personModeration contains the create requests of one person that are being
// moderated.
type personModeration struct {
	users int           // number of requests that use this entry; guarded by moderations.mu
	entry chan struct{} // contains one token; only the request that holds the token may check whether a run can be accepted

	mu    sync.Mutex
	open  int64           // number of moderated requests in progress
	keys  map[string]bool // idempotency keys of the requests in progress
	ended chan struct{}   // closed when one of the requests in progress ends
}

// underWay returns the number of moderated requests in progress, whether one of
// them has the idempotency key, and a channel that is closed when one of them
// ends.
func (one *personModeration) underWay(key string) (open int64, hasKey bool, ended <-chan struct{}) {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.open, one.keys[key], one.ended
}

func (one *personModeration) beginCreate(key string) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.open++
	if key != "" {
		one.keys[key] = true
	}
}

func (one *personModeration) endCreate(key string) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.open--
	delete(one.keys, key)
	close(one.ended)
	one.ended = make(chan struct{})
}

// joinPerson returns the entry of a person, which is kept until leave is
// called.
func (m *moderations) joinPerson(personID string) (one *personModeration, leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one = m.people[personID]
	if one == nil {
		one = &personModeration{entry: make(chan struct{}, 1), keys: map[string]bool{}, ended: make(chan struct{})}
		one.entry <- struct{}{}
		if m.people == nil {
			m.people = map[string]*personModeration{}
		}
		m.people[personID] = one
	}
	one.users++
	return one, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(m.people, personID)
		}
	}
}

// moderateDraft calls the moderator for a draft that would otherwise be
// accepted. The caller creates the run and then calls done. If an earlier
// request with the same idempotency key has created a run, replayed is true, c
// contains that run, and the moderator is not called.
func (s *Service) moderateDraft(ctx context.Context, d Draft, a checkedDraft, said []policy.Text) (c Created, replayed bool, done func(), err error) {
	one, leave := s.moderations.joinPerson(d.Principal.PersonID)
	c, replayed, err = s.waitForRoom(ctx, one, d, a)
	if err != nil || replayed {
		leave()
		return c, replayed, nil, err
	}
	done = func() {
		one.endCreate(d.Key)
		leave()
	}
	if err := s.Policy.ModerateTexts(ctx, said); err != nil {
		done()
		return Created{}, false, nil, err
	}
	return Created{}, false, done, nil
}

// waitForRoom waits until the limits allow one more run in addition to the
// requests in progress.
func (s *Service) waitForRoom(ctx context.Context, one *personModeration, d Draft, a checkedDraft) (c Created, replayed bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, moderationWait)
	defer cancel()
	select {
	case <-one.entry:
		defer func() { one.entry <- struct{}{} }()
	case <-waiting.Done():
		return Created{}, false, errModerationBusy(ctx)
	}
	for {
		// The requests in progress are counted before the database is read.
		// Every concurrent request is therefore counted at least once: as in
		// progress, or as a run in the database.
		open, hasKey, ended := one.underWay(d.Key)
		var room int64
		err = s.DB.Read(waiting, func(tx *sqldb.Tx) (err error) {
			if d.Key != "" {
				if c, replayed, err = s.findReplay(waiting, tx, d.Principal.PersonID, d.Key, d.Fingerprint); err != nil || replayed {
					return err
				}
			}
			room, err = s.countRoom(waiting, tx, d.Principal, a)
			return err
		})
		if err != nil || replayed {
			return c, replayed, err
		}
		if open < room && !hasKey {
			one.beginCreate(d.Key)
			return Created{}, false, nil
		}
		select { // this request holds the token, so other requests of the person wait for it
		case <-ended:
		case <-waiting.Done():
			return Created{}, false, errModerationBusy(ctx)
		}
	}
}

// errModerationBusy returns the error for a create request that waited too
// long.
func errModerationBusy(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err() // the client has disconnected
	}
	return fault.New(fault.Unavailable, "The service cannot check this request right now. Try again shortly.").After(time.Second)
}

// countRoom returns the number of runs with the price of this draft that the
// person could start now. If it is zero, countRoom returns the error that
// rejects the next run. It makes the same checks as the create transaction, in
// the same order, but only reads: it does not count against rate limits and
// locks no rows.
func (s *Service) countRoom(ctx context.Context, tx *sqldb.Tx, who principal.Principal, a checkedDraft) (int64, error) {
	left, full, err := ratelimit.Left(ctx, tx, rateKey(who.PersonID), s.windows...)
	if err != nil {
		return 0, err
	}
	if full.Wait > 0 {
		return 0, errTooFast(full)
	}
	active, err := run.CountActive(ctx, tx, who.PersonID)
	if err != nil {
		return 0, err
	}
	limit := int64(s.Settings.ActiveRuns)
	if active >= limit {
		return 0, errActiveCap(active, s.Settings.ActiveRuns)
	}
	room := min(int64(left), limit-active)
	if a.price == 0 {
		return room, nil
	}

	balances, err := ledger.Balances(ctx, tx, []string{who.AccountID}, s.Settings.MonthlyAllowance)
	if err != nil {
		return 0, err
	}
	balance := balances[who.AccountID]
	tokens := a.price - min(a.price, balance.FreeAllowanceLeft)
	if tokens > balance.Tokens {
		return 0, errTooFewTokens(s.Settings.TopUp, who, tokens, balance.Tokens)
	}
	room = min(room, (balance.Tokens+balance.FreeAllowanceLeft)/a.price)
	if tokens == 0 {
		return room, nil
	}
	spend, limited, err := spendLeft(ctx, tx, who)
	if err != nil {
		return 0, err
	}
	if limited {
		if tokens > spend {
			return 0, errOverspent(tokens, spend)
		}
		room = min(room, spend/tokens)
	}
	planned, limited, err := budgetLeft(ctx, tx, who, ledger.Hold{Tokens: tokens}, tx.Now)
	if err != nil {
		return 0, err
	}
	if limited {
		if tokens > planned {
			return 0, errOverBudget(tokens, planned)
		}
		room = min(room, planned/tokens)
	}
	return room, nil
}
