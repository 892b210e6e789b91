package events

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/money/ledger"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

const (
	// pollInterval is the time between two reads of everything that is
	// followed. Only polling finds changes made by other nodes.
	pollInterval = 500 * time.Millisecond
	// cursorInterval is the time between two reads of the boards that several
	// people look at, whose cursors move.
	cursorInterval = pollInterval / 2
	// minGap is the minimum time between two reads because of changes made by
	// this node.
	minGap = 100 * time.Millisecond
	// keepInterval is the time between two extensions of the presence of people
	// on boards (see board.Boards.KeepStreams).
	keepInterval = 10 * time.Second
	// positionPolls is the number of polls after which the positions of queued
	// runs are read again.
	positionPolls = 4
	// maxPositions is the maximum number of queued runs of an account whose
	// positions are kept up to date.
	maxPositions = 10
	// overlap is how far behind the current time the end of a run may become
	// visible: the time of an end is that of the beginning of its transaction,
	// which is committed within the time limit of database operations.
	overlap = 30 * time.Second
	// maxEndedAtOnce is the maximum number of runs that can end within overlap
	// in one read, as a safeguard.
	maxEndedAtOnce = 100_000
	// idsAtOnce is the maximum number of ids in one statement.
	idsAtOnce = 1024
)

// Feed reads the changes of the accounts and boards that clients of this
// process follow. One goroutine reads for all streams, and only while there are
// any, so that the number of queries does not depend on the number of streams.
// A failed read is repeated at the next poll; streams end by themselves if the
// database stays unavailable, because they cannot be authorized again.
type Feed struct {
	FeedParts
	node    string      // identifies this process in the presence on boards
	changes *pubsub.Hub // notified after each change, by account or board id
	wake    chan struct{}

	mu       sync.Mutex
	accounts map[string]*accountState
	boards   map[string]*boardState
	stop     func() // ends the reading goroutine and waits for it; nil if there is none

	touchMu sync.Mutex      // is locked last, while a hub is locked too
	touched map[string]bool // ids of objects that this node has changed
}

// FeedParts are the dependencies of a Feed.
type FeedParts struct {
	DB     *sqldb.DB
	Runs   *generation.Service
	Hub    *pubsub.Hub // notifies of changes of runs
	Boards *board.Boards
	Grants *ledger.Grants // knows the free allowance, which is part of the balance
}

// NewFeed returns a feed that nobody follows.
func NewFeed(p FeedParts) *Feed {
	return &Feed{
		FeedParts: p,
		node:      ids.New(),
		changes:   pubsub.New(),
		wake:      make(chan struct{}, 1),
		accounts:  map[string]*accountState{},
		boards:    map[string]*boardState{},
		touched:   map[string]bool{},
	}
}

// accountState is the state of an account that is followed.
type accountState struct {
	followers int
	known     map[string]run.Revision // runs that have not ended, or ended within overlap, as last read
	changed   map[string]runChange    // runs that have changed since the account is followed
	sequence  int64                   // incremented with every change
	balance   ledger.Balance
	balanceAt int64     // value of sequence when the balance last changed
	readAt    time.Time // time of the state
}

// runChange is the newest state of a run that has changed.
type runChange struct {
	record    generation.Record
	sequence  int64     // value of accountState.sequence at the change
	previewAt int64     // value of accountState.sequence when the preview last changed; 0 if there was none
	readAt    time.Time // time of the read that found the change
}

// boardState is the state of a board that is followed.
type boardState struct {
	followers int
	glimpse   board.Glimpse
}

// subscription is one stream that follows an account and boards.
type subscription struct {
	account  *accountState
	sequence int64 // value of accountState.sequence at the beginning
	changes  <-chan struct{}
	release  func()
}

