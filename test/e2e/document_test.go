package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/png"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	openapi "atelier/api"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/servers"
	"atelier/test/visitor"
)

// fuzzer is where Schemathesis is on this machine.
type fuzzer struct{ python, hooks string }

// installFuzzer installs the versions that test/fuzzer locks where they are not
// on this machine yet.
var installFuzzer = sync.OnceValues(func() (fuzzer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()

	source, err := servers.Source(ctx, "fuzzer")
	if err != nil {
		return fuzzer{}, err
	}
	bin, err := servers.Python(ctx, source, "fuzzer")
	if err != nil {
		return fuzzer{}, fmt.Errorf("schemathesis: %w", err)
	}
	return fuzzer{filepath.Join(bin, "python"), filepath.Join(source, "hooks.py")}, nil
})

// fuzzed is the tool that requests are about: quick, with optional fields only.
const fuzzed = `name: Dot
price: {type: COST, tokens: 1}
num_results: {max: 4}
output: {type: IMG, mime_types: [image/png]}
engine: {name: image, with: {operation: gradient}}
fields:
  - {key: colours, type: TEXT, label: Colours, max_length: 100}
  - {key: size, type: WIDTH_HEIGHT, label: Size, default: {width: 16, height: 16}, min: 16, max: 64}
`

var (
	fuzzRequests = flag.Int("fuzz-requests", 0, "number of requests that are derived from the OpenAPI document for each database; 0 is the short form")
	fuzzSeed     = flag.Int("fuzz-seed", 1, "seed of the first requests that are derived from the OpenAPI document")
)

// fuzzCredentials are the kinds of credentials that requests are sent with. The
// first four belong to a person who administers a company and operates the
// service, the next to a person without any permission. The service refuses a
// SCIM token here.
var fuzzCredentials = []string{"ID token", "web token", "personal token", "company token", "member's ID token", "SCIM token", "none"}

// TestDocumentMatchesServer has Schemathesis derive requests from the OpenAPI
// document, valid ones and invalid ones, and fails when the server and the
// document disagree about any of them, or an answer has a status of 500 or above.
//
//	go test -timeout 2h -v -run TestDocumentMatchesServer ./test/e2e -args -fuzz-requests 50000
//
// is the long form: so many requests for each database, the same number with
// each kind of credential, among them sequences of requests that build on each
// other. -run TestDocumentMatchesServer/postgres/web_token sends the part of one
// kind alone, and -fuzz-seed N other requests. ATELIER_TEST_FUZZ=skip skips the
// test.
func TestDocumentMatchesServer(t *testing.T) {
	t.Parallel()
	type pass struct{ engine, credential string }
	passes := []pass{{"sqlite", "ID token"}, {"postgres", "company token"}}
	if *fuzzRequests > 0 {
		passes = nil
		for _, engine := range engines() {
			for _, credential := range fuzzCredentials {
				passes = append(passes, pass{engine, credential})
			}
		}
	}

	for _, pass := range passes {
		t.Run(pass.engine+"/"+pass.credential, func(t *testing.T) {
			if *fuzzRequests == 0 {
				t.Parallel()
			}
			tool := servers.Need(t, "Schemathesis", "ATELIER_TEST_FUZZ", installFuzzer)
			s := newSite(t)
			if pass.engine == "postgres" {
				s.database = dbtest.Bare(t, pass.engine)
			}
			w := newFuzzFixture(t, s)
			w.fuzz(tool, pass.credential)
			s.check()
		})
	}
}

// fuzzFixture is an installation with something of everything that requests can
// name.
type fuzzFixture struct {
	t      *testing.T
	node   *node
	tool   map[string]any
	tokens map[string]string // credentials by their kind
	ids    map[string]any    // for the fuzzer's hooks
}

