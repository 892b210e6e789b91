package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/test/visitor"
)

// cluster runs fn on one server with SQLite, and on two that share a
// PostgreSQL database.
func cluster(t *testing.T, env []string, fn func(t *testing.T, s *site, nodes []*node)) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, engine, env...)
			nodes := []*node{s.serve()}
			if engine == "postgres" && s.bucket == nil { // else the proxy has two
				nodes = append(nodes, s.serve())
			}
			fn(t, s, nodes)
		})
	}
}

// credential is one of the ways in which a person asks for runs.
type credential struct {
	token string
	query string // selects the account
}

// anna is a person with five credentials: two devices, two access tokens and a
// company's, which is for a team. Either account has tokens.
func anna(t *testing.T, s *site, n *node, tokens int) (all []credential, team string) {
	t.Helper()
	const email = "anna@example.com"
	browser := visitor.New(n.url)
	if err := browser.SignUp(email, password); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		in, err := browser.Device("")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, credential{token: in.Tokens.IDToken})
	}
	for _, name := range []string{"one", "two"} {
		all = append(all, credential{token: s.do("admin", "token", "create", "--email", email, "--name", name)["token"].(string)})
	}
	company := s.do("admin", "company", "create", "--name", "Acme", "--plan", "TEAM")["id"].(string)
	team = s.do("admin", "team", "create", "--company", company, "--name", "Blue")["id"].(string)
	s.do("admin", "company", "add", "--company", company, "--email", email)
	s.do("admin", "team", "add", "--team", team, "--email", email)
	all = append(all, credential{s.do("admin", "token", "create", "--email", email, "--name", "three", "--company", company)["token"].(string), "?team_id=" + team})
	s.grant("--email", email, tokens)
	s.grant("--team", team, tokens)
	return all, team
}

// reply is an answer and when it was asked for and had.
type reply struct {
	answer
	asked, had time.Time
	err        error
}

// TestManyCreatesOfOnePerson has 64 clients of one person create at once, on
// all nodes and with all credentials.
func TestManyCreatesOfOnePerson(t *testing.T) {
	cluster(t, nil, func(t *testing.T, s *site, nodes []*node) {
		n := nodes[0]
		credentials, team := anna(t, s, n, 1000)
		n.token = credentials[0].token
		order := n.order(1)
		replies := make([]reply, 64)
		dbtest.Together(len(replies), func(i int) {
			c, r := credentials[i%len(credentials)], &replies[i]
			r.asked = time.Now()
			r.answer, r.err = nodes[i%len(nodes)].create(c.token, c.query, order, nil)
			r.had = time.Now()
		})
		accepted, oldest := map[string]bool{}, time.Now().Add(time.Hour)
		for _, r := range replies {
			if r.err != nil {
				t.Fatal(r.err)
			}
			if r.StatusCode == 202 {
				v := r.want(t, 202)
				accepted[v["request_id"].(string)] = true
				if at, err := time.Parse(time.RFC3339, v["created"].(string)); err != nil {
					t.Error(err)
				} else if at.Before(oldest) {
					oldest = at
				}
			}
		}
		if len(accepted) != 10 {
			t.Errorf("%d creates were accepted, want 10", len(accepted))
		}
		for _, r := range replies {
			if r.StatusCode == 202 {
				continue
			}
			if r.StatusCode != 429 || r.code() != "RATE_LIMITED" {
				t.Errorf("a create = %d %s", r.StatusCode, r.body)
			}
			// The next is accepted 60 s after the oldest, whose time is known to
			// the second.
			wait, err := strconv.Atoi(r.Header.Get("Retry-After"))
			free := time.Duration(wait) * time.Second
			if least, most := oldest.Add(time.Minute).Sub(r.had), oldest.Add(time.Minute+2*time.Second).Sub(r.asked); err != nil || free < least || free > most {
				t.Errorf("Retry-After = %q, want from %v to %v", r.Header.Get("Retry-After"), least, most)
			}
		}
		spent := map[string]int{}
		for _, account := range []string{"", team} {
			credential := credentials[0]
			if account != "" {
				credential = credentials[4]
			}
			for id, r := range n.settled(credential.token, account) {
				if r["status"] != "succeeded" || r["tokens_charged"] != float64(unit) || !accepted[id] {
					t.Errorf("a run = %v", r)
				}
				delete(accepted, id)
				spent[account] += unit
			}
			if tokens, held := n.balance(credentials[0].token, account); tokens != float64(1000-spent[account]) || held != 0 {
				t.Errorf("balance of %q = %v with %v held, want %d", account, tokens, held, 1000-spent[account])
			}
		}
		if len(accepted) > 0 {
			t.Errorf("accepted and lost: %v", accepted)
		}
		s.check()
	})
}