// follow makes the feed read an account and boards until release is called.
func (f *Feed) follow(ctx context.Context, accountID string, boardIDs []string) (subscription, error) {
	fresh, glimpses, err := f.readFirst(ctx, accountID, boardIDs)
	if err != nil {
		return subscription{}, err
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.accounts[accountID]
	if state == nil {
		state = fresh
		f.accounts[accountID] = state
	}
	state.followers++
	for _, id := range boardIDs {
		if f.boards[id] == nil {
			f.boards[id] = &boardState{glimpse: glimpses[id]}
		}
		f.boards[id].followers++
	}
	if f.stop == nil {
		f.start()
	}

	changes, unfollow := f.changes.Follow(append([]string{accountID}, boardIDs...)...)
	return subscription{
		account:  state,
		sequence: state.sequence,
		changes:  changes,
		release: func() {
			unfollow()
			f.unfollow(accountID, boardIDs)
		},
	}, nil
}

// unfollow ends the reading goroutine if nothing is followed any more.
func (f *Feed) unfollow(accountID string, boardIDs []string) {
	f.mu.Lock()
	if f.accounts[accountID].followers--; f.accounts[accountID].followers == 0 {
		delete(f.accounts, accountID)
	}
	for _, id := range boardIDs {
		if f.boards[id].followers--; f.boards[id].followers == 0 {
			delete(f.boards, id)
		}
	}
	stop := func() {}
	if len(f.accounts) == 0 {
		stop = f.stop
		f.stop = nil
	}
	f.mu.Unlock()
	stop()
}

// readFirst reads the state of an account and boards. Everything that changes
// after it is found by comparison.
func (f *Feed) readFirst(ctx context.Context, accountID string, boardIDs []string) (state *accountState, glimpses map[string]board.Glimpse, err error) {
	err = f.DB.Read(ctx, func(tx *sqldb.Tx) error {
		revisions, err := readRevisions(ctx, tx, []string{accountID})
		if err != nil {
			return err
		}
		balances, err := ledger.Balances(ctx, tx, []string{accountID}, f.Grants.MonthlyAllowance)
		if err != nil {
			return err
		}

		state = &accountState{
			known:   map[string]run.Revision{},
			changed: map[string]runChange{},
			balance: balances[accountID],
			readAt:  tx.Now,
		}
		for _, one := range revisions {
			state.known[one.ID] = one
		}
		if len(boardIDs) > 0 {
			glimpses, err = board.ReadGlimpsesUnscoped(ctx, tx, boardIDs)
		}
		return err
	})
	return state, glimpses, err
}

// readRevisions returns the revisions of the accounts' runs that have not ended
// or have ended within overlap.
func readRevisions(ctx context.Context, tx *sqldb.Tx, accountIDs []string) (all []run.Revision, err error) {
	for chunk := range slices.Chunk(accountIDs, idsAtOnce) {
		pending, err := run.PendingRevisions(ctx, tx, chunk)
		if err != nil {
			return nil, err
		}
		ended, err := run.EndedRevisions(ctx, tx, chunk, tx.Now.Add(-overlap), maxEndedAtOnce)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, pending, ended)
	}
	return all, nil
}

// start starts the reading goroutine. The caller holds f.mu.
func (f *Feed) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	ignoreRuns := f.Hub.Observe(f.touch)
	ignoreBoards := f.Boards.Hub.Observe(f.touch)
	go func() {
		defer close(done)
		f.readChanges(ctx)
	}()
	f.stop = func() {
		ignoreRuns()
		ignoreBoards()
		cancel()
		<-done
	}
}

// touch has the goroutine read an account or a board at once if it is followed.
func (f *Feed) touch(id string) {
	f.touchMu.Lock()
	defer f.touchMu.Unlock()
	f.touched[id] = true
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// readChanges reads what has changed until ctx ends.
func (f *Feed) readChanges(ctx context.Context) {
	poll := time.NewTicker(cursorInterval)
	keep := time.NewTicker(keepInterval)
	defer poll.Stop()
	defer keep.Stop()
	for turn := 0; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
			f.readTargets(ctx, f.takeTouched())
			select {
			case <-ctx.Done():
			case <-time.After(minGap):
			}
		case <-poll.C:
			turn++
			if turn%2 == 0 {
				f.readTargets(ctx, f.everything(turn/2%positionPolls == 0))
			} else {
				f.readTargets(ctx, f.crowdedBoards())
			}
		case <-keep.C:
			if f.hasBoards() {
				_ = f.Boards.KeepStreams(ctx, f.node) // repeated long before the presence expires
			}
		}
	}
}