func newFuzzFixture(t *testing.T, s *site) *fuzzFixture {
	t.Helper()
	tools := t.TempDir()
	write(t, tools, "dot.yaml", fuzzed)
	s.env = append(s.env, "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0", "ATELIER_LIMITS_CREATE_PER_MINUTE=1000000", "ATELIER_LIMITS_CREATE_PER_HOUR=1000000",
		"ATELIER_LIMITS_ACTIVE_RUNS=100000", "ATELIER_UPLOADS_UNFINISHED=100000", "ATELIER_CATALOG_BUILTIN=false",
		"ATELIER_OPERATORS=anna@example.com", "ATELIER_TOKENS_ID_LIFETIME=24h", "ATELIER_TOKENS_WEB_LIFETIME=24h")
	w := &fuzzFixture{t: t, node: s.serve("--tools", tools)}

	const email, other, third = "anna@example.com", "bert@example.com", "carl@example.com"
	uids := map[string]string{}
	for _, one := range []string{email, other, third} {
		uids[one] = s.do("admin", "person", "create", "--email", one, "--password", password, "--verified")["uid"].(string)
	}
	company := s.do("admin", "company", "create", "--name", "Studio", "--plan", "ENTERPRISE")["id"].(string)
	team := s.do("admin", "team", "create", "--company", company, "--name", "Look")["id"].(string)
	spareTeam := s.do("admin", "team", "create", "--company", company, "--name", "Spare")["id"].(string)
	s.do("admin", "company", "add", "--company", company, "--email", email, "--permission", "MANAGE_API_TOKENS", "--permission", "VIEW_COMPANY_REPORTS",
		"--permission", "MANAGE_MEMBERS", "--permission", "MANAGE_TEAMS", "--permission", "MANAGE_BILLING")
	for _, one := range []string{other, third} {
		s.do("admin", "company", "add", "--company", company, "--email", one)
	}
	for _, one := range []string{email, other, third} {
		s.do("admin", "team", "add", "--team", team, "--email", one)
	}
	s.do("admin", "grant", "--email", email, "--tokens", "1000000")
	s.do("admin", "grant", "--team", team, "--tokens", "1000000")

	anna := visitor.New(w.node.url)
	if err := anna.SignIn(email, password); err != nil {
		t.Fatal(err)
	}
	in, err := anna.Device("blender")
	if err != nil {
		t.Fatal(err)
	}
	bert := visitor.New(w.node.url)
	if err := bert.SignIn(other, password); err != nil {
		t.Fatal(err)
	}
	member, err := bert.Device("blender")
	if err != nil {
		t.Fatal(err)
	}
	w.tokens = map[string]string{
		"none":              "",
		"ID token":          in.Tokens.IDToken,
		"web token":         w.webToken(anna),
		"personal token":    s.do("admin", "token", "create", "--email", email, "--name", "script")["token"].(string),
		"company token":     s.do("admin", "token", "create", "--email", email, "--name", "script", "--company", company)["token"].(string),
		"member's ID token": member.Tokens.IDToken,
		"SCIM token":        s.do("admin", "scim-token", "create", "--company", company)["token"].(string),
	}
	w.node.token = in.Tokens.IDToken
	id := w.node.json("/api/v2/tools")["data"].([]any)[0].(map[string]any)["id"].(string)
	w.tool = w.node.json("/api/v2/tools/" + id)

	token := func() any { return w.make("/access-tokens", `{"name": "spare"}`)["id"] }
	invitation := func() any { return w.make("/companies/"+company+"/invitations", `{}`)["id"] }
	personal, spare := w.stock(""), w.stock("")
	spare["token_id"] = token()
	spare["invitation_id"] = invitation()
	spare["team_id"] = spareTeam
	spare["uid"] = uids[third]
	w.ids = map[string]any{
		"company_id": company, "team_id": team, "uid": uids[other], "token_id": token(), "invitation_id": invitation(),
		"tool_id": w.tool["id"], "tool_fields_hash": w.tool["tool_fields_hash"],
		"personal": personal, "team": w.stock("?team_id=" + team), "spare": spare, "picture": w.picture(),
	}
	return w
}

// webToken returns the token of a signed-in browser, as the studio requests it.
func (w *fuzzFixture) webToken(browser *visitor.Visitor) string {
	w.t.Helper()
	a := w.node.call("POST", "/api/v2/auth/session/token", "", "Cookie", browser.CookieHeader(), "X-Atelier-Studio", "1")
	return a.want(w.t, http.StatusOK)["id_token"].(string)
}

// make has something made for an account.
func (w *fuzzFixture) make(path, body string) map[string]any {
	w.t.Helper()
	a := w.node.call("POST", "/api/v2"+path, body)
	if a.StatusCode/100 != 2 {
		w.t.Fatalf("POST %s = %d %s", path, a.StatusCode, a.body)
	}
	return a.want(w.t, a.StatusCode)
}

