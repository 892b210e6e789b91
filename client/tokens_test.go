package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"atelier/client"
)

// signInServer gives out tokens that live for a while. A refresh token that was
// replaced works for a minute and yields the same successor, as at the service.
type signInServer struct {
	mu        sync.Mutex
	lifetime  time.Duration
	refreshes int
	used      []string // refresh tokens
	current   int
	ends      time.Time
}

func (s *signInServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/auth/token/refresh") {
		var body client.RefreshRequest
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.refreshes++
		s.used = append(s.used, body.RefreshToken)
		s.current++
		s.ends = time.Now().Add(s.lifetime)
		_ = json.NewEncoder(w).Encode(client.Tokens{IDToken: fmt.Sprint("id", s.current), RefreshToken: fmt.Sprint("refresh", s.current), ExpiresAt: s.ends.Unix()})
		return
	}
	if r.Header.Get("Authorization") != fmt.Sprint("Bearer id", s.current) || !time.Now().Before(s.ends) {
		refusal(w, http.StatusUnauthorized, client.CodeUnauthenticated, false, "")
		return
	}
	fmt.Fprint(w, `{}`)
}

func withStore(store client.TokenStore) func(*client.Options) {
	return func(o *client.Options) {
		o.Token = ""
		o.Store = store
	}
}

// TestOneRefresh has many calls find an expired token at once.
func TestOneRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &signInServer{lifetime: 20 * time.Second}
		store := client.NewMemoryStore(client.Tokens{IDToken: "id0", RefreshToken: "refresh0", ExpiresAt: time.Now().Unix()})
		c := connect(t, &memoryTransport{handler: s}, withStore(store))
		for round := 1; round < 4; round++ {
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() {
					if _, err := c.Me.Get(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if s.refreshes != round {
				t.Errorf("%d refreshes in round %d", s.refreshes, round)
			}
			time.Sleep(s.lifetime)
		}
		if got, _ := store.Load(t.Context()); got.RefreshToken != "refresh3" {
			t.Errorf("stored = %+v", got)
		}
	})
}

// TestRefusedTokenIsReplaced has a token that the service refuses before its
// time, and a sign-in that has ended.
func TestRefusedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &signInServer{lifetime: time.Hour}
		later := time.Now().Add(time.Hour).Unix()
		c := connect(t, &memoryTransport{handler: s}, withStore(client.NewMemoryStore(client.Tokens{IDToken: "revoked", RefreshToken: "refresh0", ExpiresAt: later})))
		if _, err := c.Me.Get(t.Context()); err != nil || s.refreshes != 1 {
			t.Errorf("%d refreshes, %v", s.refreshes, err)
		}

		ended := &memoryTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refusal(w, http.StatusUnauthorized, client.CodeTokenInvalid, false, "")
		})}
		c = connect(t, ended, withStore(client.NewMemoryStore(client.Tokens{IDToken: "id", RefreshToken: "refresh", ExpiresAt: later})))
		if _, err := c.Me.Get(t.Context()); !client.HasCode(err, client.CodeTokenInvalid) || ended.requests() != 2 {
			t.Errorf("%d requests, %v", ended.requests(), err)
		}

		c = connect(t, &memoryTransport{handler: s}, withStore(&client.MemoryStore{}))
		began := time.Now()
		if _, err := c.Me.Get(t.Context()); !errors.Is(err, client.ErrSignedOut) || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, err := c.Runs.Wait(t.Context(), "r", client.Watch{}); !errors.Is(err, client.ErrSignedOut) {
			t.Errorf("error = %v", err)
		}

		empty := &client.MemoryStore{} // a person who signs in later
		c = connect(t, &memoryTransport{handler: s}, withStore(empty))
		if err := empty.Save(t.Context(), client.Tokens{RefreshToken: "refresh1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Me.Get(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLostRefresh loses the answers to refreshes, and the callers that began
// them: the tokens are saved all the same.
func TestLostRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &signInServer{lifetime: time.Hour}
		m := &memoryTransport{handler: s}
		m.lose = func(n int, _ *http.Request) error {
			if n <= 2 {
				return errReset
			}
			return nil
		}
		store := client.NewMemoryStore(client.Tokens{RefreshToken: "refresh0"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := connect(t, m, withStore(store)).Me.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if strings.Join(s.used, " ") != "refresh0 refresh0 refresh0" {
			t.Errorf("used = %v", s.used)
		}
		if got, err := store.Load(t.Context()); err != nil || got.RefreshToken != "refresh3" {
			t.Errorf("stored = %+v, %v", got, err)
		}
	})
}

// TestFileStore shares a file between clients, as processes do.
func TestFileStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "tokens.json")
	store := client.NewFileStore(path)
	if _, err := store.Load(t.Context()); !errors.Is(err, client.ErrSignedOut) {
		t.Errorf("error = %v", err)
	}
	if err := store.Save(t.Context(), client.Tokens{IDToken: "id0", RefreshToken: "refresh0", ExpiresAt: time.Now().Unix()}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}

	s := &signInServer{lifetime: time.Hour}
	var group sync.WaitGroup
	for range 8 {
		c := connect(t, &memoryTransport{handler: s}, withStore(client.NewFileStore(path)))
		group.Go(func() {
			if _, err := c.Me.Get(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if s.refreshes != 1 {
		t.Errorf("%d refreshes", s.refreshes)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left = %v, %v", left, err)
	}

	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context()); err == nil || errors.Is(err, client.ErrSignedOut) {
		t.Errorf("a damaged file: %v", err)
	}
	if err := errors.Join(store.Delete(), store.Delete()); err != nil {
		t.Error(err)
	}
}

// TestFileStoreLocks excludes others, and takes over a lock that was left
// behind.
func TestFileStoreLocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.json")
	store := client.NewFileStore(path)
	unlock, err := store.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
	defer cancel()
	if _, err := store.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v", err)
	}
	old := time.Now().Add(-31 * time.Second)
	if err := os.Chtimes(path+".lock", old, old); err != nil {
		t.Fatal(err)
	}
	takenOver, err := store.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	takenOver()
	unlock()
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left = %v, %v", left, err)
	}
}

