package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
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

// TestDocumentMatchesServer has Schemathesis derive requests from the OpenAPI
// document, valid ones and invalid ones, and fails when the server and the
// document disagree about any of them. ATELIER_TEST_FUZZ=N is the long form: N
// random requests for each operation and credential on either database, and
// sequences of requests that build on each other. ATELIER_TEST_FUZZ=skip skips
// it.
func TestDocumentMatchesServer(t *testing.T) {
	t.Parallel()
	phases := "coverage"
	requests := 1
	passes := []struct{ engine, credential string }{{"sqlite", "ID token"}, {"postgres", "company token"}}

	if text := os.Getenv("ATELIER_TEST_FUZZ"); text != "" && text != "skip" {
		var err error
		if requests, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		phases = "examples,coverage,fuzzing,stateful"
		passes = nil
		for _, engine := range engines() {
			for _, credential := range []string{"ID token", "web token", "personal token", "company token", "none"} {
				passes = append(passes, struct{ engine, credential string }{engine, credential})
			}
		}
	}

	for _, pass := range passes {
		t.Run(pass.engine+"/"+pass.credential, func(t *testing.T) {
			t.Parallel()
			tool := servers.Need(t, "Schemathesis", "ATELIER_TEST_FUZZ", installFuzzer)
			s := newSite(t)
			if pass.engine == "postgres" {
				s.database = dbtest.Bare(t, pass.engine)
			}

			w := newFuzzFixture(t, s)
			// These two end the credential that all others need.
			leaving := []string{"--exclude-operation-id=signOutEverywhere", "--exclude-operation-id=revokeDevice"}
			w.fuzz(tool, pass.credential, phases, requests, leaving...)
			if pass.credential == "ID token" {
				w.fuzz(tool, pass.credential, phases, requests, "--include-operation-id=signOutEverywhere", "--include-operation-id=revokeDevice")
			}
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
	w.tokens = map[string]string{
		"none":           "",
		"ID token":       in.Tokens.IDToken,
		"web token":      w.webToken(anna),
		"personal token": s.do("admin", "token", "create", "--email", email, "--name", "script")["token"].(string),
		"company token":  s.do("admin", "token", "create", "--email", email, "--name", "script", "--company", company)["token"].(string),
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
		"personal": personal, "team": w.stock("?team_id=" + team), "spare": spare,
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

// stock gives the account that query selects one of each thing, and their ids by
// the names of the path parameters.
func (w *fuzzFixture) stock(query string) map[string]any {
	w.t.Helper()
	run := w.make("/generate"+query, fmt.Sprintf(`{"tool_id": %q, "tool_fields_hash": %q}`, w.tool["id"], w.tool["tool_fields_hash"]))
	board := w.make("/boards"+query, `{"name": "Autumn"}`)["id"].(string)
	node := w.make("/boards/"+board+"/nodes"+query, `{"kind": "TEXT", "text": "Mood"}`)

	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		w.t.Fatal(err)
	}
	upload := w.node.call("POST", "/api/v2/uploads"+query, picture.String(), "Content-Type", "image/png").want(w.t, http.StatusCreated)

	resumable := w.node.call("POST", "/api/v2/uploads/resumable"+query, "", "Tus-Resumable", "1.0.0", "Upload-Length", "1000000").Header.Get("Location")
	resumable, _, _ = strings.Cut(resumable, "?")

	deadline := time.Now().Add(time.Minute)
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		record := w.node.json("/api/v2/generate/" + run["request_id"].(string) + query)
		if record["status"] == "succeeded" {
			result := record["outputs"].([]any)[0].(map[string]any)
			return map[string]any{"request_id": run["request_id"], "upload_id": upload["id"], "resumable_id": path.Base(resumable), "board_id": board, "node_id": node["id"], "library_id": result["id"]}
		}
		if record["status"] != "pending" || time.Now().After(deadline) {
			w.t.Fatalf("the run is %v", record)
		}
	}
}

// fuzz runs Schemathesis with a credential. Its seed is always the same, and it
// sends one request at a time, so that what it finds can be found again.
func (w *fuzzFixture) fuzz(tool fuzzer, credential, phases string, requests int, more ...string) {
	w.t.Helper()
	dir := w.t.TempDir()
	ids, err := json.Marshal(w.ids)
	if err != nil {
		w.t.Fatal(err)
	}
	document := filepath.Join(dir, "openapi.yaml")
	write(w.t, dir, "openapi.yaml", string(openapi.Document))
	write(w.t, dir, "ids.json", string(ids))

	args := []string{
		"-m", "schemathesis.cli", "run", document, "--url", w.node.url + "/api/v2", "--phases", phases, "--max-examples", strconv.Itoa(requests),
		"--seed", "1", "--workers", "1", "--continue-on-failure", "--request-timeout", "30", "--warnings", "off", "--no-color",
		"--generation-database", "none",
		"--generation-allow-x00", "false", // no text may hold a NUL character, and no schema says that of all texts
		"--exclude-checks", "positive_data_acceptance,negative_data_rejection,missing_required_header", // the hooks have them, with the rules that no schema expresses
		"--exclude-operation-id", "exportMe", // five a day, as large as what there is
	}
	if token := w.tokens[credential]; token != "" {
		args = append(args, "--header", "Authorization: Bearer "+token)
	}
	cmd := exec.CommandContext(w.t.Context(), tool.python, append(args, more...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SCHEMATHESIS_HOOKS="+tool.hooks, "ATELIER_FUZZ_IDS="+filepath.Join(dir, "ids.json"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("Schemathesis with the %s: %v\n%s", credential, err, out)
		return
	}

	// A run that tested nothing finds nothing.
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "generated,") {
			w.t.Logf("with the %s: %s", credential, strings.TrimSpace(line))
			return
		}
	}
	w.t.Errorf("Schemathesis with the %s tested nothing:\n%s", credential, out)
}