// picture returns a small picture.
func (w *fuzzFixture) picture() []byte {
	w.t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		w.t.Fatal(err)
	}
	return picture.Bytes()
}

// stock gives the account that query selects one of each thing, and their ids by
// the names of the path parameters.
func (w *fuzzFixture) stock(query string) map[string]any {
	w.t.Helper()
	run := w.make("/generate"+query, fmt.Sprintf(`{"tool_id": %q, "tool_fields_hash": %q}`, w.tool["id"], w.tool["tool_fields_hash"]))
	board := w.make("/boards"+query, `{"name": "Autumn"}`)["id"].(string)
	node := w.make("/boards/"+board+"/nodes"+query, `{"kind": "TEXT", "text": "Mood"}`)

	flow := w.make("/flows"+query, fmt.Sprintf(`{"name": "Twice", "steps": [{"id": "one", "tool": %[1]q}, {"id": "two", "tool": %[1]q}]}`, w.tool["slug"]))

	upload := w.node.call("POST", "/api/v2/uploads"+query, string(w.picture()), "Content-Type", "image/png").want(w.t, http.StatusCreated)

	resumable := w.node.call("POST", "/api/v2/uploads/resumable"+query, "", "Tus-Resumable", "1.0.0", "Upload-Length", "1000000").Header.Get("Location")
	resumable, _, _ = strings.Cut(resumable, "?")

	deadline := time.Now().Add(time.Minute)
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		record := w.node.json("/api/v2/generate/" + run["request_id"].(string) + query)
		if record["status"] == "succeeded" {
			result := record["outputs"].([]any)[0].(map[string]any)
			return map[string]any{"request_id": run["request_id"], "upload_id": upload["id"], "resumable_id": path.Base(resumable), "board_id": board, "node_id": node["id"], "library_id": result["id"], "flow_id": flow["id"]}
		}
		if record["status"] != "pending" || time.Now().After(deadline) {
			w.t.Fatalf("the run is %v", record)
		}
	}
}

// fuzz sends requests with a credential, and fails if an answer does not match
// the document. Without a number of requests it sends those that try the limits
// of each schema.
func (w *fuzzFixture) fuzz(tool fuzzer, credential string) {
	w.t.Helper()
	// These two end the credential that all others need.
	leaving := []string{"signOutEverywhere", "revokeDevice"}
	run := schemathesisRun{phases: "coverage", examples: 1, seed: *fuzzSeed, exclude: leaving}
	if *fuzzRequests == 0 {
		sent := w.runSchemathesis(tool, credential, run)
		if credential == "ID token" {
			sent.add(w.runSchemathesis(tool, credential, schemathesisRun{phases: "coverage", examples: 1, seed: *fuzzSeed, include: leaving}))
		}
		w.t.Logf("with the %s: %v", credential, sent)
		return
	}

	began := time.Now()
	goal := (*fuzzRequests + len(fuzzCredentials) - 1) / len(fuzzCredentials)
	sent := w.runSchemathesis(tool, credential, schemathesisRun{phases: "examples,coverage", examples: 10, seed: *fuzzSeed, exclude: leaving})
	for seed := *fuzzSeed; sent.total() < goal && !w.t.Failed(); seed++ {
		sent.add(w.runSchemathesis(tool, credential, schemathesisRun{
			phases:   "fuzzing",
			examples: max((goal-sent.total())/countOperations(), 5),
			seed:     seed,
			exclude:  leaving,
		}))
	}
	// A sequence may end the credential, so sequences come late.
	sent.add(w.runSchemathesis(tool, credential, schemathesisRun{phases: "stateful", examples: 10, seed: *fuzzSeed, exclude: leaving}))
	if credential == "ID token" || credential == "web token" || credential == "member's ID token" {
		sent.add(w.runSchemathesis(tool, credential, schemathesisRun{phases: "examples,coverage,fuzzing", examples: 10, seed: *fuzzSeed, include: leaving}))
	}
	w.t.Logf("with the %s: %v in %v", credential, sent, time.Since(began).Round(time.Second))
}

// countOperations returns the number of operations of the OpenAPI document.
func countOperations() int { return bytes.Count(openapi.Document, []byte("operationId:")) }

