package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// TokenStore keeps the tokens of a device sign-in. NewMemoryStore and
// NewFileStore return implementations; others may keep them in a keyring or a
// database. All methods are safe for concurrent use.
type TokenStore interface {
	// Load returns the tokens, or ErrSignedOut if there are none.
	Load(ctx context.Context) (Tokens, error)
	// Save replaces the tokens. When it returns nil, they must survive the end
	// of the program, if the store promises that at all: the service may have
	// replaced the refresh token, and the old one soon stops working.
	Save(ctx context.Context, t Tokens) error
	// Lock gives the caller the sole right to refresh the tokens, among all
	// programs that share the store, until unlock is called.
	Lock(ctx context.Context) (unlock func(), err error)
}

// ErrSignedOut means that a TokenStore has no tokens: sign in first.
var ErrSignedOut = errors.New("not signed in")

// MemoryStore is a TokenStore for one process. The zero value is an empty
// store.
type MemoryStore struct {
	mu     sync.Mutex
	tokens Tokens
	gate   chan struct{} // has an element while the store is locked
}

// NewMemoryStore returns a store in memory with the given tokens, which may be
// empty.
func NewMemoryStore(t Tokens) *MemoryStore { return &MemoryStore{tokens: t} }

// Load implements TokenStore.
func (s *MemoryStore) Load(context.Context) (Tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens.RefreshToken == "" {
		return Tokens{}, ErrSignedOut
	}
	return s.tokens, nil
}

// Save implements TokenStore.
func (s *MemoryStore) Save(_ context.Context, t Tokens) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = t
	return nil
}

// Lock implements TokenStore.
func (s *MemoryStore) Lock(ctx context.Context) (func(), error) {
	s.mu.Lock()
	if s.gate == nil {
		s.gate = make(chan struct{}, 1)
	}
	gate := s.gate
	s.mu.Unlock()
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// FileStore is a TokenStore in a file that only its owner can read. Several
// processes can share the file.
type FileStore struct{ path string }

// NewFileStore returns a store in the file at path. Save creates the file and
// its folder if they are missing.
func NewFileStore(path string) *FileStore { return &FileStore{path: path} }

// Load implements TokenStore.
func (s *FileStore) Load(context.Context) (Tokens, error) {
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Tokens{}, ErrSignedOut
	}
	if err != nil {
		return Tokens{}, err
	}
	var t Tokens
	if err := json.Unmarshal(text, &t); err != nil {
		return Tokens{}, fmt.Errorf("the token file %s is invalid: %w", s.path, err)
	}
	if t.RefreshToken == "" {
		return Tokens{}, ErrSignedOut
	}
	return t, nil
}

// Save implements TokenStore. The file is replaced in one step, so that a crash
// leaves the old tokens or the new ones.
func (s *FileStore) Save(_ context.Context, t Tokens) error {
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	folder := filepath.Dir(s.path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, filepath.Base(s.path)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Delete removes the tokens.
func (s *FileStore) Delete() error {
	err := os.Remove(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// The lock file belongs to a process that lives; one that is older than
// staleLock was left behind by a process that died.
const (
	staleLock    = 30 * time.Second
	lockInterval = 50 * time.Millisecond
)

// Lock implements TokenStore with a file beside the tokens that only one
// process can create.
func (s *FileStore) Lock(ctx context.Context) (func(), error) {
	path := s.path + ".lock"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return holdLock(f), nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > staleLock {
			removeStale(path, info)
			continue
		}
		if err := sleep(ctx, lockInterval); err != nil {
			return nil, fmt.Errorf("wait for %s: %w", path, err)
		}
	}
}

// holdLock keeps the lock file fresh until the returned function removes it.
func holdLock(f *os.File) func() {
	path := f.Name()
	f.Close()
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(staleLock / 3)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				_ = os.Chtimes(path, now, now) // if this fails, others may take the lock: a repeated refresh is harmless
			}
		}
	})
	return func() {
		close(stop)
		done.Wait()
		_ = os.Remove(path)
	}
}

