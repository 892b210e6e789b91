package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"atelier/internal/web/api/apitest"
)

// firm is a company with a team of two, whose nodes are all the same node on
// the embedded database.
type firm struct {
	*site
	nodes         [2]*node
	company, team string
	tokens        [2]string // Anna's, who may see reports, and Bert's
}

func openFirm(t *testing.T, engine string) *firm {
	t.Helper()
	s := &firm{site: newStage(t, engine, "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0")}
	s.company = s.do("admin", "company", "create", "--name", "Fox", "--plan", "ENTERPRISE")["id"].(string)
	s.team = s.do("admin", "team", "create", "--company", s.company, "--name", "Look")["id"].(string)
	for i, email := range []string{"anna@fox.example", "bert@fox.example"} {
		s.do("admin", "person", "create", "--email", email, "--password", password, "--verified")
		s.do("admin", "team", "add", "--team", s.team, "--email", email)
		s.tokens[i] = s.do("admin", "token", "create", "--email", email, "--name", "test", "--company", s.company)["token"].(string)
	}
	s.reports(true)
	s.grant("--team", s.team, 1000)
	s.nodes[0] = s.serve()
	s.nodes[1] = s.nodes[0]
	if engine == "postgres" && s.bucket == nil { // else the proxy has two
		s.nodes[1] = s.serve()
	}
	for i, n := range s.nodes {
		n.token = s.tokens[i]
	}
	return s
}

// reports lets Anna see reports, or not. She manages the members in any case.
func (s *firm) reports(may bool) {
	s.t.Helper()
	args := []string{"admin", "company", "add", "--company", s.company, "--email", "anna@fox.example", "--permission", "MANAGE_MEMBERS"}
	if may {
		args = append(args, "--permission", "VIEW_COMPANY_REPORTS")
	}
	s.do(args...)
}

// as asks a node for one of the two.
func (s *firm) as(i int, method, path, body string) answer {
	s.t.Helper()
	return s.nodes[i].call(method, path, body, bearer(s.tokens[i])...)
}

// TestTwoNodesShowOneBoard has two people arrange a board, each at a node of
// their own, and follow what the other does.
func TestTwoNodesShowOneBoard(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := openFirm(t, engine)
			query := "?team_id=" + s.team
			board := s.as(0, "POST", "/api/v2/boards"+query, `{"name":"Autumn"}`).want(t, 201)["id"].(string)
			const count = 200
			drafts := strings.TrimSuffix(strings.Repeat(`{"kind":"TEXT","text":"a"},`, count), ",")
			made := s.as(0, "PATCH", "/api/v2/boards/"+board+"/nodes"+query, `{"create":[`+drafts+`]}`).want(t, 200)
			var ids []string
			for _, n := range made["created"].([]any) {
				ids = append(ids, n.(map[string]any)["id"].(string))
			}
			var copies [2]*copied
			for i := range copies {
				copies[i] = s.copy(i, board)
			}
			var group sync.WaitGroup
			for i := range copies {
				group.Go(func() {
					for j, id := range ids {
						body := []string{fmt.Sprintf(`{"x":%d}`, j+1), fmt.Sprintf(`{"y":%d}`, j+1)}[i]
						if a := s.as(i, "PATCH", "/api/v2/boards/"+board+"/nodes/"+id+query, body); a.StatusCode != 200 {
							t.Errorf("move = %d %s", a.StatusCode, a.body)
						}
					}
				})
			}
			group.Wait()
			final := s.as(0, "GET", "/api/v2/boards/"+board+query, "").want(t, 200)
			if got := final["revision"]; got != float64(2+2*count) {
				t.Errorf("revision = %v, want %d", got, 2+2*count)
			}
			for j, one := range final["nodes"].([]any) {
				n := one.(map[string]any)
				if n["id"] != ids[j] || n["x"] != float64(j+1) || n["y"] != float64(j+1) {
					t.Fatalf("a move of node %d got lost: %v", j, n)
				}
			}
			for i, c := range copies {
				c.until(final["revision"].(float64))
				for _, one := range final["nodes"].([]any) {
					if n := one.(map[string]any); !reflect.DeepEqual(c.nodes[n["id"].(string)], n) {
						t.Fatalf("copy %d has %v, want %v", i, c.nodes[n["id"].(string)], n)
					}
				}
			}
			s.check()
		})
	}
}

// copied is a board as somebody knows it from the events alone.
type copied struct {
	t     *testing.T
	lines *bufio.Scanner
	at    float64
	nodes map[string]any
}