// targets are the accounts and boards to read.
type targets struct {
	accounts      map[string]*accountState
	boards        map[string]*boardState
	withPositions bool // also reads the positions of queued runs
}

// takeTouched returns the accounts and boards that this node has changed since
// the last call.
func (f *Feed) takeTouched() targets {
	f.touchMu.Lock()
	touched := f.touched
	f.touched = map[string]bool{}
	f.touchMu.Unlock()

	f.mu.Lock()
	defer f.mu.Unlock()
	t := targets{accounts: map[string]*accountState{}, boards: map[string]*boardState{}}
	for id := range touched {
		if state := f.accounts[id]; state != nil {
			t.accounts[id] = state
		}
		if state := f.boards[id]; state != nil {
			t.boards[id] = state
		}
	}
	return t
}

func (f *Feed) everything(withPositions bool) targets {
	f.mu.Lock()
	defer f.mu.Unlock()
	return targets{accounts: maps.Clone(f.accounts), boards: maps.Clone(f.boards), withPositions: withPositions}
}

// crowdedBoards returns the boards with several viewers.
func (f *Feed) crowdedBoards() targets {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := targets{boards: map[string]*boardState{}}
	for id, state := range f.boards {
		if len(state.glimpse.Viewers) > 1 {
			t.boards[id] = state
		}
	}
	return t
}

func (f *Feed) hasBoards() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.boards) > 0
}

// news is the result of reading targets.
type news struct {
	at        time.Time
	revisions map[string][]run.Revision // by account id
	records   []generation.Record       // runs that may have changed
	balances  map[string]ledger.Balance
	glimpses  map[string]board.Glimpse
}

// readTargets reads accounts and boards and notifies their followers of
// changes.
func (f *Feed) readTargets(ctx context.Context, t targets) {
	if len(t.accounts) == 0 && len(t.boards) == 0 {
		return
	}
	var n news
	err := f.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		n, err = f.readNews(ctx, tx, t)
		return err
	})
	if err == nil {
		f.changes.Notify(f.apply(t, n)...)
	}
}

func (f *Feed) readNews(ctx context.Context, tx *sqldb.Tx, t targets) (news, error) {
	n := news{
		at:        tx.Now,
		revisions: map[string][]run.Revision{},
		balances:  map[string]ledger.Balance{},
		glimpses:  map[string]board.Glimpse{},
	}
	accountIDs := slices.Collect(maps.Keys(t.accounts))
	revisions, err := readRevisions(ctx, tx, accountIDs)
	if err != nil {
		return news{}, err
	}
	for _, one := range revisions {
		n.revisions[one.AccountID] = append(n.revisions[one.AccountID], one)
	}
	if n.records, err = f.readRecords(ctx, tx, f.findChanged(t, n.revisions)); err != nil {
		return news{}, err
	}

	for chunk := range slices.Chunk(accountIDs, idsAtOnce) {
		some, err := ledger.Balances(ctx, tx, chunk, f.Grants.MonthlyAllowance)
		if err != nil {
			return news{}, err
		}
		maps.Copy(n.balances, some)
	}
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(t.boards)), idsAtOnce) {
		some, err := board.ReadGlimpsesUnscoped(ctx, tx, chunk)
		if err != nil {
			return news{}, err
		}
		maps.Copy(n.glimpses, some)
	}
	return n, nil
}