// removeStale removes a lock file that was left behind. The rename decides
// among several processes that find it, and the comparison keeps a lock that
// was created in between.
func removeStale(path string, seen os.FileInfo) {
	aside := fmt.Sprintf("%s.%d.stale", path, os.Getpid())
	if os.Rename(path, aside) != nil {
		return
	}
	if now, err := os.Stat(aside); err == nil && !os.SameFile(now, seen) {
		_ = os.Link(aside, path) // fails if there is a newer lock
	}
	_ = os.Remove(aside)
}

// tokenSource hands out the ID token of a device and refreshes it.
type tokenSource struct {
	client *Client
	store  TokenStore

	mu      sync.Mutex
	tokens  Tokens
	refresh *refreshing // nil unless a refresh is in progress
}

// refreshing is a refresh that several callers wait for.
type refreshing struct {
	done   chan struct{}
	tokens Tokens
	err    error
}

// refreshEarly is the time before its end at which an ID token is replaced, so
// that it does not expire on its way.
const refreshEarly = 5 * time.Second

// refreshTime limits a refresh. It is short of the minute in which the service
// still accepts a refresh token that it has replaced.
const refreshTime = 50 * time.Second

func isFresh(t Tokens) bool {
	return t.IDToken != "" && time.Now().Add(refreshEarly).Before(time.Unix(t.ExpiresAt, 0))
}

// idToken returns an ID token that is valid for a while.
func (s *tokenSource) idToken(ctx context.Context) (string, error) {
	s.mu.Lock()
	current := s.tokens
	s.mu.Unlock()
	if isFresh(current) {
		return current.IDToken, nil
	}
	return s.replace(ctx, current.IDToken)
}

// replace returns an ID token other than the given one. All callers wait for
// one refresh, which goes on if a caller gives up: an answer that nobody saves
// would lose the refresh token.
func (s *tokenSource) replace(ctx context.Context, used string) (string, error) {
	s.mu.Lock()
	if isFresh(s.tokens) && s.tokens.IDToken != used {
		defer s.mu.Unlock()
		return s.tokens.IDToken, nil
	}
	r := s.refresh
	if r == nil {
		r = &refreshing{done: make(chan struct{})}
		s.refresh = r
		go s.runRefresh(context.WithoutCancel(ctx), r, used)
	}
	s.mu.Unlock()

	select {
	case <-r.done:
		return r.tokens.IDToken, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// runRefresh obtains new tokens and tells those who wait.
func (s *tokenSource) runRefresh(ctx context.Context, r *refreshing, used string) {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	r.tokens, r.err = s.obtain(ctx, used)
	s.mu.Lock()
	if r.err == nil {
		s.tokens = r.tokens
	}
	s.refresh = nil
	s.mu.Unlock()
	close(r.done)
}

// obtain reads the tokens of the store and refreshes them, unless another
// process has done so.
func (s *tokenSource) obtain(ctx context.Context, used string) (Tokens, error) {
	stored, err := s.store.Load(ctx)
	if err != nil {
		return Tokens{}, &finalError{fmt.Errorf("load the tokens: %w", err)}
	}
	if isFresh(stored) && stored.IDToken != used {
		return stored, nil
	}
	unlock, err := s.store.Lock(ctx)
	if err != nil {
		return Tokens{}, &finalError{fmt.Errorf("lock the tokens: %w", err)}
	}
	defer unlock()
	if stored, err = s.store.Load(ctx); err != nil {
		return Tokens{}, &finalError{fmt.Errorf("load the tokens: %w", err)}
	}
	if isFresh(stored) && stored.IDToken != used {
		return stored, nil
	}
	fresh, err := s.client.SignIn.RefreshToken(ctx, RefreshRequest{RefreshToken: stored.RefreshToken})
	if err != nil {
		return Tokens{}, fmt.Errorf("refresh the sign-in: %w", err)
	}
	if err := s.store.Save(ctx, *fresh); err != nil {
		return Tokens{}, &finalError{fmt.Errorf("save the tokens: %w", err)}
	}
	return *fresh, nil
}
