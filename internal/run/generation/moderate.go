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

// The moderator is a server elsewhere that takes time and may cost money, so it
// is asked only about creates that could be accepted:
//
//	look: key, rate, cap, balance ──▶ room for n ──▶ fewer than n under way? ──▶ ask ──▶ the transaction of create
//	      ▲                                               │ no                                 │
//	      └──────────────── one of them ended ◀───────────┴────────────────────────────────────┘
//
// Nothing is locked in the database meanwhile, and the transaction decides all
// of it again. What is under way is known to this node alone: n nodes together
// ask at most n times as often as there is room.

// moderationWait bounds how long a create waits for others of the same person.
const moderationWait = 8 * time.Second

// moderations are the creates of this node that the moderator is asked about, by
// person.
type moderations struct {
	mu     sync.Mutex
	people map[string]*moderated
}

// moderated are those of one person.
type moderated struct {
	users int           // of this entry, guarded by moderations
	turn  chan struct{} // holds one token: whoever has it looks, waits for room and enters

	mu    sync.Mutex
	open  int64           // creates under way
	keys  map[string]bool // their idempotency keys
	ended chan struct{}   // closed when one of them ends
}

// underWay gives how many creates are, whether one of them has the key, and what
// is closed when one ends.
func (one *moderated) underWay(key string) (open int64, hasKey bool, ended <-chan struct{}) {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.open, one.keys[key], one.ended
}

func (one *moderated) begin(key string) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.open++
	if key != "" {
		one.keys[key] = true
	}
}

func (one *moderated) end(key string) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.open--
	delete(one.keys, key)
	close(one.ended)
	one.ended = make(chan struct{})
}

// join gives the entry of a person, until leave is called.
func (m *moderations) join(personID string) (one *moderated, leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one = m.people[personID]
	if one == nil {
		one = &moderated{turn: make(chan struct{}, 1), keys: map[string]bool{}, ended: make(chan struct{})}
		one.turn <- struct{}{}
		if m.people == nil {
			m.people = map[string]*moderated{}
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

// moderate asks the moderator about a draft that could be accepted. The caller
// creates the run and then calls done. replayed is whether the draft's key has an
// answer already: then nobody was asked.
func (s *Service) moderate(ctx context.Context, d Draft, a accepted, said []policy.Text) (c Created, replayed bool, done func(), err error) {
	one, leave := s.moderations.join(d.Principal.PersonID)
	c, replayed, err = s.enter(ctx, one, d, a)
	if err != nil || replayed {
		leave()
		return c, replayed, nil, err
	}
	done = func() {
		one.end(d.Key)
		leave()
	}
	if err := s.Policy.Moderate(ctx, said); err != nil {
		done()
		return Created{}, false, nil, err
	}
	return Created{}, false, done, nil
}

// enter waits until there is room for one more create beside those under way.
func (s *Service) enter(ctx context.Context, one *moderated, d Draft, a accepted) (c Created, replayed bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, moderationWait)
	defer cancel()
	select {
	case <-one.turn:
		defer func() { one.turn <- struct{}{} }()
	case <-waiting.Done():
		return Created{}, false, tooManyModerated(ctx)
	}
	for {
		// Counted before the look: a create is then either seen in the database or
		// counted as under way, or both.
		open, hasKey, ended := one.underWay(d.Key)
		var room int64
		err = s.DB.Read(waiting, func(tx *sqldb.Tx) (err error) {
			if d.Key != "" {
				if c, replayed, err = s.replay(waiting, tx, d.Principal.PersonID, d.Key, d.Fingerprint); err != nil || replayed {
					return err
				}
			}
			room, err = s.room(waiting, tx, d.Principal, a)
			return err
		})
		if err != nil || replayed {
			return c, replayed, err
		}
		if open < room && !hasKey {
			one.begin(d.Key)
			return Created{}, false, nil
		}
		select { // those behind wait as well: whoever is first looks for all
		case <-ended:
		case <-waiting.Done():
			return Created{}, false, tooManyModerated(ctx)
		}
	}
}

// tooManyModerated is for a create that waited in vain.
func tooManyModerated(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err() // the caller left
	}
	return fault.New(fault.Unavailable, "The service can't check this request right now. Try again shortly.").After(time.Second)
}

// room tells how many runs like this one could be accepted now, or why none
// could: what the transaction of a create decides, in the same order, without
// taking or locking anything.
func (s *Service) room(ctx context.Context, tx *sqldb.Tx, who principal.Principal, a accepted) (int64, error) {
	left, full, err := ratelimit.Left(ctx, tx, rateKey(who.PersonID), s.windows...)
	if err != nil {
		return 0, err
	}
	if full.Wait > 0 {
		return 0, tooFast(full)
	}
	active, err := run.Active(ctx, tx, who.PersonID)
	if err != nil {
		return 0, err
	}
	most := int64(s.Settings.ActiveRuns)
	if active >= most {
		return 0, activeCap(active, s.Settings.ActiveRuns)
	}
	room := min(int64(left), most-active)
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
		return 0, s.tooFewTokens(who, tokens, balance.Tokens)
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
			return 0, overspent(tokens, spend)
		}
		room = min(room, spend/tokens)
	}
	planned, limited, err := budgetLeft(ctx, tx, who, ledger.Hold{Tokens: tokens}, tx.Now)
	if err != nil {
		return 0, err
	}
	if limited {
		if tokens > planned {
			return 0, overBudget(tokens, planned)
		}
		room = min(room, planned/tokens)
	}
	return room, nil
}