// TestDeviceLogin polls in the rhythm of the service.
func TestDeviceLogin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		polls func(n int, w http.ResponseWriter)
		want  []time.Duration // times of the polls
		err   error
	}{
		{"approved", func(n int, w http.ResponseWriter) {
			switch n {
			case 1:
				refusal(w, http.StatusPreconditionRequired, client.CodeAuthorizationPending, true, "")
			case 2:
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error": {"code": "SLOW_DOWN", "message": "slower", "retryable": true, "details": {"interval": 9}}}`)
			default:
				fmt.Fprint(w, `{"tokens": {"id_token": "i", "refresh_token": "r", "expires_at": 1}, "device_id": "d"}`)
			}
		}, []time.Duration{5 * time.Second, 10 * time.Second, 19 * time.Second}, nil},
		{"refused", func(_ int, w http.ResponseWriter) {
			refusal(w, http.StatusGone, client.CodeDeviceCodeExpired, false, "")
		}, []time.Duration{5 * time.Second}, client.ErrLoginExpired},
		{"forgotten", func(_ int, w http.ResponseWriter) {
			refusal(w, http.StatusPreconditionRequired, client.CodeAuthorizationPending, true, "")
		}, []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 25 * time.Second, 30 * time.Second}, client.ErrLoginExpired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var polls []time.Duration
				m := &memoryTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Authorization") != "" {
						t.Error("a credential was sent")
					}
					if strings.HasSuffix(r.URL.Path, "/start") {
						fmt.Fprint(w, `{"device_code": "secret", "user_code": "BCDF-GHJK", "verification_url": "http://atelier.test/device", "expires_in": 30, "interval": 5}`)
						return
					}
					polls = append(polls, time.Since(began))
					tt.polls(len(polls), w)
				})}
				login, err := connect(t, m, nil).StartDeviceLogin(t.Context(), "blender")
				if err != nil || login.UserCode != "BCDF-GHJK" {
					t.Fatalf("login = %+v, %v", login, err)
				}
				result, err := login.Wait(t.Context())
				if !errors.Is(err, tt.err) || tt.err == nil && result.Tokens.RefreshToken != "r" || fmt.Sprint(polls) != fmt.Sprint(tt.want) {
					t.Errorf("polls = %v, %v", polls, err)
				}
			})
		})
	}
}
