package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/test/visitor"
)

const password = "correct horse battery"

// bearer makes the header of a credential.
func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// code asks outside any test helper, for many at once.
func code(method, address string, header ...string) (int, error) {
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		return 0, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// TestDeviceFlow is a day in the life of a plugin.
func TestDeviceFlow(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.env = append(s.env, "ATELIER_DEVICE_INTERVAL=1s", "ATELIER_TOKENS_SIGNUP_GRANT=50")
		n := s.serve()
		start := n.call("POST", "/api/v2/auth/device/start", `{"plugin_kind": "blender"}`).want(t, 200)
		if start["expires_in"] != 600.0 || start["interval"] != 1.0 || start["verification_url"] != n.url+"/device?code="+start["user_code"].(string) {
			t.Errorf("start = %v", start)
		}
		poll := "/api/v2/auth/device/poll?device_code=" + start["device_code"].(string)
		if a := n.get(poll); a.StatusCode != 428 || a.code() != "AUTHORIZATION_PENDING" {
			t.Errorf("first poll = %d %s", a.StatusCode, a.body)
		}
		fast := n.get(poll)
		details := fast.want(t, 400)["error"].(map[string]any)
		if fast.code() != "SLOW_DOWN" || fmt.Sprint(details["details"]) != "map[interval:2]" || fast.Header.Get("Retry-After") != "2" {
			t.Errorf("second poll = %s, Retry-After %s", fast.body, fast.Header.Get("Retry-After"))
		}

		anna := visitor.New(n.url)
		if err := anna.SignUp("anna@example.com", password); err != nil {
			t.Fatal(err)
		}
		if err := anna.Decide(start["verification_url"].(string), true); err != nil {
			t.Fatal(err)
		}
		in := n.get(poll).want(t, 200) // an approval beats SLOW_DOWN
		if got := slices.Sorted(maps.Keys(in)); !slices.Equal(got, []string{"accounts", "device_id", "newly_joined_teams", "tokens", "user"}) {
			t.Errorf("envelope has %v", got)
		}
		if a := n.get(poll); a.code() != "DEVICE_CODE_EXPIRED" || a.StatusCode != 410 {
			t.Errorf("poll after the tokens = %d %s", a.StatusCode, a.body)
		}
		tokens := in["tokens"].(map[string]any)
		if left := time.Until(time.Unix(int64(tokens["expires_at"].(float64)), 0)); left < 59*time.Minute || left > time.Hour {
			t.Errorf("the ID token lasts %v", left)
		}
		n.token = tokens["id_token"].(string)
		me := n.json("/api/v2/me")
		user, account := me["user"].(map[string]any), me["accounts"].([]any)[0].(map[string]any)
		if user["email"] != "anna@example.com" || user["email_verified"] != false || user["sign_in_provider"] != "password" || user["created"] != user["created_at"] ||
			account["id"] != user["uid"] || account["kind"] != "PERSONAL" || account["plan"] != "PERSONAL" || account["company_id"] != nil ||
			fmt.Sprint(account["balance"]) != "map[free_allowance_left:0 held:0 tokens:50]" {
			t.Errorf("me = %v", me)
		}
		if fmt.Sprint(n.get("/me").want(t, 200)) != fmt.Sprint(me) {
			t.Error("/me is not /api/v2/me")
		}

		again := n.call("POST", "/api/v2/auth/token/refresh", `{"refresh_token": "`+tokens["refresh_token"].(string)+`"}`, "Authorization", "").want(t, 200)
		if again["refresh_token"] != tokens["refresh_token"] || len(again) != 3 {
			t.Errorf("refresh = %v", again)
		}
		if a := n.call("POST", "/api/v2/auth/token/refresh", `{"refresh_token": "nonsense"}`); a.StatusCode != 401 || a.code() != "TOKEN_INVALID" {
			t.Errorf("refresh with nonsense = %d %s", a.StatusCode, a.body)
		}

		// One device goes, the others stay.
		second, err := anna.Device("")
		if err != nil {
			t.Fatal(err)
		}
		n.call("POST", "/api/v2/auth/device/revoke", "").want(t, 204)
		if a := n.get("/api/v2/me"); a.StatusCode != 401 || a.code() != "UNAUTHENTICATED" {
			t.Errorf("the call after the revocation = %d %s", a.StatusCode, a.body)
		}
		if a := n.call("POST", "/api/v2/auth/token/refresh", `{"refresh_token": "`+tokens["refresh_token"].(string)+`"}`); a.code() != "TOKEN_INVALID" {
			t.Errorf("refresh after the revocation = %s", a.body)
		}
		n.get("/api/v2/me", bearer(second.Tokens.IDToken)...).want(t, 200)

		// Everything goes but the access token.
		third, err := anna.Device("")
		if err != nil {
			t.Fatal(err)
		}
		n.token = third.Tokens.IDToken
		personal := n.call("POST", "/api/v2/access-tokens", `{"name": "script"}`).want(t, 201)["token"].(string)
		n.call("POST", "/api/v2/auth/sign-out-everywhere", "").want(t, 204)
		for _, token := range []string{second.Tokens.IDToken, third.Tokens.IDToken} {
			if a := n.get("/api/v2/me", bearer(token)...); a.StatusCode != 401 {
				t.Errorf("a device after signing out everywhere = %d", a.StatusCode)
			}
		}
		if p, err := anna.Open("/account"); err != nil || p.URL.Path != "/signin" {
			t.Errorf("the browser after signing out everywhere is at %v, %v", p.URL, err)
		}
		n.get("/api/v2/me", bearer(personal)...).want(t, 200)

		// Keys can be changed under way.
		before := n.get("/.well-known/jwks.json").want(t, 200)
		if err := anna.SignIn("anna@example.com", password); err != nil {
			t.Fatal(err)
		}
		old, err := anna.Device("")
		if err != nil {
			t.Fatal(err)
		}
		s.do("keys", "rotate")
		fresh, err := anna.Device("")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []visitor.SignedIn{old, fresh} {
			n.get("/api/v2/me", bearer(d.Tokens.IDToken)...).want(t, 200)
		}
		if after := n.get("/.well-known/jwks.json").want(t, 200); len(before["keys"].([]any)) != 1 || len(after["keys"].([]any)) != 2 {
			t.Errorf("keys = %v, then %v", before, after)
		}
		n.stop()
		s.check()
		if v := s.do("admin", "audit", "verify"); fmt.Sprint(v["problems"]) != "[]" {
			t.Errorf("audit = %v", v)
		}
	})
}