// answerCounts is the number of answers by the operation and the HTTP status,
// such as "getMe 200".
type answerCounts map[string]int

func (c answerCounts) add(more answerCounts) {
	for kind, n := range more {
		c[kind] += n
	}
}

func (c answerCounts) total() (n int) {
	for _, one := range c {
		n += one
	}
	return n
}

// byStatus returns the number of answers by status.
func (c answerCounts) byStatus() map[string]int {
	all := map[string]int{}
	for kind, n := range c {
		_, status, _ := strings.Cut(kind, " ")
		all[status] += n
	}
	return all
}

// String returns the number of requests, the number of answers by status, and
// the operations of which no request succeeded.
func (c answerCounts) String() string {
	text := fmt.Sprintf("%d requests", c.total())
	byStatus := c.byStatus()
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		text += fmt.Sprintf(", %s: %d", status, byStatus[status])
	}
	succeeded := map[string]bool{}
	for kind := range c {
		operation, status, _ := strings.Cut(kind, " ")
		succeeded[operation] = succeeded[operation] || status < "4"
	}
	maps.DeleteFunc(succeeded, func(_ string, is bool) bool { return is })
	return fmt.Sprintf("%s; no request succeeded of %d operations: %s", text, len(succeeded), strings.Join(slices.Sorted(maps.Keys(succeeded)), " "))
}

// schemathesisRun says which requests Schemathesis sends.
type schemathesisRun struct {
	phases           string
	examples         int // number of random requests for each operation
	seed             int
	include, exclude []string // operations
}

// runSchemathesis runs Schemathesis with a credential and counts the answers.
// One request is sent at a time, so that what a seed finds can be found again.
func (w *fuzzFixture) runSchemathesis(tool fuzzer, credential string, run schemathesisRun) answerCounts {
	w.t.Helper()
	dir := w.t.TempDir()
	ids, err := json.Marshal(w.ids)
	if err != nil {
		w.t.Fatal(err)
	}
	document := filepath.Join(dir, "openapi.yaml")
	write(w.t, dir, "openapi.yaml", string(openapi.Document))
	write(w.t, dir, "ids.json", string(ids))
	counts := filepath.Join(dir, "counts.json")

	args := []string{
		"-m", "schemathesis.cli", "run", document, "--url", w.node.url + "/api/v2", "--phases", run.phases, "--max-examples", strconv.Itoa(run.examples),
		"--seed", strconv.Itoa(run.seed), "--workers", "1", "--continue-on-failure", "--request-timeout", "30", "--warnings", "off", "--no-color",
		"--generation-database", "none", "--no-shrink",
		"--suppress-health-check", "too_slow", // other tests run at the same time
		"--generation-allow-x00", "false", // no text may hold a NUL character, and no schema says that of all texts
		"--exclude-checks", "positive_data_acceptance,negative_data_rejection,missing_required_header", // the hooks have them, with the rules that no schema expresses
		"--exclude-operation-id", "exportMe", // five a day, as large as what there is
	}
	for _, operation := range run.include {
		args = append(args, "--include-operation-id", operation)
	}
	for _, operation := range run.exclude {
		args = append(args, "--exclude-operation-id", operation)
	}
	if token := w.tokens[credential]; token != "" {
		args = append(args, "--header", "Authorization: Bearer "+token)
	}
	cmd := exec.CommandContext(w.t.Context(), tool.python, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SCHEMATHESIS_HOOKS="+tool.hooks, "ATELIER_FUZZ_IDS="+filepath.Join(dir, "ids.json"), "ATELIER_FUZZ_COUNTS="+counts)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("Schemathesis with the %s, %+v: %v\n%s", credential, run, err, out)
	}

	sent := answerCounts{}
	text, err := os.ReadFile(counts)
	if err == nil {
		err = json.Unmarshal(text, &sent)
	}
	if err != nil || sent.total() == 0 { // a run that tested nothing finds nothing
		w.t.Fatalf("Schemathesis with the %s, %+v, tested nothing: %v\n%s", credential, run, err, out)
	}
	for status, n := range sent.byStatus() {
		if status >= "5" {
			w.t.Errorf("with the %s, %+v: %d answers have the status %s", credential, run, n, status)
		}
	}
	return sent
}