// TestManyCreatesWithOneKey has 64 clients send the same create.
func TestManyCreatesWithOneKey(t *testing.T) {
	cluster(t, nil, func(t *testing.T, s *site, nodes []*node) {
		n := nodes[0]
		credentials, _ := anna(t, s, n, 1000)
		credentials = credentials[:4] // the account is part of what a request is
		n.token = credentials[0].token
		count := filepath.Join(t.TempDir(), "count")
		order := n.order(2, countTo(count), picture, picture)
		replies := make([]reply, 64)
		dbtest.Together(len(replies), func(i int) {
			replies[i].answer, replies[i].err = nodes[i%len(nodes)].create(credentials[i%len(credentials)].token, "", order, nil, "Idempotency-Key", "the-only-one")
		})
		fresh, bodies := 0, map[string]int{}
		for i, r := range replies {
			if r.err != nil {
				t.Fatal(r.err)
			}
			// Nodes of one installation share base_url; these have one each.
			body := strings.ReplaceAll(string(r.body), nodes[i%len(nodes)].url, "https://atelier.example")
			bodies[fmt.Sprint(r.StatusCode, r.Header.Get("Retry-After"), body)]++
			switch r.Header.Get("Idempotent-Replayed") {
			case "":
				fresh++
			case "true":
			default:
				t.Errorf("Idempotent-Replayed = %q", r.Header.Get("Idempotent-Replayed"))
			}
		}
		if len(bodies) != 1 || fresh != 1 {
			t.Fatalf("%d first answers of these kinds: %v", fresh, bodies)
		}
		id := replies[0].want(t, 202)["request_id"].(string)
		all := n.settled(n.token, "")
		if r := all[id]; len(all) != 1 || r["status"] != "succeeded" || r["tokens_charged"] != float64(2*unit) || len(r["outputs"].([]any)) != 2 {
			t.Errorf("runs = %v, want one with two results", all)
		}
		if got := started(t, count); len(got) != 1 || got[0] != id+" 1" {
			t.Errorf("the engine was started for %q", got)
		}
		if tokens, held := n.balance(n.token, ""); tokens != 1000-2*unit || held != 0 {
			t.Errorf("balance = %v with %v held", tokens, held)
		}
		s.check()
	})
}

// TestManyCreatesOnOneBalance has 64 clients spend what is enough for three.
func TestManyCreatesOnOneBalance(t *testing.T) {
	env := []string{"ATELIER_LIMITS_CREATE_PER_MINUTE=1000", "ATELIER_LIMITS_CREATE_PER_HOUR=1000", "ATELIER_LIMITS_ACTIVE_RUNS=100"}
	cluster(t, env, func(t *testing.T, s *site, nodes []*node) {
		const rest = unit - 1
		n := nodes[0]
		n.token = s.token("bert@example.com")
		s.grant("--email", "bert@example.com", 3*unit+rest)
		count := filepath.Join(t.TempDir(), "count")
		order := n.order(1, countTo(count), pause(time.Second), picture) // none ends while others are asked for
		replies := make([]reply, 64)
		dbtest.Together(len(replies), func(i int) {
			replies[i].answer, replies[i].err = nodes[i%len(nodes)].create(n.token, "", order, nil, "Idempotency-Key", fmt.Sprint("key-", i))
		})
		statuses := map[int]int{}
		for _, r := range replies {
			if r.err != nil {
				t.Fatal(r.err)
			}
			statuses[r.StatusCode]++
			if r.StatusCode == 202 {
				continue
			}
			problem := r.want(t, 402)["error"].(map[string]any)
			if details := problem["details"].(map[string]any); r.code() != "INSUFFICIENT_BALANCE" || details["required"] != float64(unit) || details["available"] != float64(rest) {
				t.Errorf("a refusal = %s", r.body)
			}
		}
		if statuses[202] != 3 || statuses[402] != 61 {
			t.Errorf("statuses = %v, want three accepted", statuses)
		}
		all := n.settled(n.token, "")
		for _, r := range all {
			if r["status"] != "succeeded" || r["tokens_charged"] != float64(unit) {
				t.Errorf("a run = %v", r)
			}
		}
		if got := started(t, count); len(all) != 3 || len(got) != 3 {
			t.Errorf("%d runs, started %q; want three of either", len(all), got)
		}
		if tokens, held := n.balance(n.token, ""); tokens != rest || held != 0 {
			t.Errorf("balance = %v with %v held, want %d", tokens, held, rest)
		}
		s.check()
	})
}