// TestOnlyOneWins has many clients ask for what only one may get.
func TestOnlyOneWins(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.env = append(s.env, "ATELIER_TOKENS_REFRESH_ROTATE_AFTER=0s")
		n := s.serve()
		anna := visitor.New(n.url)
		if err := anna.SignUp("anna@example.com", password); err != nil {
			t.Fatal(err)
		}
		codes, err := anna.Start("")
		if err != nil {
			t.Fatal(err)
		}
		if err := anna.Decide(codes.VerificationURL, true); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var in []visitor.SignedIn
		statuses := map[int]int{}
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				one, err := anna.Poll(codes.DeviceCode)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					in = append(in, one)
					statuses[200]++
				} else if strings.Contains(err.Error(), "DEVICE_CODE_EXPIRED") {
					statuses[410]++
				} else {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if len(in) != 1 || statuses[410] != 63 {
			t.Fatalf("64 polls = %v", statuses)
		}
		successors := map[string]int{}
		for range 64 {
			group.Go(func() {
				a := n.call("POST", "/api/v2/auth/token/refresh", `{"refresh_token": "`+in[0].Tokens.RefreshToken+`"}`)
				mu.Lock()
				defer mu.Unlock()
				successors[fmt.Sprint(a.want(t, 200)["refresh_token"])]++
			})
		}
		group.Wait()
		if len(successors) != 1 || successors[in[0].Tokens.RefreshToken] != 0 {
			t.Errorf("64 refreshes gave %d successors", len(successors))
		}
		s.check()
	})
}

// TestRevokedIsDeadEverywhere revokes at one node and calls at the other. The
// long run has a thousand pairs of each kind.
func TestRevokedIsDeadEverywhere(t *testing.T) {
	t.Parallel()
	pairs := 100
	if text := os.Getenv("ATELIER_TEST_PAIRS"); text != "" {
		var err error
		if pairs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t)
	s.database = dbtest.Bare(t, "postgres")
	s.env = append(s.env, "ATELIER_HTTP_TRUSTED_PROXIES=127.0.0.0/8", "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0")
	first, second, addresses := s.serveTwoBehind()
	nodes := []*node{first, second}
	anna := visitor.From(addresses[0], "10.0.0.1")
	if err := anna.SignUp("anna@example.com", password); err != nil {
		t.Fatal(err)
	}
	var refused, alive atomic.Int64
	var group sync.WaitGroup
	work := make(chan int)
	for worker := range 8 {
		group.Go(func() {
			for i := range work {
				here, there := nodes[i%2], nodes[(i+1)%2]
				mine := visitor.From(addresses[i%2], fmt.Sprintf("10.1.%d.%d", i/250, i%250))
				mine = anna.As(mine)
				in, err := mine.Device("")
				if err != nil {
					t.Errorf("worker %d: %v", worker, err)
					continue
				}
				if got, err := code("GET", there.url+"/api/v2/me", bearer(in.Tokens.IDToken)...); got == 200 && err == nil {
					alive.Add(1)
				}
				if got, err := code("POST", here.url+"/api/v2/auth/device/revoke", bearer(in.Tokens.IDToken)...); got != 204 || err != nil {
					t.Errorf("revoke = %d, %v", got, err)
				}
				if got, err := code("GET", there.url+"/api/v2/me", bearer(in.Tokens.IDToken)...); got == 401 && err == nil {
					refused.Add(1)
				}
			}
		})
	}
	for i := range pairs {
		work <- i
	}
	close(work)
	group.Wait()
	t.Logf("%d pairs: %d alive before, %d refused after", pairs, alive.Load(), refused.Load())
	if alive.Load() != int64(pairs) || refused.Load() != int64(pairs) {
		t.Errorf("of %d devices %d were alive before and %d refused after", pairs, alive.Load(), refused.Load())
	}
	s.check()
}