// findChanged returns the ids of the runs whose revision is not the known one,
// and of queued runs whose positions are due. A run that was pending and is in
// no list any more is returned too, in case its end has an unexpected time.
func (f *Feed) findChanged(t targets, revisions map[string][]run.Revision) (changed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for accountID, state := range t.accounts {
		listed := make(map[string]bool, len(revisions[accountID]))
		positions := 0
		for _, one := range revisions[accountID] {
			listed[one.ID] = true
			isDue := t.withPositions && one.IsQueued && positions < maxPositions
			if isDue {
				positions++
			}
			if isDue || state.known[one.ID] != one {
				changed = append(changed, one.ID)
			}
		}
		for id, one := range state.known {
			if !one.IsEnded && !listed[id] {
				changed = append(changed, id)
			}
		}
	}
	return changed
}

// apply stores what was read, and returns the ids of the accounts and boards
// that have changed.
func (f *Feed) apply(t targets, n news) (changed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	records := map[string][]generation.Record{}
	for _, rec := range n.records {
		records[rec.AccountID] = append(records[rec.AccountID], rec)
	}
	for id, state := range t.accounts {
		before := state.sequence
		state.applyRuns(records[id], n.revisions[id], n.at)
		if balance := n.balances[id]; balance != state.balance {
			state.sequence++
			state.balance = balance
			state.balanceAt = state.sequence
		}
		if state.sequence != before {
			changed = append(changed, id)
		}
	}
	for id, state := range t.boards {
		if isSameGlimpse(state.glimpse, n.glimpses[id]) {
			continue
		}
		state.glimpse = n.glimpses[id]
		changed = append(changed, id)
	}
	return changed
}

func (s *accountState) applyRuns(records []generation.Record, revisions []run.Revision, at time.Time) {
	s.readAt = at
	for _, rec := range records {
		was := s.changed[rec.ID]
		if was.sequence > 0 && was.record.Revision == rec.Revision && was.record.Position == rec.Position {
			continue
		}
		s.sequence++
		now := runChange{
			record:    rec,
			sequence:  s.sequence,
			previewAt: was.previewAt,
			readAt:    at,
		}
		if rec.Preview != "" && rec.Preview != was.record.Preview {
			now.previewAt = s.sequence
		}
		s.changed[rec.ID] = now
	}
	maps.DeleteFunc(s.changed, func(_ string, c runChange) bool {
		return c.record.State.IsEnded() && c.readAt.Before(at.Add(-overlap))
	})

	clear(s.known)
	for _, one := range revisions {
		s.known[one.ID] = one
	}
}

func isSameGlimpse(a, b board.Glimpse) bool {
	return a.Revision == b.Revision && isSameAudience(a.Viewers, b.Viewers)
}

// isSameAudience reports whether two lists show the same people with the same
// cursors and selections.
func isSameAudience(a, b []board.ViewerState) bool {
	return slices.EqualFunc(a, b, func(v, w board.ViewerState) bool {
		isSameCursor := v.Cursor == w.Cursor || v.Cursor != nil && w.Cursor != nil && *v.Cursor == *w.Cursor
		return v.PersonID == w.PersonID && v.Name == w.Name && isSameCursor && slices.Equal(v.Selected, w.Selected)
	})
}

// accountNews are the changes of an account since a sequence number.
type accountNews struct {
	runs     []runChange     // in the order of the changes
	balance  *ledger.Balance // nil if it has not changed
	sequence int64           // sequence number for the next call
	readAt   time.Time       // time of the state
}

// changesSince returns what has changed in an account after a sequence number.
func (f *Feed) changesSince(s *accountState, sequence int64) accountNews {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := accountNews{sequence: s.sequence, readAt: s.readAt}
	if s.sequence == sequence {
		return n
	}
	for _, c := range s.changed {
		if c.sequence > sequence {
			n.runs = append(n.runs, c)
		}
	}
	slices.SortFunc(n.runs, func(a, b runChange) int { return cmp.Compare(a.sequence, b.sequence) })
	if s.balanceAt > sequence {
		balance := s.balance
		n.balance = &balance
	}
	return n
}

// balanceOf returns the balance of an account that is followed.
func (f *Feed) balanceOf(s *accountState) ledger.Balance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.balance
}

// glimpseOf returns the state of a board that is followed.
func (f *Feed) glimpseOf(boardID string) board.Glimpse {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.boards[boardID].glimpse
}