// copy reads a board from its first revision on.
func (s *firm) copy(i int, board string) *copied {
	s.t.Helper()
	r, err := http.NewRequest("GET", s.nodes[i].url+"/api/v2/boards/"+board+"/events?team_id="+s.team, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.tokens[i])
	r.Header.Set("Last-Event-ID", "1")
	res, err := apitest.Client(s.t).Do(r)
	if err != nil || res.StatusCode != 200 {
		s.t.Fatalf("follow the board: %v %v", res, err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 8<<20)
	return &copied{s.t, lines, 0, map[string]any{}}
}

// until reads events up to a revision.
func (c *copied) until(revision float64) {
	c.t.Helper()
	name := ""
	for c.at < revision && c.lines.Scan() {
		if text, ok := strings.CutPrefix(c.lines.Text(), "event: "); ok {
			name = text
		}
		data, ok := strings.CutPrefix(c.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Revision float64
			Put      []map[string]any
			Deleted  []string
		}
		if name == "nodes" {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				c.t.Fatal(err)
			}
			c.at = e.Revision
		}
		for _, n := range e.Put {
			c.nodes[n["id"].(string)] = n
		}
		for _, id := range e.Deleted {
			delete(c.nodes, id)
		}
	}
	if c.at < revision {
		c.t.Fatalf("the stream ended at %v, want %v: %v", c.at, revision, c.lines.Err())
	}
}

// TestACompanyGoverns has a company's people run tools, read reports, lose the
// right to, reach their budget and leave.
func TestACompanyGoverns(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := openFirm(t, engine)
			n, query := s.nodes[0], "?team_id="+s.team
			run := func(i int, steps ...string) answer {
				t.Helper()
				a, err := s.nodes[i].create(s.tokens[i], query, n.order(1, steps...), nil)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			for i := range 4 {
				run(i%2, picture).want(t, 202)
			}
			run(0, `{"fail": "broken"}`).want(t, 202)
			n.settled(s.tokens[0], s.team)

			report := "/api/v2/reports/usage?group_by=person&limit=1"
			page := s.as(0, "GET", report, "").want(t, 200)
			totals := page["totals"].(map[string]any)
			spent, _ := n.balance(s.tokens[0], s.team)
			if totals["tokens_charged"] != 1000-spent || totals["tokens_charged"] != float64(4*unit) || totals["runs"] != float64(5) || totals["failed"] != float64(1) {
				t.Errorf("totals = %v with %v tokens left", totals, spent)
			}
			next := report + "&cursor=" + page["next_cursor"].(string)
			s.reports(false)
			for _, node := range s.nodes {
				if a := node.get(next, bearer(s.tokens[0])...); a.StatusCode != 403 || !strings.Contains(string(a.body), `"permission"`) {
					t.Errorf("the next page without the permission = %d %s", a.StatusCode, a.body)
				}
				node.get("/api/v2/tools"+query, bearer(s.tokens[0])...).want(t, 200)
			}
			s.reports(true)
			if row := s.as(0, "GET", next, "").want(t, 200)["data"].([]any)[0].(map[string]any); row["tokens_charged"] != float64(2*unit) {
				t.Errorf("the next page = %v", row)
			}

			s.do("admin", "budget", "set", "--team", s.team, "--tokens", fmt.Sprint(5*unit), "--hard")
			run(1, picture).want(t, 202)
			if a := run(1, picture); a.StatusCode != 402 || !strings.Contains(string(a.body), `"budget"`) {
				t.Errorf("beyond the budget = %d %s", a.StatusCode, a.body)
			}
			n.settled(s.tokens[0], s.team)
			if told := s.do("admin", "budget", "show", "--team", s.team)["told_percent"]; told != float64(100) {
				t.Errorf("told of %v %%, want 100", told)
			}

			s.do("admin", "person", "delete", "--email", "bert@fox.example", "--yes")
			for _, node := range s.nodes {
				if a := node.get("/api/v2/me", bearer(s.tokens[1])...); a.StatusCode != 401 {
					t.Errorf("a deleted person's token = %d %s", a.StatusCode, a.body)
				}
			}
			rows := s.as(0, "GET", "/api/v2/reports/usage?group_by=person", "").want(t, 200)
			if !strings.Contains(fmt.Sprint(rows["data"]), "deleted person") || rows["totals"].(map[string]any)["tokens_charged"] != float64(5*unit) {
				t.Errorf("after the deletion: %v", rows)
			}
			s.check()
		})
	}
}