// TestKilledWithAnAnswerInHand kills the program after it has committed and
// before it could say so.
func TestKilledWithAnAnswerInHand(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.env = append(s.env, "ATELIER_TOKENS_REFRESH_ROTATE_AFTER=0s")
		env := s.env
		n := s.serve()
		anna := visitor.New(n.url)
		if err := anna.SignUp("anna@example.com", password); err != nil {
			t.Fatal(err)
		}
		n.stop()
		device := func(n *node) visitor.SignedIn {
			t.Helper()
			browser := visitor.New(n.url)
			if err := browser.SignIn("anna@example.com", password); err != nil {
				t.Fatal(err)
			}
			in, err := browser.Device("")
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		crash := func(point string, do func(n *node)) *node {
			t.Helper()
			s.env = append(env, "ATELIER_CRASH="+point+":1")
			n := s.serve()
			do(n)
			<-n.exited
			if !killed(n.err) {
				t.Fatalf("%s: the program ended with %v", point, n.err)
			}
			s.env = env
			return s.serve()
		}

		// The tokens were made and nobody has them: the device starts again.
		var codes visitor.Codes
		n = crash("poll.after_claim_before_reply", func(n *node) {
			browser := visitor.New(n.url)
			if err := browser.SignIn("anna@example.com", password); err != nil {
				t.Fatal(err)
			}
			var err error
			if codes, err = browser.Start(""); err != nil {
				t.Fatal(err)
			}
			if err := browser.Decide(codes.VerificationURL, true); err != nil {
				t.Fatal(err)
			}
			if _, err := browser.Poll(codes.DeviceCode); err == nil {
				t.Fatal("the answer arrived")
			}
		})
		if a := n.get("/api/v2/auth/device/poll?device_code=" + codes.DeviceCode); a.StatusCode != 410 {
			t.Errorf("poll again = %d %s", a.StatusCode, a.body)
		}
		in := device(n)
		n.stop()

		// A refresh whose answer was lost: the old token gives the same again.
		refresh := func(n *node, token string) answer {
			return n.call("POST", "/api/v2/auth/token/refresh", `{"refresh_token": "`+token+`"}`)
		}
		n = crash("refresh.after_commit_before_reply", func(n *node) {
			r, err := http.Post(n.url+"/api/v2/auth/token/refresh", "application/json", strings.NewReader(`{"refresh_token": "`+in.Tokens.RefreshToken+`"}`))
			if err == nil {
				r.Body.Close()
				t.Fatal("the answer arrived")
			}
		})
		next := refresh(n, in.Tokens.RefreshToken).want(t, 200)["refresh_token"].(string)
		if after := refresh(n, next).want(t, 200)["refresh_token"]; after == next {
			t.Error("the successor was not rotated in its turn")
		}
		in = device(n)
		n.stop()

		// A revocation whose answer was lost has happened.
		n = crash("revoke.after_commit_before_reply", func(n *node) {
			if _, err := code("POST", n.url+"/api/v2/auth/device/revoke", bearer(in.Tokens.IDToken)...); err == nil {
				t.Fatal("the answer arrived")
			}
		})
		if a := n.get("/api/v2/me", bearer(in.Tokens.IDToken)...); a.StatusCode != 401 {
			t.Errorf("after the revocation = %d", a.StatusCode)
		}
		n.stop()
		s.check()
		if v := s.do("admin", "audit", "verify"); fmt.Sprint(v["problems"]) != "[]" {
			t.Errorf("audit = %v", v)
		}
	})
}
